# SPDX-License-Identifier: Apache-2.0
"""Which hosts the two ends of an edge or chain are on, and whether these share one clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from lagometer.stats.trial.clocks import Offsets, clock_offsets
from lagometer.stats.trial.offset import Bound
from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.store.format import END_TO_END

SAME, OFFSET = "same", "offset"


def host_columns(
    facts: TrialFacts, measured: Mapping[str, pl.DataFrame]
) -> dict[str, dict[str, str | int | None]]:
    """The columns of each edge, end-to-end and each chain. measured: their samples of the measure phase.

    clock: `same` if times of both ends may be subtracted as they are; `offset` if the hosts' clocks differ.
    clock_bound_ns: how far off each figure may be that subtracts one clock from the other, the most over all
    messages; null if nothing is known, and then there is no such figure. With several edges of one name, or
    several ways end to end: `offset` if any is. The hosts are None if they differ.
    """
    offsets = clock_offsets(facts)
    return {
        name: {**_of(ends), **_bound(ends, measured.get(name), offsets)}
        for name, ends in _ends(facts).items()
    }


def between_clocks(facts: TrialFacts) -> frozenset[str]:
    """Returns the edges and chains, and end-to-end, whose two ends have separate clocks."""
    return frozenset(name for name, ends in _ends(facts).items() if _of(ends)["clock"] == OFFSET)


def _ends(facts: TrialFacts) -> dict[str, list[tuple[EdgeSpec, EdgeSpec]]]:
    ends: dict[str, list[tuple[EdgeSpec, EdgeSpec]]] = {}
    for edge in facts.edges:
        ends.setdefault(edge.name, []).append((edge, edge))
    firsts = [edge for edge in facts.edges if edge.stream in facts.source_streams]
    lasts = [edge for edge in facts.edges if edge.name in facts.sink_edges]
    ends[END_TO_END] = [(first, last) for first in firsts for last in lasts]
    by_name = {edge.name: edge for edge in facts.edges}
    for chain in facts.chains:
        ends[chain.name] = [(by_name[chain.edges[0]], by_name[chain.edges[-1]])]
    return ends


def _of(ends: list[tuple[EdgeSpec, EdgeSpec]]) -> dict[str, str | int | None]:
    one_clock = all(first.sender_clock == last.receiver_clock for first, last in ends)
    return {
        "sender_host": _only(first.sender_host for first, _ in ends),
        "receiver_host": _only(last.receiver_host for _, last in ends),
        "clock": SAME if one_clock else OFFSET,
    }


def _bound(
    ends: list[tuple[EdgeSpec, EdgeSpec]], measured: pl.DataFrame | None, offsets: Offsets
) -> dict[str, str | int | None]:
    pairs = {(first.sender_clock, last.receiver_clock) for first, last in ends}
    pairs = {(sender, receiver) for sender, receiver in pairs if sender != receiver}
    unknown: dict[str, str | int | None] = {"clock_bound_ns": None, "clock_bound": None}
    if not pairs or measured is None or any(pair not in offsets.by_clocks for pair in pairs):
        return unknown
    times_ns = measured["taken_ns"].drop_nulls().to_numpy()
    if not len(times_ns):
        return unknown
    widest = [offsets.bounds(pair, times_ns).max() for pair in pairs]
    kinds = {offsets.by_clocks[pair].bound for pair in pairs}
    kind = next(kind for kind in Bound if kind in kinds)  # the weakest: what it rests on
    return {"clock_bound_ns": int(max(widest)), "clock_bound": kind.value}


def _only(hosts: Iterable[str]) -> str | None:
    names = set(hosts)
    return names.pop() if len(names) == 1 else None
