# SPDX-License-Identifier: Apache-2.0
"""`faulty` over every other adapter: each fault strikes the message that it is to strike, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, programs, write_study
from needs import FLOORS, MIDDLEWARE, need

pytestmark = pytest.mark.by_turn

MILLISECOND_NS = 1_000_000
EDGE = "source→sink"
MESSAGES = 60  # five before the measure phase, the others in it
DROPPED, TWICE, HELD, DAMAGED, DELAYED = 10, 20, 30, 40, 50
DELAY_NS = 15 * MILLISECOND_NS
STRUCK = {"lost": [DROPPED], "duplicate": [TWICE], "reordered": [HELD], "corrupted": [DAMAGED]}
ATTEMPTS = 2  # a machine that does other things may lose a message of its own
STRIKES = {
    "drop_at": DROPPED,
    "duplicate_at": TWICE,
    "reorder_at": HELD,
    "corrupt_at": DAMAGED,
    "delay_at": DELAYED,
    "delay_ns": DELAY_NS,
}
OVER = pytest.mark.parametrize("over", [name for name in (*FLOORS, *MIDDLEWARE) if name != "null"])


def carried_out(build: Path, folder: Path, over: str, faults: dict[str, Any]) -> tuple[pl.DataFrame, Path]:
    """The rows of a trial of source and sink at 50 Hz, and its campaign's folder."""
    folder.mkdir(exist_ok=True)
    need("netns")
    need(over)
    options = {"faulty": {"over": over, "stream": 0, **faults}}
    matrix = {"adapter": "faulty", "workload": "pipeline-2", "rate": "50Hz", "payload": "1KB"}
    phases = {"duration": "1100ms", "warmup": "100ms", "drain": "500ms", "discovery_timeout": "20s"}
    study = write_study(folder, matrix=matrix, options=options, machine_floor="off", **phases)
    run = ("run", str(study), "--out", str(folder / "out"), "--json", "--no-report")
    code, output, errors = lagometer(folder, *run, environment=programs(build))
    assert code in (0, 3), (output, errors)
    return pl.read_parquet(folder / "out" / "cells.parquet"), folder / "out"


def struck(samples: pl.DataFrame) -> dict[str, list[int]]:
    """The sequences of the messages that each fault struck."""
    outcome = pl.col("outcome")
    return {
        "lost": samples.filter(outcome == "lost")["sequence"].to_list(),
        "duplicate": samples.filter(outcome == "duplicate")["sequence"].to_list(),
        "reordered": samples.filter("reordered")["sequence"].to_list(),
        "corrupted": samples.filter("corrupted")["sequence"].to_list(),
    }


@OVER
def test_each_fault_strikes_its_message(build: Path, tmp_path: Path, over: str) -> None:
    for attempt in range(ATTEMPTS):
        rows, out = carried_out(build, tmp_path / str(attempt), over, STRIKES)
        row = rows.row(by_predicate=pl.col("edge") == EDGE, named=True)
        samples = pl.read_parquet(out / "samples" / row["cell"] / "0.parquet").filter(pl.col("edge") == EDGE)
        found = struck(samples)
        if found == STRUCK:
            break
    assert found == STRUCK
    first = samples.filter(~pl.col("outcome").is_in(["duplicate", "unmatched"])).sort("sequence")
    assert first["sequence"].to_list() == list(range(MESSAGES))
    blocked = first.filter(pl.col("published_ns") - pl.col("publish_ns") >= DELAY_NS)["sequence"]
    assert DELAYED in blocked
    words = {reason.partition(":")[0] for reason in row["reasons"]} - {"rate-missed"}
    assert words == {"duplicated", "corrupted"}
    assert {warning.partition(":")[0] for warning in row["warnings"]} >= {"lost", "reordered"}


@pytest.mark.crossed
@pytest.mark.parametrize(("fault", "reason"), [("hang_at", "worker-hung"), ("crash_at", "worker-died")])
@OVER
def test_a_publish_that_never_returns_or_kills_fails_the_trial(
    build: Path, tmp_path: Path, over: str, fault: str, reason: str
) -> None:
    rows, out = carried_out(build, tmp_path, over, {fault: 30})
    (entry,) = journal(out)
    assert entry["reasons"][0].startswith(reason), entry["reasons"]
    assert not rows["valid"].any()
    if fault == "crash_at":
        assert "SIGSEGV" in entry["reasons"][0]
