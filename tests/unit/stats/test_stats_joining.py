# SPDX-License-Identifier: Apache-2.0
"""A node that joins late: what it gets, how long that takes, and what the others notice meanwhile."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from small_trial import SmallTrial

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise

T = 1_100_000


def joined(late_gets: tuple[int, ...] = (4, 5)) -> pl.DataFrame:
    """Ten messages 10,000 apart; a second sink joins at T + 32,000. The first is held up at its fifth."""
    trial = SmallTrial()
    first, late = trial.edge(0, "source", "sink"), trial.edge(0, "source", "late")
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        trial.take(first, sequence, sent_ns + (7_000 if sequence == 4 else 100))
        if sequence in late_gets:
            trial.take(late, sequence, sent_ns + 300)
    trial.edges[1] = replace(late, receiver_joined_ns=T + 32_000)
    took = {"late": {"process": 12, "participant": 34}}
    facts = replace(trial.facts({0}, {"sink", "late"}), join_startup_ns=took)
    return summarise(samples(trial.lanes(), facts), facts)


def row(frame: pl.DataFrame, edge: str) -> dict[str, object]:
    return frame.filter(pl.col("edge") == edge).row(0, named=True)


def test_time_to_the_first_message_and_what_the_others_notice() -> None:
    frame = joined()
    late, first = row(frame, "source→late"), row(frame, "source→sink")
    assert late["join_first_message_ns"] == 40_300 - 32_000
    assert (late["join_process_ns"], late["join_participant_ns"]) == (12, 34)
    assert (first["join_process_ns"], first["join_participant_ns"]) == (None, None)
    assert (late["joining_gap_max_ns"], first["join_first_message_ns"]) == (None, None)
    assert first["joining_gap_max_ns"] == 47_000 - 30_100
    assert first["joining_latency_max_ns"] == 7_000


def test_what_was_sent_before_it_was_there_is_not_lost() -> None:
    late = row(joined(), "source→late")
    assert (late["n"], late["lost"], late["initial_lost"]) == (2, 0, 0)
    assert late["censored"] == 4  # 6 to 9, which nobody saw


def test_what_came_from_before_counts_all_the_same() -> None:
    late = row(joined(late_gets=(2, 5)), "source→late")
    assert (late["n"], late["lost"]) == (2, 1)  # 4 is lost; 3 was sent before it was there


def test_a_trial_that_nobody_joins_has_no_such_figures() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    trial.send(0, 0, T)
    trial.take(edge, 0, T + 5)
    facts = trial.facts({0}, {"sink"})
    only = row(summarise(samples(trial.lanes(), facts), facts), edge.name)
    assert only["join_first_message_ns"] is None
    assert only["joining_gap_max_ns"] is None


def test_what_is_sent_after_it_left_is_not_lost_and_the_others_may_notice() -> None:
    trial = SmallTrial()
    first, gone = trial.edge(0, "source", "sink"), trial.edge(0, "source", "gone")
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        trial.take(first, sequence, sent_ns + (8_000 if sequence == 6 else 100))
        if sequence < 5:
            trial.take(gone, sequence, sent_ns + 300)
    trial.edges[1] = replace(gone, receiver_left_ns=T + 50_000)
    facts = trial.facts({0}, {"sink", "gone"})
    frame = summarise(samples(trial.lanes(), facts), facts)
    left, stays = row(frame, "source→gone"), row(frame, "source→sink")
    assert (left["n"], left["lost"], left["censored"]) == (5, 0, 0)
    assert (left["leaving_gap_max_ns"], left["join_first_message_ns"]) == (None, None)
    assert stays["leaving_gap_max_ns"] == 68_000 - 50_100
    assert stays["leaving_latency_max_ns"] == 8_000
    assert stays["joining_gap_max_ns"] is None


@pytest.mark.parametrize("restarts", [False, True])
def test_what_nobody_was_there_to_pass_on_is_not_under_way(restarts: bool) -> None:
    """A relay takes six messages, passes five on and leaves. Another one may take its place."""
    trial = SmallTrial()
    taken, passed = trial.edge(0, "source", "relay"), trial.edge(1, "relay", "sink")
    again = [trial.edge(0, "source", "relay-again"), trial.edge(2, "relay-again", "sink")] if restarts else []
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        if sequence < 6:
            trial.take(taken, sequence, sent_ns + 100)
        if sequence < 5:
            trial.send(1, sequence, sent_ns + 200, causes=((0, sequence),))
            trial.take(passed, sequence, sent_ns + 300)
        if again and sequence >= 8:
            trial.take(again[0], sequence, sent_ns + 100)
            trial.send(2, sequence - 8, sent_ns + 200, causes=((0, sequence),))
            trial.take(again[1], sequence - 8, sent_ns + 300)
    trial.edges[0] = replace(taken, receiver_left_ns=T + 52_000)
    trial.edges[1] = replace(passed, sender_left_ns=T + 52_000)
    if again:
        trial.edges[2] = replace(again[0], receiver_joined_ns=T + 75_000)
        trial.edges[3] = replace(again[1], sender_joined_ns=T + 75_000)
    facts = trial.facts({0}, {"sink"})
    whole = row(summarise(samples(trial.lanes(), facts), facts), "end-to-end")
    assert (whole["n"], whole["lost"], whole["censored"]) == (7 if restarts else 5, 0, 0)


@pytest.mark.parametrize(("sent", "valid"), [(50, True), (20, False)])
def test_a_rate_is_not_missed_for_those_who_were_not_there(sent: int, valid: bool) -> None:
    """A subscriber that leaves is the first, and the only one: the source's own word counts then."""
    trial = SmallTrial()
    edge = trial.edge(0, "source", "relay")
    for sequence in range(sent):
        sent_ns = 1_000_000 + 20_000 * sequence
        trial.send(0, sequence, sent_ns, intended_ns=sent_ns)
        if sequence < 10:
            trial.take(edge, sequence, sent_ns + 100)
    trial.edges[0] = replace(edge, receiver_left_ns=1_200_000)
    facts = trial.facts({0}, {"relay"}, period_ns=20_000, begin_ns=1_000_000)
    frame = summarise(samples(trial.lanes(), facts), facts)
    assert row(frame, "source→relay")["rate_achieved_hz"] is None
    assert bool(frame["valid"].all()) == valid, frame["reasons"][0].to_list()
