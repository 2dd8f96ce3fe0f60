# SPDX-License-Identifier: Apache-2.0
"""The answer first: which middleware is fastest for each payload, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lagometer.store.format import END_TO_END
from lagometer.summary.cell_data import Queue
from lagometer.summary.data import Fastest, Glance, GlanceFigure, GlanceRow, Row
from lagometer.units import duration_text

OTHERS_NAMED = 3


def answers(glance: Glance | None, rows: Iterable[Row], queues: Iterable[Queue]) -> list[Fastest]:
    """The fastest of each payload in the at-a-glance table, without bare transports; empty without a table.

    A cell in which a queue builds up comes last, because its p50 depends on the length of a trial.
    """
    if glance is None:
        return []
    growing = {queue.cell for queue in queues}
    whole = {row.cell: row for row in rows if row.trial is None and row.edge == END_TO_END}
    lost = {cell: row.lost_share for cell, row in whole.items()}
    bounds_ns = {cell: row.clock_bound_ns or 0.0 for cell, row in whole.items()}
    listed: list[Fastest] = []
    for place, payload_bytes in enumerate(glance.payloads_bytes):
        ranked = sorted(
            _figures(glance.rows, place),
            key=lambda figure: (figure[1].cell in growing, figure[1].latency_p50_ns),
        )
        if not ranked:
            continue
        row, fastest = ranked[0]
        low, high = _interval(fastest, "latency_p50_ns")
        not_told_apart = [
            " ".join(filter(None, (other.adapter, other.settings)))
            for other, figure in ranked[1:]
            if _overlap(fastest, figure) or _within_clocks(fastest, figure, bounds_ns)
        ]
        listed.append(
            Fastest(
                payload_bytes=payload_bytes,
                adapter=row.adapter,
                settings=row.settings,
                cell=fastest.cell,
                latency_p50_ns=fastest.latency_p50_ns,
                low_ns=low,
                high_ns=high,
                cpu_per_message_ns=fastest.cpu_per_message_ns,
                times_floor_p50=fastest.times_floor_p50,
                lost_share=lost.get(fastest.cell),
                queue_builds_up=fastest.cell in growing,
                among=len(ranked),
                not_told_apart=not_told_apart,
                remarks=[
                    *_of_others(not_told_apart, low is not None),
                    *_of_clocks(fastest.latency_p50_ns, bounds_ns.get(fastest.cell)),
                    *_remarks(lost.get(fastest.cell), fastest.cell in growing),
                ],
            )
        )
    return listed


def _of_others(not_told_apart: Sequence[str], has_interval: bool) -> Iterator[str]:
    if not_told_apart:
        more = len(not_told_apart) - OTHERS_NAMED
        others = ", ".join(not_told_apart[:OTHERS_NAMED]) + (f" and {more} more" if more > 0 else "")
        if has_interval:
            yield f"the intervals of {others} overlap with it"
        else:
            yield f"the clocks are not known well enough to tell it from {others}"


def _of_clocks(latency_p50_ns: float, bound_ns: float | None) -> Iterator[str]:
    """How far off the figure may be, whose two ends have separate clocks."""
    if bound_ns:
        below = ", which is more than the figure itself" if latency_p50_ns < bound_ns else ""
        yield f"its ends have two clocks, whose offset is known to ± {duration_text(bound_ns)}{below}"


def _remarks(lost_share: float | None, queue_builds_up: bool) -> list[str]:
    remarks = []
    if lost_share:
        remarks.append(f"{100.0 * lost_share:.2g} % of its messages did not arrive")
    if queue_builds_up:
        remarks.append("a queue builds up: this p50 depends on how long a trial is")
    return remarks


def _figures(rows: list[GlanceRow], place: int) -> Iterator[tuple[GlanceRow, GlanceFigure]]:
    for row in rows:
        figure = row.figures[place]
        if figure is not None and not row.bare:
            yield row, figure


def _interval(figure: GlanceFigure, name: str) -> tuple[float | None, float | None]:
    return next(
        ((interval.low, interval.high) for interval in figure.intervals if interval.figure == name),
        (None, None),
    )


def _within_clocks(first: GlanceFigure, other: GlanceFigure, bounds_ns: Mapping[str, float]) -> bool:
    """Whether two figures without intervals, which would contain them, differ by no more than the bounds of
    their clocks' offsets."""
    both_ns = bounds_ns.get(first.cell, 0.0) + bounds_ns.get(other.cell, 0.0)
    has_intervals = _interval(first, "latency_p50_ns")[0] is not None
    return not has_intervals and 0.0 <= other.latency_p50_ns - first.latency_p50_ns <= both_ns > 0.0


def _overlap(first: GlanceFigure, other: GlanceFigure) -> bool:
    """Whether the intervals of p50 overlap; False if there are none to compare. The other may lie below: a
    queue that builds up there keeps it from being the fastest."""
    low, high = _interval(first, "latency_p50_ns")
    other_low, other_high = _interval(other, "latency_p50_ns")
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return other_low <= high and low <= other_high
