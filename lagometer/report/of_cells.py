# SPDX-License-Identifier: Apache-2.0
"""Rows of `cells.parquet` by cell and edge, valid trials alone, for what is told of whole cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from lagometer.store.format import END_TO_END

Key = tuple[str, str]


def in_order(cells: pl.DataFrame, order: Mapping[str, int]) -> pl.DataFrame:
    """The rows in the study's order of cells, end-to-end before the other edges of each, then by trial."""
    places = pl.Series("place", [order.get(cell, len(order)) for cell in cells["cell"]], dtype=pl.Int64())
    by = (places, pl.col("edge") != END_TO_END, pl.col("trial"))
    return cells.sort(*by, maintain_order=True)


def groups(cells: pl.DataFrame, chosen: pl.Expr) -> Iterator[tuple[Key, pl.DataFrame]]:
    """The valid rows for which `chosen` holds, by cell and edge in the order of their first appearance."""
    rows = cells.filter(pl.col("valid") & chosen)
    for (cell, edge), group in rows.group_by("cell", "edge", maintain_order=True):
        yield (str(cell), str(edge)), group


def estimated(estimates: pl.DataFrame | None, quantities: list[str]) -> dict[tuple[str, str, str], Any]:
    """The rows of estimates.parquet that have an estimate, by cell, edge and quantity."""
    if estimates is None:
        return {}
    rows = estimates.filter(pl.col("quantity").is_in(quantities) & (pl.col("status") == "ok"))
    return {(row["cell"], row["edge"], row["quantity"]): row for row in rows.iter_rows(named=True)}


def median(rows: pl.DataFrame, column: str) -> float | None:
    """The median over trials; None unless every trial has the figure."""
    if rows[column].null_count() or rows.is_empty():
        return None
    found = rows[column].median()
    return float(found) if isinstance(found, (int, float)) else None


def most(rows: pl.DataFrame, column: str) -> int | None:
    """The largest of any trial; None where none has the figure."""
    found = rows[column].max()
    return int(found) if isinstance(found, (int, float)) else None


def fewest(rows: pl.DataFrame, column: str) -> int | None:
    """The smallest of any trial; None where none has the figure."""
    found = rows[column].min()
    return int(found) if isinstance(found, (int, float)) else None
