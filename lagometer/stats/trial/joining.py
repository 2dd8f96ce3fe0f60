# SPDX-License-Identifier: Apache-2.0
"""Nodes that join while others are at it: how long until data flows, and what the others notice."""

from __future__ import annotations

import polars as pl

from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.store.format import JOINING_COLUMNS


def joining_columns(samples: pl.DataFrame, facts: TrialFacts) -> dict[str, dict[str, int | None]]:
    """The columns of each edge, by name; all are None in a trial that nobody joins late.

    join_first_message_ns: on an edge of a node that joined, from when its endpoints were created until the
    first message was taken. On the other edges, meanwhile, of all joins together: joining_gap_max_ns, the
    longest time between two takings, and joining_latency_max_ns, the longest latency.
    """
    found: dict[str, dict[str, int | None]] = {
        edge.name: dict.fromkeys(JOINING_COLUMNS) for edge in facts.edges
    }
    windows = []
    for edge in facts.edges:
        joined_ns = _joined_ns(edge)
        first_ns = _taken(samples, edge).filter(pl.col("taken_ns") >= (joined_ns or 0))["taken_ns"].min()
        if joined_ns is not None and isinstance(first_ns, int):
            found[edge.name]["join_first_message_ns"] = first_ns - joined_ns
            windows.append((joined_ns, first_ns))
    if not windows:
        return found
    begin_ns, end_ns = min(begin for begin, _ in windows), max(end for _, end in windows)
    for edge in facts.edges:
        if _joined_ns(edge) is None:
            found[edge.name] |= _noticed(_taken(samples, edge), begin_ns, end_ns)
    return found


def _joined_ns(edge: EdgeSpec) -> int | None:
    known = [each for each in (edge.sender_joined_ns, edge.receiver_joined_ns) if each is not None]
    return max(known, default=None)


def _taken(samples: pl.DataFrame, edge: EdgeSpec) -> pl.DataFrame:
    return samples.filter((pl.col("edge") == edge.name) & (pl.col("outcome") == "delivered"))


def _noticed(taken: pl.DataFrame, begin_ns: int, end_ns: int) -> dict[str, int | None]:
    """Of what was taken from the join until its end, and the gap in which that began."""
    ordered = taken.sort("taken_ns").with_columns(gap_ns=pl.col("taken_ns").diff())
    meanwhile = ordered.filter(
        (pl.col("taken_ns") >= begin_ns) & (pl.col("taken_ns") - pl.col("gap_ns") <= end_ns)
    )
    gap_ns = meanwhile["gap_ns"].max()
    latency_ns = meanwhile.select(pl.col("taken_ns") - pl.col("publish_ns")).to_series().max()
    return {
        "joining_gap_max_ns": gap_ns if isinstance(gap_ns, int) else None,
        "joining_latency_max_ns": latency_ns if isinstance(latency_ns, int) else None,
    }
