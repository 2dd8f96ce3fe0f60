# SPDX-License-Identifier: Apache-2.0
"""Subscribers as they come and go: how evenly they are served, what they miss, what joining costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import polars as pl

from lagometer.store.format import JOINING_COLUMNS
from lagometer.summary.cell_data import Joined, Served
from lagometer.summary.data import Cell

FAIRNESS = ("fairness_p50_ratio", "fairness_order_correlation")
OF_THE_NEWCOMER = {
    "process_ns": "join_process_ns",
    "participant_ns": "join_participant_ns",
    "first_message_ns": "join_first_message_ns",
}
OF_THE_OTHERS = tuple(name for name in JOINING_COLUMNS if name not in OF_THE_NEWCOMER.values())


def served(rows: pl.DataFrame, cells: Sequence[Cell]) -> list[Served]:
    """A row for each cell in which a topic has several subscribers, or in which one missed messages at first,
    in the study's order. rows: `cells.parquet`."""
    if not {"initial_lost", *FAIRNESS} <= set(rows.columns):
        return []
    valid = rows.filter(pl.col("valid"))
    told = valid.filter(pl.col(FAIRNESS[0]).is_not_null() | (pl.col("initial_lost") > 0))["cell"].unique()
    if told.is_empty():
        return []
    # The end-to-end row has the fairness, each edge its own loss; a trial has one of each.
    by_trial = (
        valid.filter(pl.col("cell").is_in(told.to_list()))
        .group_by("cell", "trial")
        .agg(pl.col("initial_lost").max(), *(pl.col(name).max() for name in FAIRNESS))
    )
    trials = _by(by_trial, ("cell",))
    return [
        Served(
            cell=cell,
            trials=len(trials[cell,]),
            p50_ratio=_middle(trial[FAIRNESS[0]] for trial in trials[cell,]),
            order_correlation=_middle(trial[FAIRNESS[1]] for trial in trials[cell,]),
            initial_lost=_middle(trial["initial_lost"] for trial in trials[cell,]),
        )
        for cell in (each.id for each in cells)
        if (cell,) in trials
    ]


def joined(rows: pl.DataFrame, cells: Sequence[Cell]) -> list[Joined]:
    """A row for each edge of a node that joined late, and of a node that stayed while others came or went, in
    the study's order. rows: `cells.parquet`."""
    if not set(JOINING_COLUMNS) <= set(rows.columns):
        return []
    told = rows.filter(
        pl.col("valid") & pl.any_horizontal(pl.col(name).is_not_null() for name in JOINING_COLUMNS)
    )
    if told.is_empty():
        return []
    order = {cell.id: place for place, cell in enumerate(cells)}
    trials = _by(told, ("cell", "edge"))
    return [
        Joined(
            cell=str(cell),
            edge=str(edge),
            trials=len(of_edge),
            **{field: _middle(trial[name] for trial in of_edge) for field, name in OF_THE_NEWCOMER.items()},
            **{name: _largest(trial[name] for trial in of_edge) for name in OF_THE_OTHERS},
        )
        for (cell, edge), of_edge in sorted(
            trials.items(), key=lambda item: order.get(str(item[0][0]), len(order))
        )
    ]


def _by(
    rows: pl.DataFrame, keys: tuple[str, ...]
) -> dict[tuple[object, ...], list[Mapping[str, float | None]]]:
    """The rows by these columns, in the order of their first appearance."""
    groups: dict[tuple[object, ...], list[Mapping[str, float | None]]] = {}
    for row in rows.iter_rows(named=True):
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _middle(values: Iterable[float | None]) -> float | None:
    """The median; None unless every trial has the figure."""
    known = list(values)
    return None if None in known else median(value for value in known if value is not None)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
