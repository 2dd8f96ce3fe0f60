# SPDX-License-Identifier: Apache-2.0
"""A sink that can't keep up: a middleware whose depth does not bound the queue is found out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from campaign_support import lagometer, run_cells, write_study
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


@pytest.mark.parametrize(("saturation", "code", "verdict"), [("keep", 0, "saturated"), ("fail", 3, "failed")])
def test_a_source_beyond_its_rate_is_kept_or_fails_as_the_study_says(
    tmp_path: Path, saturation: str, code: int, verdict: str
) -> None:
    """1 MB at 100 kHz are 100 GB a second, which no machine copies."""
    need("netns")
    matrix = {"adapter": "shm", "workload": "pipeline-2", "payload": "1MB", "rate": "100kHz", "depth": 1}
    matrix |= {"reliability": "best_effort"}
    study = write_study(tmp_path, matrix=matrix, saturation=saturation, duration="500ms", deadline="1ms")
    out = tmp_path / "out"
    found, output, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--json", "--no-report")
    assert found == code, errors
    assert {name: json.loads(output)[name] for name in ("valid", "saturated", "failed")} == {
        **dict.fromkeys(("valid", "saturated", "failed"), 0),
        verdict: 1,
    }
    _, output, _ = lagometer(tmp_path, "show", str(out), "--json")
    kept = json.loads(output)["saturation"]
    assert len(kept) == (verdict == "saturated")
    for cell in kept:
        assert 0 < cell["rate_achieved_hz"] < 0.99 * cell["rate_intended_hz"]
        assert cell["goodput_bytes_per_s"] > 0 and cell["deadline_miss_share"] > 0
