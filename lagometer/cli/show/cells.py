# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: whole cells apart from latency: deadlines, tails with losses, interference."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from lagometer.summary.cell_data import Deadline, Interference, LostQuantile, LostTail
    from lagometer.summary.data import Summary

Row = dict[str, Any]
QUANTILES = ("p50", "p90", "p99")
INFINITE = "∞"


def cells_as_json(summary: Summary, edge: str | None, cell: str | None) -> Row:
    """`deadlines`, `lost_as_infinite`, `interference` of the selected cells and edges, as in the report."""
    deadlines, tails, loads = _found(summary, edge, cell)
    return {
        "deadlines": [deadline.model_dump() for deadline in deadlines],
        "lost_as_infinite": [tail.model_dump() for tail in tails],
        "interference": [load.model_dump() for load in loads],
    }


def render_cells(summary: Summary, console: Console, edge: str | None, cell: str | None) -> None:
    """Prints a table of each, over the valid trials of every cell; omits empty tables.

    If no cell has several trials, the tails of the single trials suffice (`show_noise.render_lost`).
    """
    deadlines, tails, loads = _found(summary, edge, cell)
    if deadlines:
        times = " or ".join(dict.fromkeys(duration_text(deadline.deadline_ns) for deadline in deadlines))
        console.print(
            f"\n[bold]deadline[/] of {times}, from due to taken; the worst of all trials, except the share"
        )
        print_wide(_deadline_table(deadlines), console)
    if any(tail.trials > 1 for tail in tails):
        console.print("\n[bold]tails over trials[/], delivered, and with lost messages as infinite")
        print_wide(_lost_table(tails), console)
    if loads:
        console.print("\n[bold]load beside the workers[/] (medians over trials)")
        print_wide(_load_table(loads), console)


def _found(
    summary: Summary, edge: str | None, cell: str | None
) -> tuple[list[Deadline], list[LostTail], list[Interference]]:
    """The rows of the selected cells and edges."""

    def chosen(row: Deadline | LostTail) -> bool:
        return _matches(row.cell, cell) and _matches(row.edge, edge or "end-to-end")

    return (
        [deadline for deadline in summary.deadlines if chosen(deadline)],
        [tail for tail in summary.lost_tails if chosen(tail)],
        [load for load in summary.interference if _matches(load.cell, cell)],
    )


def _matches(name: str, glob: str | None) -> bool:
    return fnmatch.fnmatchcase(name, glob or "*")


def _table(edges: bool, headings: Sequence[str]) -> Table:
    table = new_table()
    table.add_column("cell", overflow="fold")
    if edges:
        table.add_column("edge")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _names(row: Deadline | LostTail, edges: bool) -> list[str]:
    from rich.markup import escape

    return [escape(row.cell), *([escape(row.edge)] if edges else [])]


def _several_edges(rows: Sequence[Deadline] | Sequence[LostTail]) -> bool:
    return any(row.edge != "end-to-end" for row in rows)


def _deadline_table(deadlines: Sequence[Deadline]) -> Table:
    edges = _several_edges(deadlines)
    k = "/".join(dict.fromkeys(str(deadline.k) for deadline in deadlines))
    headings = ("trials", "missed", "share", "interval", "in a row", f"met of {k}", "oldest data", "CPU/msg")
    table = _table(edges, headings)
    for deadline in deadlines:
        table.add_row(
            *_names(deadline, edges),
            str(deadline.trials),
            f"{deadline.missed} of {'?' if deadline.due is None else deadline.due}",
            percent(deadline.miss_share),
            _share_interval(deadline),
            str(deadline.run_max),
            "-" if deadline.met_of_k_min is None else str(deadline.met_of_k_min),
            duration_text(deadline.data_age_max_ns),
            duration_text(deadline.cpu_per_message_ns),
        )
    return table


def _share_interval(deadline: Deadline) -> str:
    if deadline.miss_share_low is None or deadline.miss_share_high is None:
        return "-" if deadline.needed_trials is None else f"needs {deadline.needed_trials} trials"
    return f"{percent(deadline.miss_share_low)} – {percent(deadline.miss_share_high)}"


def percent(share: float | None) -> str:
    """A share with two or three digits; near 100 %, as many as the missing part needs; `-` for null."""
    if share is None:
        return "-"
    if share < 0.9 or share >= 1.0:
        return f"{100.0 * share:.{2 if share < 0.1 else 3}g} %"
    missing = float(f"{100.0 * (1.0 - share):.9g}")
    return f"{100.0 * share:.{min(6, 1 - math.floor(math.log10(missing)))}f} %"


def _lost_table(tails: Sequence[LostTail]) -> Table:
    edges = _several_edges(tails)
    headings = ["trials", "lost", "arrived"]
    headings += [heading for name in QUANTILES for heading in (name, f"{name} with lost")]
    table = _table(edges, [*headings, "CPU/msg"])
    for tail in tails:
        by_name = {quantile.figure: quantile for quantile in tail.quantiles}
        quantiles = [by_name[f"latency_{name}_ns"] for name in QUANTILES]
        figures = [
            text
            for quantile in quantiles
            for text in (duration_text(quantile.delivered_ns), with_lost(quantile))
        ]
        counts = [str(tail.trials), str(tail.lost), f"{tail.arrived_share:.2%}"]
        table.add_row(*_names(tail, edges), *counts, *figures, duration_text(tail.cpu_per_message_ns))
    return table


def with_lost(quantile: LostQuantile) -> str:
    """A quantile with lost messages as infinite, and its interval if it has one."""
    text = INFINITE if quantile.infinite else duration_text(quantile.value_ns)
    if not quantile.interval or quantile.low_ns is None:  # an interval from infinite to infinite adds nothing
        return text
    high = INFINITE if quantile.high_ns is None else duration_text(quantile.high_ns)
    return f"{text} ({duration_text(quantile.low_ns)} – {high})"


def _load_table(loads: Sequence[Interference]) -> Table:
    from rich.markup import escape

    table = _table(False, ("load", "trials", "its CPU time", "its work", "CPU/msg"))
    for load in loads:
        work = achieved(load.achieved_per_s, load.unit)
        cpu = duration_text(load.cpu_ns)
        cost = duration_text(load.cpu_per_message_ns)
        table.add_row(escape(load.cell), load.load, str(load.trials), cpu, work, cost)
    return table


def achieved(per_second: float | None, unit: str) -> str:
    """Work per second: bytes in MB, otherwise stress-ng's operations; `-` for null."""
    if per_second is None:
        return "-"
    return f"{per_second / 1e6:.3g} MB/s" if unit == "bytes" else f"{per_second:.0f} op/s"
