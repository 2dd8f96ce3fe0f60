# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: what is feasible within the deadline, by payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import Feasibility, Feasible

STYLES = {"possible": "green", "late": "yellow", "lossy": "yellow"}
MEANING = (
    "late: over 1 % of deadlines missed; lossy: over 0.1 % did not arrive; halt: nothing, or under half, "
    "arrived; failed: no trial is valid; configuration, size: can't exist (the reasons are below); "
    "*: initial loss"
)


def render_feasibility(rows: Sequence[Feasibility], console: Console) -> None:
    """Prints a line for each series of cells; nothing for a study without a deadline."""
    from rich.markup import escape

    if not rows:
        return
    sizes = sorted({feasible.payload_bytes for line in rows for feasible in line.payloads})
    table = new_table()
    table.add_column("cells")
    for size in sizes:
        table.add_column(format_bytes(size), justify="right")
    for line in rows:
        by_size = {feasible.payload_bytes: feasible for feasible in line.payloads}
        styled = [_word(by_size.get(size)) for size in sizes]
        table.add_row(escape(line.series), *styled)
    console.print(f"\n[bold]what is possible[/]: {MEANING}")
    print_wide(table, console)


def _word(feasible: Feasible | None) -> str:
    if feasible is None:
        return "-"
    return (
        f"[{STYLES.get(feasible.verdict, 'red')}]{feasible.verdict}[/]{'*' if feasible.initial_loss else ''}"
    )
