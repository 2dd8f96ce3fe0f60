# SPDX-License-Identifier: Apache-2.0
"""The edges between programs: each edge's messages as samples, their layers, and the figures.

An edge begins at the first message its reader took and ends at the last. Before the first, the two may not
have been connected yet; after the last, one of them may be gone. A message in between that was not taken is
lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import polars as pl

from lagometer.stats.program.content import contents_of
from lagometer.stats.program.endpoints import Endpoint, endpoints_of, names_of
from lagometer.stats.program.messages import Joined, Taken, Writes, join, samples_sent, takes_of, writes_of
from lagometer.stats.program.realtime import RealtimeClock
from lagometer.stats.program.ros1 import ros1_of
from lagometer.stats.program.ros2 import CALLED_BACK, PUBLISHED, View, stamps_callback, view_of
from lagometer.stats.trial.calls import Message, Process
from lagometer.stats.trial.estimate import edge_figures
from lagometer.stats.trial.routes import Route, routes
from lagometer.stats.trial.rows import overtaken
from lagometer.stats.trial.way import Passage, way_of
from lagometer.store.format import ARROW, LAYERS_SCHEMA, SAMPLES_SCHEMA
from lagometer.store.probes import ProbeLog


@dataclass(frozen=True)
class ProgramEdge:
    """What one reader took from one writer. name: `writer→reader topic`. first_ns, last_ns: when its first
    and last message were written. followed: messages whose calls were found on both sides. begins, ends:
    where the latency starts and ends (stats/program/ros2.py)."""

    name: str
    writer: Endpoint
    reader: Endpoint
    samples: pl.DataFrame
    layers: pl.DataFrame
    figures: Mapping[str, object]
    followed: int
    begins: str
    ends: str

    @property
    def measured(self) -> pl.DataFrame:
        """The samples without the warm-up."""
        return _measured(self.samples)

    @property
    def measured_layers(self) -> pl.DataFrame:
        """The layers of the messages that the figures count."""
        return self.layers.join(self.measured.select("sequence").unique(), on="sequence", how="semi")


@dataclass(frozen=True)
class Programs:
    """Everything the probes of a run report. names: of the programs, by index."""

    names: Sequence[str]
    endpoints: Sequence[Endpoint]
    written: Mapping[int, int]  # number of messages, by the writer's index among the endpoints
    taken: Mapping[int, int]  # the same for readers
    edges: Sequence[ProgramEdge]
    strange: int
    ambiguous: int


def programs_of(logs: Sequence[ProbeLog], clock: RealtimeClock, warmup_ns: int = 0) -> Programs:
    """Joins what the probes of all programs wrote. warmup_ns: no figure counts this time from each edge's
    first message on."""
    names = names_of([log.program for log in logs])
    endpoints = [endpoint for index, log in enumerate(logs) for endpoint in endpoints_of(log, index)]
    writes = writes_of(endpoints, logs, clock)
    takes = [takes_of(endpoint, logs[endpoint.program]) for endpoint in endpoints if not endpoint.writes]
    processes = [Process(log) for log in logs]
    ros1 = ros1_of(writes, logs, processes)
    contents = contents_of(writes, logs)
    others = ros1.streams | contents.streams
    stamped = [writer for writer in writes if writer.stream not in others]
    joined = []
    for take in takes:
        if len(take.deserialisers):
            joined.append(ros1.join(take))
        elif len(take.contents):
            joined.append(contents.join(take))
        else:
            joined.append(join(take, stamped, clock))
    messages, sizes = samples_sent(stamped, logs, clock)
    sizes = {**sizes, **ros1.sizes, **contents.sizes}
    edges = []
    labels = _labels(names, writes, joined)
    for reader in joined:
        for stream, taken in reader.of_writers.items():
            label = labels[stream, reader.endpoint]
            sender = processes[writes[stream].endpoint.program]
            receiver = processes[reader.endpoint.program]
            unsure = reader.unsure.get(stream, frozenset())
            samples = _samples(label, writes[stream], taken, unsure, sizes, warmup_ns)
            kinds = writes[stream].endpoint.call, reader.endpoint.call
            ends = writes[stream].endpoint, reader.endpoint
            to_callback = all(stamps_callback(end.topic) for end in ends)
            samples, view = view_of(samples, sender, receiver, *kinds, to_callback=to_callback)
            if stream in others:
                view = view.renamed(PUBLISHED, CALLED_BACK)
            of_messages = ros1.routes(reader, stream) or routes(sender, receiver, stream, messages)
            layers, followed = _layers(samples, (sender, receiver), stream, view, of_messages)
            figures = edge_figures(label, _measured(samples), closed_loop=False)
            figures = {**figures, **_rate(writes[stream], taken, warmup_ns)}
            edges.append(
                ProgramEdge(
                    label,
                    writes[stream].endpoint,
                    reader.endpoint,
                    samples,
                    layers,
                    figures,
                    followed,
                    view.begins,
                    view.ends,
                )
            )
    places = {endpoint: place for place, endpoint in enumerate(endpoints)}
    return Programs(
        names,
        endpoints,
        {places[writer.endpoint]: len(writer.calls) for writer in writes},
        {places[take.endpoint]: len(take.taken_ns) for take in takes},
        sorted(edges, key=lambda edge: edge.name),
        sum(reader.strange for reader in joined),
        sum(reader.ambiguous for reader in joined),
    )


def shown_topic(topic: str) -> str:
    """A topic's name as users know it: ROS 2 prefixes its own topics with `rt`."""
    return topic.removeprefix("rt") if topic.startswith("rt/") else topic


def _labels(
    names: Sequence[str], writes: Sequence[Writes], joined: Sequence[Joined]
) -> dict[tuple[int, Endpoint], str]:
    """The name of each edge, by its writer's stream and its reader; numbered if several are equal."""
    counts: dict[str, int] = {}
    labels = {}
    for reader in joined:
        for stream in reader.of_writers:
            writer = writes[stream].endpoint
            label = (
                f"{names[writer.program]}{ARROW}{names[reader.endpoint.program]} {shown_topic(writer.topic)}"
            )
            counts[label] = counts.get(label, 0) + 1
            numbered = label if counts[label] == 1 else f"{label} ({counts[label]})"
            labels[stream, reader.endpoint] = numbered
    return labels


def _samples(
    label: str,
    writes: Writes,
    taken: Taken,
    unsure: Set[int],
    sizes: Mapping[Message, int],
    warmup_ns: int,
) -> pl.DataFrame:
    """The messages of an edge as `SAMPLES_SCHEMA`, in order; each repeated take follows its message. A
    message that may be among the ambiguous ones, and was not seen to be taken otherwise, has no row."""
    first, last = int(taken.sequences.min()), int(taken.sequences.max())
    sequences = np.arange(first, last + 1)
    calls = writes.calls[first : last + 1]
    _, once = np.unique(taken.sequences, return_index=True)
    late = overtaken(taken.sequences.astype(np.uint64), np.zeros(len(taken.sequences), dtype=np.int64))
    taken_frame = pl.DataFrame(
        {
            "sequence": taken.sequences[once],
            "taken_ns": taken.taken_ns[once],
            "cpu_taken": taken.cpus[once],
            "reordered": late[once],
        }
    )
    frame = pl.DataFrame(
        {
            "sequence": sequences,
            "publish_ns": calls["begin_ns"].copy(),
            "published_ns": calls["end_ns"].copy(),
            "cpu_publish": calls["cpu_begin"].copy(),
            "cpu_published": calls["cpu_end"].copy(),
            "payload_bytes": pl.Series(
                [sizes.get((writes.stream, sequence)) for sequence in sequences.tolist()], dtype=pl.UInt32
            ),
        }
    ).join(taken_frame, on="sequence", how="left", maintain_order="left")
    certain = pl.col("taken_ns").is_not_null() | ~pl.col("sequence").is_in(sorted(unsure))
    frame = frame.filter(certain)
    again = np.setdiff1d(np.arange(len(taken.sequences)), once)
    twice = pl.DataFrame({"sequence": taken.sequences[again], "taken_ns": taken.taken_ns[again]})
    twice = twice.join(frame.drop("taken_ns"), on="sequence", how="left").with_columns(
        outcome=pl.lit("duplicate")
    )
    outcome = pl.when(pl.col("taken_ns").is_null()).then(pl.lit("lost")).otherwise(pl.lit("delivered"))
    whole = pl.concat([frame.with_columns(outcome=outcome), twice], how="diagonal_relaxed").with_columns(
        edge=pl.lit(label),
        phase=pl.when(pl.col("publish_ns") < int(calls["begin_ns"][0]) + warmup_ns)
        .then(pl.lit("warmup"))
        .otherwise(pl.lit("measure")),
        corrupted=pl.lit(False),
        resent=pl.lit(False),
        reordered=pl.col("reordered").fill_null(False),
    )
    absent = [pl.lit(None).alias(name) for name in SAMPLES_SCHEMA if name not in whole.columns]
    return whole.with_columns(absent).select(
        pl.col(name).cast(dtype) for name, dtype in SAMPLES_SCHEMA.items()
    )


def _measured(samples: pl.DataFrame) -> pl.DataFrame:
    return samples.filter(pl.col("phase") == "measure")


def _rate(writes: Writes, taken: Taken, warmup_ns: int) -> dict[str, object]:
    """How often the writer wrote, from the first message that was taken to the last, without the warm-up;
    null for a single message. It also wrote those that nobody can tell apart, which have no samples."""
    times = writes.calls["begin_ns"][int(taken.sequences.min()) : int(taken.sequences.max()) + 1]
    times = times[times >= int(times[0]) + warmup_ns]
    span_ns = int(times[-1]) - int(times[0]) if len(times) > 1 else 0
    return {"rate_achieved_hz": (len(times) - 1) * 1e9 / span_ns if span_ns > 0 else None}


def _layers(
    samples: pl.DataFrame,
    processes: tuple[Process, Process],
    stream: int,
    view: View,
    by_message: Mapping[Message, Route],
) -> tuple[pl.DataFrame, int]:
    """The layers of each message taken, and how many messages were followed over sockets."""
    sender, receiver = processes
    rows: list[tuple[object, ...]] = []
    followed = 0
    for label, sequence, passage in _passages(samples, by_message, stream, view):
        followed += passage.first is not None and passage.received is not None
        way = way_of(passage, sender, receiver, "")
        rows += [(label, sequence, *layer) for layer in way.layers]
    return pl.DataFrame(rows, schema=LAYERS_SCHEMA, orient="row"), followed


def _passages(
    samples: pl.DataFrame, by_message: Mapping[Message, Route], stream: int, view: View
) -> Iterator[tuple[str, int, Passage]]:
    delivered = samples.filter(pl.col("outcome") == "delivered")
    columns = ("edge", "sequence", "publish_ns", "published_ns", "taken_ns")
    for label, sequence, publish_ns, published_ns, taken_ns in delivered.select(columns).iter_rows():
        route = by_message.get((stream, sequence), Route([], []))
        take = view.takes.get(sequence)
        received = route.completed(take.end_ns if take is not None else taken_ns)
        first = route.first(publish_ns)
        yield (
            label,
            sequence,
            Passage(
                publish_ns=publish_ns,
                published_ns=published_ns,
                taken_ns=taken_ns,
                first=first.call if first is not None else None,
                last=route.last_for(received),
                received=received.call if received is not None else None,
                write=view.writes.get(sequence),
                take=take,
            ),
        )
