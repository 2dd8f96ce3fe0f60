# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: named chains, the whole time and its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import ChainRow

FIGURES = {
    "p50": "whole_p50_ns",
    "p99": "whole_p99_ns",
    "communication": "communication_p50_ns",
    "computation": "computation_p50_ns",
    "idle": "idle_p50_ns",
    "½ round trip": "half_round_trip_p50_ns",
    "data age": "age_mean_ns",
    "best": "age_best_ns",
    "worst": "age_worst_ns",
    "reaction p50": "reaction_p50_ns",
    "reaction max": "reaction_max_ns",
    "first answer": "join_first_message_ns",
}


def render_chains(rows: Sequence[ChainRow], console: Console) -> None:
    """Prints a line for each chain of each cell; omits columns that no chain has."""
    from rich.markup import escape

    if not rows:
        return
    shown = {
        heading: name
        for heading, name in FIGURES.items()
        if any(getattr(row, name) is not None for row in rows)
    }
    absences = (name for name in ("unanswered", "unreachable") if any(getattr(row, name) for row in rows))
    counts = ("n", "lost", *absences)
    table = new_table()
    for heading in ("cell", "chain", *counts, *shown):
        table.add_column(heading, justify="left" if heading in ("cell", "chain") else "right")
    for row in rows:
        counted = [f"{getattr(row, name):,}" for name in counts]
        figures = [duration_text(getattr(row, name)) for name in shown.values()]
        table.add_row(escape(row.cell), escape(row.chain), *counted, *figures)
    console.print(
        "\n[bold]chains[/]: first publishing to the end of the last callback; the parts are medians, too; "
        "data age, best and worst: the mean, shortest and longest path of an input"
    )
    print_wide(table, console)
