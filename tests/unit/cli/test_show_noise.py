# SPDX-License-Identifier: Apache-2.0
"""What `show` prints of noise and of losses: figures with and without, and infinity where it belongs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lagometer.cli.show.command import as_json, render
from lagometer.cli.show.noise import OVER, lost_quantile, render_lost, render_noise
from lagometer.report.build import build_report
from lagometer.store.reader import open_campaign
from lagometer.summary.data import Row as SummaryRow
from lagometer.summary.data import WithoutNoise
from lagometer.summary.rows import over_trials, trial_row
from lagometer.units import duration_text, span_text
from tests.fixtures.synthetic_campaign import Shape, write_campaign

Row = dict[str, Any]
OTHERS, STOLEN = "others: 20% of all CPUs' time", "stolen: 3%"


def row(trial: int, p50_us: int, noise: list[str], **more: Any) -> Row:
    return {
        "cell": "shm/64B",
        "trial": trial,
        "edge": "end-to-end",
        "valid": True,
        "n": 100,
        "latency_p50_ns": p50_us * 1000,
        "latency_p99_ns": p50_us * 2000,
        "cpu_per_message_ns": p50_us * 3000.0,
        "noise": noise,
        "latency_infinite_from": None,
        **more,
    }


def trials(*rows: Row) -> list[SummaryRow]:
    return [trial_row(each) for each in rows]


def printed(render_part: Any, *parts: Any) -> str:
    out = io.StringIO()
    render_part(*parts, Console(file=out, width=200))
    return out.getvalue()


def test_trials_are_counted_once_and_by_cause() -> None:
    both = trials(row(0, 10, []), row(1, 50, [OTHERS, OTHERS]), row(2, 90, [STOLEN, OTHERS]))
    text = printed(render_noise, [*both, over_trials(both)], [])
    assert text.strip() == "noisy 2 of 3 trials (others 2, stolen 1)"


def test_the_only_trial_of_a_cell_is_counted_by_the_row_over_its_trials() -> None:
    alone = over_trials(trials(row(0, 10, [OTHERS])))
    assert printed(render_noise, [alone], []).strip() == "noisy 1 of 1 trials (others 1)"


def test_nothing_is_said_of_quiet_trials_and_old_campaigns() -> None:
    assert printed(render_noise, trials(row(0, 10, [])), []) == ""
    assert printed(render_noise, trials({**row(0, 10, []), "noise": None}), []) == ""
    assert printed(render_lost, [row(0, 10, [])]) == ""


@pytest.mark.parametrize("count", [3, 8], ids=["medians of trials", "quantiles of messages"])
def test_figures_with_and_without_noise_are_those_of_the_report(tmp_path: Path, count: int) -> None:
    """With six quiet trials the quantile of all messages, otherwise medians of trials, in every view."""
    shape = Shape(
        adapters=("shm", "cyclonedds"), payloads_bytes=(64,), reliabilities=("best_effort",), trials=count
    )
    directory = write_campaign(tmp_path, shape)
    campaign = open_campaign(directory)
    compared = build_report(campaign).without_noise
    assert {each.figure for each in compared} == {"latency_p50_ns", "cpu_per_message_ns", "latency_p99_ns"}
    assert ("messages" in {each.of for each in compared}) == (count == 8)
    assert as_json(campaign)["without_noise"] == [each.model_dump() for each in compared]
    assert as_json(campaign, cell="shm/*")["without_noise"] == []
    out = io.StringIO()
    render(directory, Console(file=out, width=250))
    lines = out.getvalue().partition("noisy")[2].splitlines()
    names = {"latency_p50_ns": "p50", "cpu_per_message_ns": "CPU/msg", "latency_p99_ns": "p99"}
    for each in compared:
        name = names[each.figure]
        line = next(line for line in lines if line.split()[:1] == [each.cell] and f" {name} " in line)
        assert_shown(each, line)


def assert_shown(each: WithoutNoise, line: str) -> None:
    assert f" {each.trials_noisy} of {each.trials} " in line
    assert OVER[each.of] in line
    for value, low, high in (
        (each.all_ns, each.all_low_ns, each.all_high_ns),
        (each.quiet_ns, each.quiet_low_ns, each.quiet_high_ns),
    ):
        interval = "" if low is None or high is None else f" ({span_text(low, high)})"
        assert duration_text(value) + interval in line


def test_a_quantile_among_the_lost_is_infinite() -> None:
    lost = {"latency_p50_lost_ns": 7_000, "latency_p90_lost_ns": None, "latency_p99_lost_ns": None}
    losing = row(0, 5, [], latency_infinite_from=0.92, **lost)
    assert [lost_quantile(losing, name) for name in ("p50", "p90", "p99")] == ["7.00 µs", "-", "∞"]
    assert "92.00%" in printed(render_lost, [losing])
