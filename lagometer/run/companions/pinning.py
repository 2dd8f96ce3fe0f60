# SPDX-License-Identifier: Apache-2.0
"""Which CPUs run what is next to the workers."""

from __future__ import annotations

from lagometer.study import Cell


def pinned_words(cell: Cell) -> tuple[str, ...]:
    """Returns the words before a daemon's command that pin it to the CPUs of the cell's workers."""
    cpus = cell.factors.cpus
    return () if cpus in ("any", "spread") else ("taskset", "-c", cpus)
