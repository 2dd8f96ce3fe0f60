# SPDX-License-Identifier: Apache-2.0
"""Whether a cell keeps up with its sources' rate, judged from one trial.

It does if the trial is valid, at most a given share of the messages did not arrive, and no queue builds up
(growth.py; docs/methodology/sustained-rate.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lagometer.stats.verdict.growth import response_growth
from lagometer.store import format as form

# The effects of too much load; any other reason says nothing about the rate.
OF_LOAD = frozenset({"rate-missed", "saturated", "nothing-received", "lost-keep-all", "no-memory"})
_ABSENT = ("lost", "overwritten", "censored", "rejected")


@dataclass(frozen=True)
class Verdict:
    """What one trial says about its rate.

    sustained: None if it can't be determined; `why` then says what went wrong. loss: share of the messages
    that did not arrive. growth: of the response time, in seconds per second; None with too few messages.
    """

    sustained: bool | None
    why: str
    loss: float | None = None
    growth: float | None = None


def verdict(rows: pl.DataFrame, samples: pl.DataFrame, loss_max: float) -> Verdict:
    """Judges a trial from its rows of cells.parquet and its samples. loss_max: a share, 0 to 1."""
    row = rows.filter(pl.col("edge") == form.END_TO_END).row(0, named=True)
    absent = sum(int(row[name] or 0) for name in _ABSENT)
    attempted = int(row["n"] or 0) + absent
    loss = absent / attempted if attempted else None
    trend = response_growth(samples)
    growth = trend.per_s if trend is not None else None
    reasons = [str(reason) for reason in row["reasons"]]
    other_reasons = [reason for reason in reasons if reason.partition(":")[0] not in OF_LOAD]
    if other_reasons:
        return Verdict(None, "; ".join(other_reasons), loss, growth)
    if reasons:
        return Verdict(False, "; ".join(reasons), loss, growth)
    if loss is not None and loss > loss_max:
        return Verdict(False, f"{absent} of {attempted} messages did not arrive", loss, growth)
    if trend is not None and trend.builds_up:
        return Verdict(False, f"response times grow by {100 * trend.per_s:.2g} % of the time", loss, growth)
    return Verdict(True, "", loss, growth)
