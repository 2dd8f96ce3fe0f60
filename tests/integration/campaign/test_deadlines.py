# SPDX-License-Identifier: Apache-2.0
"""A study with a deadline, through real workers: what is said of it follows from the samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import lagometer, run_campaign

ROOT = Path(__file__).parents[3]
from judged_campaign import deadline_by_hand, measured_rows, tails_by_hand  # noqa: E402

MATRIX = {"adapter": "faulty", "workload": "pipeline-2", "rate": "50Hz"}
K = 4
TRIALS = 2


@pytest.fixture(scope="module", params=["500ms", "1us"])
def campaign(request: pytest.FixtureRequest, build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fifth of the messages is dropped; the others keep the longer deadline and none keeps the shorter.

    The drain is longer than the deadline, so that it is known of every message.
    """
    keys: dict[str, Any] = {"duration": "1s", "drain": "700ms", "trials": TRIALS, "machine_floor": "off"}
    options = {"faulty": {"over": "shm", "drop": 0.2}}
    folder = tmp_path_factory.mktemp("deadlines")
    return run_campaign(build, folder, MATRIX, deadline=request.param, deadline_k=K, options=options, **keys)


@pytest.fixture(scope="module")
def cells(campaign: Path) -> pl.DataFrame:
    return pl.read_parquet(campaign / "cells.parquet").filter("valid")


def samples_of(campaign: Path, row: dict[str, Any]) -> list[dict[str, Any]]:
    samples = pl.read_parquet(campaign / "samples" / row["cell"] / f"{row['trial']}.parquet")
    return measured_rows(samples, row["edge"])


def test_the_cells_say_what_follows_from_the_samples(campaign: Path, cells: pl.DataFrame) -> None:
    assert sorted(cells["edge"].unique()) == ["end-to-end", "source→sink"]
    for row in cells.iter_rows(named=True):
        messages = samples_of(campaign, row)
        expected = deadline_by_hand(messages, row["deadline_ns"], K) | tails_by_hand(messages)
        assert {name: row[name] for name in expected} == expected
        dropped = sum(message["outcome"] != "delivered" for message in messages)
        assert 0 < dropped <= row["deadline_missed"] <= row["deadline_due"] == len(messages)


def test_which_messages_missed_depends_on_the_deadline(cells: pl.DataFrame) -> None:
    for row in cells.iter_rows(named=True):
        if row["deadline_ns"] == 1_000:
            assert row["deadline_missed"] == row["deadline_due"] == row["deadline_run_max"]
            assert (row["deadline_miss_share"], row["deadline_met_of_k_min"]) == (1.0, 0)
        else:
            assert row["deadline_ns"] == 500_000_000
            assert 0.0 < row["deadline_miss_share"] < 1.0 and row["deadline_k"] == K
            assert row["deadline_met_of_k_min"] <= K - min(K, row["deadline_run_max"])


def test_show_brings_the_trials_of_a_cell_together(
    campaign: Path, cells: pl.DataFrame, tmp_path: Path
) -> None:
    _, output, errors = lagometer(tmp_path, "show", str(campaign), "--json", "--edge", "*")
    shown = json.loads(output)
    assert len(shown["deadlines"]) == 2, errors
    for each in shown["deadlines"]:
        rows = cells.filter(pl.col("edge") == each["edge"])
        messages = [message for row in rows.iter_rows(named=True) for message in samples_of(campaign, row)]
        assert each["trials"] == rows.height
        assert (each["missed"], each["due"]) == (rows["deadline_missed"].sum(), len(messages))
        assert each["miss_share"] == pytest.approx(rows["deadline_miss_share"].mean())
        assert each["run_max"] == rows["deadline_run_max"].max()
        assert (each["k"], each["met_of_k_min"]) == (K, rows["deadline_met_of_k_min"].min())
        assert each["data_age_max_ns"] == rows["data_age_max_ns"].max()
    lost = {each["edge"]: each["lost"] for each in shown["lost_as_infinite"]}
    assert lost == {
        edge: sum(
            message["outcome"] in ("lost", "censored")
            for row in cells.filter(pl.col("edge") == edge).iter_rows(named=True)
            for message in samples_of(campaign, row)
        )
        for edge in lost
    }
    assert len(lost) == 2
