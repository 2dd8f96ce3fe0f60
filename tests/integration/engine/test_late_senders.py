# SPDX-License-Identifier: Apache-2.0
"""Sources that can't keep their schedule, under each policy: whole campaigns, into figures, words and rates.

What a source has to do takes longer than its period, so it is late whatever the machine does: all that is
asserted holds on a slower one, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, programs, write_study
from needs import need

from lagometer.units import duration_text

MILLISECOND_NS = 1_000_000
PERIOD_NS, WORK_NS = 20 * MILLISECOND_NS, 50 * MILLISECOND_NS
WARMUP_NS, MEASURE_NS = 100 * MILLISECOND_NS, 600 * MILLISECOND_NS
FIRST, DUE = WARMUP_NS // PERIOD_NS, MEASURE_NS // PERIOD_NS  # of the measure phase: its first message, all
MOST = MEASURE_NS // WORK_NS + 1  # that can be published in it
EDGE = "source→sink"
OVERWORKED = {
    "nodes": {
        "source": {"trigger": "timer", "publishes": ["topic"], "work": "busy-50ms"},
        "sink": {"trigger": "any", "subscribes": ["topic"]},
    }
}
EACH = pytest.mark.parametrize("adapter", ["shm", "cyclonedds-py"])  # one of each worker


@dataclass(frozen=True)
class Told:
    """What a trial says of its only edge."""

    samples: pl.DataFrame
    row: dict[str, Any]
    writer: dict[str, Any]

    @property
    def sequences(self) -> list[int]:
        return list(self.samples["sequence"])

    @property
    def lag_ns(self) -> list[int]:
        """From when each message was due until it was published."""
        return list(self.samples["publish_ns"] - self.samples["intended_ns"])

    def words(self, kind: str) -> dict[str, str]:
        return {text.partition(":")[0]: text for text in self.row[kind]}


def carried_out(build: Path, folder: Path, matrix: dict[str, Any], **keys: Any) -> Told:
    """One trial of source and sink."""
    need("netns")
    need(matrix["adapter"])
    # An interpreter may need long to start where much else is at work.
    study = write_study(folder, matrix=matrix, machine_floor="off", discovery_timeout="60s", **keys)
    run = ("run", str(study), "--out", str(folder / "out"), "--json", "--no-report")
    code, output, errors = lagometer(folder, *run, environment=programs(build))
    assert code in (0, 3), (output, errors)
    rows = pl.read_parquet(folder / "out" / "cells.parquet")
    row = rows.row(by_predicate=pl.col("edge") == EDGE, named=True)
    samples = pl.read_parquet(folder / "out" / "samples" / row["cell"] / "0.parquet")
    (entry,) = journal(folder / "out")
    (writer,) = entry["counters"]["source"]["writers"]
    assert row["skipped"] == rows.row(by_predicate=pl.col("edge") == "end-to-end", named=True)["skipped"]
    return Told(samples.filter(pl.col("edge") == EDGE).sort("sequence"), row, writer)


def overworked(build: Path, folder: Path, adapter: str, late: str) -> Told:
    """A source that works for two and a half of its periods before each message, from message 0 on."""
    (folder / "overworked.yaml").write_text(json.dumps(OVERWORKED))
    told = carried_out(
        build,
        folder,
        {"adapter": adapter, "workload": "overworked.yaml", "rate": "50Hz", "late": late},
        duration="600ms",
        warmup="100ms",
        drain="1s",
        deadline="10ms",
    )
    begin_ns = told.samples["intended_ns"][0] - PERIOD_NS * told.sequences[0]
    intended_ns = [begin_ns + PERIOD_NS * sequence for sequence in told.sequences]
    assert told.samples["intended_ns"].to_list() == intended_ns, "the original schedule"
    published_ns = told.samples["publish_ns"]
    assert published_ns[0] >= begin_ns + WORK_NS
    assert (published_ns.diff().drop_nulls() >= WORK_NS).all()
    measure_ns = begin_ns + WARMUP_NS
    the_rate_is_missed(told, published_ns.is_between(measure_ns, measure_ns + MEASURE_NS - 1).sum())
    return told


def the_rate_is_missed(told: Told, published: int) -> None:
    """With the rate that was reached, and nothing else is wrong."""
    assert 0 < published <= MOST
    reached_hz = published * 1e9 / MEASURE_NS
    assert told.row["rate_intended_hz"] == 50
    assert told.row["rate_achieved_hz"] == pytest.approx(reached_hz)
    assert told.row["reasons"] == [
        f"rate-missed: source published {published} of {DUE} messages, {reached_hz:.6g} Hz instead of 50 Hz"
    ]
    assert told.writer["due"] == DUE


@EACH
def test_a_burst_keeps_the_whole_wait_in_the_response(build: Path, tmp_path: Path, adapter: str) -> None:
    told = overworked(build, tmp_path, adapter, "burst")
    assert told.sequences == list(range(len(told.sequences))), "nothing is omitted"
    assert (told.row["skipped"], told.row["shift_ns"]) == (0, 0)
    assert not {"skipped", "shifted"} & set(told.words("warnings"))
    behind_ns = WORK_NS - PERIOD_NS  # more with each message
    assert all(lag_ns >= WORK_NS + behind_ns * number for number, lag_ns in enumerate(told.lag_ns)), (
        told.lag_ns
    )
    counted = told.samples.filter((pl.col("phase") == "measure") & (pl.col("outcome") == "delivered"))
    wait_ns = WORK_NS + behind_ns * counted["sequence"].max()
    assert told.row["send_lag_max_ns"] >= wait_ns
    assert told.row["response_max_ns"] == (counted["taken_ns"] - counted["intended_ns"]).max() >= wait_ns
    assert told.row["deadline_miss_share"] == 1


@EACH
def test_skipping_counts_what_it_drops(build: Path, tmp_path: Path, adapter: str) -> None:
    told = overworked(build, tmp_path, adapter, "skip")
    measured = [sequence for sequence in told.sequences if FIRST <= sequence < FIRST + DUE]
    assert told.sequences[-1] < FIRST + DUE, "sources end with the measure phase"
    assert told.row["skipped"] + len(measured) == DUE
    assert told.writer["skipped"] == FIRST + DUE - len(told.sequences)
    assert told.row["skipped"] >= DUE - MOST
    assert told.words("warnings")["skipped"] == f"skipped: {EDGE}, {told.row['skipped']} messages"
    assert "shifted" not in told.words("warnings")
    assert told.row["shift_ns"] == 0
    # They have no times, but they missed their deadline.
    assert told.row["sent"] == len(measured)
    assert told.row["deadline_missed"] == told.row["skipped"] + len(measured)
    assert told.row["deadline_run_max"] == told.row["deadline_missed"]


@EACH
def test_shifting_says_by_how_much(build: Path, tmp_path: Path, adapter: str) -> None:
    told = overworked(build, tmp_path, adapter, "shift")
    assert told.sequences == list(range(len(told.sequences)))
    assert told.row["skipped"] == told.writer["skipped"] == 0
    # The last message was begun after the one before it was published, and published after its work.
    shift_ns = told.row["shift_ns"]
    assert told.lag_ns[-2] - PERIOD_NS <= shift_ns <= told.lag_ns[-1] - WORK_NS
    assert shift_ns >= (WORK_NS - PERIOD_NS) * told.sequences[-1]
    assert told.words("warnings")["shifted"] == f"shifted: {EDGE}, by {duration_text(shift_ns)} at the end"
    assert "skipped" not in told.words("warnings")
    # What found no room any more is nowhere.
    assert told.row["sent"] == len(told.sequences) - FIRST <= MOST


@pytest.mark.parametrize("late", ["burst", "skip", "shift"])
def test_a_source_that_is_held_up_once(build: Path, tmp_path: Path, late: str) -> None:
    """The middleware blocks message 100 for more than two periods; the trial may well be valid."""
    struck, period_ns, blocked_ns = 100, 5 * MILLISECOND_NS, 12 * MILLISECOND_NS
    faults = {"over": "shm", "delay_at": struck, "delay_ns": blocked_ns, "stream": 0}
    matrix = {"adapter": "faulty", "workload": "pipeline-2", "rate": "200Hz", "late": late}
    told = carried_out(build, tmp_path, matrix, duration="1s", warmup="100ms", options={"faulty": faults})
    assert set(told.words("reasons")) <= {"rate-missed"}
    held_up = told.samples.filter(pl.col("published_ns") - pl.col("publish_ns") >= blocked_ns)["sequence"]
    if late != "skip" or struck in told.sequences:  # on a machine that stood still it may have been skipped
        assert struck in held_up
        assert told.row["blocked_max_ns"] >= blocked_ns
    wait_ns = blocked_ns - period_ns  # of the message after
    after = told.samples.filter(pl.col("sequence") > struck)
    lag_ns = after["publish_ns"] - after["intended_ns"]
    if late == "skip":
        assert not {sequence + 1 for sequence in held_up} & set(told.sequences)
        assert 0 < told.row["skipped"] <= told.writer["skipped"], "which counts those of the warm-up, too"
    else:
        assert told.sequences == list(range(len(told.sequences)))
        assert lag_ns[0] >= wait_ns
        assert told.row["skipped"] == 0
    if late == "shift":
        assert lag_ns.min() >= wait_ns, "it stays in the response time of all that follow"
        assert told.row["shift_ns"] >= wait_ns
    else:
        assert told.row["shift_ns"] == 0
    said = {"burst": set(), "skip": {"skipped"}, "shift": {"shifted"}}[late]
    assert set(told.words("warnings")) & {"skipped", "shifted"} == said
