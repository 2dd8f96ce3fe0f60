# SPDX-License-Identifier: Apache-2.0
"""Cells whose sources fell behind, in a study that keeps such trials: figures of their own, in no ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from lagometer.store.reader import Campaign
from lagometer.summary.saturated import saturated

BEHIND = ["saturated: source published 50 of 100 messages, 100 Hz instead of 200 Hz"]


def row(cell: str, trial: int, *, reasons: list[str], **more: Any) -> dict[str, Any]:
    return {
        "cell": cell,
        "trial": trial,
        "edge": "end-to-end",
        "valid": not reasons,
        "reasons": reasons,
        "n": 40,
        "sent": 50,
        "lost": 10,
        "rate_intended_hz": 200.0,
        "rate_achieved_hz": 100.0,
        "deadline_miss_share": None,
        "latency_p50_ns": 7_000,
        **more,
    }


def campaign(rows: list[dict[str, Any]]) -> Campaign:
    frame = pl.DataFrame(rows, schema_overrides={"deadline_miss_share": pl.Float64})
    return Campaign(Path("out"), {"study": {"duration_ns": 500_000_000}}, {}, frame, ())


def test_a_saturated_cell_has_what_it_still_delivered() -> None:
    rows = [
        row("a", 0, reasons=BEHIND),
        row("a", 1, reasons=BEHIND, n=60, lost=0, sent=60, rate_achieved_hz=120.0, latency_p50_ns=9_000),
        row("a", 2, reasons=[]),
        row("b", 0, reasons=["rate-missed: source"]),
        row("c", 0, reasons=[*BEHIND, "corrupted: source→sink"]),
    ]
    factors = {name: {"payload_bytes": 1024} for name in ("a", "b", "c")}
    (found,) = saturated(campaign(rows), factors)
    assert (found.cell, found.trials, found.of_trials) == ("a", 2, 3)
    assert (found.rate_intended_hz, found.rate_achieved_hz) == (200.0, 110.0)
    assert found.goodput_bytes_per_s == 50 * 1024 / 0.5
    assert found.lost_share == 10 / 110
    assert (found.deadline_miss_share, found.latency_p50_ns) == (None, 8_000)


def test_whatever_did_not_arrive_counts_as_lost() -> None:
    """RELIABLE with KEEP_LAST loses nothing by its own word: newer messages replace older ones."""
    more = {"lost": 0, "overwritten": 20, "censored": 5, "rejected": 10, "sent": 90}
    (found,) = saturated(campaign([row("a", 0, reasons=BEHIND, **more)]), {"a": {}})
    assert found.lost_share == 35 / 100


def test_goodput_is_unknown_where_the_payload_is() -> None:
    (found,) = saturated(campaign([row("a", 0, reasons=BEHIND)]), {"a": {"payload_bytes": None}})
    assert found.goodput_bytes_per_s is None
