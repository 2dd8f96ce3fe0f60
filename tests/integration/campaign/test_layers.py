# SPDX-License-Identifier: Apache-2.0
"""Layers of real messages: those that are promised, that they add up, and how little stays unattributed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from campaign_support import journal, lagometer, programs, write_study
from needs import ROOT, need

from lagometer.conformance.least_layers import least_layers
from lagometer.store.format import LAYERS_SCHEMA
from lagometer.store.reader import open_campaign
from lagometer.summary.layers import layer_tables

OPTIONS = {"fastdds": {"transport": "udp"}}  # as with the profile matched
PROMISES = least_layers(ROOT / "adapters" / "least_layers.json").adapters


def least(adapter: str) -> set[str]:
    """What is promised of an adapter with the dispatch waitset."""
    factors = {"profile": "matched"} if adapter in OPTIONS else {}
    promises = PROMISES[adapter].promises
    return next(
        set(promise.shows)
        for promise in promises
        if "waitset" in promise.dispatch and promise.factors == factors
    )


LEAST = {adapter: least(adapter) for adapter in ("udp", "tcp", "uds", "cyclonedds", "fastdds")}
UNATTRIBUTED_MAX = 0.1


@pytest.fixture(scope="module")
def campaign(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One trial of every adapter; the larger payload is sent in fragments, or in several parts."""
    for name in ("netns", "cyclonedds", "fastdds"):
        need(name)
    folder = tmp_path_factory.mktemp("layers")
    study = write_study(
        folder,
        duration="500ms",
        layers="on",
        machine_floor="off",
        options=OPTIONS,
        matrix={
            "adapter": list(LEAST),
            "workload": "pipeline-2",
            "rate": "100Hz",
            "payload": ["64B", "60KB"],
        },
    )
    out = folder / "out"
    code, _, said = lagometer(
        folder, "run", str(study), "--out", str(out), "--no-report", environment=programs(build)
    )
    assert code in (0, 3), said
    return out


@pytest.mark.parametrize("adapter", LEAST)
def test_an_adapter_shows_its_least_set_of_layers(campaign: Path, adapter: str) -> None:
    tables = [table for table in layer_tables([open_campaign(campaign)]) if table.cell.startswith(adapter)]
    assert tables, "no valid trial"
    for table in tables:
        found = {layer.name for layer in table.figures.layers if layer.share > 0}
        assert found >= LEAST[adapter], table.cell
        assert table.figures.unattributed_p50_share <= UNATTRIBUTED_MAX, table.cell


def test_the_layers_of_a_message_add_up_to_its_latency(campaign: Path) -> None:
    opened = open_campaign(campaign)
    for entry in journal(campaign):
        cell, trial = entry["cell"], entry["trial"]
        layers = pl.read_parquet(opened.layers_path(cell, trial))
        assert dict(layers.schema) == LAYERS_SCHEMA
        samples = opened.samples(cell, trial).filter(pl.col("outcome") == "delivered")
        samples = samples.filter(pl.col("edge").cast(pl.String()) == "source→sink")
        latency = samples.select("sequence", (pl.col("taken_ns") - pl.col("publish_ns")).alias("latency_ns"))
        added = layers.group_by("sequence").agg(
            (pl.col("end_ns") - pl.col("begin_ns")).sum().alias("added_ns")
        )
        both = latency.join(added, on="sequence", how="left")
        assert both["added_ns"].equals(both["latency_ns"]), cell
        assert entry["layers"]["messages"] == len(latency)
        assert entry["layers"]["overflow"] == entry["layers"]["unprobed"] == 0


def test_show_has_a_table_of_layers(campaign: Path) -> None:
    code, printed, said = lagometer(campaign.parent, "show", str(campaign), "--json")
    assert code == 0, said
    found = json.loads(printed)["layers"]
    assert {each["cell"].split("/")[0] for each in found} == set(LEAST)
    for each in found:
        shares = [layer["share"] for layer in each["layers"]]
        assert sum(shares) + each["unattributed_share"] == pytest.approx(1)


def test_profile_says_where_the_time_goes_and_what_looking_costs(build: Path, tmp_path: Path) -> None:
    need("netns")
    arguments = ("profile", "udp", "--pairs", "2", "--duration", "300ms", "--json")
    code, printed, said = lagometer(tmp_path, *arguments, environment=programs(build))
    assert code in (0, 3), said
    found = json.loads(printed)
    assert {layer["name"] for layer in found["layers"]} >= LEAST["udp"]
    assert set(found["layers"][0]) == {"name", "p50_ns", "p99_ns", "share"}
    assert found["unattributed_share"] <= UNATTRIBUTED_MAX
    assert found["pairs"] == len(found["probe_cost_pairs_ns"])
    assert isinstance(found["probe_cost_ns"], float)
    assert found["probe_cost_bound_of_latency_ns"] == pytest.approx(0.03 * found["latency_p50_without_ns"])
    reads = 2 * found["clock_read_ns"] * found["stamps_per_message"]
    assert found["probe_cost_bound_of_stamps_ns"] == pytest.approx(reads)
    few = (found["probe_cost_low_ns"], found["probe_cost_high_ns"], found["probe_cost_within_bounds"])
    assert few == (None, None, None), "two pairs can't tell"


def test_profile_says_how_many_of_the_kernels_calls_the_probes_saw(build: Path, tmp_path: Path) -> None:
    need("netns")
    arguments = ("profile", "udp", "--pairs", "1", "--duration", "500ms", "--json")
    need("scheduler")
    for _ in range(4):  # a busy machine misses the rate
        code, printed, said = lagometer(tmp_path, *arguments, environment=programs(build))
        assert code in (0, 3), said
        found = json.loads(printed)
        if found["edges"] and found["system_calls_absent"] is None:
            break
    assert found["system_calls_absent"] is None, found
    assert len(found["scheduler_cost_pairs_ns"]) == 1 and found["scheduling"], found
    calls = {each["name"]: each for each in found["system_calls"]}
    assert set(calls) == {"send", "receive", "wait", "write", "read"}
    for name in ("send", "receive", "wait"):
        assert calls[name]["kernel"] >= found["messages"] / 2, calls
        assert calls[name]["share"] >= 0.9, calls


def test_what_a_kernel_without_the_tracepoint_leaves_out_is_said(build: Path, tmp_path: Path) -> None:
    """A program that records the scheduler, but knows no such tracepoint."""
    need("netns")
    recorder = tmp_path / "recorder"
    lines = ["import sys", 'print(\'{"event":"ready","cpus":1}\', flush=True)', "sys.stdin.readline()"]
    lines += ['print(\'{"event":"began"}\', flush=True)']
    recorder.write_text("\n".join([f"#!{sys.executable}", *lines, "sys.stdin.read()", ""]))
    recorder.chmod(0o755)
    environment = {**programs(build), "LAGOMETER_SCHEDULER": str(recorder)}
    arguments = ("profile", "udp", "--pairs", "1", "--duration", "300ms")
    _, printed, said = lagometer(tmp_path, *arguments, environment=environment)
    assert "of the kernel's calls: not available: " in printed, said
    assert "raw_syscalls" in printed or "no valid trial" in printed, printed


def test_profile_refuses_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, said = lagometer(tmp_path, "profile", "udp", "--out", str(tmp_path))
    assert code == 2 and "is not empty" in said
