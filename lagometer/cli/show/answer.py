# SPDX-License-Identifier: Apache-2.0
"""The first lines of `lagometer run` and `show`: the fastest middleware for each payload, and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.units import duration_text, size_text, span_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.data import Fastest


def render_answer(answers: Sequence[Fastest], console: Console) -> None:
    """Prints a few lines for each payload; nothing without a table at a glance."""
    from rich.markup import escape

    if not answers:
        return
    intervals = any(fastest.low_ns is not None for fastest in answers)
    statistic = "p50 with its 95 % interval" if intervals else "p50 (too few trials for an interval)"
    console.print(f"[bold]fastest middleware[/], end to end: {statistic}", soft_wrap=True)
    for fastest in answers:
        name = " ".join(filter(None, (fastest.adapter, fastest.settings)))
        size = size_text(fastest.payload_bytes)
        console.print(f"  {size:<7}[bold]{escape(name)}[/], of {fastest.among}", soft_wrap=True)
        console.print(f"         {_figures(fastest)}", soft_wrap=True)
        for line in fastest.remarks:
            console.print(f"         {line}", style="yellow", markup=False, soft_wrap=True)
    console.print()


def _figures(fastest: Fastest) -> str:
    """38.1 µs (37.9 – 38.6 µs), CPU/msg 12.1 µs, 3.2 × the floor."""
    parts = [duration_text(fastest.latency_p50_ns)]
    if fastest.low_ns is not None and fastest.high_ns is not None:
        parts[0] += f" ({span_text(fastest.low_ns, fastest.high_ns)})"
    parts.append(f"CPU/msg {duration_text(fastest.cpu_per_message_ns)}")
    if fastest.times_floor_p50 is not None:
        parts.append(f"{fastest.times_floor_p50:.3g} × the floor")
    return ", ".join(parts)
