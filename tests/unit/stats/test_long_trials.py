# SPDX-License-Identifier: Apache-2.0
"""A long trial beside the short ones: where it lies, and what is said of it."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from lagometer.cli.show.command import as_json
from lagometer.cli.show.estimates import render_beside
from lagometer.report.build import build_report
from lagometer.stats.cell.campaign_estimates import campaign_estimates
from lagometer.stats.cell.long_trials import BEYOND, INSIDE, OUTSIDE, known_of, long_checks
from lagometer.store.reader import Campaign, open_campaign
from lagometer.summary.summarise import summarise

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, with_estimates, write_campaign  # noqa: E402

CELL = "shm/pipeline-3/64B/500Hz/best_effort/process-per-node"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve trials of 2,400 messages: enough for intervals of p50 and p99."""
    shape = Shape(
        adapters=("shm", "udp"),
        payloads_bytes=(64,),
        reliabilities=("best_effort",),
        trials=12,
        messages=2400,
    )
    made: Path = with_estimates(write_campaign(tmp_path_factory.mktemp("long") / "campaign", shape))
    return made


def with_long_trial(source: Path, folder: Path, p50_ns: float, valid: bool = True) -> Campaign:
    """A copy with a long trial of one cell, of this p50, p99 twice and CPU three times as much."""
    shutil.copytree(source, folder)
    cells = pl.read_parquet(folder / "cells.parquet")
    row = cells.filter((pl.col("cell") == CELL) & (pl.col("trial") == 0) & (pl.col("edge") == "end-to-end"))
    figures = {"latency_p50_ns": p50_ns, "latency_p99_ns": 2.0 * p50_ns, "cpu_per_message_ns": 3.0 * p50_ns}
    long = row.with_columns(**{name: pl.lit(value) for name, value in figures.items()}, valid=pl.lit(valid))
    (folder / "long").mkdir()
    long.write_parquet(folder / "long" / "cells.parquet")
    line = {"cell": CELL, "trial": 0, "valid": valid, "reasons": [], "started": row["started"][0]}
    (folder / "long" / "journal.jsonl").write_text(json.dumps(line) + "\n")
    return open_campaign(folder)


@pytest.fixture(scope="module")
def ends(campaign: Path) -> dict[str, float]:
    """The interval of the short trials' p50, and the least and the largest of their own."""
    opened = open_campaign(campaign)
    estimate, low, high = known_of(campaign_estimates(opened))[CELL, "p50"]
    own = opened.cells.filter((pl.col("cell") == CELL) & (pl.col("edge") == "end-to-end") & pl.col("valid"))
    least, most = own["latency_p50_ns"].min(), own["latency_p50_ns"].max()
    assert isinstance(least, float) and isinstance(most, float)
    assert least < low < estimate < high < most, "else the test can't tell these apart"
    return {"low": low, "high": high, "least": least, "most": most}


@pytest.mark.by_turn
@pytest.mark.parametrize(
    ("chosen", "place", "said"),
    [
        (lambda of: (of["low"] + of["high"]) / 2, INSIDE, None),
        (lambda of: of["low"], INSIDE, None),
        (lambda of: (of["high"] + of["most"]) / 2, OUTSIDE, "above .* but within the range of the single"),
        (lambda of: 1.5 * of["most"], BEYOND, "above .* and above every single trial"),
        (lambda of: 0.5 * of["least"], BEYOND, "below .* and below every single trial"),
    ],
)
def test_a_long_trial_is_held_against_the_interval(
    campaign: Path,
    ends: dict[str, float],
    tmp_path: Path,
    chosen: Callable[[dict[str, float]], float],
    place: str,
    said: str | None,
) -> None:
    opened = with_long_trial(campaign, tmp_path / "copy", chosen(ends))
    [check] = long_checks(opened, known_of(campaign_estimates(opened)))
    assert check.figures["p50"].place == place
    remarks = [remark for remark in check.remarks() if remark.startswith("p50")]
    assert bool(remarks) == (said is not None)
    text = printed(opened)
    assert ("inside the interval" in text.split("CPU/msg")[0]) == (place == INSIDE)
    assert ("warning: p50 lies" in text) == (said is not None)
    if said is not None:
        assert re.search(said, remarks[0]) and remarks[0] in text
    [shown] = build_report(opened).long_trials
    assert shown.p50.place == place and [each for each in shown.remarks if each[:3] == "p50"] == remarks
    [row] = as_json(opened)["long_trials"]
    assert row == shown.model_dump()


def printed(campaign: Campaign) -> str:
    out = io.StringIO()
    render_beside(summarise(campaign), Console(file=out, width=400))
    return out.getvalue()


def test_it_stands_beside_the_estimate_and_not_the_median_of_trials(campaign: Path, tmp_path: Path) -> None:
    opened = with_long_trial(campaign, tmp_path / "copy", 12_000.0)
    estimates = campaign_estimates(opened)
    estimate, low, high = known_of(estimates)[CELL, "p50"]
    own = opened.cells.filter((pl.col("cell") == CELL) & (pl.col("edge") == "end-to-end") & pl.col("valid"))
    assert estimate != own["latency_p50_ns"].median()
    [shown] = build_report(opened).long_trials
    assert (shown.p50.long_ns, shown.p50.short_ns) == (12_000.0, estimate)
    assert (shown.p50.low_ns, shown.p50.high_ns) == (low, high)
    assert (shown.cpu_per_message_ns, shown.short_cpu_per_message_ns) == (
        36_000.0,
        own["cpu_per_message_ns"].median(),
    )
    assert shown.short_cpu_per_message_low_ns is not None
    assert "CPU/msg 36.0 µs against " in printed(opened)


def test_a_long_trial_that_failed_is_held_against_nothing(campaign: Path, tmp_path: Path) -> None:
    opened = with_long_trial(campaign, tmp_path / "copy", 12_000.0, valid=False)
    assert printed(opened) == "" and build_report(opened).long_trials == []
    assert as_json(opened)["long_trials"] == []


def test_without_an_interval_nothing_is_judged(tmp_path: Path) -> None:
    shape = Shape(adapters=("shm", "udp"), payloads_bytes=(64,), trials=3, messages=60)
    opened = with_long_trial(write_campaign(tmp_path / "few", shape), tmp_path / "copy", 12_000.0)
    [shown] = build_report(opened).long_trials
    own = opened.cells.filter((pl.col("cell") == CELL) & (pl.col("edge") == "end-to-end") & pl.col("valid"))
    assert (shown.p50.short_ns, shown.p50.low_ns, shown.p50.place) == (
        own["latency_p50_ns"].median(),
        None,
        None,
    )
    assert (shown.p99.short_ns, shown.remarks) == (None, []), "trials of 60 messages have no p99"
    assert "warning" not in printed(opened)
