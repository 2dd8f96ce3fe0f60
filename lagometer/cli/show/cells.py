# SPDX-License-Identifier: Apache-2.0
"""What `lagometer show` says of whole cells beside latency: deadlines, tails with losses, interference."""

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
    """`deadlines`, `lost_as_infinite` and `interference` of the cells and edges chosen, as the report has
    them."""
    deadlines, tails, loads = _found(summary, edge, cell)
    return {
        "deadlines": [each.model_dump() for each in deadlines],
        "lost_as_infinite": [each.model_dump() for each in tails],
        "interference": [each.model_dump() for each in loads],
    }


def render_cells(summary: Summary, console: Console, edge: str | None, cell: str | None) -> None:
    """Prints a table of each, over the valid trials of every cell; nothing where there is nothing to say.

    Where no cell has several trials, the tails of the single ones say it all (`show_noise.render_lost`).
    """
    deadlines, tails, loads = _found(summary, edge, cell)
    if deadlines:
        times = " or ".join(dict.fromkeys(duration_text(each.deadline_ns) for each in deadlines))
        console.print(
            f"\n[bold]deadline[/] of {times}, from due to taken; the worst of all trials, except the share"
        )
        print_wide(_deadline_table(deadlines), console)
    if any(each.trials > 1 for each in tails):
        console.print("\n[bold]tails over trials[/], delivered, and with lost messages as infinite")
        print_wide(_lost_table(tails), console)
    if loads:
        console.print("\n[bold]load beside the workers[/] (medians over trials)")
        print_wide(_load_table(loads), console)


def _found(
    summary: Summary, edge: str | None, cell: str | None
) -> tuple[list[Deadline], list[LostTail], list[Interference]]:
    """Those of the cells and edges chosen."""

    def chosen(each: Deadline | LostTail) -> bool:
        return _matches(each.cell, cell) and _matches(each.edge, edge or "end-to-end")

    return (
        [each for each in summary.deadlines if chosen(each)],
        [each for each in summary.lost_tails if chosen(each)],
        [each for each in summary.interference if _matches(each.cell, cell)],
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


def _names(each: Deadline | LostTail, edges: bool) -> list[str]:
    from rich.markup import escape

    return [escape(each.cell), *([escape(each.edge)] if edges else [])]


def _several_edges(found: Sequence[Deadline] | Sequence[LostTail]) -> bool:
    return any(each.edge != "end-to-end" for each in found)


def _deadline_table(found: Sequence[Deadline]) -> Table:
    edges = _several_edges(found)
    k = "/".join(dict.fromkeys(str(each.k) for each in found))
    headings = ("trials", "missed", "share", "interval", "in a row", f"met of {k}", "oldest data", "CPU/msg")
    table = _table(edges, headings)
    for each in found:
        table.add_row(
            *_names(each, edges),
            str(each.trials),
            f"{each.missed} of {'?' if each.due is None else each.due}",
            percent(each.miss_share),
            _share_interval(each),
            str(each.run_max),
            "-" if each.met_of_k_min is None else str(each.met_of_k_min),
            duration_text(each.data_age_max_ns),
            duration_text(each.cpu_per_message_ns),
        )
    return table


def _share_interval(each: Deadline) -> str:
    if each.miss_share_low is None or each.miss_share_high is None:
        return "-" if each.needed_trials is None else f"needs {each.needed_trials} trials"
    return f"{percent(each.miss_share_low)} – {percent(each.miss_share_high)}"


def percent(share: float | None) -> str:
    """A share in two or three figures, near the whole as many as what is missing needs; `-` for null."""
    if share is None:
        return "-"
    if share < 0.9 or share >= 1.0:
        return f"{100.0 * share:.{2 if share < 0.1 else 3}g} %"
    missing = float(f"{100.0 * (1.0 - share):.9g}")
    return f"{100.0 * share:.{min(6, 1 - math.floor(math.log10(missing)))}f} %"


def _lost_table(found: Sequence[LostTail]) -> Table:
    edges = _several_edges(found)
    headings = ["trials", "lost", "arrived"]
    headings += [heading for name in QUANTILES for heading in (name, f"{name} with lost")]
    table = _table(edges, [*headings, "CPU/msg"])
    for each in found:
        by_name = {one.figure: one for one in each.quantiles}
        quantiles = [by_name[f"latency_{name}_ns"] for name in QUANTILES]
        figures = [text for one in quantiles for text in (duration_text(one.delivered_ns), with_lost(one))]
        counts = [str(each.trials), str(each.lost), f"{each.arrived_share:.2%}"]
        table.add_row(*_names(each, edges), *counts, *figures, duration_text(each.cpu_per_message_ns))
    return table


def with_lost(one: LostQuantile) -> str:
    """A quantile with lost messages as infinite and its interval, if it has one."""
    text = INFINITE if one.infinite else duration_text(one.value_ns)
    if not one.interval or one.low_ns is None:  # from infinite to infinite says nothing more
        return text
    high = INFINITE if one.high_ns is None else duration_text(one.high_ns)
    return f"{text} ({duration_text(one.low_ns)} – {high})"


def _load_table(found: Sequence[Interference]) -> Table:
    from rich.markup import escape

    table = _table(False, ("load", "trials", "its CPU time", "its work", "CPU/msg"))
    for each in found:
        work = achieved(each.achieved_per_s, each.unit)
        cpu = duration_text(each.cpu_ns)
        cost = duration_text(each.cpu_per_message_ns)
        table.add_row(escape(each.cell), each.load, str(each.trials), cpu, work, cost)
    return table


def achieved(per_second: float | None, unit: str) -> str:
    """Work per second: bytes in MB, else stress-ng's operations; `-` for null."""
    if per_second is None:
        return "-"
    return f"{per_second / 1e6:.3g} MB/s" if unit == "bytes" else f"{per_second:.0f} op/s"
