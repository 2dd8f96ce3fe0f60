# SPDX-License-Identifier: Apache-2.0
"""What of a trial counts, in whole campaigns: `discard`, and a steady state that is looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, programs, write_study
from needs import need
from toy_campaign import CELL, write_toy

MILLISECOND_NS = 1_000_000
PERIOD_NS = 5 * MILLISECOND_NS
SLOW = 80  # messages at the beginning, 20 of them in the warm-up
STEP_NS = 10 * PERIOD_NS  # a twentieth of the measure phase
SLOW_AT_FIRST = f"""
import time


class SlowAtFirst(ToyWriter):
    sent = 0

    def commit(self) -> bool:
        if self._buffer[3] == 0:  # data, and no probe
            SlowAtFirst.sent += 1
            if SlowAtFirst.sent <= {SLOW}:
                time.sleep(0.003)
        return super().commit()


ToyWriter = SlowAtFirst
"""


def carried_out(
    folder: Path, matrix: dict[str, Any], environment: dict[str, str], **keys: Any
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows and the samples of one trial."""
    need("netns")
    study = write_study(folder, matrix=matrix, machine_floor="off", **keys)
    run = ("run", str(study), "--out", str(folder / "out"), "--json", "--no-report")
    _, output, errors = lagometer(folder, *run, environment=environment)
    (reasons,) = [each["reasons"] for each in json.loads(output)["failures"]] or [[]]
    assert all(reason.startswith("rate-missed") for reason in reasons), (reasons, errors)
    rows = pl.read_parquet(folder / "out" / "cells.parquet")
    return rows, pl.read_parquet(folder / "out" / "samples" / rows["cell"][0] / "0.parquet")


@pytest.mark.parametrize(
    ("warmup", "latest_ns"),
    [("auto", 600 * MILLISECOND_NS), ({"min": "100ms", "max": "450ms"}, 450 * MILLISECOND_NS)],
)
def test_a_slow_beginning_does_not_count(build: Path, tmp_path: Path, warmup: Any, latest_ns: int) -> None:
    environment = {**programs(build), **write_toy(tmp_path, SLOW_AT_FIRST)}
    matrix = {**CELL, "workload": "pipeline-2", "rate": "200Hz"}
    rows, samples = carried_out(tmp_path, matrix, environment, duration="1s", warmup=warmup)
    begin_ns = samples["intended_ns"].min()
    steady_ns = rows["steady_ns"][0]
    # How much of the beginning is cut depends on how restless the machine is; some of it always.
    assert 100 * MILLISECOND_NS + STEP_NS <= steady_ns <= latest_ns
    assert rows["steady_ns"].n_unique() == 1
    warned = any(warning.startswith("not-steady: ") for warning in rows["warnings"][0])
    assert rows["steady"].to_list() == [not warned] * rows.height
    early = samples.filter(pl.col("intended_ns") < begin_ns + steady_ns)
    assert early["phase"].unique().to_list() == ["warm-up"]
    for row in rows.iter_rows(named=True):
        counted = samples.filter((pl.col("edge") == row["edge"]) & (pl.col("phase") == "measure"))
        assert counted["intended_ns"].min() >= begin_ns + steady_ns
        assert row["n"] == (counted["outcome"] == "delivered").sum()


def test_the_first_messages_are_discarded(build: Path, tmp_path: Path) -> None:
    matrix = {"adapter": "shm", "workload": "pipeline-3", "rate": "50Hz"}
    rows, samples = carried_out(
        tmp_path, matrix, programs(build), duration="600ms", warmup="100ms", discard=10
    )
    for edge in ("source→relay-1", "end-to-end"):
        mine = samples.filter(pl.col("edge") == edge).sort("sequence")
        # Five messages are sent before, thirty in the measure phase.
        assert mine["sequence"].to_list() == list(range(35)), "nothing is lost here"
        assert mine.filter(pl.col("phase") == "warm-up")["sequence"].to_list() == list(range(15))
        assert rows.filter(pl.col("edge") == edge)["sent"].to_list() == [20]
    assert rows["steady_ns"].null_count() == rows["steady"].null_count() == rows.height
    (entry,) = journal(tmp_path / "out")
    cpu_ns = sum(worker["cpu_ns"] for worker in entry["counters"].values())
    delivered = 60  # of both edges, in all of the measure phase
    assert rows["n"].to_list() == [20, 20, 20]
    assert rows["cpu_per_message_ns"][0] == pytest.approx(cpu_ns / delivered)
