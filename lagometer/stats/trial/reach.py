# SPDX-License-Identifier: Apache-2.0
"""Which messages nobody was there to pass on: a node on each of their ways had left, or not yet joined.

All is judged by ways: the edges on which messages come to an end. An edge is *shut* while nothing goes on
through its subscriber: that is not there, or it waits for each of its inputs (trigger `all`) and nobody feeds
another one. Services have a word of their own for this, *unanswered* (`absence`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

import numpy as np

from lagometer.stats.trial.absence import is_partial
from lagometer.stats.trial.rows import DELIVERED, EdgeRows, Times
from lagometer.stats.trial.sent import NOWHERE, Index, Mask, SentTable, cause_on
from lagometer.store.facts import EdgeSpec

FOREVER_NS = int(np.iinfo(np.int64).max)
NEVER_NS = -1

Life = tuple[int, int]  # when a node joined and left
Inputs = Set[tuple[str, int]]  # nodes, and the indices of their readers


def anyone_away(edges: Iterable[EdgeSpec]) -> bool:
    """Whether a node was not there all the time."""
    return any(edge.joined_ns is not None or edge.leaves for edge in edges)


def shut_for_good(edges: Sequence[EdgeSpec]) -> frozenset[str]:
    """The names of the edges that are shut when everyone who leaves has left."""
    if not anyone_away(edges):
        return frozenset()
    lives, fed = _lives(edges), _fed(edges, FOREVER_NS)
    return frozenset(
        edge.name for edge in edges if not _is_there(lives[edge.receiver], FOREVER_NS) or _waits(edge, fed)
    )


def is_cut(ways: Sequence[EdgeSpec], stream: int, last: EdgeSpec, shut: Collection[str]) -> bool:
    """Whether every way on which messages of this stream come to the last edge's end is shut for good, or the
    end itself has left. Then nothing that arrived wherever it went is still under way.

    Times can't tell: a node that is about to leave still passes on what came just after its time.
    """
    if last.receiver_left_ns is not None:
        return True
    onwards = _onwards(ways, {last.sender}, shut)
    return last.stream != stream and not any(
        edge.stream == stream and edge.name not in shut and edge.receiver in onwards for edge in ways
    )


def unreachable(
    ways: Sequence[tuple[EdgeSpec, EdgeRows]],
    lasts: Collection[str],
    table: SentTable,
    edges: Sequence[EdgeSpec],
    origin: Index,
) -> Mask:
    """For each message that a chain begins with, whether nobody was there wherever it, and whatever it
    caused, came to a halt.

    ways: all edges that lead to the edges `lasts`, where chains end. edges: of the whole trial. origin: for
    each sent message, the one that it comes from, or NOWHERE. A node that is there may have its reasons to
    pass nothing on: it uses newer data. At the end itself nothing has to be passed on.
    """
    halted = np.zeros(len(table.records) + 1, dtype=np.bool_)  # the last entry stands for "nowhere"
    kept = halted.copy()  # by somebody
    shut = shut_for_good(edges)
    onwards = _onwards(
        [edge for edge, _ in ways], {edge.sender for edge, _ in ways if edge.name in lasts}, shut
    )
    for edge, part in ways:
        begin, end = table.span(edge.stream)
        messages = slice(begin, end)
        if edge.name in lasts or is_partial(edge):
            kept[messages] = True
            continue
        has_row = _marked(part.sent, begin, end)
        taken = _marked(part.sent[part.outcome == DELIVERED], begin, end)
        leads = edge.name not in shut and edge.receiver in onwards
        further = {other.stream for other, _ in ways if other.sender == edge.receiver}
        passed_on = _passed_on(edge, further, table)
        in_vain = _in_vain(edge, edges, table.records["publish_ns"][messages].astype(np.int64))
        stays = taken & ~passed_on
        later = np.arange(end - begin) > int(np.flatnonzero(passed_on).max(initial=NOWHERE))
        stranded = stays & np.where(later, not leads, in_vain)
        halted[messages] |= stranded | ~has_row
        kept[messages] |= has_row & ~passed_on & ~stranded
    return _of_origins(halted, origin) & ~_of_origins(kept, origin)


def _lives(edges: Iterable[EdgeSpec]) -> dict[str, Life]:
    lives: dict[str, Life] = {}
    for edge in edges:
        for node, joined_ns, left_ns in (
            (edge.sender, edge.sender_joined_ns, edge.sender_left_ns),
            (edge.receiver, edge.receiver_joined_ns, edge.receiver_left_ns),
        ):
            from_ns, until_ns = lives.get(node, (NEVER_NS, FOREVER_NS))
            lives[node] = (
                from_ns if joined_ns is None else joined_ns,
                until_ns if left_ns is None else left_ns,
            )
    return lives


def _is_there(life: Life, at_ns: int) -> bool:
    return life[0] <= at_ns and (at_ns < life[1] or life[1] == FOREVER_NS)


def _waits(edge: EdgeSpec, fed: Inputs) -> bool:
    """Whether its subscriber waits for an input that nobody feeds."""
    return any((edge.receiver, reader) not in fed for reader in edge.waits_for)


def _fed(edges: Sequence[EdgeSpec], at_ns: int) -> Inputs:
    """The inputs for which somebody publishes at this time: a timer, or a node that is fed itself."""
    lives = _lives(edges)
    inputs: dict[str, list[EdgeSpec]] = {}
    for edge in edges:
        inputs.setdefault(edge.receiver, []).append(edge)
    fed: set[tuple[str, int]] = set()
    count = -1
    while count < len(fed):
        count = len(fed)
        for edge in edges:
            of_itself = edge.timed or edge.sender not in inputs
            if _is_there(lives[edge.sender], at_ns) and (
                of_itself
                or any(
                    (other.receiver, other.reader) in fed and not _waits(other, fed)
                    for other in inputs[edge.sender]
                )
            ):
                fed.add((edge.receiver, edge.reader))
    return fed


def _onwards(ways: Iterable[EdgeSpec], ends: Collection[str], shut: Collection[str]) -> set[str]:
    """The nodes whose messages come to an end. ends: those that publish on the last edges."""
    open_ways = [edge for edge in ways if edge.name not in shut]
    onwards = set(ends)
    while more := {edge.sender for edge in open_ways if edge.receiver in onwards} - onwards:
        onwards |= more
    return onwards


def _passed_on(edge: EdgeSpec, streams: Collection[int], table: SentTable) -> Mask:
    """Which messages of an edge caused one on these streams of its subscriber."""
    begin, end = table.span(edge.stream)
    passed_on = np.zeros(end - begin, dtype=np.bool_)
    for stream in streams:
        causes = cause_on(table, np.arange(*table.span(stream), dtype=np.int64), edge.stream)
        passed_on[causes[causes != NOWHERE] - begin] = True
    return passed_on


def _in_vain(edge: EdgeSpec, edges: Sequence[EdgeSpec], publish_ns: Times) -> Mask:
    """Which messages were published while nobody fed another input that the edge's subscriber waits for."""
    if not edge.waits_for:
        return np.zeros(len(publish_ns), dtype=np.bool_)
    times = {time_ns for life in _lives(edges).values() for time_ns in life}
    changes_ns = sorted(times - {NEVER_NS, FOREVER_NS})
    waits = np.array([_waits(edge, _fed(edges, time_ns)) for time_ns in (0, *changes_ns)])
    found: Mask = waits[np.searchsorted(np.array(changes_ns, dtype=np.int64), publish_ns, side="right")]
    return found


def _marked(messages: Index, begin: int, end: int) -> Mask:
    """For each message of a stream, whether it is among these."""
    marked = np.zeros(end - begin, dtype=np.bool_)
    marked[messages[messages != NOWHERE] - begin] = True
    return marked


def _of_origins(messages: Mask, origin: Index) -> Mask:
    """Which messages have one of these among what they caused, or are one."""
    found = np.zeros(len(messages), dtype=np.bool_)
    found[origin[np.flatnonzero(messages[:-1])]] = True
    return found[:-1]
