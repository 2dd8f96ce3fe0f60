# SPDX-License-Identifier: Apache-2.0
"""How cells kept the study's deadline: the trials' figures in cells.parquet, brought together."""

from __future__ import annotations

import polars as pl

from lagometer.report.cell_data import Deadline
from lagometer.report.of_cells import Key, estimated, fewest, groups, median, most
from lagometer.stats.cell_estimates import MISS_SHARE
from lagometer.stats.confidence import TRIALS_MIN


def deadlines(cells: pl.DataFrame, estimates: pl.DataFrame | None) -> list[Deadline]:
    """Of every cell and edge with a deadline and a valid trial, in the order of the rows of `cells`.

    estimates: estimates.parquet, for the interval of the share; None where there is none.
    """
    known = estimated(estimates, [MISS_SHARE])
    asked = pl.col("deadline_ns").is_not_null()
    return [_of_edge(key, rows, known.get((*key, MISS_SHARE), {})) for key, rows in groups(cells, asked)]


def _of_edge(key: Key, rows: pl.DataFrame, estimate: dict[str, float | None]) -> Deadline:
    shares = rows[MISS_SHARE].drop_nulls()
    mean = shares.mean()
    enough = len(shares) >= TRIALS_MIN
    return Deadline(
        cell=key[0],
        edge=key[1],
        trials=rows.height,
        deadline_ns=int(rows["deadline_ns"][0]),
        missed=int(rows["deadline_missed"].sum()),
        due=_due(rows),
        miss_share=mean if isinstance(mean, float) else None,
        miss_share_low=estimate.get("low_share"),
        miss_share_high=estimate.get("high_share"),
        needed_trials=None if enough else TRIALS_MIN,
        run_max=most(rows, "deadline_run_max") or 0,
        k=int(rows["deadline_k"][0]),
        met_of_k_min=fewest(rows, "deadline_met_of_k_min"),
        data_age_max_ns=most(rows, "data_age_max_ns"),
        cpu_per_message_ns=median(rows, "cpu_per_message_ns"),
    )


def _due(rows: pl.DataFrame) -> int | None:
    """The messages that were due; an older lagometer wrote their share alone, which tells unless it is 0."""
    told = pl.col("deadline_missed") / pl.when(pl.col(MISS_SHARE) > 0).then(pl.col(MISS_SHARE))
    due = rows.select(pl.coalesce("deadline_due", told.round().cast(pl.Int64())).alias("due"))["due"]
    return None if due.null_count() else int(due.sum())
