# SPDX-License-Identifier: Apache-2.0
"""Where the steady part of a trial begins, and what then counts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.interval.steady import MESSAGES_MIN, steady_start
from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.trial.warmup import WarmUp, noted, without_warm_up
from lagometer.store.facts import ChainSpec
from lagometer.store.observed import Observed
from tests.fixtures.small_trial import MEASURE_BEGIN_NS, SmallTrial

STEP_NS = 4000


def settling(count: int, slow: int, factor: float = 3.0, seed: int = 1) -> list[int]:
    """Latencies of 10 µs; the first ones are slow."""
    noise = np.random.default_rng(seed).lognormal(np.log(10_000), 0.1, count)
    noise[:slow] *= factor
    return [int(each) for each in noise]


def trial_of(latencies_ns: list[int]) -> SmallTrial:
    """One edge; the first message is due when the measure phase begins."""
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number, latency_ns in enumerate(latencies_ns):
        at_ns = MEASURE_BEGIN_NS + number * STEP_NS
        trial.send(0, number, at_ns, intended_ns=at_ns)
        trial.take(edge, number, at_ns + latency_ns)
    return trial


@pytest.mark.parametrize("slow", [0, 10, 40, 80])
def test_what_differs_at_the_beginning_is_cut(slow: int) -> None:
    start = steady_start(np.array(settling(240, slow)))
    # Steps are a twentieth; the test may let a few slow ones pass, and rarely cuts a step too many.
    assert start is not None
    assert slow - 12 <= start <= slow + 24


def test_a_trial_that_never_settles_is_not_steady() -> None:
    drifting = np.linspace(20_000, 10_000, 400) + np.random.default_rng(2).normal(0, 200, 400)
    assert steady_start(drifting.astype(np.int64)) is None


def test_a_drift_too_small_to_matter_is_steady() -> None:
    drifting = np.linspace(10_200, 10_000, 4000) + np.random.default_rng(2).normal(0, 20, 4000)
    assert steady_start(drifting.astype(np.int64)) == 0


def test_single_stalls_are_no_warm_up() -> None:
    latencies = np.array(settling(300, 0))
    latencies[[3, 90, 200]] *= 1000
    assert steady_start(latencies) == 0


def test_the_bound_is_kept_and_few_messages_are_refused() -> None:
    latencies = np.array(settling(240, 80))
    assert steady_start(latencies, latest=40) is None
    with pytest.raises(ValueError, match="too few"):
        steady_start(latencies[: MESSAGES_MIN - 1])


@settings(max_examples=50, deadline=None)
@given(st.integers(MESSAGES_MIN, 600), st.integers(0, 2**32 - 1))
def test_any_series_gives_an_index_in_its_first_half(count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    start = steady_start(generator.integers(0, 50, count))
    assert start is None or 0 <= start <= count // 2
    assert steady_start(np.full(count, 7)) == 0


def test_messages_before_the_steady_start_count_as_warm_up() -> None:
    trial = trial_of(settling(240, 60))
    facts = trial.facts({0}, {"sink"})
    latest_ns = MEASURE_BEGIN_NS + 120 * STEP_NS - facts.begin_ns
    frame, found = without_warm_up(samples(trial.lanes(), facts), facts, WarmUp(latest_ns=latest_ns))
    rows = noted(summarise(frame, facts), found)
    assert found.steady is True
    counted = frame.filter((pl.col("phase") == "measure") & (pl.col("edge") == "end-to-end")).height
    assert 240 - 60 - 24 <= counted <= 240 - 60 + 12
    assert rows["n"].to_list() == [counted, counted]
    assert rows["steady_ns"].to_list() == [MEASURE_BEGIN_NS + (240 - counted) * STEP_NS - facts.begin_ns] * 2
    assert rows["steady"].to_list() == [True, True]
    assert "not-steady" not in str(rows["warnings"].to_list())


def test_an_unsteady_trial_counts_from_the_bound_and_says_so() -> None:
    trial = trial_of([int(each) for each in np.linspace(40_000, 10_000, 240)])
    facts = trial.facts({0}, {"sink"})
    latest_ns = MEASURE_BEGIN_NS + 60 * STEP_NS - facts.begin_ns
    frame, found = without_warm_up(samples(trial.lanes(), facts), facts, WarmUp(latest_ns=latest_ns))
    rows = noted(summarise(frame, facts), found)
    assert (found.steady, found.steady_ns) == (False, latest_ns)
    assert rows["n"].to_list() == [180, 180]
    assert rows["warnings"][0].to_list()[-1].startswith("not-steady: ")
    assert rows["valid"].to_list() == summarise(frame, facts)["valid"].to_list()


def test_the_first_messages_of_each_edge_can_be_discarded() -> None:
    trial = trial_of(settling(50, 0))
    facts = trial.facts({0}, {"sink"})
    frame, found = without_warm_up(samples(trial.lanes(), facts), facts, WarmUp(discard=20))
    kept = frame.filter(pl.col("phase") == "measure")
    assert kept.group_by("edge").agg(pl.col("sequence").min(), pl.len()).rows_by_key("edge") == {
        "source→sink": [(20, 30)],
        "end-to-end": [(20, 30)],
    }
    assert (found.steady_ns, found.steady) == (None, None)
    too_few, told = without_warm_up(frame, facts, WarmUp(latest_ns=10**9))
    assert (told.steady, too_few.equals(frame)) == (None, True)


def test_cpu_time_stays_that_of_all_the_phase() -> None:
    trial = trial_of(settling(100, 0))
    facts = trial.facts({0}, {"sink"})
    whole = samples(trial.lanes(), facts)
    frame, found = without_warm_up(whole, facts, WarmUp(discard=50))
    told = noted(summarise(frame, facts), found)["cpu_per_message_ns"][0]
    assert told == pytest.approx(summarise(whole, facts)["cpu_per_message_ns"][0])


@pytest.mark.parametrize("discard", [0, 5, 8, 10])
@pytest.mark.parametrize("named", [False, True])
def test_a_chain_counts_no_message_again(discard: int, named: bool) -> None:
    """A sampler passes on every tenth of 100 messages: readers took 110, for 1,000 ns of CPU time each."""
    trial = SmallTrial()
    every, tenth = trial.edge(0, "source", "sampler"), trial.edge(1, "sampler", "sink")
    for number in range(100):
        at_ns = MEASURE_BEGIN_NS + 5_000 * number
        trial.send(0, number, at_ns)
        trial.take(every, number, at_ns + 500)
        if number % 10 == 9:
            trial.send(1, number // 10, at_ns + 1_000, causes=((0, number),))
            trial.take(tenth, number // 10, at_ns + 2_000)
    chains = (ChainSpec("way", (every.name, tenth.name)),) if named else ()
    facts = trial.facts({0}, {"sink"}, chains=chains, cpu_ns=110_000)
    frame, found = without_warm_up(samples(trial.lanes(), facts), facts, WarmUp(discard=discard))
    rows = noted(summarise(frame, facts), found)
    assert rows["n"].to_list()[:2] == [100 - discard, 10 - discard]
    assert set(rows["cpu_per_message_ns"].to_list()) == {1_000.0}


@pytest.mark.parametrize(
    ("wanted", "most"), [(WarmUp(), 240), (WarmUp(discard=100), 140), (WarmUp(latest_ns=10**6), 220)]
)
def test_packets_and_switches_of_all_the_phase_are_held_against_all_its_messages(
    wanted: WarmUp, most: int
) -> None:
    """The reader took 240 messages of 64 B; twice that went over the wire."""
    trial = trial_of(settling(240, 60))
    observed = Observed(window_ns=10**9, private=True, wire={"bytes": 2 * 240 * 64}, involuntary_switches=24)
    facts = trial.facts({0}, {"sink"}, observed=observed)
    frame, found = without_warm_up(samples(trial.lanes(), facts), facts, wanted)
    rows = noted(summarise(frame, facts), found)
    assert 0 < rows["n"][0] <= most
    assert rows["wire_bytes_per_payload_byte"].to_list() == [2.0, 2.0]
    assert rows["taken"].to_list() == [240, 240]
    # 24 switches for 240 messages are not more than one in ten; for those that count they would be.
    assert rows["noise"].to_list() == [[], []]
