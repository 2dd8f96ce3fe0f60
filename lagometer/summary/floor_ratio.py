# SPDX-License-Identifier: Apache-2.0
"""The floor: the fastest bare transport that did the same work; the reference for a middleware."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lagometer.summary.data import Row
from lagometer.summary.intervals import between, ends_of, ratio_interval

BARE_TRANSPORTS = frozenset({"null", "shm", "uds", "udp", "tcp"})

# Factors in which a bare transport may differ from the cell it is the floor of: a stricter QoS, a bridge and
# security can only cost more, and a payload has the same size in every type.
_FREE_FACTORS = frozenset(
    {
        *("adapter", "reliability", "history", "depth", "durability", "profile", "domain", "variant"),
        *("deadline_period_ns", "lifespan_ns", "liveliness", "partition", "instances"),
        *("type", "part", "bridge", "security"),
    }
)


def work_key(factors: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """What two cells must share for one to be the other's floor: placement, dispatch, payload, touch, …."""
    return tuple(sorted((name, str(value)) for name, value in factors.items() if name not in _FREE_FACTORS))


def with_floor(rows: Iterable[Row], factors: Mapping[str, Mapping[str, object]]) -> list[Row]:
    """The rows over trials, each with the floor of its work and edge if a valid one was measured.

    `factors`: by cell id.
    """
    listed = list(rows)
    keys = {cell: work_key(values) for cell, values in factors.items()}
    floors: dict[object, Row] = {}
    for row in listed:
        if (
            not row.valid
            or row.latency_p50_ns is None
            or factors[row.cell].get("adapter") not in BARE_TRANSPORTS
        ):
            continue
        key = (keys[row.cell], row.edge)
        best = floors.get(key)
        if best is None or best.latency_p50_ns is None or row.latency_p50_ns < best.latency_p50_ns:
            floors[key] = row
    return [_held_against(row, floors.get((keys[row.cell], row.edge))) for row in listed]


def times_floor(row: Row, floor: Row, quantile: str) -> tuple[float | None, tuple[float, float] | None]:
    """A quantile (`p50`, `p99`) as a multiple of the floor's, and its interval; None if either part is
    unknown, or between two clocks without an interval, which would contain the bounds of their offset. The
    floor itself is 1 by definition, without an interval.
    """
    name = f"latency_{quantile}_ns"
    value_ns, floor_ns = getattr(row, name), getattr(floor, name)
    if value_ns is None or not floor_ns:
        return None, None
    if row.cell == floor.cell:
        return 1.0, None
    ends = ratio_interval(ends_of(row, name), ends_of(floor, name))
    if ends is None and (row.clock_bound_ns or floor.clock_bound_ns):
        return None, None
    return value_ns / floor_ns, ends


def _held_against(row: Row, floor: Row | None) -> Row:
    if floor is None:
        return row
    _, ends = times_floor(row, floor, "p50")
    known = [] if ends is None else [between("times_floor_p50", *ends)]
    fields = {"floor_cell": floor.cell, "floor_latency_p50_ns": floor.latency_p50_ns}
    return row.model_copy(update=fields | {"intervals": [*row.intervals, *known]})
