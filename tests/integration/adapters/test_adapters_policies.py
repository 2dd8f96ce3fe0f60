# SPDX-License-Identifier: Apache-2.0
"""Policies that are off unless a study asks for them: what the middleware does with them in whole runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import run_campaign
from needs import need

from lagometer.store.reader import open_campaign

HAVING = ("cyclonedds", "cyclonedds11", "fastdds")
# 100 Hz into 15 ms of work: without a lifespan each message waits longer than the one before.
SLOW_SINK = {
    "name": "slow-sink",
    "nodes": {
        "camera": {"trigger": "timer", "publishes": ["frames"]},
        "consumer": {"trigger": "any", "subscribes": ["frames"], "work": "busy-15ms"},
    },
}


def rows_of(build: Path, folder: Path, matrix: dict[str, Any], **keys: Any) -> dict[str, dict[str, Any]]:
    """The rows of the only edge, by the cell's last factor; the campaign that was valid."""
    campaign = open_campaign(run_campaign(build, folder, matrix, **keys))
    rows = campaign.cells.filter(pl.col("edge") != "end-to-end").to_dicts()
    return {row["cell"].rsplit("/", 1)[-1]: row for row in rows if row["valid"]}


def settings_of(build: Path, folder: Path, matrix: dict[str, Any]) -> str:
    """What the endpoints of one cell say of themselves, as text."""
    campaign = open_campaign(run_campaign(build, folder, matrix))
    return json.dumps(campaign.manifest["settings"])


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", HAVING)
def test_a_message_older_than_its_lifespan_is_dropped(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    (tmp_path / "slow-sink.yaml").write_text(json.dumps(SLOW_SINK))
    matrix = {
        "adapter": adapter,
        "workload": str(tmp_path / "slow-sink.yaml"),
        "rate": "100Hz",
        "reliability": "reliable",
        "depth": 1000,
        "lifespan": ["none", "40ms"],
    }
    rows = rows_of(build, tmp_path, matrix, duration="1s")
    assert rows["lifespan-none"]["overwritten"] == rows["lifespan-none"]["lost"] == 0
    short = rows["lifespan-40ms"]
    assert short["overwritten"] > 5 and short["lost"] == 0  # reliable: nothing gets lost on the way
    assert short["lifespan_ns"] == 40_000_000
    (said,) = [each for each in short["warnings"] if each.startswith("overwritten")]
    assert said.endswith("with a lifespan of 40 ms")


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", HAVING)
def test_partition_liveliness_and_deadline_are_in_force(build: Path, tmp_path: Path, adapter: str) -> None:
    need(adapter)
    matrix = {
        "adapter": adapter,
        "workload": "pipeline-2",
        "rate": "100Hz",
        "reliability": "reliable",
        "deadline_period": "7s",
        "lifespan": "8s",
        "liveliness": "automatic-9s",
        "partition": "left.arm",
    }
    said = settings_of(build, tmp_path, matrix)
    for value in ("7000000000", "8000000000", "9000000000", "left.arm"):
        assert value in said, said
