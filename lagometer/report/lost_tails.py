# SPDX-License-Identifier: Apache-2.0
"""Quantiles of latency over the trials of a cell, with the messages that never came as infinite."""

from __future__ import annotations

import math
from statistics import median as median_of
from typing import Any

import polars as pl

from lagometer.report.cell_data import LostQuantile, LostTail
from lagometer.report.of_cells import Key, estimated, groups, median
from lagometer.stats.cell_estimates import lost_quantity
from lagometer.stats.confidence import PERMILLE

Estimates = dict[tuple[str, str, str], Any]
_NEVER_CAME = ("lost", "censored")


def lost_tails(cells: pl.DataFrame, estimates: pl.DataFrame | None) -> list[LostTail]:
    """Of every cell and edge that lost messages in a valid trial, in the order of the rows of `cells`.

    estimates: estimates.parquet, for the quantiles of all messages; without it they are medians over trials.
    """
    wanted = [quantity for name in PERMILLE for quantity in (f"latency_{name}", lost_quantity(name))]
    known = estimated(estimates, wanted)
    sent = pl.sum_horizontal("n", *_NEVER_CAME) > 0
    return [
        _of_edge(key, rows, known)
        for key, rows in groups(cells, sent)
        if rows["latency_infinite_from"].null_count() < rows.height
    ]


def _of_edge(key: Key, rows: pl.DataFrame, known: Estimates) -> LostTail:
    arrived = [1.0 if share is None else float(share) for share in rows["latency_infinite_from"]]
    return LostTail(
        cell=key[0],
        edge=key[1],
        trials=rows.height,
        n=int(rows["n"].sum()),
        lost=sum(int(rows[name].sum()) for name in _NEVER_CAME),
        arrived_share=sum(arrived) / len(arrived),
        cpu_per_message_ns=median(rows, "cpu_per_message_ns"),
        quantiles=[_quantile(key, rows, known, name) for name in PERMILLE],
    )


def _quantile(key: Key, rows: pl.DataFrame, known: Estimates, name: str) -> LostQuantile:
    delivered = known.get((*key, f"latency_{name}"))
    with_lost = known.get((*key, lost_quantity(name)))
    column = f"latency_{name}_ns"
    value = _over_trials(rows, name) if with_lost is None else with_lost["estimate_ns"]
    if with_lost is not None and value is None:
        value = math.inf
    infinite = value is not None and math.isinf(value)
    return LostQuantile(
        figure=column,
        of="trials" if with_lost is None else "messages",
        delivered_ns=median(rows, column) if delivered is None else delivered["estimate_ns"],
        value_ns=None if infinite else value,
        infinite=infinite,
        interval=with_lost is not None,
        low_ns=None if with_lost is None else with_lost["low_ns"],
        high_ns=None if with_lost is None else with_lost["high_ns"],
    )


def _over_trials(rows: pl.DataFrame, name: str) -> float | None:
    """The median of the trials' quantiles, among which some may be infinite; None unless each is known."""
    values = [_of_trial(row, name) for row in rows.iter_rows(named=True)]
    known = [value for value in values if value is not None]
    return median_of(known) if known and len(known) == len(values) else None


def _of_trial(row: dict[str, Any], name: str) -> float | None:
    """A quantile of one trial; infinite where its rank lies beyond those that arrived."""
    count = int(row["n"] or 0) + sum(int(row[lost] or 0) for lost in _NEVER_CAME)
    rank = max(1, -(-count * PERMILLE[name] // 1000))
    if rank > int(row["n"] or 0):
        return math.inf
    value = row[f"latency_{name}_lost_ns"]
    return None if value is None else float(value)
