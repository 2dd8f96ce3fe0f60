# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the daemons' share of CPU per message and of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from rich.console import Console

    from lagometer.store.reader import Campaign

MIB = 1 << 20


def render_daemons(campaign: Campaign, console: Console, cells: Collection[str]) -> None:
    """For cells with daemons, prints medians over the valid trials: the total, and the daemons' share."""
    import polars as pl
    from rich.markup import escape

    if "daemon_cpu_ns" not in campaign.cells.columns:
        return
    edges = campaign.cells.filter(
        pl.col("valid"), pl.col("cell").is_in(list(cells)), pl.col("daemon_cpu_ns").is_not_null()
    )
    if edges.is_empty():
        return
    trials = edges.group_by("cell", "trial", maintain_order=True).agg(
        pl.col("n").filter(pl.col("edge") != "end-to-end").sum(),
        pl.first("cpu_per_message_ns", "daemon_cpu_ns", "memory_pss_bytes", "daemon_pss_bytes"),
    )
    table = new_table()
    for heading in ("cell", "CPU/msg", "daemons' part", "memory", "daemons' part"):
        table.add_column(heading, justify="left" if heading == "cell" else "right")
    medians = trials.group_by("cell", maintain_order=True).agg(
        pl.median("cpu_per_message_ns", "memory_pss_bytes", "daemon_pss_bytes"),
        (pl.col("daemon_cpu_ns") / pl.col("n")).median(),
    )
    for row in medians.iter_rows(named=True):
        table.add_row(
            escape(row["cell"]),
            duration_text(row["cpu_per_message_ns"]),
            duration_text(row["daemon_cpu_ns"]),
            mib(row["memory_pss_bytes"]),
            mib(row["daemon_pss_bytes"]),
        )
    console.print("\n[bold]with daemons[/] beside the workers (medians over trials)")
    print_wide(table, console)


def mib(size_bytes: float | None) -> str:
    """A size in MiB; `-` for null."""
    return "-" if size_bytes is None else f"{size_bytes / MIB:.1f} MiB"
