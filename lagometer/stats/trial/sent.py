# SPDX-License-Identifier: Apache-2.0
"""One table of every message sent in a trial, with the way from each back to its chain's root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.store import records as rec
from lagometer.store.errors import RecordsError
from lagometer.store.facts import TrialFacts
from lagometer.store.format import CAUSE
from lagometer.store.records import Lane, Records

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOWHERE = -1


@dataclass(frozen=True)
class SentTable:
    """All sent records of a trial, ordered by stream and sequence. An index identifies one message."""

    records: Records
    streams: npt.NDArray[np.uint32]
    bounds: dict[int, tuple[int, int]]  # stream -> first index, index after the last
    root: Index = field(repr=False)  # the message that began the chain; NOWHERE if unknown
    causes: pl.DataFrame = field(repr=False)  # `message` (index), `causes` (list), for several causes

    def span(self, stream: int) -> tuple[int, int]:
        """A stream's first index and the index after its last."""
        return self.bounds.get(stream, (0, 0))

    def locate(self, streams: npt.NDArray[np.uint32], sequences: npt.NDArray[np.uint64]) -> Index:
        """The index of each message; NOWHERE for messages nobody sent."""
        return _locate(self.records["sequence"], self.bounds, streams, sequences)


def sent_table(lanes: Sequence[Lane], facts: TrialFacts) -> SentTable:
    """Joins the sent and causes lanes of all workers. Raises RecordsError if they contradict each other."""
    parts = sorted((lane for lane in lanes if lane.kind == rec.KIND_SENT), key=lambda lane: lane.endpoint)
    bounds: dict[int, tuple[int, int]] = {}
    ordered: list[Records] = []
    position = 0
    for lane in parts:
        if lane.endpoint in bounds:
            raise RecordsError(f"records: two workers say that they sent stream {lane.endpoint}")
        ordered.append(_by_sequence(lane))
        bounds[lane.endpoint] = (position, position + len(lane.records))
        position += len(lane.records)
    records = np.concatenate(ordered) if ordered else np.zeros(0, dtype=rec.SENT_DTYPE)
    streams = np.repeat(
        np.array(list(bounds), dtype=np.uint32), [end - begin for begin, end in bounds.values()]
    ).astype(np.uint32)
    return SentTable(
        records=records,
        streams=streams,
        bounds=bounds,
        root=_roots(records, streams, bounds, facts.source_streams),
        causes=_cause_lists(records, streams, lanes),
    )


def _by_sequence(lane: Lane) -> Records:
    records = lane.records
    if (records["sequence"][1:] > records["sequence"][:-1]).all():
        return records
    records = records[np.argsort(records["sequence"], kind="stable")]
    twins = records["sequence"][1:] == records["sequence"][:-1]
    if twins.any():
        twin = int(records["sequence"][int(twins.argmax())])
        raise RecordsError(f"records: stream {lane.endpoint} has sequence {twin} sent twice")
    return records


def _locate(
    known: npt.NDArray[np.uint64],
    bounds: dict[int, tuple[int, int]],
    streams: npt.NDArray[np.uint32],
    sequences: npt.NDArray[np.uint64],
) -> Index:
    indices = np.full(len(streams), NOWHERE, dtype=np.int64)
    for stream in np.unique(streams):
        begin, end = bounds.get(int(stream), (0, 0))
        if begin == end:
            continue
        rows = np.flatnonzero(streams == stream)
        place = begin + np.searchsorted(known[begin:end], sequences[rows])
        inside = place < end
        place = np.where(inside, place, begin)
        hit = inside & (known[place] == sequences[rows])
        indices[rows[hit]] = place[hit]
    return indices


def _roots(
    records: Records,
    streams: npt.NDArray[np.uint32],
    bounds: dict[int, tuple[int, int]],
    source_streams: frozenset[int],
) -> Index:
    """For each message, the one that began its chain: follows first causes, for all messages at once.

    One pass halves the remaining length of every way (pointer jumping), so 64 passes are enough for any
    finite chain.
    """
    count = len(records)
    is_root = np.isin(streams, np.fromiter(source_streams, dtype=np.uint32, count=len(source_streams)))
    # The last entry stands for "nowhere" and is its own parent.
    parent = np.full(count + 1, count, dtype=np.int64)
    parent[:count][is_root] = np.flatnonzero(is_root)
    caused = np.flatnonzero(~is_root & (records["cause_count"] > 0))
    causes = _locate(
        records["sequence"], bounds, records["cause_stream"][caused], records["cause_sequence"][caused]
    )
    parent[caused] = np.where(causes == NOWHERE, count, causes)
    for _ in range(64):
        further = parent[parent]
        if np.array_equal(further, parent):
            break
        parent = further
    root = parent[:count]
    ends = np.append(is_root, False)[root]
    return np.where(ends, root, NOWHERE)


def _cause_lists(records: Records, streams: npt.NDArray[np.uint32], lanes: Sequence[Lane]) -> pl.DataFrame:
    """The causes of every message with more than one, as lists."""
    empty = pl.DataFrame(schema={"message": pl.Int64(), "causes": pl.List(CAUSE)})
    parts = [empty]
    lists = {lane.endpoint: lane for lane in lanes if lane.kind == rec.KIND_CAUSES}
    several = np.flatnonzero(records["cause_count"] > 1)
    for stream in np.unique(streams[several]):
        messages = several[streams[several] == stream]
        lane = lists.get(int(stream))
        if lane is None:
            raise RecordsError(
                f"records: messages of stream {stream} have several causes, but no lane has them"
            )
        parts.append(_lists_of(int(stream), messages, records[messages], lane))
    return pl.concat(parts)


def _lists_of(stream: int, messages: Index, records: Records, lane: Lane) -> pl.DataFrame:
    room = len(lane.records)
    counts = records["cause_count"].astype(np.int64)
    first = records["first_cause"]
    # Compared as unsigned, without a sum that could overflow: the numbers come from another process.
    wrong = (counts > room) | (first > np.uint64(room) - np.minimum(counts, room).astype(np.uint64))
    if wrong.any() or int(counts.sum()) > room:
        if lane.full:
            keep = ~wrong
            messages, counts, first = messages[keep], counts[keep], first[keep]
        if not lane.full or int(counts.sum()) > room:
            raise RecordsError(f"records: messages of stream {stream} point beyond its {room} causes")
    starts = np.repeat(first.astype(np.int64) - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    entries = lane.records[starts + np.arange(int(counts.sum()), dtype=np.int64)]
    flat = pl.DataFrame(
        {
            "message": np.repeat(messages, counts),
            "stream": np.ascontiguousarray(entries["stream"]),
            "sequence": np.ascontiguousarray(entries["sequence"]),
        }
    )
    return flat.group_by("message", maintain_order=True).agg(pl.struct("stream", "sequence").alias("causes"))


def cause_on(table: SentTable, messages: Index, stream: int) -> Index:
    """For each message, its cause on this stream; NOWHERE if it has none there."""
    records = table.records[messages]
    indices = np.full(len(messages), NOWHERE, dtype=np.int64)
    single = np.flatnonzero((records["cause_count"] == 1) & (records["cause_stream"] == stream))
    indices[single] = table.locate(records["cause_stream"][single], records["cause_sequence"][single])
    several = np.flatnonzero(records["cause_count"] > 1)
    if len(several):
        begin, end = table.span(stream)
        by_message = np.full(len(table.records), NOWHERE, dtype=np.int64)
        listed, causes = _listed(table, stream)
        by_message[listed] = causes
        indices[several] = by_message[messages[several]]
        indices[several] = np.where(
            (indices[several] >= begin) & (indices[several] < end), indices[several], NOWHERE
        )
    return indices


def _listed(table: SentTable, stream: int) -> tuple[Index, Index]:
    """Messages with several causes, one of which is on this stream, and that cause."""
    exploded = table.causes.explode("causes").unnest("causes")
    on_stream = exploded.filter(exploded["stream"] == stream)
    streams: npt.NDArray[np.uint32] = on_stream["stream"].to_numpy()
    sequences: npt.NDArray[np.uint64] = on_stream["sequence"].to_numpy()
    return on_stream["message"].to_numpy(), table.locate(streams, sequences)
