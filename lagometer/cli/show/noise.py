# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: noisy trials, figures with and without them, and tails with losses as infinite."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING, Any

from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from rich.console import Console

Row = dict[str, Any]
Key = tuple[str, str]
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
# Printed with and without noise; the cost is next to the latency.
FIGURES = {"p50": "latency_p50_ns", "CPU/msg": "cpu_per_message_ns", "p99": "latency_p99_ns"}


def render_noise(rows: list[Row], console: Console) -> None:
    """Prints how many valid trials were noisy and why, and medians over trials with and without them."""
    noisy = {(row["cell"], row["trial"]): row["noise"] or [] for row in rows if row.get("noisy")}
    if not noisy:
        return
    trials = {(row["cell"], row["trial"]) for row in rows}
    causes = Counter(cause.partition(":")[0] for trial_causes in noisy.values() for cause in trial_causes)
    cause_counts = ", ".join(f"{cause} {count}" for cause, count in sorted(causes.items()))
    console.print(f"\n[bold yellow]noisy[/] {len(noisy)} of {len(trials)} trials ({cause_counts})")
    compared = [(key, group) for key, group in _by_edge(rows).items() if 0 < _noisy(group) < len(group)]
    if not compared:
        return
    table = new_table()
    for heading in ("cell", "edge"):
        table.add_column(heading)
    for name in FIGURES:
        for side in ("of all", "without noise"):
            table.add_column(f"{name} {side}", justify="right")
    for (cell, edge), group in compared:
        quiet = [row for row in group if not row.get("noisy")]
        figures = [
            duration_text(_median(part, column)) for column in FIGURES.values() for part in (group, quiet)
        ]
        table.add_row(cell, edge, *figures)
    print_wide(table, console)


def render_lost(rows: list[Row], console: Console) -> None:
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


def lost_quantile(row: Row, name: str) -> str:
    """One quantile with losses as infinite: a time, `∞` for a loss, `-` for too few samples."""
    value, share = row[f"latency_{name}_lost_ns"], row["latency_infinite_from"]
    if value is None and share is not None and QUANTILES[name] > share:
        return "∞"
    return duration_text(value)


def _by_edge(rows: list[Row]) -> dict[Key, list[Row]]:
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["cell"], row["edge"]), []).append(row)
    return groups


def _noisy(group: list[Row]) -> int:
    return sum(bool(row.get("noisy")) for row in group)


def _median(rows: list[Row], column: str) -> float | None:
    values = [row[column] for row in rows if row[column] is not None]
    return statistics.median_low(values) if values else None
