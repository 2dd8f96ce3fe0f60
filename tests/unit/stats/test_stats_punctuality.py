# SPDX-License-Identifier: Apache-2.0
"""What late sources did to their schedules is counted, said, and held against the rate."""

from __future__ import annotations

from collections.abc import Collection
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


# --- subscribers that are not there all the time


def with_guest(
    skipped: Collection[int], present: range, guest_first: bool = False, count: int = 50
) -> tuple[pl.DataFrame, TrialFacts]:
    """source → sink, which is always there, and source → guest, which is there for some messages."""
    trial = SmallTrial()
    names = ("guest", "sink") if guest_first else ("sink", "guest")
    edges = {name: trial.edge(0, "source", name) for name in names}
    for number in (number for number in range(count) if number not in skipped):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        trial.send(0, number, due_ns + 10, intended_ns=due_ns)
        for name, edge in edges.items():
            if name == "sink" or number in present:
                trial.take(edge, number, due_ns + 1_000)
    trial.edges[names.index("guest")] = replace(
        edges["guest"],
        receiver_joined_ns=MEASURE_BEGIN_NS + 20_000 * present.start if present.start else None,
        receiver_left_ns=MEASURE_BEGIN_NS + 20_000 * present.stop if present.stop < count else None,
    )
    facts = trial.facts({0}, {"sink", "guest"}, deadline_ns=5_000)
    writers = tuple(replace(writer, due=count, skipped=len(skipped)) for writer in facts.writers)
    facts = replace(facts, writers=writers)
    return summarise(samples(trial.lanes(), facts), facts), facts


@pytest.mark.parametrize("guest_first", [False, True])
@pytest.mark.parametrize(
    ("skipped", "present", "of_guest"),
    [
        ((10,), range(30, 50), 0),
        ((40,), range(30, 50), 1),
        ((10, 40, 41), range(30, 50), 2),
        ((29,), range(30, 50), 0),  # nobody knows if the guest was there
        ((40,), range(20), 0),
        ((10, 40), range(20), 1),
        ((48, 49), range(30, 50), 2),
        ((48, 49), range(20), 0),
        ((0, 1), range(50), 2),
        ((0, 1, 30), range(20, 40), 1),
    ],
)
def test_what_was_sent_while_a_subscriber_was_away_was_not_skipped(
    skipped: tuple[int, ...], present: range, of_guest: int, guest_first: bool
) -> None:
    rows, _ = with_guest(skipped, present, guest_first)
    expected = {"source→sink": len(skipped), "source→guest": of_guest, "end-to-end": len(skipped)}
    assert dict(rows.select("edge", "skipped").iter_rows()) == expected
    assert dict(rows.select("edge", "deadline_missed").iter_rows()) == expected
    of_the_guest = len(set(present) - set(skipped)) + of_guest
    assert dict(rows.select("edge", "deadline_due").iter_rows()) == {
        "source→sink": 50,
        "source→guest": of_the_guest,
        "end-to-end": 50 + of_the_guest - of_guest,
    }


def test_without_an_edge_that_is_always_there_what_is_missing_may_have_been_sent() -> None:
    """One subscriber leaves before the other joins: 20 to 29 went to nobody, 10 and 40 were skipped."""
    trial = SmallTrial()
    first, second = trial.edge(0, "source", "first"), trial.edge(0, "source", "second")
    for number in (number for number in range(50) if number not in (10, 40)):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        trial.send(0, number, due_ns, intended_ns=due_ns)
        for edge, present in ((first, range(20)), (second, range(30, 50))):
            if number in present:
                trial.take(edge, number, due_ns + 1_000)
    trial.edges[0] = replace(first, receiver_left_ns=MEASURE_BEGIN_NS + 20_000 * 20)
    trial.edges[1] = replace(second, receiver_joined_ns=MEASURE_BEGIN_NS + 20_000 * 30)
    facts = trial.facts({0}, {"first", "second"})
    facts = replace(facts, writers=tuple(replace(each, due=50, skipped=2) for each in facts.writers))
    assert summary(trial, facts)["skipped"].to_list() == [1, 1, 2]


def test_a_server_that_restarts_shares_the_calls_of_its_client_with_the_next() -> None:
    """Of 40 calls, 5, 15 and 30 are skipped. The first server is there for ten, the next from the 20th on; 15
    would have been unanswered anyway."""
    trial = SmallTrial()
    old, new = trial.edge(0, "driver", "planner"), trial.edge(0, "driver", "again")
    for number in (number for number in range(40) if number not in (5, 15, 30)):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        trial.send(0, number, due_ns, intended_ns=due_ns)
        for edge, present in ((old, range(10)), (new, range(20, 40))):
            if number in present:
                trial.take(edge, number, due_ns + 1_000)
    left_ns, joined_ns = (MEASURE_BEGIN_NS + 20_000 * number - 5_000 for number in (10, 20))
    trial.edges[0] = replace(old, receiver_left_ns=left_ns, calls_ns=(0, left_ns), called=True)
    trial.edges[1] = replace(new, receiver_joined_ns=joined_ns, calls_ns=(left_ns, 2**63 - 1), called=True)
    facts = trial.facts({0}, {"planner", "again"}, deadline_ns=5_000)
    facts = replace(facts, writers=tuple(replace(each, due=40, skipped=3) for each in facts.writers))
    rows = summary(trial, facts)
    assert rows["unanswered"].to_list() == [0, 9, 9]
    assert rows["skipped"].to_list() == [1, 1, 2]
    assert rows["deadline_missed"].to_list() == [1, 1, 2]
    assert rows["deadline_due"].to_list() == [10, 20, 30]
    assert rows["deadline_run_max"].to_list() == [1, 1, 1]
