# SPDX-License-Identifier: Apache-2.0
"""A sink that can't keep up: a middleware whose depth does not bound the queue is found out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from campaign_support import run_cells
from needs import need

WORKLOAD = {
    "name": "slow-sink",
    "nodes": {
        "camera": {"trigger": "timer", "publishes": ["frames"]},
        "consumer": {"trigger": "any", "subscribes": ["frames"], "work": "busy-15ms"},
    },
}


def test_a_queue_of_one_that_holds_seconds_of_old_data_is_found(build: Path, tmp_path: Path) -> None:
    """100 Hz into 15 ms of work with depth 1, as reported of ZeroMQ; shared memory keeps the newest alone."""
    need("zeromq")
    (tmp_path / "slow-sink.yaml").write_text(json.dumps(WORKLOAD))
    matrix = {
        "adapter": ["zeromq", "shm"],
        "workload": str(tmp_path / "slow-sink.yaml"),
        "rate": "100Hz",
        "depth": 1,
        "reliability": "best_effort",
    }
    cells = run_cells(build, tmp_path, matrix, duration="2s")
    rows = cells.filter(pl.col("edge") == "end-to-end")
    of = {row["adapter"]: row for row in rows.iter_rows(named=True)}
    said = [each for each in of["zeromq"]["warnings"] if each.startswith("queue-builds-up: end-to-end")]
    assert len(said) == 1, of["zeromq"]["warnings"]
    assert "messages wait on camera→consumer, where depth is 1" in said[0]
    assert of["zeromq"]["response_growth_ns_per_s"] > 0.1e9
    assert not [each for each in of["shm"]["warnings"] if each.startswith("queue-builds-up")]
