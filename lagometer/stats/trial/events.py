# SPDX-License-Identifier: Apache-2.0
"""What the middleware reported about its endpoints: lost messages, missed deadlines, incompatible QoS
(docs/FORMAT.md, "events").

These are the middleware's own reports. They are never mixed with the records: a message that never arrived is
lost whether or not a middleware noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from lagometer.store import records as rec
from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.store.format import END_TO_END, EVENT_COLUMNS, EVENTS_SCHEMA
from lagometer.store.records import Lane

Events = Mapping[str, Mapping[str, int]]
Columns = dict[str, int | None]


def event_columns(facts: TrialFacts) -> dict[str, Columns]:
    """The columns of each edge and of end-to-end; null if that side's adapter does not have such events.

    Lost messages and missed deadlines are those of the measure phase, by the time of the middleware's report.
    Incompatible endpoints are counted from the start, because discovery finds them.
    """
    writers = {writer.stream: writer.events for writer in facts.writers}
    readers = {(reader.node, reader.reader): reader.events for reader in facts.readers}
    by_edge: dict[str, list[Columns]] = {}
    for edge in facts.edges:
        writer = writers.get(edge.stream, {})
        reader = readers.get((edge.receiver_node, edge.reader), {})
        by_edge.setdefault(edge.name, []).append(_of_edge(writer, reader))
    columns = {name: _summed(parts) for name, parts in by_edge.items()}
    ends = [_of_edge(writer, {}) for writer in writers.values()]
    ends += [_of_edge({}, reader) for reader in readers.values()]
    return {**columns, END_TO_END: _summed(ends)}


def _of_edge(writer: Events, reader: Events) -> Columns:
    incompatible = [
        events["incompatible_qos"]["total"] for events in (writer, reader) if "incompatible_qos" in events
    ]
    return {
        "event_lost": _measured(reader, "lost"),
        "event_deadline_missed": _measured(reader, "deadline_missed"),
        "event_deadline_missed_offered": _measured(writer, "deadline_missed"),
        "event_incompatible_qos": sum(incompatible) if incompatible else None,
    }


def _measured(events: Events, name: str) -> int | None:
    return events[name]["measured"] if name in events else None


def _summed(parts: Iterable[Columns]) -> Columns:
    """The sum of the known values; null if none is known."""
    parts = list(parts)
    sums: Columns = {}
    for name in EVENT_COLUMNS:
        known = [value for part in parts if (value := part[name]) is not None]
        sums[name] = sum(known) if known else None
    return sums


def endpoint_events(lanes: Sequence[Lane], facts: TrialFacts) -> pl.DataFrame | None:
    """The events of a trial in time order, as `EVENTS_SCHEMA`; None if there are none."""
    parts = [
        _rows(lane, facts.edges) for lane in lanes if lane.kind in rec.KINDS_OF_EVENTS and len(lane.records)
    ]
    return pl.concat(parts).sort("time_ns", maintain_order=True) if parts else None


def _rows(lane: Lane, edges: Iterable[EdgeSpec]) -> pl.DataFrame:
    sender = lane.kind == rec.KIND_SENT_EVENTS
    if sender:
        nodes = [edge.sender for edge in edges if edge.stream == lane.endpoint]
    else:
        nodes = [
            edge.receiver for edge in edges if (edge.receiver_node, edge.reader) == (lane.node, lane.endpoint)
        ]
    frame = pl.DataFrame({name: lane.records[name].copy() for name in ("event", "time_ns", "total")})
    return frame.with_columns(
        pl.lit(nodes[0] if nodes else None, dtype=pl.String()).alias("node"),
        pl.lit("sender" if sender else "receiver").alias("side"),
        pl.lit(lane.endpoint).alias("endpoint"),
        pl.col("event").replace_strict(rec.EVENT_NAMES, return_dtype=pl.String).alias("event"),
    ).select(pl.col(name).cast(dtype) for name, dtype in EVENTS_SCHEMA.items())
