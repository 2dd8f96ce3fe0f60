# SPDX-License-Identifier: Apache-2.0
"""Where the time goes, layer by layer: one table for each edge."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.stats.cell.layers import EdgeLayers
    from lagometer.summary.layers import LayerTable
    from lagometer.summary.way_data import CellLayers


def render_layers(tables: Sequence[LayerTable], console: Console) -> None:
    """Prints the layers of each edge; nothing without layers."""
    from rich.markup import escape

    for layer_table in tables:
        figures = layer_table.figures
        console.print(
            f"\n[bold]layers[/] {escape(layer_table.cell)}, {escape(layer_table.edge)}: "
            f"{figures.messages:,} messages, "
            f"p50 {duration_text(figures.latency_p50_ns)}",
            soft_wrap=True,
        )
        table = new_table()
        for heading in ("layer", "p50", "p99", "share"):
            table.add_column(heading, justify="left" if heading == "layer" else "right")
        for layer in figures.layers:
            name = layer.name.replace("_", " ")
            table.add_row(
                name, duration_text(layer.p50_ns), duration_text(layer.p99_ns), f"{layer.share:.1%}"
            )
        print_wide(table, console)
        parts = ", ".join(f"{name} {share:.1%}" for name, share in _categories(figures).items())
        console.print(f"[dim]{parts}[/]", soft_wrap=True)


def _categories(figures: EdgeLayers) -> dict[str, float]:
    """The shares of Kronauer et al.'s categories."""
    from lagometer.stats.cell.categories import categories

    return categories({layer.name: layer.share for layer in figures.layers})


def render_cell_layers(cells: Sequence[CellLayers], console: Console) -> None:
    """Prints for each cell which layers must shrink to halve its latency; nothing without layers."""
    from rich.markup import escape

    if cells:
        console.print("\n[bold]what would have to change[/], over all messages of the valid trials")
    for cell in cells:
        scope = "" if cell.of == "chain" else " on each edge"
        console.print(f"  {escape(cell.cell)}{scope}: [dim]{escape(cell.to_halve)}[/]", soft_wrap=True)
        shares = ", ".join(f"{part.name} {part.share:.0%}" for part in cell.categories)
        console.print(f"    [dim]{shares}{_over_dds(cell)}[/]", soft_wrap=True)


def _over_dds(cell: CellLayers) -> str:
    """ROS 2's overhead, if it was measured."""
    if cell.overhead_least is None or cell.overhead_most is None:
        return ""
    return f"; ROS 2 over DDS: {cell.overhead_least:.0%} to {cell.overhead_most:.0%}"


def layers_as_json(figures: EdgeLayers) -> dict[str, Any]:
    """The layers of one edge, without the unattributed time."""
    from lagometer.stats.trial.way import UNATTRIBUTED

    return {
        "messages": figures.messages,
        "latency_p50_ns": figures.latency_p50_ns,
        "layers": [asdict(layer) for layer in figures.layers if layer.name != UNATTRIBUTED],
        "unattributed_share": figures.unattributed_share,
        "unattributed_p50_share": figures.unattributed_p50_share,
        "categories": [{"name": name, "share": share} for name, share in _categories(figures).items()],
    }
