# SPDX-License-Identifier: Apache-2.0
"""Figures and tables for people: three digits and a unit, columns as wide as necessary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lagometer.units import duration_text, span_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

Row = dict[str, Any]
WIDEST_COLUMNS = 1000


def new_table() -> Table:
    """An empty table in our style."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")


def print_wide(table: Table, console: Console, or_not: bool = False) -> bool:
    """Prints a table unfolded where it fits: in a file, a pipe, a wide terminal, or with `--wide`; returns
    whether it did.

    Otherwise prints it row by row, each figure with its name, or not at all with `or_not`.
    """
    from rich.measure import Measurement

    options = console.options.update(width=WIDEST_COLUMNS)
    needed = Measurement.get(console, options, table).maximum
    if console.is_terminal and needed > console.width and not getattr(console, "wide", False):
        if not or_not:
            console.print(_row_by_row(table, console.width))
        return not or_not
    console_width = console.width
    console.width = max(console_width, needed)
    console.print(table)
    console.width = console_width
    return True


def _row_by_row(table: Table, width: int) -> Table:
    """The same for a narrow terminal: the first column's text, and below it each figure with its name."""
    grid = new_table()
    grid.show_header = False
    grid.add_column(overflow="fold")
    names = [str(column.header).replace("\n", " ").strip() for column in table.columns]
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        texts = [" ".join(str(cell).split()) for cell in cells]
        shown = [
            (name, text) for name, text in zip(names[1:], texts[1:], strict=True) if text not in ("", "-")
        ]
        grid.add_row(f"[bold]{texts[0]}[/]\n{named_figures(shown, width)}")
    return grid


def named_figures(named_texts: Sequence[tuple[str, str]], width: int) -> str:
    """Names and figures in lines of this width, indented; a name and its figure stay together if they fit."""
    from rich.text import Text

    lines: list[str] = []
    left = 0
    for name, text in named_texts:
        pair = f"[dim]{name}[/] {text}"
        needed = Text.from_markup(pair).cell_len + 2
        if needed > left:
            lines.append("")
            left = width - 2  # a table has a space on each side
        lines[-1] += f"  {pair}"
        left -= needed
    return "\n".join(lines)


# The cost is next to the latency, since busy polling would win every table otherwise.
LOSSES = ("lost", "overwritten", "censored", "rejected")
UNREACHABLE = "unreachable"
FIGURES = ("n", "lost", "p50", "CPU/msg", "p90", "p99", "max", "blocked p50", "rate")
# Many tools report only the moments, and no cost.
IMPORTED_FIGURES = ("n", "lost", "min", "mean", "sd", "p50", "p90", "p99", "max")


GROWS = " ↗"  # next to a p50 that depends on the trial's length


def grows(row: Row) -> bool:
    """Whether a queue builds up on this edge, in this trial."""
    return any(text.startswith(f"queue-builds-up: {row.get('edge')},") for text in row.get("warnings") or ())


def within(row: Row) -> str:
    """How uncertain a latency between two clocks is; marked if that is more than p50 itself."""
    bound_ns, p50_ns = row.get("clock_bound_ns"), row.get("latency_p50_ns")
    if not bound_ns:
        return ""
    is_below = p50_ns is not None and p50_ns < bound_ns
    return f" ± {duration_text(bound_ns)}" + (" (below its bound)" if is_below else "")


def names_of(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """These names of figures, with `unreachable` after `lost` if any row has such messages."""
    shown = list(names)
    if any(row.get(UNREACHABLE) for row in rows):
        shown.insert(shown.index("lost") + 1, UNREACHABLE)
    return shown


def figures(row: Row) -> dict[str, str]:
    """The figures of one row for people, by the names in FIGURES and IMPORTED_FIGURES, and `unreachable`.

    `lost` sums up LOSSES, `-` if another tool reported none of them.
    """
    losses = [row[name] for name in LOSSES if row[name] is not None]
    rate = row["rate_achieved_hz"]
    return {
        "n": str(row["n"]),
        "lost": str(sum(losses)) if losses else "-",
        UNREACHABLE: str(row.get(UNREACHABLE) or 0),
        "p50": duration_text(row["latency_p50_ns"]) + within(row) + (GROWS if grows(row) else ""),
        "CPU/msg": duration_text(row["cpu_per_message_ns"]),
        **{
            name: duration_text(row[f"latency_{name}_ns"])
            for name in ("min", "mean", "sd", "p90", "p99", "max")
        },
        "blocked p50": duration_text(row["blocked_p50_ns"]),
        "rate": "-" if rate is None else f"{rate:.4g} Hz" if rate < 10_000 else f"{rate / 1000:.4g} kHz",
    }


def with_interval(value_ns: float | None, low_ns: float | None, high_ns: float | None) -> str:
    """A time and its interval: 38.1 µs (37.9 – 38.6 µs); only the time without an interval."""
    if value_ns is None or low_ns is None or high_ns is None:
        return duration_text(value_ns)
    return f"{duration_text(value_ns)} ({span_text(low_ns, high_ns)})"
