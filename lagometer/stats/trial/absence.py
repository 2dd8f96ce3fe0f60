# SPDX-License-Identifier: Apache-2.0
"""Calls of a service whose server, or client, starts late, leaves or restarts.

A call that was due while nobody could answer it is *unanswered*: before the first call that this server took
from this client, or after the last. It stays so if the middleware kept it until a server came, which then
answered: how long that took says when the server came, and nothing about the middleware.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lagometer.stats.trial.rows import DELIVERED, UNANSWERED, EdgeRows, Times
from lagometer.stats.trial.sent import NOWHERE, Mask, SentTable
from lagometer.store.facts import EdgeSpec
from lagometer.store.records import Records


def is_partial(edge: EdgeSpec) -> bool:
    """Whether it belongs to a service, and one of its ends is not there all the time."""
    return edge.called and (edge.joined_ns is not None or edge.leaves)


def due_ns(sent: Records) -> Times:
    """When each message was due: by its schedule, otherwise when it was published."""
    due: Times = np.where(sent["intended_ns"] > 0, sent["intended_ns"], sent["publish_ns"])
    return due


def connected(edge: EdgeSpec, sent: Records, came: Mask) -> tuple[Mask, Mask]:
    """For the messages of one stream: which of them an edge of a service has a row for, and which of these
    are calls that nobody could answer.

    came: which of them arrived. A call may be late: what was due before both ends were there does not count
    as arrived, even if its client waited until it could send it.
    """
    due = due_ns(sent)
    arrived = came & (due >= edge.joined_ns) if edge.joined_ns is not None else came
    nothing = np.zeros(len(sent), dtype=np.bool_)
    any_arrived = bool(arrived.any())
    first_ns = int(due[arrived].min()) if any_arrived else np.iinfo(np.int64).max
    early = due < first_ns if edge.joined_ns is not None else nothing
    if edge.calls_ns is None:  # replies: none was to reach a client before it was found, or when it had gone
        gone_ns = edge.receiver_left_ns
        meant = ~early if gone_ns is None else ~early & (sent["publish_ns"] < gone_ns)
        return np.logical_or(arrived, meant), nothing
    from_ns, until_ns = edge.calls_ns
    ours = (due >= from_ns) & (due < until_ns)
    if not any_arrived:
        return ours, ours
    late = due > int(due[arrived].max()) if edge.leaves else nothing
    return np.logical_or(arrived, ours), ours & ~arrived & (early | late)


def each_call_once(rows: Sequence[EdgeRows], edges: Sequence[EdgeSpec]) -> list[EdgeRows]:
    """The rows of all edges; a call that is unanswered on one edge has no row if another server took it.

    A server that is about to leave may still take a call that was due just after its time.
    """
    result = list(rows)
    for place, edge in enumerate(edges):
        if edge.calls_ns is None:
            continue
        taken = [
            part.sent[part.outcome == DELIVERED]
            for part, other in zip(rows, edges, strict=True)
            if other.stream == edge.stream and other is not edge
        ]
        part = rows[place]
        keeps = np.ones(len(part.sent), dtype=np.bool_)
        for messages in taken:
            keeps &= (part.outcome != UNANSWERED) | ~np.isin(part.sent, messages)
        result[place] = replace(
            part,
            sent=part.sent[keeps],
            taken=part.taken[keeps],
            outcome=part.outcome[keeps],
            reordered=part.reordered[keeps],
        )
    return result


def after_kept_calls(rows: Sequence[EdgeRows], table: SentTable) -> Mask:
    """Which messages follow from a call that was unanswered, and that a server took all the same."""
    kept = [part.kept for part in rows if len(part.kept)]
    follows = np.zeros(len(table.records) + 1, dtype=np.bool_)  # the last entry stands for "nowhere"
    if not kept:
        return follows[:-1]
    follows[np.concatenate(kept)] = True
    records = table.records
    parents = np.full(len(records), NOWHERE, dtype=np.int64)
    caused = np.flatnonzero(records["cause_count"] > 0)
    parents[caused] = table.locate(records["cause_stream"][caused], records["cause_sequence"][caused])
    for _ in range(len(records)):
        count = int(follows.sum())
        follows[:-1] |= follows[parents]
        if int(follows.sum()) == count:
            break
    return follows[:-1]
