# SPDX-License-Identifier: Apache-2.0
"""Deadlines met and missed, and how old data gets (docs/methodology/deadlines.md)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.stats.trial.data_age import chain_age_max_ns, edge_age_max_ns
from lagometer.stats.trial.hosts import between_clocks
from lagometer.stats.trial.punctuality import Skipped, edges_of, skipped_on
from lagometer.stats.trial.rows import by_edge
from lagometer.store import format as form
from lagometer.store.facts import TrialFacts

_OWN = ~pl.col("outcome").is_in(form.APART)
_DUE = pl.coalesce("intended_ns", "publish_ns")

Mask = npt.NDArray[np.bool_]


def deadline_figures(samples: pl.DataFrame, facts: TrialFacts) -> dict[str, dict[str, object]]:
    """The deadline and data-age columns of each edge and of end-to-end."""
    edge_samples, empty = by_edge(samples), samples.clear()
    names = [*dict.fromkeys(edge.name for edge in facts.edges), form.END_TO_END]
    columns: dict[str, dict[str, object]] = {}
    apart = between_clocks(facts)
    for name in names:
        measured = edge_samples.get(name, empty).filter(pl.col("phase") == "measure")
        age_ns = (
            chain_age_max_ns(samples, facts) if name == form.END_TO_END else edge_age_max_ns(measured, name)
        )
        columns[name] = {"data_age_max_ns": age_ns}
        # A miss is yes or no: a time known only within a bound can't decide it.
        if facts.deadline_ns is not None and name not in apart:
            skipped = _skipped(name, samples, facts)
            columns[name].update(_misses(measured, skipped, facts, facts.deadline_ns))
    return columns


def _misses(
    measured: pl.DataFrame, dropped: Skipped, facts: TrialFacts, deadline_ns: int
) -> dict[str, object]:
    judged = (
        measured.filter(_OWN)
        .with_columns(
            due_ns=_DUE,
            met=((pl.col("outcome") == "delivered") & (pl.col("taken_ns") - _DUE <= deadline_ns)).fill_null(
                value=False
            ),
        )
        # Whether messages still under way at the end of the drain would have met a later deadline is unknown.
        .filter((pl.col("outcome") != "censored") | (pl.col("due_ns") + deadline_ns <= facts.drain_end_ns))
    )
    # Messages of sources with the same schedule share due time and number, but not the time of publishing.
    message = ("due_ns", "sequence", "publish_ns")
    activations = (
        judged.group_by(message)
        .agg(pl.col("met").all())
        .join(dropped.before, on="sequence", how="left")
        .sort(message)
    )
    skipped = activations["skipped"].fill_null(0).to_numpy()
    # A message that was never sent is a miss before the message that follows it.
    met = np.zeros(int((skipped + 1).sum()) + dropped.last, dtype=np.bool_)
    met[np.cumsum(skipped + 1) - 1] = activations["met"].to_numpy()
    never_sent = int(skipped.sum()) + dropped.last
    missed = int((~judged["met"]).sum()) + never_sent
    count = judged.height + never_sent
    return {
        "deadline_ns": deadline_ns,
        "deadline_missed": missed,
        "deadline_miss_share": missed / count if count else None,
        "deadline_run_max": longest_run(~met),
        "deadline_due": count,
        "deadline_k": facts.deadline_k,
        "deadline_met_of_k_min": fewest_met(met, facts.deadline_k),
    }


def _skipped(name: str, samples: pl.DataFrame, facts: TrialFacts) -> Skipped:
    """What the source of an edge dropped; end-to-end, its only source."""
    readers = [edge for edge in facts.edges if edge.name == name]
    if name == form.END_TO_END and len(facts.source_streams) == 1:
        (stream,) = facts.source_streams
        readers = edges_of(stream, facts)
    return skipped_on(readers, samples, facts)


def longest_run(missed: Mask) -> int:
    """The largest number of consecutive misses."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], missed.astype(np.int8), [0]))))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


def fewest_met(met: Mask, window: int) -> int | None:
    """The fewest deadlines met in any `window` consecutive activations; None with fewer activations."""
    if len(met) < window:
        return None
    sums = np.concatenate(([0], np.cumsum(met, dtype=np.int64)))
    return int((sums[window:] - sums[:-window]).min())
