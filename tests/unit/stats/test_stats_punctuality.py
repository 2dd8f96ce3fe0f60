# SPDX-License-Identifier: Apache-2.0
"""What late sources did to their schedules is counted, said, and held against the rate."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.store.facts import TrialFacts, WriterFacts
from tests.fixtures.small_trial import MEASURE_BEGIN_NS, SmallTrial


def skipping(numbers: list[int], warm_up: int = 0) -> SmallTrial:
    """source → sink with these numbers sent, the first `warm_up` of them before the measure phase."""
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in numbers:
        at_ns = MEASURE_BEGIN_NS + 1_000 * (number - warm_up)
        trial.send(0, number, at_ns + 50, intended_ns=at_ns)
        trial.take(edge, number, at_ns + 150)
    return trial


def summary(trial: SmallTrial, facts: TrialFacts) -> pl.DataFrame:
    return summarise(samples(trial.lanes(), facts), facts)


def facts_of(trial: SmallTrial, **said: object) -> TrialFacts:
    facts = trial.facts({0}, {"sink"})
    writers = tuple(replace(writer, **said) for writer in facts.writers)  # type: ignore[arg-type]
    assert all(isinstance(writer, WriterFacts) for writer in writers)
    return replace(facts, writers=writers)


def test_skipped_messages_are_counted_by_the_gaps_of_the_measure_phase() -> None:
    # Before the measure phase number 1 is missing, in it 12 and 13.
    trial = skipping([0, *range(2, 12), *range(14, 300)], warm_up=5)
    rows = summary(trial, facts_of(trial, due=295, skipped=3))
    assert rows["skipped"].to_list() == [2, 2]
    assert rows["valid"].all()
    assert "skipped: source→sink, 2 messages" in rows["warnings"][0].to_list()


@pytest.mark.parametrize(("first", "skipped"), [(5, 0), (6, 1), (8, 3)])
def test_what_was_due_in_the_warm_up_was_not_skipped_in_the_measure_phase(first: int, skipped: int) -> None:
    trial = skipping([0, 2, *range(first, 300)], warm_up=5)
    rows = summary(trial, facts_of(trial, due=295, skipped=1 + first - 3))
    assert rows["skipped"].to_list() == [skipped, skipped]


def test_what_was_skipped_last_is_counted_by_the_workers_word() -> None:
    trial = skipping([*range(200)])
    assert summary(trial, facts_of(trial, due=202, skipped=2))["skipped"].to_list() == [2, 2]


def test_what_was_skipped_is_missing_from_the_rate() -> None:
    trial = skipping([*range(0, 200, 2)])
    rows = summary(trial, facts_of(trial, due=200, skipped=100))
    (reason,) = rows["reasons"][0].to_list()
    assert reason == ("rate-missed: source published 100 of 200 messages, 100000 Hz instead of 200000 Hz")
    assert rows["rate_intended_hz"][0] == 200_000.0
    assert rows["rate_achieved_hz"][0] == 100_000.0


def test_a_burst_at_the_edge_of_the_window_misses_no_rate() -> None:
    trial = skipping([*range(90)])
    assert summary(trial, facts_of(trial, due=100, at_once=10))["valid"].all()
    assert not summary(trial, facts_of(trial, due=101, at_once=1))["valid"].all()


def test_a_schedule_that_moved_is_said() -> None:
    trial = skipping([*range(100)])
    rows = summary(trial, facts_of(trial, due=100, shift_ns=2_500_000))
    assert rows["shift_ns"].to_list() == [2_500_000, 2_500_000]
    assert rows["valid"].all()
    assert "shifted: source→sink, by 2.50 ms at the end" in rows["warnings"][0].to_list()


def test_without_a_schedule_nothing_is_said() -> None:
    trial = skipping([0, 5, 6])
    rows = summary(trial, facts_of(trial))
    assert rows["skipped"].to_list() == rows["shift_ns"].to_list() == [None, None]
