# SPDX-License-Identifier: Apache-2.0
"""What the load next to each cell's workers used and did."""

from __future__ import annotations

import polars as pl

from lagometer.stats.interval.medians import median_interval
from lagometer.store.format import END_TO_END
from lagometer.summary.cell_data import Interference
from lagometer.summary.cell_rows import Figures, median, over_trials

NONE = "none"
_OF_BYTES = ("network", "io")  # for these, the bytes moved count; for the others, stress-ng's operations


def interference(cells: pl.DataFrame) -> list[Interference]:
    """A row for every cell with such a load and a valid trial, in the order of the rows of `cells`."""
    rows = over_trials(
        cells,
        (pl.col("interference") != NONE) & (pl.col("edge") == END_TO_END),
        load=pl.first("interference"),
        cpu_ns=median("interference_cpu_ns"),
        achieved_per_s=median("interference_achieved_per_s"),
        all_cpu_ns=pl.col("interference_cpu_ns"),
        all_achieved_per_s=pl.col("interference_achieved_per_s"),
    )
    return [_interference(row) for row in rows]


def _interference(figures: Figures) -> Interference:
    cpu, achieved = (
        median_interval(figures[name]) or (None, None) for name in ("all_cpu_ns", "all_achieved_per_s")
    )
    return Interference(
        **{name: figures[name] for name in ("cell", "load", "trials", "cpu_ns", "achieved_per_s")},
        cpu_low_ns=cpu[0],
        cpu_high_ns=cpu[1],
        achieved_low_per_s=achieved[0],
        achieved_high_per_s=achieved[1],
        unit="bytes" if figures["load"].partition("@")[0].partition("-")[0] in _OF_BYTES else "operations",
        cpu_per_message_ns=figures["cpu_per_message_ns"],
    )
