# SPDX-License-Identifier: Apache-2.0
"""Nodes that join or leave during traffic: how long until data flows, and what the others notice."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lagometer.store.facts import ChainSpec, TrialFacts
from lagometer.store.format import JOINING_COLUMNS

LEAVING_NS = 1_000_000_000  # after a node left; later effects are not attributed to its leaving

Window = tuple[int, int]


def joining_columns(
    edge_samples: Mapping[str, pl.DataFrame], empty: pl.DataFrame, facts: TrialFacts
) -> dict[str, dict[str, int | None]]:
    """The columns of each edge, by name; all are None in a trial in which no node joins late or leaves early.

    For an edge of a node that joined, join_process_ns and join_participant_ns: how long its process took to
    start, and then its participants. join_first_message_ns: from the creation of its endpoints until the
    first message was taken. For the edges of nodes that stay, joining_gap_max_ns and joining_latency_max_ns:
    the longest time between two takes, and the longest latency, from the first join until all have their
    first message. leaving_...: the same in the second after the first node left. edge_samples: the samples by
    edge, from `by_edge`. empty: the samples of an edge without any.
    """
    columns: dict[str, dict[str, int | None]] = {
        edge.name: dict.fromkeys(JOINING_COLUMNS) for edge in facts.edges
    }
    joins: list[Window] = []
    for edge in facts.edges:
        joined_ns = _latest(edge.sender_joined_ns, edge.receiver_joined_ns)
        if joined_ns is None:
            continue
        startups = [
            facts.join_startup_ns[node]
            for node in (edge.sender, edge.receiver)
            if node in facts.join_startup_ns
        ]
        for step in ("process", "participant"):
            columns[edge.name][f"join_{step}_ns"] = _latest(*(startup.get(step) for startup in startups))
        taken = _taken(edge_samples.get(edge.name, empty))
        first_ns = taken.filter(pl.col("taken_ns") >= joined_ns)["taken_ns"].min()
        if isinstance(first_ns, int):
            columns[edge.name]["join_first_message_ns"] = first_ns - joined_ns
            joins.append((joined_ns, first_ns))
    lefts = [left for edge in facts.edges for left in (edge.sender_left_ns, edge.receiver_left_ns) if left]
    for edge in facts.edges if joins or lefts else ():
        ends = (edge.sender_joined_ns, edge.receiver_joined_ns, edge.sender_left_ns, edge.receiver_left_ns)
        if any(time_ns is not None for time_ns in ends):
            continue
        taken = _taken(edge_samples.get(edge.name, empty))
        if joins:
            window = min(begin for begin, _ in joins), max(end for _, end in joins)
            columns[edge.name] |= _noticed(taken, "joining", window)
        if lefts:
            columns[edge.name] |= _noticed(taken, "leaving", (min(lefts), min(lefts) + LEAVING_NS))
    return columns


def first_answer_ns(
    chain: ChainSpec, facts: TrialFacts, columns: Mapping[str, Mapping[str, int | None]]
) -> int | None:
    """For a chain that ends with the replies of a service whose server or client joined: from when it had
    created its endpoints until the client took the first answer. columns: from `joining_columns`."""
    last = chain.edges[-1]
    called = any(edge.called for edge in facts.edges if edge.name == last)
    return columns[last]["join_first_message_ns"] if called else None


def _latest(*times_ns: int | None) -> int | None:
    return max((time_ns for time_ns in times_ns if time_ns is not None), default=None)


def _taken(samples: pl.DataFrame) -> pl.DataFrame:
    return samples.filter(pl.col("outcome") == "delivered")


def _noticed(taken: pl.DataFrame, prefix: str, window: Window) -> dict[str, int | None]:
    """For messages taken from a given time on, and gaps that began before the end."""
    begin_ns, end_ns = window
    ordered = taken.sort("taken_ns").with_columns(gap_ns=pl.col("taken_ns").diff())
    meanwhile = ordered.filter(
        (pl.col("taken_ns") >= begin_ns) & (pl.col("taken_ns") - pl.col("gap_ns") <= end_ns)
    )
    gap_ns = meanwhile["gap_ns"].max()
    latency_ns = meanwhile.select(pl.col("taken_ns") - pl.col("publish_ns")).to_series().max()
    return {
        f"{prefix}_gap_max_ns": gap_ns if isinstance(gap_ns, int) else None,
        f"{prefix}_latency_max_ns": latency_ns if isinstance(latency_ns, int) else None,
    }
