# SPDX-License-Identifier: Apache-2.0
"""The campaign at a glance in the terminal: each adapter as a multiple of the fastest bare transport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lagometer.cli.show.daemons import mib
from lagometer.cli.show.figures import GROWS, new_table, print_wide
from lagometer.cli.show.findings import mark
from lagometer.units import duration_text, span_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from lagometer.summary.data import Finding, Glance, GlanceFigure

PER_PAYLOAD = ("p50", "× floor", "p99", "× floor", "CPU/msg")
FIGURES = ("latency_p50_ns", "times_floor_p50", "latency_p99_ns", "times_floor_p99", "cpu_per_message_ns")


@dataclass(frozen=True)
class _Marks:
    """What stands beside a cell's p50. notes: footnotes by cell; growing: cells in which a queue builds
    up."""

    notes: Mapping[str, Sequence[int]]
    growing: Collection[str]

    def of(self, cell: str) -> str:
        return (GROWS if cell in self.growing else "") + mark(self.notes.get(cell, ()))


def render_glance(
    glance: Glance | None, console: Console, findings: Sequence[Finding] = (), growing: Collection[str] = ()
) -> None:
    """Prints the table; nothing if it would be empty (see `lagometer.summary.glance`).

    findings: of the campaign; their footnotes stand beside p50. growing: cells in which a queue builds up, so
    that their p50 is marked.
    """
    from rich.markup import escape

    from lagometer.summary.findings.footnotes import footnotes

    if glance is None:
        return
    subtitle = "end to end, compared with the fastest bare transport that did the same work"
    if any(figure is not None and figure.intervals for row in glance.rows for figure in row.figures):
        subtitle += "; below each figure its 95 % interval (threads and memory are of one trial)"
    notes = footnotes(findings)
    if any(figure is not None and figure.cell in notes for row in glance.rows for figure in row.figures):
        subtitle += "; a number in brackets is a finding, listed below"
    console.print(f"\n[bold]at a glance[/] {subtitle}")
    indices = range(len(glance.payloads_bytes))
    marks = _Marks(notes, growing)
    if not print_wide(_table(glance, indices, marks), console, or_not=True):
        for index in indices:  # a terminal may be too narrow for all payloads side by side
            print_wide(_table(glance, [index], marks), console)
    for missing in glance.missing:
        name = " ".join([missing.adapter, ", ".join(missing.cells)]).rstrip()
        console.print(f"  without figures: {escape(name)}: [dim]{escape('; '.join(missing.reasons))}[/]")


def _table(glance: Glance, indices: Sequence[int], marks: _Marks) -> Table:
    """The table of the payloads at these indices."""
    from rich.markup import escape

    from lagometer.units import size_text

    settings = any(row.settings for row in glance.rows)
    table = new_table()
    table.add_column("adapter")
    if settings:
        table.add_column("settings")
    for index in indices:
        for number, heading in enumerate(PER_PAYLOAD):
            size = f"{size_text(glance.payloads_bytes[index])}\n" if number == 0 else "\n"
            table.add_column(f"{size}{heading}", justify="right")
    table.add_column("\nthreads", justify="right")
    table.add_column("\nmemory", justify="right")
    for row in glance.rows:
        figures = [text for index in indices for text in _texts(row.figures[index], marks)]
        names = [escape(row.adapter), *([escape(row.settings)] if settings else [])]
        table.add_row(*names, *figures, _count(row.threads), mib(row.memory_pss_bytes))
    return table


def _texts(figure: GlanceFigure | None, marks: _Marks) -> tuple[str, ...]:
    """Each figure, and its interval below it if it has one; beside p50 the marks of the cell."""
    if figure is None:
        return ("-",) * len(PER_PAYLOAD)
    ends = {interval.figure: (interval.low, interval.high) for interval in figure.intervals}
    texts = []
    for name in FIGURES:
        value, (low, high) = getattr(figure, name), ends.get(name, (None, None))
        factor = name.startswith("times")
        text = times(value) if factor else duration_text(value)
        if name == FIGURES[0]:
            text += marks.of(figure.cell)
        if low is not None and high is not None:
            interval_text = f"{times(low)} – {times(high)}" if factor else span_text(low, high)
            text += f"\n[dim]{interval_text}[/]"
        texts.append(text)
    return tuple(texts)


def times(value: float | None) -> str:
    """A multiple with three digits; `-` for null."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
