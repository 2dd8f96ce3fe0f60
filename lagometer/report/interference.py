# SPDX-License-Identifier: Apache-2.0
"""What the load beside the workers of each cell used and did."""

from __future__ import annotations

import polars as pl

from lagometer.report.cell_data import Interference
from lagometer.report.of_cells import groups, median
from lagometer.stats.medians import median_interval
from lagometer.store.format import END_TO_END

NONE = "none"
_OF_BYTES = ("network", "io")  # of these what was moved is counted, of the others stress-ng's operations


def interference(cells: pl.DataFrame) -> list[Interference]:
    """Of every cell with such load and a valid trial, in the order of the rows of `cells`."""
    loaded = (pl.col("interference") != NONE) & (pl.col("edge") == END_TO_END)
    return [_of_cell(cell, rows) for (cell, _), rows in groups(cells, loaded)]


def _of_cell(cell: str, rows: pl.DataFrame) -> Interference:
    load = str(rows["interference"][0])
    cpu, achieved = (
        median_interval(rows[name].to_list()) or (None, None)
        for name in ("interference_cpu_ns", "interference_achieved_per_s")
    )
    return Interference(
        cell=cell,
        load=load,
        trials=rows.height,
        cpu_ns=median(rows, "interference_cpu_ns"),
        cpu_low_ns=cpu[0],
        cpu_high_ns=cpu[1],
        achieved_per_s=median(rows, "interference_achieved_per_s"),
        achieved_low_per_s=achieved[0],
        achieved_high_per_s=achieved[1],
        unit="bytes" if load.partition("-")[0] in _OF_BYTES else "operations",
        cpu_per_message_ns=median(rows, "cpu_per_message_ns"),
    )
