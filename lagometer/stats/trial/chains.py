# SPDX-License-Identifier: Apache-2.0
"""Named chains: from a message at a chain's end back along its causes, and how the time on the way is spent.

By the definitions of Betz et al. 2024: *communication* runs from publishing until the subscriber's callback
begins; *computation* from there until the callback publishes, or to its end if it is the last; *idle* from
the end of a subscription's callback until the callback begins that uses its data (of a timer, or of another
subscription). Each part begins where the one before ends, so together they are the time from the first
publish to the end of the last callback. A bridge between domains or adapters is part of the way: the time in
it is communication (`ChainSpec.forwarded`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lagometer.stats.trial.absence import is_partial
from lagometer.stats.trial.reach import anyone_away, is_cut, shut_for_good, unreachable
from lagometer.stats.trial.rows import (
    CENSORED,
    DELIVERED,
    SEVERITY,
    UNANSWERED,
    UNKNOWN_NS,
    UNREACHABLE,
    ChainParts,
    Codes,
    EdgeRows,
    Times,
    codes,
    overtaken,
    worst_codes,
)
from lagometer.stats.trial.sent import NOWHERE, Index, SentTable, cause_on
from lagometer.store.facts import ChainSpec, EdgeSpec, TrialFacts
from lagometer.store.records import Records


@dataclass(frozen=True)
class _Way:
    """All ways that reached a chain's end. first: messages of the first edge. last: rows of the last edge."""

    first: Index
    last: Index
    parts: ChainParts


@dataclass(frozen=True)
class _Nodes:
    """The rows of every edge of a trial, to find what a node takes."""

    rows: Sequence[EdgeRows]
    specs: Sequence[EdgeSpec]

    def begun_ns(self, node: str, messages: Index, table: SentTable) -> Times:
        """When the callback began that published each of a node's messages.

        The records say when its message was taken. If one call took several, it began when the one before was
        handled: the records of what the node took say so.
        """
        sent = table.records[messages]
        recorded = sent["publish_ns"] - sent["callback_ns"].astype(np.int64)
        begun = recorded.copy()
        for spec, part in zip(self.specs, self.rows, strict=True):
            taken_ns = part.received["taken_ns"]
            if spec.receiver != node or np.array_equal(part.started_ns, taken_ns):
                continue
            arrival = _arrivals(part, len(table.records))[cause_on(table, messages, spec.stream)]
            # Of several causes, the one that was taken when the callback began is what triggered it.
            trigger = np.flatnonzero((arrival != NOWHERE) & (taken_ns[arrival] == recorded))
            begun[trigger] = np.maximum(begun[trigger], part.started_ns[arrival[trigger]])
        before_sending: Times = np.minimum(begun, sent["publish_ns"])
        return before_sending


def chain_rows(chain: ChainSpec, rows: Sequence[EdgeRows], table: SentTable, facts: TrialFacts) -> EdgeRows:
    """One row for each message taken at the chain's end that has a cause on its first edge, and one for each
    message of the first edge that was lost on the way, or that nobody was there to pass on.

    A message that a node did not pass on by design, because it samples the newest, was not lost and has no
    row.
    """
    number_of = {edge.name: number for number, edge in enumerate(facts.edges)}
    numbers = [number_of[name] for name in chain.edges]
    edges = [rows[number] for number in numbers]
    specs = [facts.edges[number] for number in numbers]
    forwarded = [spec.name in chain.forwarded for spec in specs]
    way = _follow(edges, specs, table, forwarded, _Nodes(rows, facts.edges))
    absent, outcome = _absent(edges, specs, table, way.first, facts.edges)
    last = edges[-1]
    late = overtaken(table.records["sequence"][way.first], np.zeros(len(way.first), dtype=np.int64))
    unknown = np.full(len(absent), UNKNOWN_NS, dtype=np.int64)
    return EdgeRows(
        name=chain.name,
        sent=np.concatenate((way.first, absent)),
        taken=np.concatenate((last.taken[way.last], np.full(len(absent), NOWHERE, dtype=np.int64))),
        outcome=np.concatenate((codes(DELIVERED, len(way.first)), outcome)),
        reordered=np.concatenate((late, np.zeros(len(absent), dtype=np.bool_))),
        received=last.received,
        payload_bytes=last.payload_bytes,
        sizes_bytes=last.sizes_bytes,
        receiver_clock=last.receiver_clock,
        parts=ChainParts(
            np.concatenate((way.parts.communication_ns, unknown)),
            np.concatenate((way.parts.computation_ns, unknown)),
            np.concatenate((way.parts.idle_ns, unknown)),
        ),
    )


def _follow(
    edges: Sequence[EdgeRows],
    specs: Sequence[EdgeSpec],
    table: SentTable,
    forwarded: Sequence[bool],
    nodes: _Nodes,
) -> _Way:
    """Goes back from each message taken on the last edge and adds up the parts."""
    last = np.flatnonzero(edges[-1].outcome == DELIVERED)
    last = last[np.argsort(edges[-1].taken[last], kind="stable")]
    message, taken = edges[-1].sent[last], edges[-1].taken[last]
    started, handled = edges[-1].started_ns[taken], edges[-1].received["handled_ns"][taken]
    computation = handled - started
    communication = started - table.records["publish_ns"][message]
    idle = np.zeros(len(last), dtype=np.int64)
    known = np.ones(len(last), dtype=np.bool_)
    for number in range(len(edges) - 2, -1, -1):
        edge = edges[number]
        cause = cause_on(table, message, specs[number].stream)
        arrival = _arrivals(edge, len(table.records))[cause]  # NOWHERE is the last, which did not arrive
        arrived = np.flatnonzero(arrival != NOWHERE)
        last, message, cause, taken = last[arrived], message[arrived], cause[arrived], arrival[arrived]
        communication, computation, idle = communication[arrived], computation[arrived], idle[arrived]
        known = known[arrived]
        sent = table.records[message]
        communication -= table.records["publish_ns"][cause]
        if forwarded[number]:
            communication += sent["publish_ns"]
            message = cause
            continue
        started, handled = edge.started_ns[taken], edge.received["handled_ns"][taken]
        waited = np.maximum(nodes.begun_ns(specs[number].receiver, message, table) - handled, 0)
        known &= sent["callback_ns"] > 0
        idle += waited
        computation += sent["publish_ns"] - started - waited
        communication += started
        message = cause
    unknown = np.full(len(last), UNKNOWN_NS, dtype=np.int64)
    parts = ChainParts(communication, np.where(known, computation, unknown), np.where(known, idle, unknown))
    return _Way(message, last, parts)


def started_ns(received: Records) -> Times:
    """When the callback of each message began: when the message was taken; or, if one call took several, when
    the one before it was handled.

    received: all that one reader took, in the order of taking. One call may return messages of several
    publishers, or requests of several clients.
    """
    started = received["taken_ns"].astype(np.int64)
    at_once = np.flatnonzero(received["taken_ns"][1:] == received["taken_ns"][:-1]) + 1
    started[at_once] = np.minimum(
        np.maximum(received["handled_ns"][at_once - 1], started[at_once]), received["handled_ns"][at_once]
    )
    return started


def _arrivals(edge: EdgeRows, messages: int) -> Index:
    """For each message, its index in `received`; NOWHERE if not taken, and for the index after the last."""
    arrivals = np.full(messages + 1, NOWHERE, dtype=np.int64)
    delivered = np.flatnonzero(edge.outcome == DELIVERED)
    arrivals[edge.sent[delivered]] = edge.taken[delivered]
    return arrivals


def _absent(
    edges: Sequence[EdgeRows],
    specs: Sequence[EdgeSpec],
    table: SentTable,
    reached: Index,
    all_specs: Sequence[EdgeSpec],
) -> tuple[Index, Codes]:
    """The messages of the first edge that did not reach the end, and what happened to each: the worst outcome
    of any message based on it, that it is still under way, or that nobody was there to pass it on. A call to
    a server that left before it replied is unanswered."""
    count, streams = len(table.records), [spec.stream for spec in specs]
    origin = np.full(count + 1, NOWHERE, dtype=np.int64)
    begin, end = table.span(streams[0])
    origin[begin:end] = np.arange(begin, end)
    severity = np.zeros(count + 1, dtype=np.int8)
    for number, edge in enumerate(edges):
        if number > 0:
            edge_begin, edge_end = table.span(streams[number])
            origin[edge_begin:edge_end] = origin[
                cause_on(table, np.arange(edge_begin, edge_end), streams[number - 1])
            ]
        for code, degree in SEVERITY.items():
            np.maximum.at(severity, origin[edge.sent[edge.outcome == code]], degree)
    arrived = np.zeros(end - begin, dtype=np.bool_)
    arrived[reached - begin] = True
    missing = np.flatnonzero(~arrived)
    weight = severity[begin + missing]
    newest = int(reached.max()) - begin if len(reached) else NOWHERE
    under_way = (weight == 0) & (missing > newest)
    if newest != NOWHERE and is_cut(specs, streams[0], specs[-1], shut_for_good(all_specs)):
        under_way[:] = False
    cut_off = np.zeros(len(missing), dtype=np.bool_)
    if anyone_away(all_specs):
        ways = list(zip(specs, edges, strict=True))
        found = unreachable(ways, {specs[-1].name}, table, all_specs, origin)
        cut_off = found[begin + missing] & (weight == 0) & ~under_way
    counted = (weight > 0) | under_way | cut_off
    outcome = np.where(under_way, CENSORED, np.where(cut_off, UNREACHABLE, worst_codes(weight)))
    if is_partial(specs[0]):  # only a call that this server took, or was to take, has a row here
        own = np.zeros(end - begin, dtype=np.bool_)
        own[edges[0].sent[edges[0].sent != NOWHERE] - begin] = True
        if specs[-1].called and specs[-1].receiver == specs[0].sender:
            counted = own[missing]
            ended = ~under_way | any(spec.leaves for spec in specs)
            outcome = np.where((weight == 0) & ended, UNANSWERED, outcome)
        else:
            counted &= own[missing]
    return begin + missing[counted], outcome[counted].astype(np.int8)
