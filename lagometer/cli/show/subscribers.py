# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: how evenly subscribers are served, what they miss at first, and what joining costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import Joined, Served

JOINING = {
    "process up": "process_ns",
    "created": "participant_ns",
    "first message": "first_message_ns",
    "gap, joining": "joining_gap_max_ns",
    "latency, joining": "joining_latency_max_ns",
    "gap, leaving": "leaving_gap_max_ns",
    "latency, leaving": "leaving_latency_max_ns",
}


def render_served(rows: Sequence[Served], console: Console) -> None:
    """Prints a line for each cell; nothing if no topic has several subscribers and none missed anything."""
    from rich.markup import escape

    if not rows:
        return
    table = new_table()
    table.add_column("cell")
    for heading in ("slowest / fastest", "with start order", "initial loss"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            escape(row.cell),
            "-" if row.p50_ratio is None else f"{row.p50_ratio:.3g}",
            "-" if row.order_correlation is None else f"{row.order_correlation:+.2f}",
            "-" if row.initial_lost is None else f"{row.initial_lost:,.0f}",
        )
    console.print(
        "\n[bold]subscribers[/]: p50 of a topic's slowest over its fastest; correlation of p50 with the "
        "order in which they started; messages before the first that arrived, of the one that missed most"
    )
    print_wide(table, console)


def render_joined(rows: Sequence[Joined], console: Console) -> None:
    """Prints a line for each edge that a joining or leaving node concerns."""
    from rich.markup import escape

    if not rows:
        return
    shown = {
        heading: name
        for heading, name in JOINING.items()
        if any(getattr(row, name) is not None for row in rows)
    }
    table = new_table()
    table.add_column("cell")
    table.add_column("edge")
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        texts = [duration_text(getattr(row, name)) for name in shown.values()]
        table.add_row(escape(row.cell), escape(row.edge), *texts)
    console.print(
        "\n[bold]nodes that join or leave[/]: until the newcomer's process was up, its endpoints were "
        "created, and then its first message came; the longest gap and latency of the others meanwhile"
    )
    print_wide(table, console)
