# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the daemons' share of CPU per message and of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import Daemons

MIB = 1 << 20


def render_daemons(daemons: Sequence[Daemons], console: Console) -> None:
    """For cells with daemons, prints medians over the valid trials: the total, and the daemons' share."""
    from rich.markup import escape

    if not daemons:
        return
    table = new_table()
    for heading in ("cell", "CPU/msg", "daemons' part", "memory", "daemons' part"):
        table.add_column(heading, justify="left" if heading == "cell" else "right")
    for row in daemons:
        table.add_row(
            escape(row.cell),
            duration_text(row.cpu_per_message_ns),
            duration_text(row.daemon_cpu_per_message_ns),
            mib(row.memory_pss_bytes),
            mib(row.daemon_pss_bytes),
        )
    console.print("\n[bold]with daemons[/] beside the workers (medians over trials)")
    print_wide(table, console)


def mib(size_bytes: float | None) -> str:
    """A size in MiB; `-` for null."""
    return "-" if size_bytes is None else f"{size_bytes / MIB:.1f} MiB"
