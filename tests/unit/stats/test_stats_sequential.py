# SPDX-License-Identifier: Apache-2.0
"""When a cell has had trials enough. `make coverage` shows that the intervals keep their promise."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from lagometer.stats.interval.confidence import NOT_ENOUGH, Numbers
from lagometer.stats.interval.sequential import (
    ALPHA_LAST,
    ALPHA_LOOK,
    Rule,
    alpha_at,
    decide,
    looks,
    looks_until,
    trials_for,
)
from lagometer.stats.interval.stopping import TRIALS, Bounds, CellProgress, chain_latencies


def trials_around(spread: float, count: int, seed: int = 1) -> list[Numbers]:
    """Trials of 200 messages whose medians spread by this share around 100 µs."""
    generator = np.random.default_rng(seed)
    middles = 100_000 * (1.0 + spread * generator.standard_normal(count))
    return [np.rint(generator.normal(middle, 1000, 200)).astype(np.int64) for middle in middles]


def test_looks_are_spaced() -> None:
    assert list(itertools.islice(looks(Rule(0.05)), 7)) == [6, 9, 13, 19, 27, 38, 54]
    assert list(looks(Rule(0.05, trials_max=20))) == [6, 9, 13, 19, 20]
    assert list(looks(Rule(0.05, trials_min=8, trials_max=8))) == [8]
    assert looks_until(13, Rule(0.05)) == [6, 9, 13]


@pytest.mark.parametrize(
    ("precision", "least", "most"), [(0.0, 6, None), (1.0, 6, None), (0.05, 5, None), (0.05, 8, 7)]
)
def test_rules_that_cannot_be_followed_are_refused(precision: float, least: int, most: int | None) -> None:
    with pytest.raises(ValueError, match=r"precision|trials"):
        Rule(precision, least, most)


def test_a_quiet_cell_stops_after_six_trials() -> None:
    trials = trials_around(0.001, 8)
    rule = Rule(0.05)
    for count in range(6):
        decision = decide(trials[:count], rule)
        assert (decision.stop, decision.next_look, decision.estimate) == (False, 6, None)
    decision = decide(trials[:6], rule)
    assert (decision.stop, decision.why, decision.alpha, decision.next_look) == (
        True,
        "precision",
        ALPHA_LOOK,
        None,
    )
    assert decision.as_stop is not None and decision.as_stop.why == "precision"
    assert decision.estimate is not None and (decision.estimate.half_width or 1.0) <= 0.05


def test_nothing_is_decided_between_looks() -> None:
    """Also with six trials that were noisy and a seventh that would make the interval narrow enough."""
    trials = trials_around(0.1, 40)
    quiet = trials_around(0.0, 40)
    rule = Rule(0.05)
    assert decide(trials[:6], rule).stop is False
    between = decide([*trials[:6], *quiet[:1]], rule)
    assert (between.stop, between.next_look, between.alpha) == (False, 9, None)


def test_a_noisy_cell_goes_on_and_predicts_how_far() -> None:
    decision = decide(trials_around(0.08, 6), Rule(0.05))
    assert (decision.stop, decision.why, decision.next_look, decision.as_stop) == (False, None, 9, None)
    assert decision.predicted_trials is not None
    assert decision.predicted_trials in looks_until(200, Rule(0.05))


def test_limits_end_a_cell_with_more_of_alpha() -> None:
    trials = trials_around(0.3, 20)
    most = decide(trials, Rule(0.05, trials_max=20))
    assert (most.stop, most.why, most.alpha) == (True, "trials", ALPHA_LAST)
    late = decide(trials[:11], Rule(0.05), limit="time")
    assert (late.stop, late.why, late.alpha) == (True, "time", ALPHA_LAST)
    assert late.predicted_trials is not None and late.predicted_trials > 11
    few = decide(trials[:2], Rule(0.05), limit="time")
    assert (few.stop, few.why) == (True, "time")
    assert few.estimate is not None and few.estimate.status == "not-enough-samples"
    assert decide([], Rule(0.05), limit="time").stop


def test_a_cell_that_is_precise_when_its_time_is_over_was_stopped_by_precision() -> None:
    decision = decide(trials_around(0.001, 6), Rule(0.05), limit="time")
    assert (decision.why, decision.alpha) == ("precision", ALPHA_LOOK)


@settings(max_examples=50, deadline=None)
@given(st.integers(6, 60), st.integers(6, 60), st.sampled_from([None, "time", "trials"]))
def test_a_stop_is_made_again_from_its_trials(count: int, most: int, limit: str | None) -> None:
    """A campaign that goes on, or its report, must come to the alpha that was used."""
    rule = Rule(0.05, trials_max=most)
    decision = decide(trials_around(0.03, min(count, most)), rule, limit)
    if decision.stop:
        assert decision.alpha == alpha_at(min(count, most), rule, decision.why)


@pytest.mark.parametrize(("spread", "expected"), [(0.01, 6), (0.05, 9), (0.1, 27)])
def test_the_prediction_follows_the_spread(spread: float, expected: int) -> None:
    assert trials_for(spread, Rule(0.05)) == expected
    assert trials_for(10.0, Rule(0.05, trials_max=60)) == 60


def test_predictions_come_true_on_average() -> None:
    rule = Rule(0.05)
    taken = []
    for seed in range(30):
        trials = trials_around(0.05, 100, seed)
        taken.append(next(n for n in looks(rule) if decide(trials[:n], rule).stop))
    assert trials_for(0.05, rule) / 1.5 <= np.mean(taken) <= trials_for(0.05, rule) * 1.8


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 3.0])
def test_the_levels_keep_95_percent_of_normal_trials(ratio: float) -> None:
    """The looks, the stop by width and both levels, for trials whose medians are normal.

    ratio: of the precision to the trials' standard deviation. 40,000 cells: the share that holds the truth is
    known to 0.11 %, and may lie three times that below.
    """
    cells, rule = 40_000, Rule(0.05, trials_max=60)
    medians = np.random.default_rng(20).standard_normal((cells, 60))
    going, held = np.ones(cells, dtype=bool), 0
    for look in looks(rule):
        alpha = alpha_at(look, rule)
        middle, spread = medians[:, :look].mean(axis=1), medians[:, :look].std(axis=1, ddof=1)
        early = special.stdtrit(look - 1, 1 - ALPHA_LOOK / 2) * spread / np.sqrt(look)
        width = special.stdtrit(look - 1, 1 - alpha / 2) * spread / np.sqrt(look)
        ends = going & ((early <= ratio) | (look == 60))
        held += int(np.sum(ends & (np.abs(middle) <= width)))
        going &= ~ends
    assert not going.any()
    assert held / cells > 0.95 - 3 * 0.0011


# --- trials whose latency is unknown: valid, and without times


def between_clocks(taken_ns: list[int | None]) -> pl.DataFrame:
    count = len(taken_ns)
    return pl.DataFrame(
        {
            "edge": ["end-to-end"] * count,
            "phase": ["measure"] * count,
            "outcome": ["delivered"] * count,
            "publish_ns": [1_000 * number for number in range(count)],
            "taken_ns": taken_ns,
        },
        schema_overrides={"taken_ns": pl.Int64()},
    )


def test_an_unknown_latency_is_none() -> None:
    assert chain_latencies(between_clocks([None] * 20)).tolist() == []
    assert chain_latencies(between_clocks([70, None, 2_090])).tolist() == [70, 90]


def test_a_cell_without_latencies_ends_by_its_limit_and_not_by_its_precision() -> None:
    cell = CellProgress(Bounds(Rule(0.05, trials_max=8), 8))
    for trial in range(8):
        assert (cell.stopped, cell.valid) == (None, trial)
        cell.add(chain_latencies(between_clocks([None] * 20)), 0.5)
    assert cell.stopped == TRIALS
    assert cell.decision.estimate is not None
    assert (cell.decision.estimate.status, cell.decision.estimate.trials) == (NOT_ENOUGH, 0)
    assert cell.stop_now().alpha == ALPHA_LAST


def test_a_trial_without_latencies_is_no_look() -> None:
    cell = CellProgress(Bounds(Rule(0.05, trials_max=20), 20))
    cell.add(chain_latencies(between_clocks([None] * 20)), 0.5)
    for place, latencies in enumerate(trials_around(0.001, 6)):
        assert cell.stopped is None, place
        cell.add(latencies, 0.5)
    assert cell.stopped == "precision"
    assert cell.decision.estimate is not None and cell.decision.estimate.trials == 6
