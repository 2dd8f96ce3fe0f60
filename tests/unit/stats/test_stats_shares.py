# SPDX-License-Identifier: Apache-2.0
"""The test of two cells' quantiles: exact, dual to its interval, in pairs where there are blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from lagometer.stats.interval.shares import (
    Numbers,
    RatioTest,
    Side,
    Sides,
    fewest_trials,
    joint_quantile,
    smallest_p,
)

RUNS = 400
UNLIKELY = 1e-4


def trials(
    generator: np.random.Generator, count: int, messages: int = 60, scale: float = 1.0, spread: float = 0.05
) -> tuple[Numbers, ...]:
    """Trials with an offset of their own each, and messages that hang together in tens."""
    found = []
    for _ in range(count):
        slow = np.repeat(generator.normal(0.0, 0.1, messages // 10), 10)
        logarithms = generator.normal(0.0, spread) + slow + generator.normal(0.0, 0.2, messages)
        found.append(np.rint(20_000 * scale * np.exp(logarithms)).astype(np.int64))
    return tuple(found)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("permille", [500, 900])
def test_false_alarms_and_misses_of_the_true_ratio_are_as_rare_as_the_level(
    paired: bool, permille: int
) -> None:
    generator = np.random.default_rng(7)
    alarms = misses = 0
    for _ in range(RUNS):
        a, b = trials(generator, 7), trials(generator, 7, scale=1.3)
        test = RatioTest(Sides(a, b, paired), permille)
        misses += test.p_value(1.3) <= 0.05  # the interval would not contain the truth
        alarms += RatioTest(Sides(a, trials(generator, 7), paired), permille).p_value() <= 0.05
    assert stats.binom.sf(alarms - 1, RUNS, 0.05) > UNLIKELY
    assert stats.binom.sf(misses - 1, RUNS, 0.05) > UNLIKELY
    assert stats.binom.cdf(alarms, RUNS, 0.05) > UNLIKELY  # and it is no test that never rejects


def test_the_p_value_is_that_of_all_relabellings() -> None:
    generator = np.random.default_rng(3)
    a, b = trials(generator, 5), trials(generator, 5, scale=1.05)
    together = np.sort(np.concatenate((*a, *b)))
    middle = together[math.ceil(0.5 * len(together)) - 1]
    shares = np.array([np.mean(each <= middle) for each in (*a, *b)])
    assert (together == middle).sum() == 1  # else ties would have to be split here, too

    def statistic(labelled: tuple[int, ...]) -> float:
        others = [place for place in range(10) if place not in labelled]
        return abs(stats.ttest_ind(shares[list(labelled)], shares[others], equal_var=False).statistic)

    observed = statistic((5, 6, 7, 8, 9))
    all_of_them = [statistic(each) for each in itertools.combinations(range(10), 5)]
    expected = np.mean([each >= observed - 1e-9 for each in all_of_them])
    assert RatioTest(Sides(a, b), 500).p_value() == pytest.approx(expected)


def test_the_interval_ends_where_the_test_begins_to_reject() -> None:
    generator = np.random.default_rng(5)
    for paired in (False, True):
        test = RatioTest(Sides(trials(generator, 9), trials(generator, 9, scale=1.1), paired), 500)
        low, high = test.interval()
        assert low < test.estimate < high
        for end, outwards in ((low, 0.999), (high, 1.001)):
            assert test.p_value(end * outwards) <= 0.05 < test.p_value(end / outwards)


def test_pairs_take_out_what_a_block_has_in_common() -> None:
    generator = np.random.default_rng(11)
    blocks = np.exp(generator.normal(0.0, 0.5, 10))
    a = tuple(trials(generator, 1, scale=block, spread=0.01)[0] for block in blocks)
    b = tuple(trials(generator, 1, scale=1.2 * block, spread=0.01)[0] for block in blocks)
    assert RatioTest(Sides(a, b, paired=True), 500).p_value() <= 0.01
    assert RatioTest(Sides(a, b), 500).p_value() > 0.2


def test_blocks_in_which_the_machine_is_slow_still_show_a_difference() -> None:
    """With one median of all blocks, both trials of most blocks lie on one side of it: p was 0.25."""
    generator = np.random.default_rng(12)
    slow = np.exp(np.linspace(-0.5, 0.5, 9))
    a, b = (
        tuple(
            np.rint(generator.lognormal(10.0, 0.05, 60) * factor * ratio).astype(np.int64) for factor in slow
        )
        for ratio in (1.0, 1.05)
    )
    test = RatioTest(Sides(a, b, paired=True), 500, 0.01)
    low, high = test.interval()
    assert test.p_value() <= 0.01
    assert 1.03 < low < test.estimate < high < 1.07


def test_a_tail_keeps_the_quantile_of_all_blocks() -> None:
    """Two blocks of ten have all the slow messages; the tails of the others say nothing of them."""
    generator = np.random.default_rng(14)
    a, b = (list(trials(generator, 10, messages=200)) for _ in "ab")
    for place in (3, 7):
        b[place][:40] *= 10
    test = RatioTest(Sides(tuple(a), tuple(b), paired=True), 990)
    assert test.estimate == test.b_ns / test.a_ns > 5.0


def test_every_trial_weighs_the_same() -> None:
    long, short = np.full(1000, 10), np.full(10, 20)
    side = Side([long, short, short])
    assert side.quantile(0.5) == 20
    assert joint_quantile(side, Side([long]), 0.5) == 10
    assert joint_quantile(side, Side([np.full(5, 40)]), 0.9, ratio=2.0) == 20
    assert joint_quantile(side, Side([np.full(5, 44)]), 0.9, ratio=2.0) == 22


def test_equal_latencies_show_nothing() -> None:
    same = tuple(np.full(30, 5_000) for _ in range(6))
    test = RatioTest(Sides(same, same), 500)
    assert (test.estimate, test.p_value()) == (1.0, 1.0)
    twice = tuple(each * 2 for each in same)
    assert RatioTest(Sides(same, twice), 500).p_value() == pytest.approx(2 / 924)


def test_an_interval_that_the_trials_do_not_bound_has_no_end() -> None:
    generator = np.random.default_rng(13)
    a, b = trials(generator, 5), trials(generator, 5)
    assert RatioTest(Sides(a, b, paired=True), 500).interval() == (0.0, math.inf)


def test_the_smallest_p_value_depends_on_the_number_of_trials_alone() -> None:
    assert smallest_p(6, 6, paired=False) == pytest.approx(2 / 924)
    assert smallest_p(6, 6, paired=True) == 2 / 64
    assert smallest_p(0, 6, paired=False) == 1.0
    assert fewest_trials(0.02, paired=True) == 7
    assert fewest_trials(0.02, paired=False) == 5
    assert fewest_trials(1e-4, paired=False) == 9


def counted_shares(a: Sequence[Numbers], b: Sequence[Numbers]) -> np.ndarray:
    """The shares of each trial's messages up to the median of all of them; A's, then B's, in two rows."""
    together = np.sort(np.concatenate((*a, *b)))
    middle = together[math.ceil(0.5 * len(together)) - 1]
    below = np.array([[(trial < middle).mean() for trial in side] for side in (a, b)])
    equal = np.array([[(trial == middle).mean() for trial in side] for side in (a, b)])
    return below + (0.5 - below.mean()) / equal.mean() * equal


@pytest.mark.parametrize("paired", [False, True])
def test_scipy_comes_to_the_same_p_value(paired: bool) -> None:
    """Two programs that share nothing: SciPy's own relabelling and its own t, on shares counted here."""
    generator = np.random.default_rng(11)
    for scale in (1.0, 1.2):
        a, b = trials(generator, 6), trials(generator, 6, scale=scale)
        blocks = [([one], [other]) for one, other in zip(a, b, strict=True)] if paired else [(a, b)]
        shares = np.concatenate([counted_shares(*block) for block in blocks], axis=1)

        def statistic(one: np.ndarray, other: np.ndarray) -> float:
            test = stats.ttest_rel(other, one) if paired else stats.ttest_ind(other, one, equal_var=False)
            return abs(round(float(test.statistic), 9))

        expected = stats.permutation_test(
            tuple(shares),
            statistic,
            permutation_type="samples" if paired else "independent",
            vectorized=False,
            n_resamples=np.inf,
            alternative="greater",
        )
        assert RatioTest(Sides(a, b, paired), 500).p_value() == pytest.approx(expected.pvalue)
