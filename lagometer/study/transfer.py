# SPDX-License-Identifier: Apache-2.0
"""The transfer row: plain TCP of the same bytes, beside the cells that cross a network, as their floor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from lagometer.study.cell import Cell, Factors
from lagometer.study.factors import FACTORS_BY_NAME
from lagometer.study.graph import Graph
from lagometer.study.hosts import Host
from lagometer.study.traffic import TopicSettings

TRANSFER = "tcp"
# Factors in which the row may differ from its cells: what a middleware does beyond the transfer can only cost
# more, and a payload has the same size in every type. The row has the study's first value, where TCP has it.
_FREE = ("reliability", "history", "depth", "profile", "domain")
_PLAIN: Mapping[str, Any] = {
    "adapter": TRANSFER,
    "type": "bytes",
    "durability": "volatile",
    "deadline_period_ns": 0,
    "lifespan_ns": 0,
    "liveliness": "none",
    "partition": "none",
    "instances": 0,
    "bridge": "none",
    "security": "none",
    "variant": "none",
}


def transfers(
    cells: Sequence[Cell], matrix: Mapping[str, Sequence[object]], hosts: Mapping[str, Host]
) -> Iterator[tuple[Cell, Factors]]:
    """The first of the cells that cross a network and do the same work, and the factors of the transfer.

    None for work that the study itself measures over plain TCP.
    """
    known = {_plain(cell, matrix) for cell in cells if cell.adapters == (TRANSFER,)}
    for cell in cells:
        if not _crosses(cell, hosts):
            continue
        point = _plain(cell, matrix)
        if point not in known:
            known.add(point)
            yield cell, point


def without_extras(graph: Graph) -> Graph:
    """The graph with topics that ask for nothing but bytes, of the same sizes and in the same domains."""
    extras = dict.fromkeys(field.name for field in fields(TopicSettings) if field.name in _PLAIN)
    return replace(graph, topics={name: replace(each, **extras) for name, each in graph.topics.items()})


def _plain(cell: Cell, matrix: Mapping[str, Sequence[object]]) -> Factors:
    free: dict[str, Any] = {FACTORS_BY_NAME[name].field: matrix[name][0] for name in _FREE if name in matrix}
    return replace(cell.factors, **free, **_PLAIN)


def _crosses(cell: Cell, hosts: Mapping[str, Host]) -> bool:
    """Whether messages cross an emulated link, or go from one machine to another."""
    if cell.link is not None:
        return True
    ends = ((cell.host_of[edge.publisher], cell.host_of[edge.subscriber]) for edge in cell.graph.edges())
    return any(
        one != other and any(name in hosts and hosts[name].is_apart for name in (one, other))
        for one, other in ends
    )
