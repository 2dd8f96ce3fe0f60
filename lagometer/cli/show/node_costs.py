# SPDX-License-Identifier: Apache-2.0
"""The cost of a node, in the terminal: one line for each adapter, then its threads and libraries by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.cells import percent
from lagometer.cli.show.figures import new_table, print_wide
from lagometer.units import duration_text

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.summary.cell_data import NodeCost, NodeCosts

KIB = 1024
PROCESSOR = ("cycles", "instructions", "cache_misses", "tlb_misses")
GROUPS = ("middleware", "abstraction", "other")


def render_node_costs(node_costs: NodeCosts | None, console: Console) -> None:
    """Prints the table, what is not available and why, and the names; nothing without costs."""
    from rich.markup import escape

    if node_costs is None:
        return
    settings = any(row.settings for row in node_costs.rows)
    table = new_table()
    table.add_column("adapter")
    if settings:
        table.add_column("settings")
    for heading, _ in columns(node_costs):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in node_costs.rows:
        names = [escape(row.adapter), *([escape(row.settings)] if settings else [])]
        table.add_row(*names, *(text for _, text in _texts(node_costs, row)))
    few = "" if node_costs.all_cells else "; of each adapter the cell of the smallest payload and lowest rate"
    console.print(
        "\n[bold]what a node costs[/]: threads to sockets for each node, daemons shared out; libraries once; "
        f"switches to network for each message that a reader took{few}"
    )
    print_wide(table, console)
    for row in node_costs.rows:
        threads = ", ".join(
            f"{name} × {count}" if count > 1 else name for name, count in row.thread_names.items()
        )
        owner = f"{row.adapter}, {row.settings}" if row.settings else row.adapter
        console.print(f"  [dim]threads of {escape(owner)}: {escape(threads)}[/]")
    reasons: dict[str, list[str]] = {}
    for unavailable in node_costs.not_available:
        reasons.setdefault(unavailable.why, []).append(unavailable.figure)
    for reason, figures in reasons.items():
        console.print(f"  not available: {escape(', '.join(figures))}: [dim]{escape(reason)}[/]")


def columns(node_costs: NodeCosts) -> list[tuple[str, str]]:
    """The headings, each with the field that it shows; omits figures that no row has."""
    shown = [
        ("threads", "threads_per_node"),
        ("RSS", "rss_per_node_bytes"),
        ("PSS", "pss_per_node_bytes"),
        ("USS", "uss_per_node_bytes"),
        ("descriptors", "descriptors_per_node"),
        ("sockets", "sockets"),
        *((group, group) for group in GROUPS),
        ("switches", "switches_per_message"),
        ("faults", "faults_per_message"),
        ("CPU", "cpu_per_message_ns"),
        ("system", "system_share"),
        ("network", "network_bytes_per_message"),
        *((name.replace("_", " "), f"{name}_per_message") for name in PROCESSOR),
        ("energy", "energy_per_message_nj"),
        ("up", "startup_process_ns"),
        ("first created", "startup_participant_first_ns"),
        ("created", "startup_participant_ns"),
        ("first matched", "startup_matched_first_ns"),
        ("matched", "startup_matched_ns"),
        ("message", "startup_first_message_ns"),
    ]
    return [column for column in shown if any(_text(row, column[1]) != "-" for row in node_costs.rows)]


def _texts(node_costs: NodeCosts, row: NodeCost) -> list[tuple[str, str]]:
    return [(heading, _text(row, field)) for heading, field in columns(node_costs)]


def _text(row: NodeCost, field: str) -> str:
    if field == "sockets":
        kinds = [getattr(row, f"{kind}_sockets_per_node") for kind in ("tcp", "udp", "unix", "other")]
        return "-" if None in kinds else number(sum(kinds))
    if field in GROUPS:
        sizes = [library.mapped_bytes for library in row.libraries if library.group == field]
        return size(sizes[0]) if sizes else "-"
    value = getattr(row, field)
    if field.endswith("_ns"):
        return duration_text(value)
    if field.endswith("_share"):
        return percent(value)
    if field.endswith("_nj"):
        return "-" if value is None else f"{number(value / 1000)} µJ"
    return size(value) if "bytes" in field else number(value)


def number(value: float | None) -> str:
    """Three digits; `-` for null."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def size(count: float | None) -> str:
    """A size in a suitable unit; `-` for null."""
    if count is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if count < KIB:
            return f"{number(count)} {unit}"
        count /= KIB
    return f"{number(count)} GiB"
