# SPDX-License-Identifier: Apache-2.0
"""How cells met the study's deadline: combines the trials' figures in cells.parquet."""

from __future__ import annotations

import polars as pl

from lagometer.stats.cell.cell_estimates import MISS_SHARE
from lagometer.stats.interval.confidence import TRIALS_MIN
from lagometer.summary.cell_data import Deadline
from lagometer.summary.cell_rows import Figures, estimated, over_trials


def deadlines(cells: pl.DataFrame, estimates: pl.DataFrame | None) -> list[Deadline]:
    """A row for each cell and edge with a deadline and a valid trial, in the order of the rows of `cells`.

    estimates: estimates.parquet, for the interval of the share; None if there is none.
    """
    known = estimated(estimates, [MISS_SHARE])
    rows = over_trials(
        cells,
        pl.col("deadline_ns").is_not_null(),
        deadline_ns=pl.first("deadline_ns"),
        missed=pl.sum("deadline_missed"),
        due=_due(),
        miss_share=pl.mean(MISS_SHARE),
        shares=pl.count(MISS_SHARE),
        run_max=pl.max("deadline_run_max"),
        k=pl.first("deadline_k"),
        met_of_k_min=pl.min("deadline_met_of_k_min"),
        data_age_max_ns=pl.max("data_age_max_ns"),
    )
    return [_deadline(row, known.get((row["cell"], row["edge"], MISS_SHARE), {})) for row in rows]


def _deadline(figures: Figures, estimate: Figures) -> Deadline:
    enough = figures.pop("shares") >= TRIALS_MIN
    share = estimate.get("estimate_share", figures.pop("miss_share"))  # the same except for rounding
    return Deadline(
        miss_share=share,
        miss_share_low=estimate.get("low_share"),
        miss_share_high=estimate.get("high_share"),
        needed_trials=None if enough else TRIALS_MIN,
        **figures,
    )


def _due() -> pl.Expr:
    """The messages that were due. An older lagometer wrote only their share, enough unless it is 0."""
    derived = pl.col("deadline_missed") / pl.when(pl.col(MISS_SHARE) > 0).then(pl.col(MISS_SHARE))
    due = pl.coalesce("deadline_due", derived.round().cast(pl.Int64()))
    return pl.when(due.null_count() == 0).then(due.sum())
