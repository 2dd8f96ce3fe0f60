# SPDX-License-Identifier: Apache-2.0
"""Between which edges of a graph a bridge is: a node that takes a message on one side and passes it on to
another domain or adapter. A node that only turns the messages of a round trip round is not a bridge,
whichever sides it is on (docs/methodology/chains.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from lagometer.study.graph import Edge, Graph

Pair = tuple[Edge, Edge]  # what a node takes, and what it publishes because of that


def bridged_pairs(graph: Graph, forwards: Callable[[Edge, Edge], bool]) -> list[Pair]:
    """The pairs of edges between which a bridge is, in the order of the edges.

    forwards: whether the node between two edges passes the messages of the first on to another side.
    """
    leaving: dict[str, list[Edge]] = {}
    for edge in graph.edges():
        leaving.setdefault(edge.publisher, []).append(edge)
    pairs = [
        (taken, published)
        for taken in graph.edges()
        for published in leaving.get(taken.subscriber, ())
        if _passes_on(graph, taken, published)
    ]
    crossing = [pair for pair in pairs if forwards(*pair)]
    if not crossing:
        return []
    rounds = _Rounds(graph, pairs, frozenset(crossing))
    return [pair for pair in crossing if not rounds.only_turned(pair)]


def _passes_on(graph: Graph, taken: Edge, published: Edge) -> bool:
    """Whether messages of the first edge go on as those of the second. What a node uses as state ends there,
    as does what closes a loop."""
    return any(
        rule.trigger != "closed_loop" and taken.topic in rule.reads and published.topic in rule.writes
        for rule in graph.rules_of(taken.subscriber)
    )


@dataclass(frozen=True)
class _Ways:
    """The ways that lead to an edge, or on from it. known: of those that pass bridges alone, the node where
    they begin or end, and how many edges they have. others: whether there are any that pass another node."""

    known: frozenset[tuple[str, int]] = frozenset()
    others: bool = False


class _Rounds:
    """Looks for round trips that pass nodes on two sides alone: the one in the middle turns them round."""

    def __init__(self, graph: Graph, pairs: Iterable[Pair], crossing: frozenset[Pair]) -> None:
        self._graph, self._crossing = graph, crossing
        self._before: dict[str, list[Edge]] = {}
        self._after: dict[str, list[Edge]] = {}
        for taken, published in pairs:
            self._before.setdefault(published.name, []).append(taken)
            self._after.setdefault(taken.name, []).append(published)

    def only_turned(self, pair: Pair) -> bool:
        """Whether every message that passes this pair is in the middle of such a round trip."""
        taken, published = pair
        before, after = self._to(taken), self._on_from(published)
        if before.others or after.others or not (before.known and after.known):
            return False
        return len(before.known | after.known) == 1 and taken.subscriber not in dict(before.known)

    @cached_property
    def _sources(self) -> frozenset[int]:
        return self._graph.source_streams()

    @cached_property
    def _ends(self) -> frozenset[str]:
        return self._graph.sink_edges()

    def _to(self, edge: Edge) -> _Ways:
        known = {(edge.publisher, 1)} if edge.stream in self._sources else set()
        steps = [((taken, edge), taken) for taken in self._before.get(edge.name, ())]
        return self._joined(known, steps, self._to)

    def _on_from(self, edge: Edge) -> _Ways:
        following = self._after.get(edge.name, [])
        known = {(edge.subscriber, 1)} if edge.name in self._ends or not following else set()
        steps = [((edge, published), published) for published in following]
        return self._joined(known, steps, self._on_from)

    def _joined(
        self,
        known: set[tuple[str, int]],
        steps: Iterable[tuple[Pair, Edge]],
        further: Callable[[Edge], _Ways],
    ) -> _Ways:
        """The ways that end at an edge, and those that go on over these pairs to the edges beside them.

        Bridges pass messages on at once, and no graph goes round at once, so this ends.
        """
        others = False
        for pair, edge in steps:
            if pair not in self._crossing:
                others = True
                continue
            ways, node = further(edge), pair[0].subscriber
            others = others or ways.others or any(far == node for far, _ in ways.known)
            known |= {(far, count + 1) for far, count in ways.known}
        return _Ways(frozenset(known), others)
