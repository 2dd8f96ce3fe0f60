# SPDX-License-Identifier: Apache-2.0
"""Rows of `cells.parquet` by cell and edge, only valid trials, for the tables of whole cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from lagometer.store.format import END_TO_END

Figures = dict[str, Any]


def with_values(cells: pl.DataFrame) -> Iterator[Figures]:
    """The rows, without the columns in which no row has a value: most of some 200, in a usual campaign."""
    used = [column.name for column in cells if column.null_count() < cells.height]
    return cells.select(used).iter_rows(named=True)


def in_order(cells: pl.DataFrame, order: Mapping[str, int]) -> pl.DataFrame:
    """The rows in the study's order of cells, end-to-end before the other edges of each, then by trial."""
    places = pl.Series("place", [order.get(cell, len(order)) for cell in cells["cell"]], dtype=pl.Int64())
    by = (places, pl.col("edge") != END_TO_END, pl.col("trial"))
    return cells.sort(*by, maintain_order=True)


def over_trials(cells: pl.DataFrame, chosen: pl.Expr, **figures: pl.Expr) -> list[Figures]:
    """The figures of each cell and edge over the valid rows for which `chosen` holds.

    Also returns `cell`, `edge`, `trials` and the median of `cpu_per_message_ns`. All cells are processed at
    once, because a campaign may have tens of thousands.
    """
    rows = cells.lazy().filter(pl.col("valid") & chosen).group_by("cell", "edge", maintain_order=True)
    table = rows.agg(trials=pl.len(), cpu_per_message_ns=median("cpu_per_message_ns"), **figures)
    return table.collect().to_dicts()


def median(column: str) -> pl.Expr:
    """The median over trials; null unless every trial has the figure."""
    return pl.when(pl.col(column).null_count() == 0).then(pl.col(column).median())


def estimated(estimates: pl.DataFrame | None, quantities: list[str]) -> dict[tuple[str, str, str], Figures]:
    """The rows of estimates.parquet that have an estimate, by cell, edge and quantity."""
    if estimates is None:
        return {}
    rows = estimates.filter(pl.col("quantity").is_in(quantities) & (pl.col("status") == "ok"))
    return {(row["cell"], row["edge"], row["quantity"]): row for row in rows.iter_rows(named=True)}
