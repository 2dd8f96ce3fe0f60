# SPDX-License-Identifier: Apache-2.0
"""How evenly a topic's subscribers are served: the slowest against the fastest, and against their order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_trial import MEASURE_BEGIN_NS, SmallTrial

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.trial.fairness import fairness_columns
from lagometer.store.facts import ChainSpec, TrialFacts

MESSAGES = 40


def served(
    latencies_ns: list[int], starts: list[int] | None = None, messages: list[int] | None = None
) -> SmallTrial:
    """A topic whose subscribers get messages after these times; starts: the order in which they started, that
    of their names if not given; messages: how many each gets."""
    trial = SmallTrial()
    for place, latency_ns in enumerate(latencies_ns):
        edge = trial.edge(0, "source", f"sink-{place}")
        trial.edges[-1] = replace(edge, receiver_start=(starts or range(9))[place])
        for sequence in range((messages or [MESSAGES] * 9)[place]):
            trial.take(edge, sequence, MEASURE_BEGIN_NS + 10_000 * sequence + latency_ns)
    for sequence in range(MESSAGES):
        trial.send(0, sequence, MEASURE_BEGIN_NS + 10_000 * sequence)
    return trial


def facts_of(trial: SmallTrial, **more: object) -> TrialFacts:
    return trial.facts({0}, {node for node in trial.nodes if node.startswith("sink")}, **more)


@pytest.mark.parametrize(
    ("latencies_ns", "starts", "ratio", "correlation"),
    [
        ([1_000, 2_000, 4_000], [0, 1, 2], 4.0, 1.0),
        ([1_000, 2_000, 4_000], [2, 1, 0], 4.0, -1.0),  # not by name: the last one started first
        ([1_000, 4_000, 2_000], [0, 1, 2], 4.0, 0.5),
        ([3_000, 3_000, 3_000], [0, 1, 2], 1.0, None),
        ([1_000, 2_000], [0, 1], 2.0, None),  # two are always in or against their order
        ([1_000], [0], None, None),
    ],
)
def test_the_end_to_end_row_has_ratio_and_order(
    latencies_ns: list[int], starts: list[int], ratio: float | None, correlation: float | None
) -> None:
    trial = served(latencies_ns, starts)
    facts = facts_of(trial, chains=(ChainSpec("way", ("source→sink-0",)),))
    rows = {row["edge"]: row for row in summarise(samples(trial.lanes(), facts), facts).to_dicts()}
    whole = rows.pop("end-to-end")
    assert whole["fairness_p50_ratio"] == ratio
    expected = None if correlation is None else pytest.approx(correlation)
    assert whole["fairness_order_correlation"] == expected
    assert {row["fairness_p50_ratio"] for row in rows.values()} == {None}, "neither edges nor chains"


def test_a_subscriber_with_too_few_messages_for_a_median_does_not_count() -> None:
    trial = served([1_000, 2_000, 90_000], messages=[MESSAGES, MESSAGES, 3])
    facts = facts_of(trial)
    whole = summarise(samples(trial.lanes(), facts), facts).to_dicts()[-1]
    assert (whole["fairness_p50_ratio"], whole["fairness_order_correlation"]) == (2.0, None)


def test_of_several_topics_the_least_fair_one_counts() -> None:
    trial = SmallTrial()
    p50_ns: dict[str, int | None] = {}
    for stream, latencies in enumerate(([10, 20, 30], [10, 100, 50])):
        for place, latency_ns in enumerate(latencies):
            edge = trial.edge(stream, f"source-{stream}", f"sink-{stream}-{place}")
            trial.edges[-1] = replace(edge, receiver_start=place)
            p50_ns[edge.name] = latency_ns
    found = fairness_columns(facts_of(trial), p50_ns)
    assert found == {"fairness_p50_ratio": 10.0, "fairness_order_correlation": pytest.approx(0.5)}
