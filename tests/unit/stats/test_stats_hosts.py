# SPDX-License-Identifier: Apache-2.0
"""Two hosts with clocks of their own: nothing is subtracted across them, in no file and no figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from small_trial import SmallTrial

from lagometer.stats.trial.clocks import clock_offsets
from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.trial.fairness import fairness_columns
from lagometer.stats.trial.offset import Bound
from lagometer.store.clocks import on_our_clock
from lagometer.store.exchanges import Exchanges, HostExchanges, ToldOffset, exchanges_of
from lagometer.store.facts import ChainSpec, TrialFacts
from lagometer.store.records import Lane

T, AHEAD_NS = 1_000_100, 3_000_000_000
SUBTRACTED = ("latency", "response", "signalled", "woken", "wake", "take", "handle", "whole", "communication")


def there_and_back(wrong_ns: int = 400) -> tuple[pl.DataFrame, pl.DataFrame, TrialFacts]:
    """Samples, rows and facts of that trial."""
    lanes, facts = there_and_back_lanes(wrong_ns)
    found = samples(lanes, facts)
    return found, summarise(found, facts), facts


def there_and_back_lanes(wrong_ns: int = 400) -> tuple[list[Lane], TrialFacts]:
    """source on robot → relay on base → sink on robot, 50 messages of 100 ns a hop; the conductor is wrong by
    so much in what base's clock is ahead."""
    trial = SmallTrial()
    out, back = trial.edge(0, "source", "relay"), trial.edge(1, "relay", "sink")
    for sequence in range(50):
        sent_ns = T + 20_000 * sequence
        trial.send(0, sequence, sent_ns, intended_ns=sent_ns - 10)
        trial.take(out, sequence, sent_ns + 100 + wrong_ns)
        trial.send(1, sequence, sent_ns + 200 + wrong_ns, causes=((0, sequence),), callback_ns=50)
        trial.take(back, sequence, sent_ns + 300)
    robot, base = {"host": "robot", "clock": ""}, {"host": "base", "clock": "base"}
    trial.edges[0] = replace(out, **_ends(robot, base))
    trial.edges[1] = replace(back, **_ends(base, robot))
    chains = (ChainSpec("out", ("source→relay",)), ChainSpec("both", ("source→relay", "relay→sink"), True))
    facts = trial.facts({0}, {"sink"}, chains=chains, deadline_ns=250)
    return trial.lanes(), facts


def exchanged(facts: TrialFacts, wrong_ns: int = 400, symmetric: bool = False) -> TrialFacts:
    """The same trial, whose hosts exchanged time stamps: 30 ns each way, by clocks that drift by nothing."""
    sent = np.arange(T - 60_000, T + 50 * 20_000, 9_700, dtype=np.int64)
    ours = Exchanges(sent, sent + 30 + wrong_ns, sent + 40 + wrong_ns, sent + 70)
    theirs = Exchanges(sent + wrong_ns + 200, sent + 230, sent + 240, sent + wrong_ns + 270)
    pair = HostExchanges("robot", "base", "", "base", ours, drift=200e-6, symmetric=symmetric)
    back = HostExchanges("base", "robot", "base", "", theirs, drift=200e-6, symmetric=symmetric)
    return replace(facts, exchanges=(pair, back))


def _ends(sender: dict[str, str], receiver: dict[str, str]) -> dict[str, str]:
    ends = (("sender", sender), ("receiver", receiver))
    return {f"{end}_{what}": host[what] for end, host in ends for what in host}


def row(frame: pl.DataFrame, edge: str) -> dict[str, object]:
    return frame.filter(pl.col("edge") == edge).row(0, named=True)


@pytest.mark.parametrize("edge", ["source→relay", "relay→sink", "out"])
def test_no_figure_crosses_two_clocks(edge: str) -> None:
    _, rows, _ = there_and_back()
    found = row(rows, edge)
    assert (found["clock"], found["n"], found["lost"], found["valid"]) == ("offset", 50, 0, True)
    told = {name: found[name] for name in found if name.startswith(SUBTRACTED) and name.endswith("_ns")}
    assert len(told) > 20 and set(told.values()) == {None}, told
    assert found["data_age_max_ns"] is None and found["latency_infinite_from"] is None
    assert found["deadline_missed"] is None and found["deadline_miss_share"] is None


@pytest.mark.parametrize(("symmetric", "bound", "most_ns"), [(False, "hard", 45), (True, "narrow", 20)])
def test_what_is_exchanged_tells_latencies_to_a_bound(symmetric: bool, bound: str, most_ns: int) -> None:
    """Whatever the conductor is wrong by: a hop takes 100 ns, a message in base's clock too."""
    for wrong_ns in (0, 400, -70_000):
        lanes, known = there_and_back_lanes(wrong_ns)
        facts = exchanged(known, wrong_ns, symmetric)
        rows = summarise(samples(lanes, facts), facts)
        for edge in ("source→relay", "relay→sink", "out"):
            found = row(rows, edge)
            assert (found["clock"], found["clock_bound"], found["valid"]) == ("offset", bound, True), edge
            bound_ns, p50_ns = found["clock_bound_ns"], found["latency_p50_ns"]
            assert isinstance(bound_ns, int) and isinstance(p50_ns, int)
            assert 0 < bound_ns <= most_ns and abs(p50_ns - 100) <= bound_ns, (edge, wrong_ns)
            assert found["deadline_missed"] is None
        whole = row(rows, "end-to-end")
        assert (whole["latency_p50_ns"], whole["clock_bound_ns"], whole["clock"]) == (300, None, "same")
        assert row(rows, "out")["communication_p50_ns"] is None


def test_exchanges_that_contradict_each_other_tell_nothing_and_say_so() -> None:
    lanes, known = there_and_back_lanes(400)
    facts = exchanged(known)
    pair, _ = facts.exchanges
    jumped = np.where(np.arange(len(pair.stamps)) < 50, 0, 5_000)
    stamps = replace(
        pair.stamps, received=pair.stamps.received + jumped, answered=pair.stamps.answered + jumped
    )
    facts = replace(facts, exchanges=(replace(pair, stamps=stamps),))
    (warning,) = clock_offsets(facts).warnings
    assert warning.startswith("clock-unknown: the time stamps of base and robot contradict each other")
    rows = summarise(samples(lanes, facts), facts)
    assert row(rows, "source→relay")["latency_p50_ns"] is None
    none = replace(pair, stamps=exchanges_of([]))
    (warning,) = clock_offsets(replace(facts, exchanges=(none,))).warnings
    assert warning.startswith("clock-unknown: base and robot exchanged no time stamps")


def test_a_link_that_is_no_symmetric_one_keeps_the_hard_bound_and_says_so() -> None:
    _, known = there_and_back_lanes(400)
    facts = exchanged(known, symmetric=True)
    pair, _ = facts.exchanges
    few = exchanges_of(
        np.stack([pair.stamps.sent, pair.stamps.received, pair.stamps.answered, pair.stamps.returned])
        .T[:3]
        .tolist()
    )
    found = clock_offsets(replace(facts, exchanges=(replace(pair, stamps=few),)))
    assert found.by_clocks["", "base"].bound is Bound.HARD
    assert any(each.startswith("clock-bound: the link of base and robot") for each in found.warnings)


def test_a_message_taken_before_it_was_published_fails_only_beyond_the_bound() -> None:
    lanes, known = there_and_back_lanes(400)
    facts = exchanged(known, wrong_ns=400 + 130)  # as if base's clock were further ahead: hops of -30 ns
    found = row(summarise(samples(lanes, facts), facts), "source→relay")
    assert found["valid"] and isinstance(found["latency_min_ns"], int) and found["latency_min_ns"] < 0
    facts = exchanged(known, wrong_ns=400 + 180)
    found = row(summarise(samples(lanes, facts), facts), "source→relay")
    assert not found["valid"] and "where their clocks are known to" in str(found["reasons"])


def test_what_one_clock_tells_stays() -> None:
    _, rows, _ = there_and_back()
    found = row(rows, "source→relay")
    assert (found["send_lag_p50_ns"], found["blocked_p50_ns"]) == (10, 100)
    assert (found["sender_host"], found["receiver_host"]) == ("robot", "base")


def test_no_row_of_the_samples_has_times_of_two_clocks() -> None:
    messages, _, facts = there_and_back()
    apart = messages.filter(pl.col("edge").is_in([edge.name for edge in facts.edges]))
    assert apart.height == 100 and apart["publish_ns"].null_count() == 0
    for name in ("signalled_ns", "woken_ns", "taken_ns", "handled_ns"):
        assert apart[name].null_count() == apart.height, name


def test_a_way_back_to_its_own_host_is_told_whatever_the_clocks_say() -> None:
    for wrong_ns in (0, 400, -70):
        _, rows, _ = there_and_back(wrong_ns)
        whole, chain = row(rows, "end-to-end"), row(rows, "both")
        assert (whole["clock"], whole["latency_p50_ns"]) == ("same", 300)
        assert (chain["communication_p50_ns"], chain["whole_p50_ns"]) == (200, 350)
        assert chain["half_round_trip_p50_ns"] == 100


def test_subscribers_between_two_clocks_are_not_called_unfair() -> None:
    """An offset within its bound would look as if one were served later."""
    trial = SmallTrial()
    near, far = trial.edge(0, "source", "a"), trial.edge(0, "source", "b")
    facts, p50s_ns = trial.facts({0}, {"a", "b"}), {near.name: 1_000, far.name: 5_000}
    assert fairness_columns(facts, p50s_ns)["fairness_p50_ratio"] == 5.0
    apart = replace(facts, edges=(near, replace(far, receiver_clock="base")))
    assert set(fairness_columns(apart, p50s_ns).values()) == {None}


def test_hosts_with_one_clock_are_as_one_host() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for sequence in range(30):
        trial.send(0, sequence, T + 20_000 * sequence)
        trial.take(edge, sequence, T + 20_000 * sequence + 100)
    trial.edges[0] = replace(edge, sender_host="robot", receiver_host="base")
    facts = trial.facts({0}, {"sink"})
    found = row(summarise(samples(trial.lanes(), facts), facts), "source→sink")
    assert (found["clock"], found["latency_p50_ns"]) == ("same", 100)


def test_times_are_brought_to_the_conductors_clock_and_what_was_not_seen_stays_so() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    trial.send(0, 0, T + AHEAD_NS)
    trial.take(edge, 0, T + AHEAD_NS + 100)
    sent, received = on_our_clock(trial.lanes(), AHEAD_NS)
    assert (sent.records["publish_ns"][0], sent.records["intended_ns"][0]) == (T, 0)
    assert (received.records["taken_ns"][0], received.records["woken_ns"][0]) == (T + 100, 0)
    assert np.array_equal(sent.records["sequence"], trial.lanes()[0].records["sequence"])


def told(facts: TrialFacts, *services: ToldOffset) -> TrialFacts:
    """The same trial; services say of base's clock how far it is ahead of robot's."""
    pair, back = facts.exchanges
    turned = tuple(each.reversed() for each in services)
    return replace(facts, exchanges=(replace(pair, told=services), replace(back, told=turned)))


def test_ptp_that_agrees_narrows_a_link_that_nobody_vouched_for() -> None:
    lanes, known = there_and_back_lanes(400)
    for least_ns, most_ns in ((395, 405), (402, 409), (380, 401)):
        facts = told(exchanged(known), ToldOffset("ptp", least_ns, most_ns, 5))
        offsets = clock_offsets(facts)
        offset = offsets.by_clocks["", "base"]
        assert offset.bound is Bound.PTP and not offsets.warnings
        low, high = offset.at(np.array([T, T + 500_000]))
        # What either says is within the bound.
        assert np.all(low <= min(400, least_ns)) and np.all(high >= max(400, most_ns))
        found = row(summarise(samples(lanes, facts), facts), "source→relay")
        assert found["clock_bound"] == "ptp" and isinstance(found["clock_bound_ns"], int)
        assert isinstance(found["latency_p50_ns"], int)
        assert abs(found["latency_p50_ns"] - 100) <= found["clock_bound_ns"] <= 45


def test_ptp_that_disagrees_within_the_hard_bound_narrows_nothing() -> None:
    """As where one direction takes longer: the exchanges look the same, and PTP shows another offset."""
    _, known = there_and_back_lanes(400)
    hard = clock_offsets(exchanged(known)).by_clocks["", "base"]
    low, high = hard.at(np.array([T + 200_000]))
    for told_ns in (int(low[0]) + 1, int(high[0]) - 1):
        found = clock_offsets(told(exchanged(known), ToldOffset("ptp", told_ns, told_ns, 0)))
        assert found.by_clocks["", "base"].bound is Bound.HARD
        (warning,) = found.warnings
        assert warning.startswith("clock-bound: PTP does not confirm the time stamps of base and robot")


@pytest.mark.parametrize("source", ["ptp", "chrony"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_service_beyond_the_hard_bound_is_named_and_does_not_count(source: str, symmetric: bool) -> None:
    _, known = there_and_back_lanes(400)
    facts = exchanged(known, symmetric=symmetric)
    for told_ns in (5_000, -5_000):
        found = clock_offsets(told(facts, ToldOffset(source, told_ns - 100, told_ns + 100, 100)))
        assert found.by_clocks["", "base"].bound is (Bound.NARROW if symmetric else Bound.HARD)
        (warning,) = found.warnings
        assert warning.startswith(
            f"clock-disagrees: {source} and the time stamps that base and robot exchanged"
        )
        assert "more than their bounds of 100 ns and " in warning


def test_chrony_that_agrees_changes_nothing() -> None:
    """Its bound is of the way to its source, which nobody knows to be symmetric."""
    _, known = there_and_back_lanes(400)
    found = clock_offsets(told(exchanged(known), ToldOffset("chrony", 300, 500, 100)))
    assert found.by_clocks["", "base"].bound is Bound.HARD and not found.warnings


def test_who_vouches_for_a_link_needs_no_ptp() -> None:
    _, known = there_and_back_lanes(400)
    facts = told(exchanged(known, symmetric=True), ToldOffset("ptp", 395, 405, 5))
    assert clock_offsets(facts).by_clocks["", "base"].bound is Bound.NARROW
