# SPDX-License-Identifier: Apache-2.0
"""Converts a campaign to the data of its page: its summary, and its messages as curves and series."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing

from lagometer.report import limits
from lagometer.report.data import Report
from lagometer.report.samples.draw import Drawing
from lagometer.store.reader import Campaign
from lagometer.summary.data import Cell, Row
from lagometer.summary.intervals import known
from lagometer.summary.summarise import measured, summarise
from lagometer.summary.ways import message_ways

DATA_FORMAT = 5


def build_report(campaign: Campaign, readers: ProcessPoolExecutor | None = None) -> Report:
    """Everything that the page shows. A trial with unreadable samples is named in `notes`, not silently
    dropped.

    `readers`: processes that may read samples (`reader_pool.readers_of`).
    """
    measured_rows, factors = measured(campaign)
    payload_known = frozenset(cell for cell, values in factors.items() if "payload_bytes" in values)
    # Reading samples begins first, so that all that follows runs beside it.
    with closing(Drawing(campaign, measured_rows, payload_known, readers)) as drawing:
        confidence = known(campaign)
        summary = summarise(campaign, confidence, of_trials=(measured_rows, factors))
        ways, unseen = message_ways(campaign, list(factors))
        drawn, notes = drawing.finish(confidence.alphas, in_passing=not confidence.affordable)
    rows, fewer = _fewer(summary.rows)
    cells = _with_payload(summary.cells, drawn.payload_bytes)
    fields = {name: getattr(summary, name) for name in type(summary).model_fields}
    return Report(
        **fields | {"rows": rows, "cells": cells, "notes": [*fewer, *unseen, *notes, *summary.notes]},
        format=DATA_FORMAT,
        kind="campaign",
        curves=drawn.curves,
        series=drawn.series,
        ways=ways,
    )


def _with_payload(cells: list[Cell], received_bytes: Mapping[str, int]) -> list[Cell]:
    """The cells; the received payload replaces one that the study leaves at its default."""
    return [
        cell.model_copy(update={"payload_bytes": received_bytes[cell.id]})
        if cell.payload_bytes is None and cell.id in received_bytes
        else cell
        for cell in cells
    ]


def _fewer(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """As many rows of single trials as the page can hold, and a note on the others."""
    over = [row for row in rows if row.trial is None]
    single = [row for row in rows if row.trial is not None]
    shown = single[: max(0, limits.ROWS_MAX - len(over))]
    if len(shown) == len(single):
        return rows, []
    note = (
        f"The table holds {len(shown):,} of {len(single):,} rows of single trials; all are in cells.parquet."
    )
    return [*over, *shown], [note]
