# SPDX-License-Identifier: Apache-2.0
"""What the daemons next to each cell's workers used."""

from __future__ import annotations

import polars as pl

from lagometer.store.format import of_single_edges
from lagometer.summary.cell_data import Daemons
from lagometer.summary.cell_rows import median

_OF_TRIAL = ("cpu_per_message_ns", "daemon_cpu_ns", "memory_pss_bytes", "daemon_pss_bytes")

_SHOWN = ("cpu_per_message_ns", "daemon_cpu_per_message_ns", "memory_pss_bytes", "daemon_pss_bytes")


def daemons(cells: pl.DataFrame) -> list[Daemons]:
    """A row for every cell with daemons and a valid trial, in the order of the rows of `cells`."""
    if "daemon_cpu_ns" not in cells.columns:
        return []
    edges = cells.filter(pl.col("valid") & pl.col("daemon_cpu_ns").is_not_null())
    # A trial's own figures are the same on each of its rows; its messages are those of all edges.
    delivered = pl.col("n").filter(of_single_edges()).sum()
    by_trial = edges.group_by("cell", "trial", maintain_order=True)
    trials = by_trial.agg(pl.first(*_OF_TRIAL), delivered=delivered)
    share = pl.when(pl.col("delivered") > 0).then(pl.col("daemon_cpu_ns") / pl.col("delivered"))
    rows = trials.with_columns(daemon_cpu_per_message_ns=share)
    table = rows.group_by("cell", maintain_order=True).agg(
        trials=pl.len(),
        **{name: median(name) for name in _SHOWN},
    )
    return [Daemons(**row) for row in table.iter_rows(named=True)]
