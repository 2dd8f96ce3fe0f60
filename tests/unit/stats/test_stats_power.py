# SPDX-License-Identifier: Apache-2.0
"""How many trials a difference takes: against the textbook, and against the test itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_stats_shares import trials

from lagometer.stats.interval.power import (
    detectable_effect,
    deviations,
    measured_pair_variance,
    measured_variance,
    power_of,
    trials_needed,
)
from lagometer.stats.interval.shares import Numbers, RatioTest, Sides


def test_as_many_as_the_textbook_says() -> None:
    # Cohen 1988, table 2.4.1: d = 0.5, two-sided 5 %, power 80 % take 64 of each group; d = 0.8 takes 26.
    for distance, expected in ((0.5, 64), (0.8, 26)):
        variance = (math.log(1.05) / distance) ** 2
        assert trials_needed(variance, 0.05, alpha=0.05, power=0.8) == expected


def test_never_fewer_than_a_permutation_test_needs() -> None:
    assert trials_needed(0.0, 0.05, alpha=0.02) == 6
    assert trials_needed(1e-12, 0.05, alpha=1e-4) == 9


def test_it_grows_with_variance_and_level_and_falls_with_the_effect() -> None:
    usual = trials_needed(0.01, 0.05, 0.02)
    assert usual > trials_needed(0.01, 0.10, 0.02)
    assert usual < trials_needed(0.02, 0.05, 0.02)
    assert usual < trials_needed(0.01, 0.05, 0.001)
    assert power_of(0.01, 0.05, 0.02, usual) >= 0.95 > power_of(0.01, 0.05, 0.02, usual - 1)
    assert trials_needed(1e6, 0.01, 0.02) == 100_000


@pytest.mark.parametrize("wrong", [{"effect": 0.0}, {"alpha": 0.0}, {"power": 1.0}, {"variance": -1.0}])
def test_what_is_no_probability_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        trials_needed(**{"variance": 0.01, "effect": 0.05, "alpha": 0.02, "power": 0.95, **wrong})


def test_what_could_have_been_seen_is_what_so_many_trials_show() -> None:
    variance, alpha, count = 0.0025, 0.02, 20
    half = 2.024 * math.sqrt(2 * variance / count)
    effect = detectable_effect(math.exp(-half), math.exp(half), 2 * count - 2, alpha)
    assert power_of(variance, effect, alpha, count) == pytest.approx(0.95, abs=0.01)


def test_the_predicted_number_finds_the_effect() -> None:
    generator = np.random.default_rng(17)
    effect, alpha, found, runs = 0.05, 0.02, 0, 100
    for _ in range(runs):
        variance = measured_variance(trials(generator, 20), 500, effect)
        count = trials_needed(variance, effect, alpha)
        sides = Sides(trials(generator, count), trials(generator, count, scale=1.0 + effect))
        found += RatioTest(sides, 500, alpha).p_value() <= alpha
    assert found >= 0.95 * runs


def test_the_predicted_number_finds_the_effect_in_the_tail() -> None:
    generator = np.random.default_rng(18)
    effect, alpha, found, runs = 0.25, 0.02, 0, 40
    for _ in range(runs):
        variance = measured_variance(trials(generator, 20, messages=1_000), 990, effect)
        count = trials_needed(variance, effect, alpha)
        sides = Sides(
            trials(generator, count, messages=1_000),
            trials(generator, count, messages=1_000, scale=1.0 + effect),
        )
        found += RatioTest(sides, 990, alpha).p_value() <= alpha
    assert found >= 0.9 * runs


def in_blocks(
    generator: np.random.Generator, count: int, scale: float = 1.0
) -> tuple[tuple[Numbers, ...], tuple[Numbers, ...]]:
    """Two cells, whose trials of one block are slow together; B is `scale` times A."""
    slow = np.exp(generator.normal(0.0, 0.3, count))
    a, b = (trials(generator, count) for _ in "ab")
    return (
        tuple(np.rint(each * factor).astype(np.int64) for each, factor in zip(a, slow, strict=True)),
        tuple(np.rint(each * factor * scale).astype(np.int64) for each, factor in zip(b, slow, strict=True)),
    )


def test_the_predicted_number_of_blocks_finds_the_effect_that_many_more_trials_would_take() -> None:
    generator = np.random.default_rng(19)
    effect, alpha, found, runs, ratios = 0.05, 0.02, 0, 60, []
    for _ in range(runs):
        a, b = in_blocks(generator, 20)
        variance = measured_pair_variance(*(deviations(each, 500, effect) for each in (a, b)))
        count = trials_needed(variance, effect, alpha, paired=True)
        ratios.append(trials_needed(measured_variance(a, 500, effect), effect, alpha) / count)
        found += (
            RatioTest(Sides(*in_blocks(generator, count, 1.0 + effect), paired=True), 500, alpha).p_value()
            <= alpha
        )
    assert found >= 0.9 * runs
    assert np.median(ratios) > 4.0


def test_pairs_need_as_many_relabellings_as_the_level_asks_for() -> None:
    assert trials_needed(0.0, 0.05, alpha=0.01, paired=True) == 8
    assert trials_needed(0.0, 0.05, alpha=0.2, paired=True) == 6


def test_a_variance_takes_two_trials() -> None:
    with pytest.raises(ValueError):
        measured_variance(trials(np.random.default_rng(1), 1), 500, 0.05)
    with pytest.raises(ValueError):
        measured_pair_variance(np.zeros(1), np.zeros(1))
