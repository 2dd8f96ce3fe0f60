# SPDX-License-Identifier: Apache-2.0
"""The cost of bridges between domains or adapters, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.cli.show.node_costs import number, size
from lagometer.units import duration_text

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.summary.cell_data import Bridge

HEADINGS = (
    *("passed on", "stay p50", "stay p99", "of the whole", "added p50"),
    *("CPU", "threads", "RSS", "PSS", "USS"),
)
OF_PROGRAMS = (
    "; of a program's processes stay is not available, since nothing in them can be stamped: added p50 is "
    "how much longer the median message takes end to end than without the bridge, all processes together"
)


def render_bridges(bridges: Sequence[Bridge], console: Console) -> None:
    """Prints the table; nothing without a bridge."""
    from rich.markup import escape

    if not bridges:
        return
    table = new_table()
    table.add_column("cell")
    table.add_column("bridge")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in bridges:
        table.add_row(
            escape(row.cell),
            escape(row.node if row.node == row.process else f"{row.node} in {row.process}"),
            str(row.passed_on),
            duration_text(row.stay_p50_ns),
            duration_text(row.stay_p99_ns),
            "–" if row.stay_share is None else f"{100.0 * row.stay_share:.1f} %",
            duration_text(row.added_p50_ns),
            duration_text(row.cpu_per_message_ns),
            number(row.threads),
            *(size(size_bytes) for size_bytes in (row.rss_bytes, row.pss_bytes, row.uss_bytes)),
        )
    console.print(
        "\n[bold]bridges[/]: stay is from the begin of the callback that takes a message to its publishing "
        "on the other side, without what the middleware does before and after, such as decrypting and "
        "encrypting; of the whole: its mean part of the end-to-end latency; CPU of the process for "
        "each message passed on"
        + ("" if all(row.stay_p50_ns is not None for row in bridges) else OF_PROGRAMS)
    )
    print_wide(table, console)
