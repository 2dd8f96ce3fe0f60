# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: whole cells: quantiles with intervals, the control, the long trials."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from lagometer.cli.show.figures import GROWS, new_table, print_wide, with_interval
from lagometer.units import duration_text, span_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import Console
    from rich.table import Table

    from lagometer.summary.data import Interval, Row, Summary
    from lagometer.summary.intervals import Known
    from lagometer.summary.steadiness_data import Control, LongFigure, LongTrial

P50, P99, COST = "latency_p50_ns", "latency_p99_ns", "cpu_per_message_ns"


def estimate_rows(
    summary: Summary, confidence: Known, edge: str | None, cell: str | None
) -> list[dict[str, Any]]:
    """The rows of estimates.parquet for the selected cells and edges, in the summary's order."""
    if confidence.table is None:
        return []
    table = confidence.table.iter_rows(named=True)
    rows = [row for row in table if _chosen(row["cell"], row["edge"], cell, edge)]
    order = {each.id: place for place, each in enumerate(summary.cells)}
    return sorted(rows, key=lambda row: order[row["cell"]])


def rows_over_trials(summary: Summary, edge: str | None, cell: str | None) -> list[Row]:
    """The selected cells' rows over their trials."""
    return [row for row in summary.rows if row.trial is None and _chosen(row.cell, row.edge, cell, edge)]


def _chosen(row_cell: str, row_edge: str, cell: str | None, edge: str | None) -> bool:
    return fnmatch.fnmatchcase(row_cell, cell or "*") and fnmatch.fnmatchcase(row_edge, edge or "end-to-end")


def render_estimates(summary: Summary, console: Console, edge: str | None, cell: str | None) -> None:
    """Prints p50 and p99 of each cell with their intervals, or how many trials would be enough."""
    rows = rows_over_trials(summary, edge, cell)
    if summary.intervals_absent is not None:
        console.print(f"\nno intervals: {summary.intervals_absent}", markup=False)
        return
    if summary.trials_needed is not None:
        if any(row.trials > 1 for row in rows):
            enough = f"{summary.trials_needed} trials of each cell would be enough for p50"
            console.print(f"\nintervals: not enough samples ({enough})")
        return
    estimated = [row for row in rows if _interval(row, P50) is not None]
    if not estimated:
        return
    caption = "with 95 % intervals; CPU/msg: median over trials, with the median's"
    console.print(f"\n[bold]of all valid trials[/], {caption}", soft_wrap=True)
    print_wide(_table(estimated, {queue.cell for queue in summary.queues}), console)


def _interval(row: Row, figure: str) -> Interval | None:
    return next((interval for interval in row.intervals if interval.figure == figure), None)


def _table(rows: Sequence[Row], growing: Collection[str]) -> Table:
    """growing: cells in which a queue builds up, end to end."""
    from rich.markup import escape

    edges = len({row.edge for row in rows}) > 1
    adaptive = any(row.stopped for row in rows)
    table = new_table()
    table.add_column("cell", overflow="fold")
    if edges:
        table.add_column("edge")
    for heading in ("trials", "n", "p50", "±", "p50 interval", "CPU/msg", "p99", "p99 interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    if adaptive:
        table.add_column("ended by")
    for row in rows:
        cost = _interval(row, COST)
        ends = (None, None) if cost is None else (cost.low, cost.high)
        figures = [
            str(row.trials),
            str(row.n),
            *_figures(row, P50, grows=row.cell in growing and row.edge == "end-to-end"),
            with_interval(row.cpu_per_message_ns, *ends),
            *_figures(row, P99, plus=False),
        ]
        stop_reason = [row.stopped or "-"] * adaptive
        table.add_row(escape(row.cell), *([escape(row.edge)] * edges), *figures, *stop_reason)
    return table


def _figures(row: Row, figure: str, plus: bool = True, grows: bool = False) -> list[str]:
    """A quantile, its interval's half-width relative to it, and the interval."""
    interval, value = _interval(row, figure), getattr(row, figure)
    if interval is None or interval.low is None or interval.high is None or value is None:
        return ["-", *(["-"] * plus), _wanting(interval)]
    half = 50 * (interval.high - interval.low) / value if value else None
    text = "-" if half is None else f"{half:.0f} %" if half >= 10 else f"{half:.2g} %"
    return [
        duration_text(value) + (GROWS if grows else ""),
        *([text] * plus),
        span_text(interval.low, interval.high),
    ]


def _wanting(interval: Interval | None) -> str:
    trials = None if interval is None else interval.needed_trials
    return f"not enough samples ({trials} trials would be enough)" if trials else "not enough samples"


def render_beside(summary: Summary, console: Console) -> None:
    """Prints how steady the control was over the campaign, and the long trials next to the short ones."""
    if summary.control is not None:
        _render_control(summary.control, console)
    if summary.long_trials:
        console.print("\n[bold]long trials[/], beside the estimates from the short ones", soft_wrap=True)
    for long_trial in summary.long_trials:
        _render_long_trial(long_trial, console)


def _render_control(control: Control, console: Console) -> None:
    spread = control.spread
    if len(control.cells) > 1:
        console.print(
            "\n[bold]control[/]: measured on several machines; see each campaign before it was merged",
            soft_wrap=True,
        )
    if spread is None:
        return
    first, last = duration_text(spread.p50_first_ns), duration_text(spread.p50_last_ns)
    ends = f"{first} in the first and {last} in the last"
    p50 = _range(spread.p50_min_ns, spread.p50_max_ns)
    cost = _range(spread.cpu_per_message_min_ns, spread.cpu_per_message_max_ns)
    cell, blocks = control.cells[0], spread.blocks
    console.print(
        f"\n[bold]control[/] {cell}: p50 {p50} over {blocks} blocks, {ends}; CPU/msg {cost}",
        soft_wrap=True,
    )


def _render_long_trial(trial: LongTrial, console: Console) -> None:
    """Prints a line, and a warning for each figure outside the short trials' interval."""
    short = with_interval(
        trial.short_cpu_per_message_ns,
        trial.short_cpu_per_message_low_ns,
        trial.short_cpu_per_message_high_ns,
    )
    parts = [
        _beside("p50", trial.p50),
        f"CPU/msg {duration_text(trial.cpu_per_message_ns)} against {short}",
        _beside("p99", trial.p99),
    ]
    console.print(f"  {trial.cell}: {'; '.join(parts)}", soft_wrap=True, markup=False)
    for remark in trial.remarks:
        console.print(f"    warning: {remark}", style="yellow", soft_wrap=True, markup=False)


def _beside(name: str, figure: LongFigure) -> str:
    """p50 50.6 µs against 50.3 µs (49.8 – 50.9 µs), +0.6 %, inside the interval."""
    short = with_interval(figure.short_ns, figure.low_ns, figure.high_ns)
    change = ""
    if figure.long_ns is not None and figure.short_ns:
        change = f", {100.0 * (figure.long_ns / figure.short_ns - 1.0):+.1f} %"
    inside = ", inside the interval" if figure.place == "inside" else ""
    return f"{name} {duration_text(figure.long_ns)} against {short}{change}{inside}"


def _range(low_ns: float | None, high_ns: float | None) -> str:
    """The smallest and the largest of a figure; `-` if no trial has it."""
    if low_ns is None or high_ns is None:
        return "-"
    return f"{duration_text(low_ns)} to {duration_text(high_ns)}"
