# SPDX-License-Identifier: Apache-2.0
"""What processes cost, of real trials: columns, file, and the table in every view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from campaign_support import journal, lagometer, write_study
from needs import need

from lagometer.agent.observe.hardware import COUNTERS, unavailable

MATRIX = {"workload": "pipeline-3", "rate": "10Hz", "placement": "process-per-node"}


def campaign_of(folder: Path, **keys: Any) -> Path:
    out = folder / "out"
    code, _, errors = lagometer(folder, "run", str(write_study(folder, **keys)), "--out", str(out))
    assert code == 0, errors
    return out


def totals(out: Path, adapter: str) -> dict[str, Any]:
    rows = pl.read_parquet(out / "cells.parquet").filter(edge="end-to-end", adapter=adapter).to_dicts()
    found = {name[10:]: value for name, value in rows[0].items() if name.startswith("resources_")}
    return {**found, "memory_pss_bytes": rows[0]["memory_pss_bytes"]}


def of_cell(out: Path, adapter: str) -> pl.DataFrame:
    (path,) = [each for each in (out / "resources").rglob("*.parquet") if adapter in each.parts]
    return pl.read_parquet(path)


def test_every_view_has_what_a_node_costs(tmp_path: Path) -> None:
    need("netns")
    need("cyclonedds")
    out = campaign_of(tmp_path, matrix={**MATRIX, "adapter": ["shm", "cyclonedds"]})
    bare, dds = totals(out, "shm"), totals(out, "cyclonedds")
    assert bare["processes"] == dds["processes"] == 3
    # Cyclone DDS has threads, sockets and a library of its own in each process; shared memory has none.
    assert dds["threads"] > bare["threads"] >= 6
    assert dds["udp_sockets"] >= 6 and bare["udp_sockets"] == bare["tcp_sockets"] == 0
    assert dds["middleware_mapped_bytes"] > 1_000_000 and bare["middleware_mapped_bytes"] == 0
    assert dds["network_sent_bytes"] > 0 and bare["network_sent_bytes"] == 0
    for each in (bare, dds):
        assert 0 < each["uss_bytes"] <= each["memory_pss_bytes"] <= each["rss_bytes"]
        assert each["voluntary_switches"] > 0 and each["descriptors"] > 0
    frame = of_cell(out, "cyclonedds")
    assert set(frame.filter(what="process")["process"]) == {"source", "relay-1", "sink"}
    threads = frame.filter(what="thread")
    assert threads.height == dds["threads"] and "recv" in set(threads["name"])
    (group,) = set(frame.filter(pl.col("name").str.contains("libddsc"))["group"])
    assert group == "middleware"

    code, text, errors = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0, errors
    table = json.loads(text)["node_costs"]
    assert [row["adapter"] for row in table["rows"]] == ["shm", "cyclonedds"]
    row = table["rows"][1]
    assert row["threads_per_node"] == dds["threads"] / 3 and row["thread_names"]["recv"] == 3
    code, text, errors = lagometer(tmp_path, "show", str(out))
    assert code == 0 and "what a node costs" in text and "recv × 3" in text, errors
    assert all(reason in " ".join(text.split()) for reason in unavailable().values())
    assert _of_report(out) == table


def _of_report(out: Path) -> Any:
    """What the page was given of it, as it stands in its text."""
    page = (out / "report.html").read_text(encoding="utf-8")
    found, _ = json.JSONDecoder().raw_decode(page, page.index('"node_costs":') + len('"node_costs":'))
    return found


def test_counters_are_counted_or_say_why_not(tmp_path: Path) -> None:
    need("netns")
    out = campaign_of(tmp_path, resources="counters", matrix={**MATRIX, "adapter": "shm"})
    found, why = totals(out, "shm"), journal(out)[0]["resources"]["not_available"]
    for name in COUNTERS:
        assert (found[name] is None) == (name in why)
        assert found[name] is None or found[name] > 0


def test_nothing_is_looked_at_where_it_is_off(tmp_path: Path) -> None:
    need("netns")
    out = campaign_of(tmp_path, resources="off", matrix={**MATRIX, "adapter": "shm"})
    found = totals(out, "shm")
    assert found["threads"] is None and found["rss_bytes"] is None
    assert found["memory_pss_bytes"] > 0
    assert "resources" not in journal(out)[0] and not (out / "resources").exists()
    code, text, _ = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0 and json.loads(text)["node_costs"] is None
