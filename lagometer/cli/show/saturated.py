# SPDX-License-Identifier: Apache-2.0
"""What `lagometer show` says of cells whose sources fell behind, in a study that keeps such trials."""

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


def render_saturated(found: Sequence[Saturated], console: Console) -> None:
    """Prints them, each with what it still delivered; nothing if there are none."""
    from rich.markup import escape

    if not found:
        return
    table = new_table()
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "cell" else "right")
    for each in found:
        table.add_row(
            escape(each.cell),
            f"{each.trials} of {each.of_trials}",
            _rate(each.rate_achieved_hz),
            _rate(each.rate_intended_hz),
            _goodput(each.goodput_bytes_per_s),
            percent(each.lost_share),
            percent(each.deadline_miss_share),
            duration_text(each.latency_p50_ns),
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
