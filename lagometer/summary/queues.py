# SPDX-License-Identifier: Apache-2.0
"""Where a queue builds up: cells whose p50 depends on the length of a trial."""

from __future__ import annotations

import statistics

import polars as pl

from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.cell_data import Queue

WORD = "queue-builds-up"


def queues(campaign: Campaign) -> list[Queue]:
    """For each cell whose valid trials have the warning, end to end; the fastest growing first. A trial's
    warnings stand in all of its rows, also if the queue is on one edge alone."""
    if "response_growth_ns_per_s" not in campaign.cells.columns:
        return []
    by_cell: dict[str, list[tuple[float | None, list[str]]]] = {}
    rows = campaign.cells.filter(pl.col("valid") & (pl.col("edge") == END_TO_END))
    for cell, growth, texts in rows.select("cell", "response_growth_ns_per_s", "warnings").iter_rows():
        warnings = [text for text in texts or [] if text.startswith(f"{WORD}: {END_TO_END},")]
        by_cell.setdefault(cell, []).append((growth, warnings))
    result = []
    for cell, trials in by_cell.items():
        growing = [growth for growth, warnings in trials if warnings and growth is not None]
        if growing:
            texts = [text.partition(": ")[2] for _, warnings in trials for text in warnings]
            result.append(
                Queue(
                    cell=cell,
                    trials=len(trials),
                    trials_growing=len(growing),
                    growth_ns_per_s=statistics.median(growing),
                    waiting=_waiting(texts),
                )
            )
    return sorted(result, key=lambda queue: -queue.growth_ns_per_s)


def _waiting(texts: list[str]) -> str | None:
    """What the trials report about messages that wait although depth is small; the last trial's text."""
    notes = [text.partition("; ")[2] for text in texts if "; " in text]
    return notes[-1] if notes else None
