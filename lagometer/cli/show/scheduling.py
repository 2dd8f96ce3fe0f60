# SPDX-License-Identifier: Apache-2.0
"""How long messages wait for a CPU, layer by layer, and which threads ran in the meantime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.scheduling_data import CellScheduling, LayerWaiting


def render_scheduling(cells: Sequence[CellScheduling], console: Console) -> None:
    """Prints a table for each edge with a scheduler record; nothing without one."""
    from rich.markup import escape

    for cell in cells:
        console.print(
            f"\n[bold]the scheduler's share[/] {escape(cell.cell)}, {escape(cell.edge)}: means, "
            "of all messages and of the slowest 1 %",
            soft_wrap=True,
        )
        table = new_table()
        for heading in ("layer", "known", "asleep", "waiting", "running", *_SLOWEST):
            table.add_column(heading, justify="left" if heading == "layer" else "right")
        slowest = {layer.name: layer for layer in cell.slowest.layers} if cell.slowest is not None else {}
        for layer in cell.whole.layers:
            known = f"{layer.known / layer.stays:.0%}"
            times = (*_times(layer), *_times(slowest.get(layer.name)))
            table.add_row(layer.name.replace("_", " "), known, *times)
        for layer in cell.in_node:
            table.add_row(f"in the node: {layer.name}", "", *_times(layer), *_times(None))
        print_wide(table, console)
        console.print(f"  [dim]{escape(cell.because)}[/]", soft_wrap=True)


_SLOWEST = ("slow: asleep", "waiting", "running")


def _times(layer: LayerWaiting | None) -> tuple[str, str, str]:
    """The three times of a layer; a dash if it has none."""
    if layer is None or layer.known == 0:
        return "–", "–", "–"
    asleep, waiting, running = (
        duration_text(time_ns) for time_ns in (layer.asleep_ns, layer.waiting_ns, layer.running_ns)
    )
    return asleep, waiting, running
