# SPDX-License-Identifier: Apache-2.0
"""Quantiles of latency over the trials of a cell, with lost messages as infinite."""

from __future__ import annotations

import math
from statistics import median as median_of

import polars as pl

from lagometer.stats.cell.cell_estimates import lost_quantity
from lagometer.stats.interval.confidence import PERMILLE
from lagometer.summary.cell_data import LostQuantile, LostTail
from lagometer.summary.cell_rows import Figures, estimated, median, over_trials

_NEVER_CAME = ("lost", "censored")


def lost_tails(cells: pl.DataFrame, estimates: pl.DataFrame | None) -> list[LostTail]:
    """A row for every cell and edge that lost messages in a valid trial, in the order of the rows of `cells`.

    estimates: estimates.parquet, for the quantiles of all messages; without it they are medians over trials.
    """
    wanted = [quantity for name in PERMILLE for quantity in (f"latency_{name}", lost_quantity(name))]
    known = estimated(estimates, wanted)
    sent = pl.sum_horizontal("n", *_NEVER_CAME) > 0
    losing = pl.col("valid") & pl.col("latency_infinite_from").is_not_null()
    rows = over_trials(
        cells,
        sent & losing.any().over("cell", "edge"),
        n=pl.sum("n"),
        lost=pl.sum_horizontal(pl.sum(name) for name in _NEVER_CAME),
        arrived_share=pl.col("latency_infinite_from").fill_null(1.0).mean(),
        **{f"delivered_{name}": median(f"latency_{name}_ns") for name in PERMILLE},
        **{f"with_lost_{name}": _of_trial(name) for name in PERMILLE},
    )
    counted = ("cell", "edge", "trials", "n", "lost", "arrived_share", "cpu_per_message_ns")
    return [
        LostTail(
            **{name: edge_row[name] for name in counted},
            quantiles=[
                _quantile(
                    name,
                    edge_row,
                    known.get((edge_row["cell"], edge_row["edge"], f"latency_{name}")),
                    known.get((edge_row["cell"], edge_row["edge"], lost_quantity(name))),
                )
                for name in PERMILLE
            ],
        )
        for edge_row in rows
    ]


def _of_trial(name: str) -> pl.Expr:
    """A quantile of each trial; infinite if its rank lies beyond the messages that arrived."""
    count = pl.sum_horizontal("n", *_NEVER_CAME).cast(pl.Int64())
    rank = (count * PERMILLE[name] + 999) // 1000
    value = pl.col(f"latency_{name}_lost_ns").cast(pl.Float64())
    return pl.when(rank > pl.col("n")).then(math.inf).otherwise(value)


def _quantile(
    name: str, figures: Figures, delivered: Figures | None, with_lost: Figures | None
) -> LostQuantile:
    if with_lost is None:
        value = _median(figures[f"with_lost_{name}"])
    else:
        value = math.inf if with_lost["estimate_ns"] is None else with_lost["estimate_ns"]
    infinite = value is not None and math.isinf(value)
    return LostQuantile(
        figure=f"latency_{name}_ns",
        of="trials" if with_lost is None else "messages",
        delivered_ns=figures[f"delivered_{name}"] if delivered is None else delivered["estimate_ns"],
        value_ns=None if infinite else value,
        infinite=infinite,
        interval=with_lost is not None,
        low_ns=None if with_lost is None else with_lost["low_ns"],
        high_ns=None if with_lost is None else with_lost["high_ns"],
    )


def _median(values: list[float | None]) -> float | None:
    """The median of the trials' quantiles, some of which may be infinite; None unless all are known."""
    known = [value for value in values if value is not None]
    return median_of(known) if known and len(known) == len(values) else None
