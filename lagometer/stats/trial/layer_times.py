# SPDX-License-Identifier: Apache-2.0
"""The layers of a trial: finds each message in the probes' files and follows its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import polars as pl

from lagometer.stats.trial.calls import Message, Process, samples_of
from lagometer.stats.trial.routes import Route, routes
from lagometer.stats.trial.way import Passage, Span, thread_name, way_of
from lagometer.store import records as rec
from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.store.format import LAYERS_SCHEMA
from lagometer.store.probes import ProbeLog
from lagometer.store.records import Lane


@dataclass(frozen=True)
class LayerCounts:
    """The result of the search. messages: delivered messages. sent, received: those whose calls were found on
    that side. overflow: records that did not fit. unprobed: workers whose probe left nothing."""

    messages: int = 0
    sent: int = 0
    received: int = 0
    overflow: int = 0
    unprobed: int = 0

    def as_json(self) -> Mapping[str, int]:
        """For the journal."""
        return asdict(self)

    def warnings(self) -> Iterator[str]:
        """What a reader of the layers needs to know."""
        if self.overflow:
            yield f"layers: {self.overflow} records of the probes found no room"
        if self.unprobed:
            yield f"layers: the probes of {self.unprobed} workers left nothing"


@dataclass(frozen=True)
class LayerTimes:
    """The layers of a trial as `LAYERS_SCHEMA`, and how they were found."""

    frame: pl.DataFrame
    counts: LayerCounts


@dataclass(frozen=True)
class Inner:
    """What adapters stamped for the messages of one edge, by sequence: when each was (de)serialised."""

    serialise: Mapping[int, Span] = field(default_factory=dict)
    deserialise: Mapping[int, Span] = field(default_factory=dict)


def layer_times(
    lanes: Sequence[Lane],
    facts: TrialFacts,
    samples: pl.DataFrame,
    logs: Mapping[int, ProbeLog],
    stamps: pl.DataFrame | None = None,
) -> LayerTimes:
    """The layers of every delivered message. logs: by worker, on the conductor's clock. samples: those of the
    trial. stamps: those of the adapters, as `STAMPS_SCHEMA`."""
    processes = {worker: Process(log) for worker, log in logs.items()}
    by_sample = samples_of(processes.values())
    workers = sorted({lane.worker for lane in lanes})
    rows: list[tuple[object, ...]] = []
    messages = sent = received = 0
    for edge in facts.edges:
        ends = edge_workers(edge, lanes)
        if ends is None or not edge.one_clock:
            continue
        sender, receiver = processes.get(ends[0]), processes.get(ends[1])
        by_message = routes(sender, receiver, edge.stream, by_sample, partial(_payload_bytes, edge))
        inner = _inner(stamps, edge.name)
        publisher = sender.thread_named(thread_name(edge.sender)) if sender is not None else None
        for sequence, passage in _passages(samples, edge, by_message, inner, publisher):
            messages += 1
            sent += passage.first is not None
            received += passage.received is not None
            way = way_of(passage, sender, receiver, edge.receiver)
            rows += [(edge.name, sequence, *layer) for layer in way.layers]
    overflow = sum(log.overflow for log in logs.values())
    unprobed = sum(worker not in logs for worker in workers)
    frame = pl.DataFrame(rows, schema=LAYERS_SCHEMA, orient="row")
    return LayerTimes(frame, LayerCounts(messages, sent, received, overflow, unprobed))


def edge_workers(edge: EdgeSpec, lanes: Sequence[Lane]) -> tuple[int, int] | None:
    """The numbers of an edge's sending and receiving worker; None if one of them has no records."""
    sender = [lane.worker for lane in lanes if lane.kind == rec.KIND_SENT and lane.endpoint == edge.stream]
    receiver = [
        lane.worker
        for lane in lanes
        if lane.kind == rec.KIND_RECEIVED and (lane.node, lane.endpoint) == (edge.receiver_node, edge.reader)
    ]
    return (sender[0], receiver[0]) if sender and receiver else None


def _inner(stamps: pl.DataFrame | None, edge: str) -> Inner:
    if stamps is None:
        return Inner()
    by_layer: dict[str, dict[int, list[int]]] = {"serialise": {}, "deserialise": {}}
    edge_stamps = stamps.filter((pl.col("edge") == edge) & pl.col("layer").is_in(list(by_layer)))
    for layer, sequence, time_ns in edge_stamps.select("layer", "sequence", "time_ns").iter_rows():
        by_layer[layer].setdefault(sequence, []).append(time_ns)
    return Inner(
        *({key: (min(times), max(times)) for key, times in by_layer[name].items()} for name in by_layer)
    )


def _passages(
    samples: pl.DataFrame,
    edge: EdgeSpec,
    by_message: Mapping[Message, Route],
    inner: Inner,
    publisher: int | None,
) -> Iterator[tuple[int, Passage]]:
    """Each message delivered on an edge."""
    delivered = samples.filter((pl.col("edge") == edge.name) & (pl.col("outcome") == "delivered"))
    columns = ("sequence", "publish_ns", "published_ns", "taken_ns", "signalled_ns", "woken_ns")
    for sequence, publish_ns, published_ns, taken_ns, *noticed in delivered.select(columns).iter_rows():
        route = by_message.get((edge.stream, sequence), Route([], []))
        received = route.completed(taken_ns)
        first = route.first(publish_ns)
        yield (
            sequence,
            Passage(
                publish_ns=publish_ns,
                published_ns=published_ns if published_ns is not None else taken_ns,
                taken_ns=taken_ns,
                serialise=inner.serialise.get(sequence),
                deserialise=inner.deserialise.get(sequence),
                first=first.call if first is not None else None,
                last=route.last_for(received),
                received=received.call if received is not None else None,
                publisher=publisher,
                polled=edge.polled,
                signalled_ns=None if edge.polled else noticed[0],  # nobody waits for it
                woken_ns=noticed[1],
            ),
        )


def _payload_bytes(edge: EdgeSpec, sequence: int) -> int:
    sizes = edge.sizes_bytes
    return sizes[sequence % len(sizes)] if sizes else edge.payload_bytes
