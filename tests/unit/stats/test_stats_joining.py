# SPDX-License-Identifier: Apache-2.0
"""A node that joins late: what it gets, how long that takes, and what the others notice meanwhile."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from small_trial import SmallTrial

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.store.facts import ChainSpec

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


def test_what_was_rejected_before_the_first_arrival_was_not_missed() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(40):
        sent_ns = T + 20_000 * number
        trial.send(0, number, sent_ns, status=int(number < 5))
        if number >= 8:
            trial.take(edge, number, sent_ns + 1_000)
    facts = trial.facts({0}, {"sink"})
    found = row(summarise(samples(trial.lanes(), facts), facts), "source→sink")
    assert (found["rejected"], found["lost"], found["initial_lost"]) == (5, 3, 3)


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
    assert (whole["unreachable"], whole["sent"]) == (3 if restarts else 5, whole["n"])
    edges = summarise(samples(trial.lanes(), facts), facts).filter(pl.col("edge") != "end-to-end")
    assert edges["unreachable"].sum() == 0, "a message that was not meant for an edge has no row there"


def relayed(left_ns: dict[str, int], until: dict[str, int], sink_left_ns: int | None = None) -> SmallTrial:
    """Ten messages 10,000 apart go through relays to one sink; each relay passes on those before `until`."""
    trial = SmallTrial()
    for stream, relay in enumerate(until, start=1):
        taken, passed = trial.edge(0, "source", relay), trial.edge(stream, relay, "sink")
        for sequence in range(10):
            sent_ns = T + 10_000 * sequence
            if stream == 1:
                trial.send(0, sequence, sent_ns)
            if relay not in left_ns or sequence < until[relay]:
                trial.take(taken, sequence, sent_ns + 100)
            if sequence < until[relay]:
                trial.send(stream, sequence, sent_ns + 200, causes=((0, sequence),))
                trial.take(passed, sequence, sent_ns + 300)
        trial.edges[-2] = replace(taken, receiver_left_ns=left_ns.get(relay))
        trial.edges[-1] = replace(passed, sender_left_ns=left_ns.get(relay), receiver_left_ns=sink_left_ns)
    return trial


def whole_way(trial: SmallTrial) -> dict[str, object]:
    facts = trial.facts({0}, {"sink"})
    return row(summarise(samples(trial.lanes(), facts), facts), "end-to-end")


def test_a_node_may_pass_on_what_came_just_after_its_time() -> None:
    """It leaves at a time, and its process ends a little later."""
    trial = relayed({"relay": T + 42_000}, {"relay": 6})
    chain = ChainSpec("way", ("source→relay", "relay→sink"))
    facts = replace(trial.facts({0}, {"sink"}), chains=(chain,))
    frame = summarise(samples(trial.lanes(), facts), facts)
    for name in ("end-to-end", "way"):
        whole = row(frame, name)
        assert (whole["n"], whole["lost"], whole["censored"]) == (6, 0, 0), name
        assert whole["unreachable"] == 4, name


def test_what_was_sent_before_a_node_in_the_middle_joined_is_unreachable() -> None:
    trial = SmallTrial()
    taken, passed = trial.edge(0, "source", "relay"), trial.edge(1, "relay", "sink")
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        if sequence >= 4:
            trial.take(taken, sequence, sent_ns + 100)
        if sequence in (5, 7, 9):  # it uses the newest
            trial.send(1, sequence, sent_ns + 200, causes=((0, sequence),))
            trial.take(passed, sequence, sent_ns + 300)
    trial.edges[0] = replace(taken, receiver_joined_ns=T + 32_000)
    trial.edges[1] = replace(passed, sender_joined_ns=T + 32_000)
    chain = ChainSpec("way", ("source→relay", "relay→sink"))
    facts = replace(trial.facts({0}, {"sink"}), chains=(chain,))
    frame = summarise(samples(trial.lanes(), facts), facts)
    for name in ("end-to-end", "way"):
        whole = row(frame, name)
        assert (whole["n"], whole["unreachable"], whole["censored"], whole["lost"]) == (3, 4, 0, 0), name


def test_what_a_node_did_not_use_while_it_was_there_is_not_unreachable() -> None:
    """It passes on every third message, and leaves after its seventh."""
    trial = SmallTrial()
    taken, passed = trial.edge(0, "source", "relay"), trial.edge(1, "relay", "sink")
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        if sequence < 7:
            trial.take(taken, sequence, sent_ns + 100)
        if sequence in (0, 3):
            trial.send(1, sequence, sent_ns + 200, causes=((0, sequence),))
            trial.take(passed, sequence, sent_ns + 300)
    trial.edges[0] = replace(taken, receiver_left_ns=T + 62_000)
    trial.edges[1] = replace(passed, sender_left_ns=T + 62_000)
    whole = whole_way(trial)
    assert (whole["n"], whole["unreachable"], whole["censored"]) == (2, 6, 0)  # 4 to 9


def test_a_loss_before_a_node_left_is_a_loss() -> None:
    trial = relayed({"relay": T + 62_000}, {"relay": 6})
    trial.sent_rows[1] = [each for each in trial.sent_rows[1] if each["sequence"] != 2]
    trial.received_rows = {
        key: [each for each in taken if each["sequence"] != 2] for key, taken in trial.received_rows.items()
    }
    whole = whole_way(trial)
    # The sixth was sent before the relay left, and never taken.
    assert (whole["n"], whole["lost"], whole["censored"], whole["unreachable"]) == (5, 1, 1, 3)


def joined_inputs(*, again: bool = False, late: bool = False, through: bool = False) -> SmallTrial:
    """A node waits for messages of two publishers, 10,000 apart; the second is away from the sixth on, or
    until then (`late`), or for three messages (`again`). `through`: it publishes through a relay that stays.
    """
    trial = SmallTrial()
    first = trial.edge(0, "left", "join", 0)
    second = trial.edge(1, "right", "relay" if through else "join", 0 if through else 1)
    relayed_on = trial.edge(3, "relay", "join", 1) if through else None
    replaced = trial.edge(4, "right-again", "join", 1) if again else None
    last, count = trial.edge(2, "join", "sink"), 0
    there = {*range(5, 10)} if late else {*range(5), *range(8, 10)} if again else {*range(5)}
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        trial.take(first, sequence, sent_ns + 100)
        if sequence not in there:
            continue
        edge, number = (second, sequence) if replaced is None or sequence < 8 else (replaced, sequence - 8)
        trial.send(edge.stream, number, sent_ns + 50)
        trial.take(edge, number, sent_ns + 150)
        if relayed_on is not None:
            trial.send(3, number, sent_ns + 160, causes=((1, number),))
            edge = relayed_on
            trial.take(edge, number, sent_ns + 170)
        trial.send(2, count, sent_ns + 200, causes=((0, sequence), (edge.stream, number)))
        trial.take(last, count, sent_ns + 300)
        count += 1
    left_ns, joined_ns = (None, T + 42_000) if late else (T + 42_000, None)
    for place, edge in enumerate(trial.edges):
        of_right, of_again = edge.sender == "right", edge.sender == "right-again"
        trial.edges[place] = replace(
            edge,
            waits_for=(1 - edge.reader,) if edge.receiver == "join" else (),
            sender_left_ns=left_ns if of_right else None,
            sender_joined_ns=joined_ns if of_right else T + 72_000 if of_again else None,
        )
    return trial


@pytest.mark.parametrize(
    ("life", "n", "unreachable"),
    [
        ({}, 5, 5),
        ({"through": True}, 5, 5),
        ({"late": True}, 5, 5),
        ({"again": True}, 7, 3),
    ],
)
def test_a_node_that_waits_for_all_passes_nothing_on_without_one_of_them(
    life: dict[str, bool], n: int, unreachable: int
) -> None:
    trial = joined_inputs(**life)
    chain = ChainSpec("way", ("left→join", "join→sink"))
    facts = replace(trial.facts({0, 1, 4}, {"sink"}), chains=(chain,))
    frame = summarise(samples(trial.lanes(), facts), facts)
    for name in ("end-to-end", "way"):
        whole = row(frame, name)
        assert (whole["n"], whole["unreachable"]) == (n, unreachable), name
        assert (whole["lost"], whole["censored"]) == (0, 0), name


def test_a_node_that_waits_for_a_publisher_that_stays_is_still_at_work() -> None:
    trial = joined_inputs()
    trial.edges = [replace(edge, sender_left_ns=None) for edge in trial.edges]
    whole = whole_way(trial)
    assert (whole["n"], whole["unreachable"], whole["censored"]) == (5, 0, 5)


def test_nothing_is_under_way_to_a_sink_that_left() -> None:
    whole = whole_way(relayed({}, {"relay": 6}, sink_left_ns=T + 52_000))
    assert (whole["n"], whole["lost"], whole["censored"], whole["unreachable"]) == (6, 0, 0, 0)


def test_what_another_relay_still_works_on_is_under_way() -> None:
    """Its rows belong to the edge of the relay that stays."""
    whole = whole_way(relayed({"gone": T + 28_000}, {"gone": 3, "stays": 6}))
    assert (whole["n"], whole["lost"], whole["censored"], whole["unreachable"]) == (9, 0, 4, 0)


@pytest.mark.parametrize(("two_left_ns", "censored"), [(T + 58_000, 0), (None, 4)])
def test_a_way_is_cut_when_all_relays_have_left(two_left_ns: int | None, censored: int) -> None:
    """Two relays lead to a third, whose messages reach the sink: one leaves, the other may leave later."""
    trial = SmallTrial()
    lefts_ns = {"one": T + 28_000, "two": two_left_ns}
    ways = [
        (relay, until, trial.edge(0, "source", relay), trial.edge(stream, relay, "last", reader=stream))
        for stream, (relay, until) in enumerate({"one": 3, "two": 6}.items(), start=1)
    ]
    final, final_sequence = trial.edge(3, "last", "sink"), 0
    for sequence in range(10):
        sent_ns = T + 10_000 * sequence
        trial.send(0, sequence, sent_ns)
        for relay, until, taken, passed in ways:
            if sequence < until or lefts_ns[relay] is None:
                trial.take(taken, sequence, sent_ns + 100)
            if sequence < until:
                trial.send(passed.stream, sequence, sent_ns + 200, causes=((0, sequence),))
                trial.take(passed, sequence, sent_ns + 300)
                trial.send(3, final_sequence, sent_ns + 400, causes=((passed.stream, sequence),))
                trial.take(final, final_sequence, sent_ns + 500)
                final_sequence += 1
    trial.edges = [
        replace(edge, receiver_left_ns=lefts_ns.get(edge.receiver), sender_left_ns=lefts_ns.get(edge.sender))
        for edge in trial.edges
    ]
    whole = whole_way(trial)
    assert (whole["n"], whole["lost"], whole["censored"]) == (9, 0, censored)
    assert whole["unreachable"] == 4 - censored


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
