# SPDX-License-Identifier: Apache-2.0
"""The named chains of each cell, and the parts of their time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import polars as pl

from lagometer.store.format import ARROW, END_TO_END
from lagometer.summary.cell_data import ChainRow
from lagometer.summary.data import Cell

LOSSES = ("lost", "overwritten", "censored", "rejected")  # all that did not arrive, as in the table of edges
FIGURES = (
    "whole_p50_ns",
    "whole_p99_ns",
    "communication_p50_ns",
    "computation_p50_ns",
    "idle_p50_ns",
    "half_round_trip_p50_ns",
    "age_mean_ns",
    "age_best_ns",
    "age_worst_ns",
    "reaction_p50_ns",
    "reaction_max_ns",
    "join_first_message_ns",
)


def chains(rows: pl.DataFrame, cells: Sequence[Cell]) -> list[ChainRow]:
    """One row for each measured cell and chain, in the study's order. rows: `cells.parquet`."""
    by_chain: dict[tuple[str, str], list[dict[str, Any]]] = {}
    if "whole_p50_ns" not in rows.columns:
        return []
    named = rows.filter(
        pl.col("valid") & ~pl.col("edge").str.contains(ARROW, literal=True) & (pl.col("edge") != END_TO_END)
    )
    for row in named.sort("trial").iter_rows(named=True):
        by_chain.setdefault((row["cell"], row["edge"]), []).append(row)
    order = {cell.id: place for place, cell in enumerate(cells)}
    return [
        ChainRow(
            cell=cell,
            chain=chain,
            trials=len(trial_rows),
            n=sum(row["n"] for row in trial_rows),
            lost=sum(row[name] or 0 for row in trial_rows for name in LOSSES),
            unanswered=sum(row.get("unanswered") or 0 for row in trial_rows),
            unreachable=sum(row.get("unreachable") or 0 for row in trial_rows),
            **{name: _middle(row.get(name) for row in trial_rows) for name in FIGURES},
        )
        for (cell, chain), trial_rows in sorted(
            by_chain.items(), key=lambda item: order.get(item[0][0], len(order))
        )
    ]


def _middle(values: Iterable[float | None]) -> float | None:
    """The median; None unless every trial has the figure."""
    known = list(values)
    return None if None in known else median(value for value in known if value is not None)
