# SPDX-License-Identifier: Apache-2.0
"""The first lines of `lagometer run` and `show`: the fastest middleware for each payload, and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.units import duration_text, size_text, span_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.answer import Fastest

OTHERS_NAMED = 3


def render_answer(found: Sequence[Fastest], console: Console) -> None:
    """Prints a few lines for each payload; nothing where there is no table at a glance."""
    from rich.markup import escape

    if not found:
        return
    intervals = any(each.low_ns is not None for each in found)
    said = "p50 with its 95 % interval" if intervals else "p50 (too few trials for an interval)"
    console.print(f"[bold]fastest middleware[/], end to end: {said}", soft_wrap=True)
    for each in found:
        name = " ".join(filter(None, (each.adapter, each.settings)))
        size = size_text(each.payload_bytes)
        console.print(f"  {size:<7}[bold]{escape(name)}[/], of {each.among}", soft_wrap=True)
        console.print(f"         {_figures(each)}", soft_wrap=True)
        for line in _remarks(each):
            console.print(f"         {line}", style="yellow", markup=False, soft_wrap=True)
    console.print()


def _figures(each: Fastest) -> str:
    """38.1 µs (37.9 – 38.6 µs), CPU/msg 12.1 µs, 3.2 × the floor."""
    parts = [duration_text(each.latency_p50_ns)]
    if each.low_ns is not None and each.high_ns is not None:
        parts[0] += f" ({span_text(each.low_ns, each.high_ns)})"
    parts.append(f"CPU/msg {duration_text(each.cpu_per_message_ns)}")
    if each.times_floor_p50 is not None:
        parts.append(f"{each.times_floor_p50:.3g} × the floor")
    return ", ".join(parts)


def _remarks(each: Fastest) -> list[str]:
    remarks = []
    if each.not_told_apart:
        others = ", ".join(each.not_told_apart[:OTHERS_NAMED])
        more = len(each.not_told_apart) - OTHERS_NAMED
        remarks.append(f"the intervals of {others}{f' and {more} more' if more > 0 else ''} overlap with it")
    if each.lost_share:
        remarks.append(f"it lost {100.0 * each.lost_share:.2g} % of its messages")
    if each.queue_builds_up:
        remarks.append("a queue builds up: this p50 depends on how long a trial is")
    return remarks
