# SPDX-License-Identifier: Apache-2.0
"""From records to samples: rows per message and edge, from its root to a sink, and for named chains.

Sent and taken messages are joined by (stream, sequence). docs/FORMAT.md describes the columns, and
docs/methodology/messages.md the definitions. A message that did not arrive is a row without reception times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.stats.trial.absence import after_kept_calls, connected, each_call_once, is_partial
from lagometer.stats.trial.chains import chain_rows, started_ns
from lagometer.stats.trial.clocks import Times, clock_offsets
from lagometer.stats.trial.reach import anyone_away, is_cut, shut_for_good, unreachable
from lagometer.stats.trial.rows import (
    CENSORED,
    DELIVERED,
    DUPLICATE,
    LOST,
    OVERWRITTEN,
    REJECTED,
    SEVERITY,
    UNANSWERED,
    UNKNOWN_NS,
    UNMATCHED,
    UNREACHABLE,
    Codes,
    EdgeRows,
    codes,
    overtaken,
    worst_codes,
)
from lagometer.stats.trial.sent import NOWHERE, Index, Mask, SentTable, sent_table
from lagometer.store import format as form
from lagometer.store import records as rec
from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.store.records import Lane, Records


def samples(lanes: Sequence[Lane], facts: TrialFacts) -> pl.DataFrame:
    """Every message on every edge, and every chain end to end; all phases. Raises RecordsError."""
    table = sent_table(lanes, facts)
    received = {
        (lane.node, lane.endpoint): _Taken.of(lane.records)
        for lane in lanes
        if lane.kind == rec.KIND_RECEIVED
    }
    nothing = _Taken.of(np.zeros(0, dtype=rec.RECEIVED_DTYPE))
    rows = [
        _edge_rows(edge, table, received.get((edge.receiver_node, edge.reader), nothing), facts)
        for edge in facts.edges
    ]
    rows = each_call_once(rows, facts.edges)
    end_to_end = _end_to_end(rows, table, facts)
    resent = _resent(end_to_end, table, facts)
    chains = [*end_to_end, *(chain_rows(chain, rows, table, facts) for chain in facts.chains)]
    frames = [
        _frame(part, table, resent, facts).join(table.causes, on="message", how="left", maintain_order="left")
        for part in rows
    ]
    frames += [_frame(part, table, resent, facts).with_columns(_NO_CAUSES) for part in chains]
    if not frames:
        return pl.DataFrame(schema=form.SAMPLES_SCHEMA)
    return pl.concat(_with_nulls(frame) for frame in frames).cast(pl.Schema(form.SAMPLES_SCHEMA))


def misdelivered(lanes: Sequence[Lane], facts: TrialFacts) -> Iterator[str]:
    """A reason for each reader that took messages no edge brings to it."""
    expected: dict[tuple[int, int], set[int]] = {}
    for edge in facts.edges:
        expected.setdefault((edge.receiver_node, edge.reader), set()).add(edge.stream)
    for lane in lanes:
        if lane.kind != rec.KIND_RECEIVED:
            continue
        streams = lane.records["stream"]
        known = list(expected.get((lane.node, lane.endpoint), ()))
        count = int(np.count_nonzero(~np.isin(streams, known)))
        if count:
            yield f"misdelivered: reader {lane.endpoint} of node {lane.node}, {count} messages"


# --- one edge


@dataclass(frozen=True)
class _Taken:
    """What one reader took from all publishers, in the order of taking. started_ns: when the callback of each
    began."""

    records: Records
    started_ns: Times

    @classmethod
    def of(cls, records: Records) -> _Taken:
        taken_ns = records["taken_ns"]
        if (taken_ns[1:] < taken_ns[:-1]).any():
            records = records[np.argsort(taken_ns, kind="stable")]
        return cls(records, started_ns(records))


def _edge_rows(edge: EdgeSpec, table: SentTable, lane: _Taken, facts: TrialFacts) -> EdgeRows:
    own: Mask = lane.records["stream"] == edge.stream
    if facts.drain_end_ns > 0:
        # Messages taken later are censored, not delivered.
        own &= lane.records["taken_ns"] <= facts.drain_end_ns
    received = lane.records[own]
    begin, end = table.span(edge.stream)
    sent_of_taken = table.locate(received["stream"], received["sequence"])
    first = _first_of_each(received["sequence"])
    taken_of_sent = np.full(end - begin, NOWHERE, dtype=np.int64)
    known = sent_of_taken != NOWHERE
    arrivals = np.flatnonzero(known & first)
    taken_of_sent[sent_of_taken[arrivals] - begin] = arrivals
    sent = table.records[begin:end]
    outcome = _outcomes(edge, sent, taken_of_sent, received)
    came: Mask = taken_of_sent != NOWHERE
    if is_partial(edge):
        is_meant, is_away = connected(edge, sent, came)
        outcome = np.where(is_away, UNANSWERED, outcome).astype(np.int8)
        kept = begin + np.flatnonzero(came & (is_away | ~is_meant))
        taken_of_sent = np.where(is_away, NOWHERE, taken_of_sent)
    else:
        is_meant, kept = _meant_for(edge, sent, came), np.zeros(0, dtype=np.int64)
    meant = np.flatnonzero(is_meant)
    repeated = np.flatnonzero(known & ~first)
    stray = np.flatnonzero(~known)
    taken = np.concatenate((taken_of_sent[meant], repeated, stray))
    late = overtaken(received["sequence"], np.zeros(len(received), dtype=np.int64)) & first
    return EdgeRows(
        name=edge.name,
        sent=np.concatenate((begin + meant, sent_of_taken[repeated], sent_of_taken[stray])),
        taken=taken,
        outcome=np.concatenate(
            (outcome[meant], codes(DUPLICATE, len(repeated)), codes(UNMATCHED, len(stray)))
        ),
        reordered=np.append(late, False)[taken],
        received=received,
        payload_bytes=edge.payload_bytes,
        sizes_bytes=edge.sizes_bytes,
        receiver_clock=edge.receiver_clock,
        started_ns=lane.started_ns[own],
        kept=kept,
    )


def _meant_for(edge: EdgeSpec, sent: Records, came: Mask) -> Mask:
    """Whether a message had to arrive. It does not if it was sent before its subscriber existed (unless it
    still arrived: durability), or after the subscriber left."""
    meant = np.ones(len(sent), dtype=np.bool_)
    if edge.receiver_joined_ns is not None:
        meant &= sent["publish_ns"] >= edge.receiver_joined_ns
    if edge.receiver_left_ns is not None:
        meant &= sent["publish_ns"] < edge.receiver_left_ns
    return np.logical_or(meant, came)


def _outcomes(edge: EdgeSpec, sent: Records, taken_of_sent: Index, received: Records) -> Codes:
    later_taken = np.zeros(len(sent), dtype=np.bool_)
    if len(received):
        later_taken = sent["sequence"] < received["sequence"].max()
    may_overwrite = edge.reliability == "reliable" and edge.may_drop
    outcome = np.where(later_taken, OVERWRITTEN if may_overwrite else LOST, CENSORED)
    outcome = np.where(sent["status"] != rec.STATUS_SENT, REJECTED, outcome)
    # A message that was taken was delivered, whatever its writer assumes.
    return np.where(taken_of_sent != NOWHERE, DELIVERED, outcome).astype(np.int8)


def _first_of_each(sequences: npt.NDArray[np.uint64]) -> Mask:
    first = np.zeros(len(sequences), dtype=np.bool_)
    first[np.unique(sequences, return_index=True)[1]] = True
    return first


# --- end to end


def _end_to_end(rows: Sequence[EdgeRows], table: SentTable, facts: TrialFacts) -> list[EdgeRows]:
    """One row per message taken at a sink, with its root; one per root that did not reach a sink."""
    parts: dict[int, EdgeRows] = {}
    after_kept, shut = after_kept_calls(rows, table), shut_for_good(facts.edges)
    for last, (edge, part) in enumerate(zip(facts.edges, rows, strict=True)):
        if edge.name not in facts.sink_edges:
            continue
        arrived = np.flatnonzero(part.outcome == DELIVERED)
        arrived = arrived[~after_kept[part.sent[arrived]]]
        roots = table.root[part.sent[arrived]]
        arrived, roots = arrived[roots != NOWHERE], roots[roots != NOWHERE]
        by_taking = np.argsort(part.taken[arrived], kind="stable")
        arrived, roots = arrived[by_taking], roots[by_taking]
        late = overtaken(table.records["sequence"][roots], table.streams[roots].astype(np.int64))
        absent, outcome = _absent(last, rows, table, facts, roots, shut)
        parts[last] = EdgeRows(
            name=form.END_TO_END,
            sent=np.concatenate((roots, absent)),
            taken=np.concatenate((part.taken[arrived], np.full(len(absent), NOWHERE, dtype=np.int64))),
            outcome=np.concatenate((codes(DELIVERED, len(roots)), outcome)),
            reordered=np.concatenate((late, np.zeros(len(absent), dtype=np.bool_))),
            received=part.received,
            payload_bytes=edge.payload_bytes,
            receiver_clock=edge.receiver_clock,
        )
    return [*parts.values(), *_cut_off(parts, rows, table, facts)]


def _cut_off(
    parts: Mapping[int, EdgeRows], rows: Sequence[EdgeRows], table: SentTable, facts: TrialFacts
) -> Iterator[EdgeRows]:
    """For each node where chains end, the roots that nobody was there to pass on; parts: by last edge.

    Several edges may lead there, such as of a relay and of the one that takes its place: a root that has a
    row by one of them is not cut off.
    """
    ends: dict[str, list[int]] = {}
    for last in parts if anyone_away(facts.edges) else ():
        ends.setdefault(facts.edges[last].receiver, []).append(last)
    for lasts in ends.values():
        places = sorted({place for last in lasts for place in _leading_to(last, facts)})
        ways = [(facts.edges[place], rows[place]) for place in places]
        names = {facts.edges[last].name for last in lasts}
        found = unreachable(ways, names, table, facts.edges, table.root)
        for last in lasts:
            found[parts[last].sent] = False
        arrived = [parts[last].sent[parts[last].outcome == DELIVERED] for last in lasts]
        begun = np.unique(table.streams[np.concatenate(arrived)])  # the others are never the first cause here
        roots = np.flatnonzero(found & np.isin(table.streams, begun))
        first = parts[lasts[0]]
        yield replace(
            first,
            sent=roots,
            taken=np.full(len(roots), NOWHERE, dtype=np.int64),
            outcome=codes(UNREACHABLE, len(roots)),
            reordered=np.zeros(len(roots), dtype=np.bool_),
        )


def _absent(
    last: int,
    rows: Sequence[EdgeRows],
    table: SentTable,
    facts: TrialFacts,
    arrived: Index,
    shut: frozenset[str],
) -> tuple[Index, Codes]:
    """The roots that did not reach the sink through this last edge, and what happened to each.

    A root was not lost if all its messages arrived where they went and later roots reached the sink: a node
    chose not to pass it on (it samples the newest message). It gets no row.
    """
    upstream = _leading_to(last, facts)
    severity = np.zeros(len(table.records) + 1, dtype=np.int8)  # the last entry is for those without a root
    for number in upstream:
        part = rows[number]
        for code, degree in SEVERITY.items():
            messages = part.sent[part.outcome == code]
            np.maximum.at(severity, table.root[messages], degree)
    messages_absent: list[Index] = [np.zeros(0, dtype=np.int64)]
    outcomes: list[Codes] = [codes(0, 0)]
    streams_arrived = set(np.unique(table.streams[arrived]).tolist())
    for stream in sorted({facts.edges[number].stream for number in upstream} & facts.source_streams):
        if len(arrived) and stream not in streams_arrived:
            continue  # never the first cause here; an edge's losses show on that edge
        begin, end = table.span(stream)
        reached = np.zeros(end - begin, dtype=np.bool_)
        arrived_places = arrived[table.streams[arrived] == stream] - begin
        reached[arrived_places] = True
        newest = int(arrived_places.max()) if len(arrived_places) else NOWHERE
        missing = np.flatnonzero(~reached)
        weight = severity[begin + missing]
        under_way = (weight == 0) & (missing > newest)
        if is_partial(facts.edges[last]) and facts.edges[last].leaves:
            under_way[:] = False  # the edge to whoever took its place has them
        ways = [facts.edges[number] for number in upstream]
        if newest != NOWHERE and is_cut(ways, stream, facts.edges[last], shut):
            under_way[:] = False
        counted = (weight > 0) | under_way
        messages_absent.append(begin + missing[counted])
        outcomes.append(np.where(under_way, CENSORED, worst_codes(weight))[counted].astype(np.int8))
    return np.concatenate(messages_absent), np.concatenate(outcomes)


def _leading_to(last: int, facts: TrialFacts) -> list[int]:
    """Numbers of the edges on some way to this one, including itself; no way goes through a sink."""
    upstream = {last}
    pending = [last]
    while pending:
        sender = facts.edges[pending.pop()].sender
        for number, edge in enumerate(facts.edges):
            if number not in upstream and edge.receiver == sender and edge.name not in facts.sink_edges:
                upstream.add(number)
                pending.append(number)
    return sorted(upstream)


def _resent(chains: Sequence[EdgeRows], table: SentTable, facts: TrialFacts) -> Mask:
    """A closed loop sends after the reply to its last message; messages sent without that are resends."""
    resent = np.zeros(len(table.records), dtype=np.bool_)
    if not facts.closed_loop:
        return resent
    never = np.iinfo(np.int64).max
    replied_ns = np.full(len(table.records), never, dtype=np.int64)
    for part in chains:
        arrived = np.flatnonzero(part.outcome == DELIVERED)
        np.minimum.at(replied_ns, part.sent[arrived], part.received["taken_ns"][part.taken[arrived]])
    for stream in facts.source_streams:
        begin, end = table.span(stream)
        if end > begin:
            resent[begin + 1 : end] = (
                table.records["publish_ns"][begin + 1 : end] < replied_ns[begin : end - 1]
            )
    return resent


# --- rows to a frame

_NO_CAUSES = (
    pl.lit(None, dtype=pl.UInt32()).alias("cause_stream"),
    pl.lit(None, dtype=pl.UInt64()).alias("cause_sequence"),
    pl.lit(None, dtype=form.SAMPLES_SCHEMA["causes"]).alias("causes"),
)
_RECEPTION_NS = ("signalled_ns", "woken_ns", "taken_ns", "handled_ns")
_SENDING_NS = ("intended_ns", "publish_ns", "published_ns")
_ABSENT_AS_ZERO = ("begun_ns", "started_ns", *_SENDING_NS, *_RECEPTION_NS)
_PROCESSORS = ("cpu_publish", "cpu_published", "cpu_signalled", "cpu_taken")


def _frame(part: EdgeRows, table: SentTable, resent: Mask, facts: TrialFacts) -> pl.DataFrame:
    """The rows with zeros for anything not observed, and `message`, the index in the sent table."""
    sent = _rows_of(table.records, part.sent, rec.SENT_DTYPE)
    taken = _rows_of(part.received, part.taken, rec.RECEIVED_DTYPE)
    was_sent, was_taken = part.sent != NOWHERE, part.taken != NOWHERE
    unknown = rec.CPU_UNKNOWN
    apart, between, shift_ns = _apart(part, taken, table, facts)
    # Values not observed stay 0; without the clocks' offset, nothing is known.
    received = {name: taken[name] for name in _RECEPTION_NS} | {"started_ns": _queued_until_ns(part)}
    reception = {name: np.where(times != 0, times - shift_ns, 0) for name, times in received.items()}
    return pl.DataFrame(
        {
            "edge": pl.repeat(part.name, len(part.sent), eager=True),
            "sequence": np.where(was_sent, sent["sequence"], taken["sequence"]),
            **{name: np.ascontiguousarray(sent[name]) for name in _SENDING_NS},
            **{name: np.where(apart, 0, times) for name, times in reception.items()},
            "cpu_publish": np.where(was_sent, sent["cpu_publish"], unknown),
            "cpu_published": np.where(was_sent, sent["cpu_published"], unknown),
            "cpu_signalled": np.where(was_taken, taken["cpu_signalled"], unknown),
            "cpu_taken": np.where(was_taken, taken["cpu_taken"], unknown),
            "payload_bytes": np.where(was_taken, taken["payload_bytes"], _sizes(part, sent["sequence"])),
            "cause_stream": np.ascontiguousarray(sent["cause_stream"]),
            "cause_sequence": np.ascontiguousarray(sent["cause_sequence"]),
            "caused": sent["cause_count"] > 0,
            "phase": _named(_phases(sent, taken, was_sent, facts), form.PHASES),
            "outcome": _named(part.outcome, form.OUTCOMES),
            "corrupted": (taken["flags"] & rec.FLAG_CORRUPTED) != 0,
            "reordered": part.reordered,
            "resent": was_sent & resent[np.maximum(part.sent, 0)] if len(resent) else was_sent & False,
            "begun_ns": np.where(sent["callback_ns"] > 0, sent["publish_ns"] - sent["callback_ns"], 0),
            **_parts(part, between),
            "message": part.sent,
        }
    )


def _queued_until_ns(part: EdgeRows) -> Times:
    """When the callback began of each message that waited for those of others; 0 for all others. A chain has
    parts instead."""
    queued_ns: Times = np.zeros(len(part.taken), dtype=np.int64)
    was_taken = np.flatnonzero(part.taken != NOWHERE) if len(part.started_ns) else np.zeros(0, dtype=np.int64)
    rows = part.taken[was_taken]
    waited = part.started_ns[rows] > part.received["taken_ns"][rows]
    queued_ns[was_taken[waited]] = part.started_ns[rows[waited]]
    return queued_ns


def _sizes(part: EdgeRows, sequences: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The size with which each message was created, for readers that could not see it."""
    sizes = np.array(part.sizes_bytes or (part.payload_bytes,), dtype=np.int64)
    return sizes[(sequences % np.uint64(len(sizes))).astype(np.int64)]


def _apart(part: EdgeRows, taken: Records, table: SentTable, facts: TrialFacts) -> tuple[Mask, Mask, Times]:
    """Three values per row. First, whether the offset between the clocks of its two ends is unknown; then it
    keeps only the sender's times. Second, whether the ends have separate clocks at all. Third, how much to
    subtract from the receiver's times to put them on the sender's clock.

    A way through other hosts that returns to its own host has one clock: the clocks' differences cancel out.
    """
    apart, between = np.zeros(len(part.sent), dtype=np.bool_), np.zeros(len(part.sent), dtype=np.bool_)
    shift_ns = np.zeros(len(part.sent), dtype=np.int64)
    if facts.one_clock:
        return apart, between, shift_ns
    offsets = clock_offsets(facts)
    known = np.flatnonzero(part.sent != NOWHERE)
    streams = table.streams[part.sent[known]]
    for stream, clock in {edge.stream: edge.sender_clock for edge in facts.edges}.items():
        if clock == part.receiver_clock:
            continue
        rows = known[streams == stream]
        between[rows] = True
        offset = offsets.on_senders_clock((clock, part.receiver_clock), taken["taken_ns"][rows])
        if offset is None:
            apart[rows] = True
        else:
            shift_ns[rows] = offset[0]
    return apart, between, shift_ns


def _parts(part: EdgeRows, apart: Mask) -> dict[str, npt.NDArray[np.int64]]:
    if part.parts is None:
        return dict.fromkeys(form.CHAIN_PARTS, np.full(len(part.sent), UNKNOWN_NS, dtype=np.int64))
    return {name: np.where(apart, UNKNOWN_NS, getattr(part.parts, name)) for name in form.CHAIN_PARTS}


def _with_nulls(frame: pl.DataFrame) -> pl.DataFrame:
    unknown = pl.lit(rec.CPU_UNKNOWN)
    return frame.with_columns(
        *(pl.when(pl.col(name) != 0).then(pl.col(name)) for name in _ABSENT_AS_ZERO),
        *(pl.when(pl.col(name) != UNKNOWN_NS).then(pl.col(name)) for name in form.CHAIN_PARTS),
        *(pl.when(pl.col(name) != unknown).then(pl.col(name)) for name in _PROCESSORS),
        *(pl.when("caused").then(pl.col(name)) for name in ("cause_stream", "cause_sequence")),
        pl.col("payload_bytes").cast(pl.UInt32()),
    ).select(list(form.SAMPLES_SCHEMA))


def _rows_of(records: Records, chosen: Index, dtype: np.dtype[np.void]) -> Records:
    """These records; zeros for NOWHERE."""
    rows = np.zeros(len(chosen), dtype=dtype)
    known = chosen != NOWHERE
    rows[known] = records[chosen[known]]
    return rows


def _phases(sent: Records, taken: Records, was_sent: Mask, facts: TrialFacts) -> Codes:
    due = np.where(sent["intended_ns"] > 0, sent["intended_ns"], sent["publish_ns"])
    due = np.where(was_sent, due, taken["taken_ns"])
    phase = (due >= facts.measure_begin_ns).astype(np.int8) + (due >= facts.measure_end_ns).astype(np.int8)
    return phase.astype(np.int8)


def _named(codes: Codes, names: tuple[str, ...]) -> pl.Series:
    return pl.Series(names, dtype=pl.String()).gather(codes.astype(np.uint32))
