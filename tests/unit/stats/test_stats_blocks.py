# SPDX-License-Identifier: Apache-2.0
"""Two trials of one block at their joint quantile: as counted message by message, whichever is called A."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagometer.stats.interval.blocks import Block

LATENCIES = st.lists(st.integers(-2, 40), min_size=1, max_size=30)


def counted(a: np.ndarray, b: np.ndarray, ratio: float) -> float:
    """The difference of the shares among the lower half of both, which have as many messages; no ties."""
    together = np.sort(np.concatenate((a, b / ratio)))
    middle = together[len(a) - 1]
    return float((b / ratio <= middle).mean() - (a <= middle).mean())


@pytest.mark.parametrize("count", [1, 2, 7, 60, 199])
@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.05, 3.0])
def test_it_is_the_difference_of_the_shares(count: int, ratio: float) -> None:
    generator = np.random.default_rng(count)
    a, b = (np.rint(np.exp(generator.normal(10.0, 0.3, count)) * 1e6).astype(np.int64) for _ in "ab")
    assert Block(a, b, 0.5).difference(ratio) == pytest.approx(counted(a, b, ratio), abs=1e-12)


@given(LATENCIES, LATENCIES)
def test_swapping_the_trials_changes_the_sign(a: list[int], b: list[int]) -> None:
    one, other = np.array(a), np.array(b)
    assert Block(one, other, 0.5).difference(1.0) == pytest.approx(-Block(other, one, 0.5).difference(1.0))


@given(LATENCIES, LATENCIES, st.lists(st.floats(0.01, 100.0), min_size=2, max_size=2))
def test_it_grows_with_the_ratio_and_stays_a_difference_of_shares(
    a: list[int], b: list[int], ratios: list[float]
) -> None:
    block = Block(np.array(a), np.array(b), 0.5)
    low, high = (block.difference(ratio) for ratio in sorted(ratios))
    assert -1.0 <= low <= high <= 1.0


def test_equal_messages_count_half() -> None:
    same = np.full(30, 5_000)
    assert Block(same, same, 0.5).difference(1.0) == 0.0
    assert Block(same, same[:7], 0.5).difference(1.0) == pytest.approx(0.0, abs=1 / 7)
    assert Block(same, same * 2, 0.5).difference(1.0) == -1.0
    assert Block(same, same * 2, 0.5).difference(2.0) == 0.0


def test_a_trial_with_more_messages_weighs_no_more() -> None:
    generator = np.random.default_rng(5)
    few, many = (generator.lognormal(10.0, 0.3, count) * 1e3 for count in (100, 10_000))
    assert abs(Block(few, many, 0.5).difference(1.0)) < 0.2
    assert Block(few, many * 3.0, 0.5).difference(1.0) < -0.9
