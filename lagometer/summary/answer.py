# SPDX-License-Identifier: Apache-2.0
"""The answer first: which middleware is fastest for each payload, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.store.format import END_TO_END
from lagometer.summary.data import GlanceFigure, GlanceRow, Summary
from lagometer.summary.model import Model


class Fastest(Model):
    """The fastest middleware for a payload, out of `among` that have figures; bare transports do not count.

    low_ns, high_ns: the 95 % interval of p50, if there is one. not_told_apart: the others whose intervals
    overlap with it. queue_builds_up: its p50 depends on the length of a trial.
    """

    payload_bytes: int
    adapter: str
    settings: str
    cell: str
    latency_p50_ns: float
    low_ns: float | None
    high_ns: float | None
    cpu_per_message_ns: float | None
    times_floor_p50: float | None
    lost_share: float | None
    queue_builds_up: bool
    among: int
    not_told_apart: list[str]


def answers(summary: Summary) -> list[Fastest]:
    """The fastest of each payload in the at-a-glance table, without bare transports; empty without a table.

    A cell in which a queue builds up comes last, because its p50 depends on the length of a trial.
    """
    glance = summary.glance
    if glance is None:
        return []
    growing = {queue.cell for queue in summary.queues}
    lost = {row.cell: row.lost_share for row in summary.rows if row.trial is None and row.edge == END_TO_END}
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
                not_told_apart=[
                    " ".join(filter(None, (other.adapter, other.settings)))
                    for other, figure in ranked[1:]
                    if _overlap(fastest, figure)
                ],
            )
        )
    return listed


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
