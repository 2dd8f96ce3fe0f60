# SPDX-License-Identifier: Apache-2.0
"""The figures of a named chain: the whole, its parts, and data age (docs/methodology/chains.md)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.stats.trial.quantile import quantile
from lagometer.store import format as form

Numbers = npt.NDArray[np.int64]


def chain_columns(measured: pl.DataFrame, returns: bool) -> dict[str, object]:
    """The columns of cells.parquet for one chain, from its rows in the measure phase.

    returns: the chain ends where it began. Half a round trip is half of the communication (Paul et al. 2024):
    the time in the nodes between is subtracted by their own clocks, and the clocks' difference cancels out.
    """
    half = pl.col("communication_ns") // 2 if returns else pl.lit(None, dtype=pl.Int64())
    arrived = measured.filter(pl.col("outcome") == "delivered").with_columns(
        whole_ns=pl.col("handled_ns") - pl.col("publish_ns"), half_round_trip_ns=half
    )
    row: dict[str, object] = {}
    for figure in form.CHAIN_FIGURES:
        numbers = np.sort(arrived[f"{figure}_ns"].drop_nulls().to_numpy())
        row[f"{figure}_p50_ns"], row[f"{figure}_p99_ns"] = quantile(numbers, 500), quantile(numbers, 990)
        row[f"{figure}_mean_ns"] = float(numbers.mean()) if len(numbers) else None
    return {**row, **_ages(arrived), **_reactions(arrived)}


def _ages(arrived: pl.DataFrame) -> dict[str, object]:
    """How old data is when the work based on it is done.

    Data age (Betz et al. 2024): the mean over all ways from one input; here the mean of that over the inputs,
    and the best and worst way.
    """
    if arrived.is_empty():
        return dict.fromkeys(("age_mean_ns", "age_best_ns", "age_worst_ns"))
    by_input = arrived.group_by("sequence").agg(pl.col("whole_ns").mean())
    whole = arrived["whole_ns"]
    return {
        "age_mean_ns": by_input["whole_ns"].mean(),
        "age_best_ns": whole.min(),
        "age_worst_ns": whole.max(),
    }


def _reactions(arrived: pl.DataFrame) -> dict[str, object]:
    """From an event to the first output that can know about it (first to first, Feiertag et al. 2009).

    The event just misses an input, so the next input contains it. The first output based on that input or a
    later one is the reaction.
    """
    inputs = (
        arrived.group_by("publish_ns")
        .agg(pl.col("handled_ns").min())
        .sort("publish_ns")
        .with_columns(answered_ns=pl.col("handled_ns").reverse().cum_min().reverse())
    )
    reaction = inputs.select(pl.col("answered_ns") - pl.col("publish_ns").shift(1)).to_series().drop_nulls()
    numbers = np.sort(reaction.to_numpy())
    return {
        "reaction_p50_ns": quantile(numbers, 500),
        "reaction_max_ns": int(numbers[-1]) if len(numbers) else None,
    }
