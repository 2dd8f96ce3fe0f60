# SPDX-License-Identifier: Apache-2.0
"""How evenly a topic's subscribers are served: by latency, and by the order in which they started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import scipy.stats

from lagometer.store.facts import EdgeSpec, TrialFacts

SUBSCRIBERS_MIN = 3  # for a correlation; two are always in or against their order


def fairness_columns(facts: TrialFacts, p50_of_edges_ns: Mapping[str, int | None]) -> dict[str, float | None]:
    """The columns of the end-to-end row; with several topics, those of the least fair one. None without a
    topic that has several subscribers. Topics between two clocks don't count: an offset within its bound
    would look unfair.

    fairness_p50_ratio: the slowest subscriber's p50 divided by the fastest one's. fairness_order_correlation:
    of p50 with the order in which subscribers started (Spearman's rank correlation). It is 1 if each is
    slower than the one before it, for example if a writer serves them one after another.
    """
    streams: dict[int, list[tuple[EdgeSpec, int]]] = {}
    apart = {edge.stream for edge in facts.edges if not edge.one_clock}
    for edge in facts.edges:
        p50_ns = p50_of_edges_ns.get(edge.name)
        if p50_ns is not None and edge.stream not in apart:
            streams.setdefault(edge.stream, []).append((edge, p50_ns))
    served = [subscribers for subscribers in streams.values() if len(subscribers) > 1]
    if not served:
        return {"fairness_p50_ratio": None, "fairness_order_correlation": None}
    worst = max(served, key=_ratio)
    return {"fairness_p50_ratio": _ratio(worst), "fairness_order_correlation": _correlation(worst)}


def _ratio(served: Sequence[tuple[EdgeSpec, int]]) -> float:
    times = [p50_ns for _, p50_ns in served]
    return max(times) / max(1, min(times))


def _correlation(served: Sequence[tuple[EdgeSpec, int]]) -> float | None:
    times = [p50_ns for _, p50_ns in served]
    if len(served) < SUBSCRIBERS_MIN or len(set(times)) == 1:
        return None
    return float(scipy.stats.spearmanr([edge.receiver_start for edge, _ in served], times).statistic)
