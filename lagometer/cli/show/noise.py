# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: noisy trials, figures with and without them, and tails with losses as infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lagometer.cli.show.figures import GROWS, new_table, print_wide, with_interval
from lagometer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rich.console import Console
    from rich.table import Table

    from lagometer.summary.data import Row, WithoutNoise

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
# Printed with and without noise; the cost is next to the latency.
FIGURES = {"latency_p50_ns": "p50", "cpu_per_message_ns": "CPU/msg", "latency_p99_ns": "p99"}
OVER = {"messages": "all messages", "trials": "median of trials", "half": "median; least disturbed half"}


def render_noise(
    rows: Iterable[Row],
    compared: Sequence[WithoutNoise],
    console: Console,
    growing: Collection[str] = (),
) -> None:
    """Prints how many valid trials were noisy and why, and end-to-end figures with and without them.

    rows: of the summary, of the cells shown. growing: cells in which a queue builds up.
    """
    from lagometer.summary.disturbed import noisy_trials

    noisy = noisy_trials(rows)
    if not noisy.trials_noisy:
        return
    causes = ", ".join(f"{cause} {count}" for cause, count in noisy.causes.items())
    console.print(f"\n[bold yellow]noisy[/] {noisy.trials_noisy} of {noisy.trials} trials ({causes})")
    if compared:
        print_wide(_table(compared, growing), console)


def _table(compared: Sequence[WithoutNoise], growing: Collection[str]) -> Table:
    """A row for each figure: of all valid trials, and of the quiet ones alone."""
    from rich.markup import escape

    table = new_table()
    for heading in ("cell", "noisy", "figure", "of all", "without noise", "over"):
        table.add_column(heading, justify="right" if heading in ("of all", "without noise") else "left")
    for each in compared:
        mark = GROWS if each.figure == "latency_p50_ns" and each.cell in growing else ""
        table.add_row(
            escape(each.cell),
            f"{each.trials_noisy} of {each.trials}",
            FIGURES[each.figure],
            with_interval(each.all_ns, each.all_low_ns, each.all_high_ns) + mark,
            with_interval(each.quiet_ns, each.quiet_low_ns, each.quiet_high_ns),
            OVER[each.of],
        )
    return table


def render_lost(rows: list[dict[str, Any]], console: Console) -> None:
    """Prints the quantiles of edges that lost messages, with lost messages as infinite."""
    from rich.markup import escape

    losing = [row for row in rows if row.get("latency_infinite_from") is not None]
    if not losing:
        return
    console.print("\n[bold]with lost messages as infinite[/]")
    for row in losing:
        shown = ", ".join(f"{name} {lost_quantile(row, name)}" for name in QUANTILES)
        where = row["cell"] + (f" #{row['trial']}" if row["trial"] else "")
        where += "" if row["edge"] == "end-to-end" else f" {row['edge']}"
        arrived = f"{row['latency_infinite_from']:.2%} arrived"
        console.print(f"  {escape(where)}: [dim]{arrived};[/] {shown}")


def lost_quantile(row: dict[str, Any], name: str) -> str:
    """One quantile with losses as infinite: a time, `∞` for a loss, `-` for too few samples."""
    value, share = row[f"latency_{name}_lost_ns"], row["latency_infinite_from"]
    if value is None and share is not None and QUANTILES[name] > share:
        return "∞"
    return duration_text(value)
