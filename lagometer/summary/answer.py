# SPDX-License-Identifier: Apache-2.0
"""The answer first: which middleware is fastest for each payload, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lagometer.store.format import END_TO_END
from lagometer.summary.cell_data import Queue
from lagometer.summary.data import Fastest, Glance, GlanceFigure, GlanceRow, Row

OTHERS_NAMED = 3


def answers(glance: Glance | None, rows: Iterable[Row], queues: Iterable[Queue]) -> list[Fastest]:
    """The fastest of each payload in the at-a-glance table, without bare transports; empty without a table.

    A cell in which a queue builds up comes last, because its p50 depends on the length of a trial.
    """
    if glance is None:
        return []
    growing = {queue.cell for queue in queues}
    lost = {row.cell: row.lost_share for row in rows if row.trial is None and row.edge == END_TO_END}
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
            if _overlap(fastest, figure)
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
                remarks=_remarks(not_told_apart, lost.get(fastest.cell), fastest.cell in growing),
            )
        )
    return listed


def _remarks(not_told_apart: Sequence[str], lost_share: float | None, queue_builds_up: bool) -> list[str]:
    remarks = []
    if not_told_apart:
        others = ", ".join(not_told_apart[:OTHERS_NAMED])
        more = len(not_told_apart) - OTHERS_NAMED
        remarks.append(f"the intervals of {others}{f' and {more} more' if more > 0 else ''} overlap with it")
    if lost_share:
        remarks.append(f"it lost {100.0 * lost_share:.2g} % of its messages")
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


def _overlap(first: GlanceFigure, other: GlanceFigure) -> bool:
    """Whether the intervals of p50 overlap; False if there are none to compare."""
    _, high = _interval(first, "latency_p50_ns")
    low, _ = _interval(other, "latency_p50_ns")
    return high is not None and low is not None and low <= high
