# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the captured packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.cli.show.cells import percent
from lagometer.cli.show.figures import new_table, print_wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.cell_data import OnTheWire

KIB = 1024
HEADINGS = (
    *("cell", "B / payload B", "at least", "sent", "goodput", "link at most", "of that"),
    *("packets", "fragments", "heartbeats", "acknacks", "resent"),
    *("control", "discovery", "before"),
)


def render_wire(cells: Sequence[OnTheWire], console: Console) -> None:
    """Prints a line for each cell with captured packets; nothing if there are none."""
    from rich.markup import escape

    if not cells:
        return
    table = new_table()
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "cell" else "right")
    for cell in cells:
        table.add_row(
            escape(cell.cell),
            _number(cell.bytes_per_payload_byte),
            _number(cell.least_bytes_per_payload_byte),
            _size(cell.bytes_per_s, "/s"),
            _size(cell.goodput_bytes_per_s, "/s"),
            _size(cell.theoretical_bytes_per_s, "/s"),
            percent(cell.theoretical_share),
            _number(cell.packets_per_message),
            _number(cell.fragments_per_message),
            _number(cell.heartbeats_per_message),
            _number(cell.acknacks_per_message),
            _number(cell.resent_per_message),
            percent(cell.control_share),
            percent(cell.discovery_share),
            _size(cell.startup_discovery_bytes),
        )
    console.print(
        "\n[bold]on the wire[/]: whole frames, each once; at least: with the headers of Ethernet, IP and UDP "
        "alone; link at most: the goodput that its rate leaves, and how much of it came through, the busier "
        "way; packets to resent: for each message that a reader "
        "took; control and discovery: of all bytes; before: bytes of discovery until the measure phase"
    )
    print_wide(table, console)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _size(count: float | None, per: str = "") -> str:
    if count is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if count < KIB:
            return f"{_number(count)} {unit}{per}"
        count /= KIB
    return f"{_number(count)} GiB{per}"
