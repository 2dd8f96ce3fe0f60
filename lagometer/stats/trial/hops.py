# SPDX-License-Identifier: Apache-2.0
"""Follows a message from the end of a chain back along its causes, edge by edge, in a trial's samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.store.format import ARROW, END_TO_END

COLUMNS = (
    *("edge", "sequence", "publish_ns", "taken_ns", "handled_ns", "begun_ns", "started_ns"),
    *("cause_stream", "cause_sequence", "causes", "phase", "outcome"),
)
KEYS = ("sequence", "publish_ns", "taken_ns")  # of a message on one edge
COMPARED = 50  # messages to compare to recognise two edges of one stream


@dataclass(frozen=True)
class Hop:
    """One message on one edge. begun_ns: when the callback that published it began. started_ns, handled_ns:
    when the callback that took it began, if it had to wait for others, and ended. causes: (stream, sequence)
    of each."""

    edge: str
    sequence: int
    publish_ns: int
    taken_ns: int
    handled_ns: int | None
    begun_ns: int | None
    started_ns: int | None
    causes: tuple[tuple[int, int], ...]

    @property
    def sender(self) -> str:
        """The node that published it."""
        return ends(self.edge)[0]

    @property
    def receiver(self) -> str:
        """The node that took it."""
        return ends(self.edge)[1]


def ends(edge: str) -> tuple[str, str]:
    """Publisher and subscriber of an edge."""
    publisher, _, rest = edge.partition(ARROW)
    return publisher, rest.partition(":")[0]


class Hops:
    """The delivered messages of a trial. samples: with the columns `COLUMNS`."""

    def __init__(self, samples: pl.DataFrame) -> None:
        known = pl.col("publish_ns").is_not_null() & pl.col("taken_ns").is_not_null()
        self._samples = samples.filter((pl.col("outcome") == "delivered") & known)

    @property
    def edges(self) -> list[str]:
        """All edges that have a message, including `end-to-end` and chains."""
        return [str(name) for name in self._samples["edge"].unique(maintain_order=True)]

    def of_edge(self, edge: str) -> pl.DataFrame:
        """The messages of an edge in the measure phase: `KEYS` and `latency_ns`."""
        measured = (pl.col("edge") == edge) & (pl.col("phase") == "measure")
        latency_ns = (pl.col("taken_ns") - pl.col("publish_ns")).alias("latency_ns")
        return self._samples.lazy().filter(measured).select(*KEYS, latency_ns).collect()

    def within(self, begin_ns: int, end_ns: int) -> Index:
        """The messages published and taken in this time, indexed for going back."""
        publish_ns, taken_ns = self._times
        (places,) = np.nonzero((publish_ns >= begin_ns) & (taken_ns <= end_ns))
        return Index(self._samples[places], lambda: self.streams)

    def whole(self) -> Index:
        """An index of all messages."""
        return Index(self._samples.filter(pl.col("edge") != END_TO_END), lambda: self.streams)

    @cached_property
    def _times(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """When each message was published and taken, to search without looking at the other columns."""
        return self._samples["publish_ns"].to_numpy(), self._samples["taken_ns"].to_numpy()

    @cached_property
    def streams(self) -> Mapping[tuple[str, int], str]:
        """By node and stream, the edge on which the node takes that stream's messages. A node with an
        uncertain edge is left out."""
        edges = [name for name in self.edges if ARROW in name]
        stream = pl.col("causes").explode().struct.field("stream")
        causes = self._samples.group_by("edge").agg(
            pl.col("cause_stream").drop_nulls().unique(), stream.drop_nulls().unique().alias("several")
        )
        streams = {str(edge): {*one, *several} for edge, one, several in causes.iter_rows()}
        by_stream: dict[tuple[str, int], str] = {}
        for node in dict.fromkeys(ends(edge)[1] for edge in edges):
            # Edges are stored in the order of their streams' numbers.
            arriving = [edge for edge in edges if ends(edge)[1] == node]
            sent = [edge for edge in edges if ends(edge)[0] == node]
            caused = sorted({stream for edge in sent for stream in streams[edge]})
            if len(caused) == len(arriving):
                by_stream |= {(node, stream): edge for stream, edge in zip(caused, arriving, strict=True)}
            elif len(caused) == 1 and (sure := self._by_callback(arriving, sent)) is not None:
                by_stream[node, caused[0]] = sure
        return by_stream

    def _by_callback(self, arriving: Sequence[str], sent: Sequence[str]) -> str | None:
        """The only edge whose messages a node took when the callbacks that published others began."""
        text = pl.col("edge").cast(pl.String())
        published = self._samples.filter(text.is_in(list(sent)) & pl.col("cause_stream").is_not_null())
        published = published.head(COMPARED)
        keys = published.select(
            pl.col("cause_sequence").alias("sequence"), pl.col("begun_ns").alias("taken_ns")
        )
        taken = self._samples.filter(text.is_in(list(arriving)))
        edges = taken.join(keys, on=("sequence", "taken_ns"), how="semi")["edge"].unique()
        return str(edges[0]) if len(edges) == 1 else None


class Index:
    """Messages by edge and number, and by when they were taken.

    streams: gives `Hops.streams`, which only messages with a cause need.
    """

    def __init__(self, rows: pl.DataFrame, streams: Callable[[], Mapping[tuple[str, int], str]]) -> None:
        self._streams = streams
        self._numbered: dict[tuple[str, int], Hop] = {}
        self._taken: dict[int, list[Hop]] = {}
        for hop in _hops(rows):
            self._numbered[hop.edge, hop.sequence] = hop
            self._taken.setdefault(hop.taken_ns, []).append(hop)

    def single(self, edge: str, sequence: int) -> tuple[Hop, ...]:
        """A message on its only edge."""
        hop = self._numbered.get((edge, sequence))
        return () if hop is None else (hop,)

    def way(self, sequence: int, publish_ns: int, taken_ns: int) -> tuple[Hop, ...]:
        """From the root's message (its number and time) to the one taken last; empty if it was not found. Of
        several causes, the one that arrived last counts."""
        for last in self._taken.get(taken_ns, ()):
            hops = self._back(last, sequence, publish_ns)
            if hops:
                return hops
        return ()

    def _back(self, hop: Hop, sequence: int, publish_ns: int) -> tuple[Hop, ...]:
        if not hop.causes:
            return (hop,) if (hop.sequence, hop.publish_ns) == (sequence, publish_ns) else ()
        streams = self._streams()
        edges = ((streams.get((hop.sender, stream)), number) for stream, number in hop.causes)
        arrived = [
            cause
            for edge, number in edges
            if edge is not None
            and (cause := self._numbered.get((edge, number))) is not None
            and publish_ns <= cause.publish_ns < cause.taken_ns <= hop.publish_ns
        ]
        for cause in sorted(arrived, key=lambda hop: -hop.taken_ns):
            upstream = self._back(cause, sequence, publish_ns)
            if upstream:
                return (*upstream, hop)
        return ()


def _hops(rows: pl.DataFrame) -> Iterator[Hop]:
    messages = rows.select(COLUMNS[:-2]).iter_rows()
    for edge, sequence, sent, taken, done, begun, started, stream, number, several in messages:
        if ARROW not in edge:
            continue
        first_cause = () if stream is None else ((stream, number),)
        causes = tuple((cause["stream"], cause["sequence"]) for cause in several) if several else first_cause
        yield Hop(edge, sequence, sent, taken, done, begun, started, causes)
