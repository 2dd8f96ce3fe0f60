# SPDX-License-Identifier: Apache-2.0
"""Which hosts the two ends of an edge or a chain are on, and whether these have one clock."""

from __future__ import annotations

from collections.abc import Iterable

from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.store.format import END_TO_END

SAME, OFFSET = "same", "offset"


def host_columns(facts: TrialFacts) -> dict[str, dict[str, str | None]]:
    """The columns of each edge, of end-to-end, and of each chain.

    clock: `same` where times of both ends may be subtracted; `offset` where the hosts' clocks differ by what
    is not known well enough: then no latency is told. Of several edges of one name, or several ways end to
    end: `offset` if any is. The hosts are None where they differ.
    """
    found: dict[str, list[tuple[EdgeSpec, EdgeSpec]]] = {}
    for edge in facts.edges:
        found.setdefault(edge.name, []).append((edge, edge))
    firsts = [edge for edge in facts.edges if edge.stream in facts.source_streams]
    lasts = [edge for edge in facts.edges if edge.name in facts.sink_edges]
    found[END_TO_END] = [(first, last) for first in firsts for last in lasts]
    by_name = {edge.name: edge for edge in facts.edges}
    for chain in facts.chains:
        found[chain.name] = [(by_name[chain.edges[0]], by_name[chain.edges[-1]])]
    return {name: _of(ends) for name, ends in found.items()}


def _of(ends: list[tuple[EdgeSpec, EdgeSpec]]) -> dict[str, str | None]:
    one_clock = all(first.sender_clock == last.receiver_clock for first, last in ends)
    return {
        "sender_host": _only(first.sender_host for first, _ in ends),
        "receiver_host": _only(last.receiver_host for _, last in ends),
        "clock": SAME if one_clock else OFFSET,
    }


def _only(hosts: Iterable[str]) -> str | None:
    names = set(hosts)
    return names.pop() if len(names) == 1 else None
