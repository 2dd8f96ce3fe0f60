# SPDX-License-Identifier: Apache-2.0
"""What `show` prints of noise and of losses: figures with and without, and infinity where it belongs."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from lagometer.cli.show.noise import lost_quantile, render_lost, render_noise

Row = dict[str, Any]


def row(trial: int, p50_us: int, noise: list[str], **more: Any) -> Row:
    return {
        "cell": "shm/64B",
        "trial": trial,
        "edge": "end-to-end",
        "latency_p50_ns": p50_us * 1000,
        "latency_p99_ns": p50_us * 2000,
        "cpu_per_message_ns": p50_us * 3000.0,
        "noisy": bool(noise),
        "noise": noise,
        "latency_infinite_from": None,
        **more,
    }


def printed(render: Any, rows: list[Row]) -> str:
    out = io.StringIO()
    render(rows, Console(file=out, width=200))
    return out.getvalue()


def test_figures_are_given_with_and_without_noise() -> None:
    rows = [row(0, 10, []), row(1, 50, ["others: 20% of all CPUs' time"]), row(2, 90, ["stolen: 3%"])]
    text = printed(render_noise, rows)
    assert "noisy 2 of 3 trials (others 1, stolen 1)" in text
    shown = text.split("end-to-end")[1].replace(" µs", "").split()
    assert shown == ["50.0", "10.0", "150", "30.0", "100", "20.0"], "p50, CPU per message, p99"


def test_nothing_is_said_of_quiet_trials_and_old_campaigns() -> None:
    assert printed(render_noise, [row(0, 10, [])]) == ""
    assert printed(render_noise, [{**row(0, 10, []), "noisy": None, "noise": None}]) == ""
    assert printed(render_lost, [row(0, 10, [])]) == ""


def test_where_every_trial_is_noisy_there_is_nothing_to_compare() -> None:
    text = printed(render_noise, [row(0, 10, ["others: 9% of all CPUs' time"])])
    assert text.strip() == "noisy 1 of 1 trials (others 1)"


def test_a_quantile_among_the_lost_is_infinite() -> None:
    lost = {"latency_p50_lost_ns": 7_000, "latency_p90_lost_ns": None, "latency_p99_lost_ns": None}
    losing = row(0, 5, [], latency_infinite_from=0.92, **lost)
    assert [lost_quantile(losing, name) for name in ("p50", "p90", "p99")] == ["7.00 µs", "-", "∞"]
    assert "92.00%" in printed(render_lost, [losing])
