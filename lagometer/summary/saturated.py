# SPDX-License-Identifier: Apache-2.0
"""Cells whose sources fell behind their schedule, in a study that keeps such trials (`saturation: keep`).

They do not measure the requested rate. So they appear in no table of latencies and in no ranking; their
figure is what such a cell still delivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

import polars as pl

from lagometer.stats.verdict.validity import is_saturated
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.cell_data import Saturated

NS_PER_S = 1_000_000_000
LOSSES = ("lost", "overwritten", "censored", "rejected")  # all that did not arrive, as in the table of edges


def saturated(campaign: Campaign, factors: Mapping[str, Mapping[str, Any]]) -> list[Saturated]:
    """The saturated cells in the study's order; medians over their saturated trials, end to end."""
    study = campaign.manifest.get("study") or {}
    parts = study.get("parts") or {}
    rows = campaign.cells.filter((pl.col("edge") == END_TO_END) & ~pl.col("valid"))
    by_cell: dict[str, list[dict[str, Any]]] = {cell: [] for cell in factors}
    for row in rows.iter_rows(named=True):
        if is_saturated(row["reasons"] or ()):
            by_cell.setdefault(row["cell"], []).append(row)
    trials = campaign.cells.select("cell", "trial").unique()["cell"].value_counts()
    counts = dict(trials.iter_rows())
    # If topics have their own payloads, the factor says nothing about the last one's.
    mixed = {cell["id"] for cell in campaign.manifest.get("cells", []) if cell.get("topics")}
    return [
        _of_cell(
            cell,
            cell_rows,
            counts[cell],
            {} if cell in mixed else factors.get(cell, {}),
            parts.get(factors.get(cell, {}).get("part"), study).get("duration_ns"),
        )
        for cell, cell_rows in by_cell.items()
        if cell_rows
    ]


def _of_cell(
    cell: str,
    rows: list[dict[str, Any]],
    trials: int,
    factors: Mapping[str, Any],
    duration_ns: int | None,
) -> Saturated:
    lost = sum(row.get(name) or 0 for row in rows for name in LOSSES)
    meant = sum(row.get(name) or 0 for row in rows for name in ("sent", "rejected"))
    payload_bytes = factors.get("payload_bytes")
    delivered = median(row["n"] or 0 for row in rows)
    goodput = None
    if duration_ns and isinstance(payload_bytes, int):
        goodput = delivered * payload_bytes * NS_PER_S / duration_ns
    return Saturated(
        cell=cell,
        trials=len(rows),
        of_trials=trials,
        rate_intended_hz=_middle(row["rate_intended_hz"] for row in rows),
        rate_achieved_hz=_middle(row["rate_achieved_hz"] for row in rows),
        goodput_bytes_per_s=goodput,
        lost_share=lost / meant if meant else None,
        deadline_miss_share=_middle(row.get("deadline_miss_share") for row in rows),
        latency_p50_ns=_middle(row["latency_p50_ns"] for row in rows),
    )


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
