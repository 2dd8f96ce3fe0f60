# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: cells whose sources fell behind, in a study that keeps such trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.cells import percent
from lagometer.cli.show.daemons import MIB
from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text, format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import Saturated

HEADINGS = ("cell", "trials", "rate", "of", "goodput", "lost", "deadlines missed", "p50 of what came")


def render_saturated(cells: Sequence[Saturated], console: Console) -> None:
    """Prints these cells, each with what it still delivered; nothing if there are none."""
    from rich.markup import escape

    if not cells:
        return
    table = new_table()
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "cell" else "right")
    for cell in cells:
        table.add_row(
            escape(cell.cell),
            f"{cell.trials} of {cell.of_trials}",
            _rate(cell.rate_achieved_hz),
            _rate(cell.rate_intended_hz),
            _goodput(cell.goodput_bytes_per_s),
            percent(cell.lost_share),
            percent(cell.deadline_miss_share),
            duration_text(cell.latency_p50_ns),
        )
    console.print("\n[bold yellow]saturated[/]: sources fell behind their schedule; ranked with nothing")
    print_wide(table, console)


def _rate(rate_hz: float | None) -> str:
    return "-" if rate_hz is None else format_rate(float(f"{rate_hz:.4g}"))


def _goodput(bytes_per_s: float | None) -> str:
    if bytes_per_s is None:
        return "-"
    size = bytes_per_s / MIB
    return f"{size:,.0f} MiB/s" if size >= 100 else f"{size:.3g} MiB/s"
