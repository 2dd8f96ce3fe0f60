# SPDX-License-Identifier: Apache-2.0
"""What every view says of preemption over a campaign, and of queues that build up."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from lagometer.cli import compare
from lagometer.cli.conditions import parse_absolute
from lagometer.cli.show import command as show
from lagometer.cli.show.disturbed import render_preemption
from lagometer.report.build import build_report
from lagometer.stats.cell.limits import judge_limits
from lagometer.store.reader import open_campaign
from lagometer.summary.summarise import summarise
from tests.fixtures import synthetic_campaign

SHM = "shm/pipeline-3/64B/500Hz/best_effort/process-per-node"
SLOPE = "queue-builds-up: end-to-end, median response time grows by 330 ms a second"
WAITING = "; 300 messages wait on source→relay-1, where depth is 1"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shape = synthetic_campaign.Shape(
        adapters=("shm", "udp"), payloads_bytes=(64,), reliabilities=("best_effort",), trials=8, messages=200
    )
    made: Path = synthetic_campaign.write_campaign(tmp_path / "campaign", shape)
    return made


def edit(directory: Path, *columns: pl.Expr, **more: pl.Expr) -> Path:
    path = directory / "cells.parquet"
    pl.read_parquet(path).with_columns(*columns, **more).write_parquet(path)
    return directory


def preempted(directory: Path, outlier: int = 0) -> Path:
    """Each trial has a switch for each third message; that of shm's trial 5 may be many more."""
    switches = pl.lit(130, dtype=pl.Int64) + pl.col("trial")
    mine = (pl.col("cell") == SHM) & (pl.col("trial") == 5)
    many = pl.when(mine).then(pl.lit(outlier, dtype=pl.Int64)).otherwise(switches) if outlier else switches
    text = pl.format("preempted: {} involuntary switches for 400 messages", many)
    return edit(
        directory, many.alias("involuntary_switches"), pl.concat_list(text).alias("noise"), noisy=pl.lit(True)
    )


def growing(directory: Path, trials: int = 3) -> Path:
    """In the first trials of shm a queue builds up."""
    mine = (pl.col("cell") == SHM) & (pl.col("trial") < trials)
    said = pl.when(mine).then(pl.lit([SLOPE + WAITING])).otherwise(pl.col("warnings"))
    growth = pl.when(mine).then(0.33e9).otherwise(1e3)
    return edit(directory, said.alias("warnings"), growth.alias("response_growth_ns_per_s"))


def shown(directory: Path, **more: Any) -> str:
    out = io.StringIO()
    show.render(directory, Console(file=out, width=200, no_color=True, highlight=False), **more)
    return out.getvalue()


def test_what_all_trials_have_is_told_once_and_flags_none(directory: Path) -> None:
    summary = summarise(open_campaign(preempted(directory)))
    found = summary.preemption
    assert found is not None
    assert (found.trials, found.trials_above, found.trials_outstanding) == (15, 15, 0)
    assert found.per_message_median == pytest.approx(134 / 400, rel=0.02)
    assert found.cells_compared == 2 and found.p50_change is not None
    assert summary.counts.trials_noisy == 0 and summary.without_noise == []
    assert all(row.trials_noisy == 0 for row in summary.rows)
    text = shown(directory)
    assert "preempted more than once in 10 messages: 15 of 15 trials (median 0.34 per message)" in text
    assert "no trial stands out of this campaign, so none is flagged" in text
    assert "noisy" not in text


def test_the_one_that_stands_out_is_flagged_ranked_and_left_out(directory: Path) -> None:
    summary = summarise(open_campaign(preempted(directory, outlier=2_000)))
    found = summary.preemption
    assert found is not None and found.trials_outstanding == 1
    first = found.ranked[0]
    assert (first.cell, first.trial, first.stands_out, first.per_message) == (SHM, 5, True, 5.0)
    assert first.latency_p50_ns is not None and first.cell_p50_ns is not None
    assert summary.counts.trials_noisy == 1
    assert {(each.cell, each.trials, each.trials_noisy) for each in summary.without_noise} == {(SHM, 8, 1)}
    text = shown(directory)
    assert f"    {SHM} #5\n" in text
    assert "noisy 1 of 15 trials (preempted 1)" in text


def test_where_no_trial_is_quiet_the_least_disturbed_half_is_compared(directory: Path) -> None:
    """Others took 10 to 80 % of the CPUs' time, most in the first trials, and each step costs 1 µs."""
    taken = 80 - 10 * pl.col("trial")
    text = pl.format("others: {}% of all CPUs' time", taken)
    slower = (10_000 + 100 * taken).cast(pl.Int64)
    edit(directory, pl.concat_list(text).alias("noise"), slower.alias("latency_p50_ns"), noisy=pl.lit(True))
    compared = {(each.cell, each.figure): each for each in summarise(open_campaign(directory)).without_noise}
    half = compared[SHM, "latency_p50_ns"]
    assert (half.of, half.trials, half.trials_noisy) == ("half", 8, 8)
    assert (half.all_ns, half.quiet_ns) == (14_500, 12_500)
    assert half.all_low_ns is not None and half.quiet_low_ns is None, "four trials have no interval"
    [line] = [line for line in shown(directory).splitlines() if SHM in line and " p50 " in line]
    for part in (" 8 of 8 ", "14.5 µs (", "12.5 µs ", "least disturbed half"):
        assert part in line
    assert build_report(open_campaign(directory)).without_noise == list(compared.values())


@pytest.mark.parametrize("text", ["others: 30% of all CPUs' time", "quota: 7 periods"])
def test_what_disturbed_all_trials_alike_is_not_compared(directory: Path, text: str) -> None:
    edit(directory, pl.lit([text]).alias("noise"), noisy=pl.lit(True))
    assert summarise(open_campaign(directory)).without_noise == []


def test_the_quieter_half_says_what_preemption_did(directory: Path) -> None:
    """Trials that were switched out more are slower: by 10 % each step, in every cell."""
    slower = (10_000 * (1.0 + 0.1 * pl.col("trial"))).cast(pl.Int64)
    edit(preempted(directory), slower.alias("latency_p50_ns"))
    found = summarise(open_campaign(directory)).preemption
    assert found is not None and found.p50_change is not None
    # Of eight trials the median is 13,500 ns, of the quieter four 11,500 ns; of seven 13,000 and 11,000 ns.
    assert found.p50_change == pytest.approx((11.5 / 13.5 + 11.0 / 13.0) / 2 - 1.0, rel=1e-6)
    out = io.StringIO()
    render_preemption(found, Console(file=out, width=200))
    assert "the quieter half of each cell's trials: p50 -15 %" in out.getvalue()


def test_every_view_tells_of_a_queue(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = open_campaign(synthetic_campaign.with_estimates(growing(directory)))
    (queue,) = summarise(campaign).queues
    assert (queue.cell, queue.trials, queue.trials_growing, queue.growth_ns_per_s) == (SHM, 8, 3, 0.33e9)
    assert queue.waiting == WAITING.removeprefix("; ")
    assert build_report(campaign).queues == [queue]
    text = shown(directory)
    assert "a queue builds up: these p50 (↗) depend on how long a trial is" in text
    assert "median response time grows by 330 ms a second (3 of 8 trials)" in text
    assert "300 messages wait on source→relay-1, where depth is 1" in text
    assert text.count(" ↗") == 3 + 1  # beside the p50 of those trials, and of their cell
    assert "330 ms" not in shown(directory, cell="udp/*")
    show.command(directory, json=True)
    assert json.loads(capsys.readouterr().out)["queues"] == [queue.model_dump()]
    compare.command(directory, directory, by="shm:udp")
    told = " ".join(capsys.readouterr().out.split())
    assert "a queue builds up in trials: A 3 of 8 (+330 ms a second), B 0 of 7;" in told
    judged = judge_limits(campaign, parse_absolute(["p50 > 1s"]))
    assert {each.cell: each.why for each in judged}[SHM] == (
        "a queue builds up in 3 of 8 trials: it depends on their length"
    )


def test_a_p50_of_a_queue_is_marked_in_every_table(tmp_path: Path) -> None:
    shape = synthetic_campaign.Shape(
        adapters=("shm", "cyclonedds"),
        payloads_bytes=(64,),
        reliabilities=("best_effort",),
        trials=8,
        messages=200,
    )
    text = shown(growing(synthetic_campaign.write_campaign(tmp_path / "campaign", shape)))
    marked = [line for line in text.splitlines() if " ↗" in line and "(↗)" not in line]
    trial = re.compile(rf" *{re.escape(SHM)} (\[[\d,…]+\])? *[012] ")
    of_trials = [line for line in marked if trial.match(line)]
    assert len(of_trials) == 3
    glance = [line for line in marked if line.split()[0] == "shm"]
    assert len(glance) == 1
    intervals = [line for line in marked if line not in of_trials + glance]
    assert [line.split()[0] for line in intervals] == [SHM] and intervals[0].count("↗") == 1


def test_older_campaigns_tell_of_none(directory: Path) -> None:
    summary = summarise(open_campaign(directory))
    assert summary.queues == [] and summary.preemption is None
