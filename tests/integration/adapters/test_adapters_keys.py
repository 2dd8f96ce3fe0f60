# SPDX-License-Identifier: Apache-2.0
"""Keyed topics: each instance has a history of its own, and every key is checked where it arrives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import lagometer, programs, run_campaign, write_study
from needs import need

from lagometer.store.reader import open_campaign

PAIRS = ("cyclonedds", "cyclonedds11", "fastdds", "cyclonedds+fastdds", "fastdds+cyclonedds11")
SLOW_SINK = {
    "name": "slow-sink",
    "nodes": {
        "camera": {"trigger": "timer", "publishes": ["frames"]},
        "consumer": {"trigger": "any", "subscribes": ["frames"], "work": "busy-15ms"},
    },
}


def edges_of(out: Path) -> list[dict[str, Any]]:
    """The rows of edges that are valid."""
    rows = open_campaign(out).cells.filter(pl.col("edge") != "end-to-end").to_dicts()
    return [row for row in rows if row["valid"]]


def faulty_run(build: Path, folder: Path, **faults: Any) -> dict[str, Any]:
    """The row of a trial with 8 instances, of which `faulty` spoils the keys."""
    need("netns")
    matrix = {"adapter": "faulty", "workload": "pipeline-2", "reliability": "reliable", "instances": 8}
    options = {"faulty": {"over": "cyclonedds", **faults}}
    phases = {"duration": "300ms", "warmup": "50ms", "drain": "200ms"}
    study = write_study(folder, matrix=matrix, options=options, machine_floor="off", **phases)
    run = ("run", str(study), "--out", str(folder / "out"), "--json", "--no-report")
    lagometer(folder, *run, environment=programs(build))
    rows = pl.read_parquet(folder / "out" / "cells.parquet")
    return rows.row(by_predicate=pl.col("edge") == "source→sink", named=True)


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", PAIRS)
def test_each_message_comes_with_its_key(build: Path, tmp_path: Path, adapter: str) -> None:
    for name in adapter.split("+"):
        need(name)
    matrix = {
        "adapter": adapter,
        "workload": "pipeline-2",
        "payload": ["64B", "64KB"],
        "reliability": "reliable",
        "depth": 1,
        "instances": [1, 1000],
    }
    rows = edges_of(run_campaign(build, tmp_path, matrix))
    assert {row["instances"] for row in rows} == {1, 1000}
    assert all(row["n"] > 0 and row["corrupted"] == row["lost"] == 0 for row in rows)


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("adapter", "more"),
    [
        ("cyclonedds", {"history": "keep_all"}),
        ("cyclonedds11", {"history": "keep_all"}),
        ("fastdds", {"history": "keep_all"}),
        ("cyclonedds", {"security": "encrypt"}),
        ("fastdds", {"security": "sign"}),
        ("cyclonedds", {"options": {"cyclonedds": {"shared_memory": True}}}),
        ("cyclonedds11", {"options": {"cyclonedds11": {"shared_memory": True}}}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value)),
)
def test_keys_arrive_with_other_settings(
    build: Path, tmp_path: Path, adapter: str, more: dict[str, Any]
) -> None:
    need(adapter)
    if "options" in more:
        need("iceoryx")
    study = {key: value for key, value in more.items() if key == "options"}
    factors = {key: value for key, value in more.items() if key != "options"}
    matrix = {"adapter": adapter, "workload": "pipeline-2", "reliability": "reliable", "instances": 1000}
    rows = edges_of(run_campaign(build, tmp_path, {**matrix, **factors}, **study))
    assert rows and all(row["n"] > 0 and row["corrupted"] == row["lost"] == 0 for row in rows)


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", ("cyclonedds", "cyclonedds11", "fastdds"))
def test_a_message_is_overwritten_by_its_own_instance_alone(
    build: Path, tmp_path: Path, adapter: str
) -> None:
    need(adapter)
    (tmp_path / "slow-sink.yaml").write_text(json.dumps(SLOW_SINK))
    matrix = {
        "adapter": adapter,
        "workload": str(tmp_path / "slow-sink.yaml"),
        "reliability": "reliable",
        "depth": 1,
        "instances": ["none", 1000],
    }
    rows = edges_of(run_campaign(build, tmp_path, matrix, duration="500ms"))
    overwritten = {row["instances"]: row["overwritten"] for row in rows}
    assert overwritten[0] > 5
    assert overwritten[1000] == 0  # what waits is of as many instances


def test_keys_that_are_all_the_same_are_seen(build: Path, tmp_path: Path) -> None:
    need("cyclonedds")
    for name in ("one", "all"):
        (tmp_path / name).mkdir()
    one = faulty_run(build, tmp_path / "one", key_at=13)
    assert one["corrupted"] == 1 and not one["valid"]
    every = faulty_run(build, tmp_path / "all", key=1)
    assert every["corrupted"] > 0 and not every["valid"]
    assert any("corrupted" in reason for reason in every["reasons"])


@pytest.mark.parametrize("adapter", ("udp", "zenoh", "rustdds"))
def test_an_adapter_without_keys_is_excluded_with_the_reason(
    build: Path, tmp_path: Path, adapter: str
) -> None:
    study = write_study(
        tmp_path, matrix={"adapter": adapter, "workload": "pipeline-2", "instances": [1]}, duration="1s"
    )
    _, output, _ = lagometer(tmp_path, "plan", str(study), environment=programs(build))
    assert "has no keyed topics" in " ".join(output.split())
