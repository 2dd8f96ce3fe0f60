# SPDX-License-Identifier: Apache-2.0
"""Bands that are made while the curve is: the same curve, and nearly the band of many looks."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from lagometer.report.samples import selection
from lagometer.report.samples.bands import with_band
from lagometer.report.samples.curves import curve
from lagometer.report.samples.selection import Numbers


def trials(seed: int, count: int = 8, messages: int = 20_000) -> list[Numbers]:
    """Lognormal latencies about 50 µs; trials differ by some per cent, and by some messages."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(count):
        offset = 1 + 0.03 * generator.standard_normal()
        spread = 0.2 * generator.standard_normal(messages - 7 * number)
        made.append((50_000 * offset * np.exp(spread)).astype(np.int64))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_the_curve_is_the_same_and_the_band_is_nearly_that_of_many_looks(seed: int) -> None:
    given = trials(seed)
    many = curve("cell", "edge", given, alpha=0.05)
    with mock.patch.object(selection, "CHUNK", 1_000):
        once = curve("cell", "edge", given, alpha=0.05, in_passing=True)
    assert many is not None and once is not None
    assert once.latency_ns == many.latency_ns and once.probabilities == many.probabilities
    assert once.band_probabilities == many.band_probabilities and len(once.band_probabilities) > 25
    ends = zip(once.band_low_ns, once.band_high_ns, many.band_low_ns, many.band_high_ns, strict=True)
    for low, high, many_low, many_high in ends:
        assert (low, high) == pytest.approx((many_low, many_high), abs=0.25 * (many_high - many_low))


def test_runs_that_hang_together_are_not_taken_for_many_messages() -> None:
    """Every trial has the same messages, so trials say nothing; half of the runs are a microsecond later."""
    fast, slow = np.arange(1_000, 2_000, 10), np.arange(2_000, 3_000, 10)
    given = [np.concatenate([fast, slow] * 10).astype(np.int64) for _ in range(8)]
    messages = 8 * 10 * 200
    ranks = np.array([1, messages // 2, messages])

    def width(run: int) -> int:
        with mock.patch.object(selection, "CHUNK", run):
            values, band = with_band(given, ranks, [0.5], 0.05)
        assert values.tolist() == [1_000, 1_990, 2_990]
        [(_, low, high)] = band
        return high - low

    # As 160 runs the median's share is known to about ±0.08 of 2 µs; as 16,000 messages to ±0.008.
    assert 200 < width(100) < 450
    assert width(10**6) < 60, "one run a trial tells nothing of runs"


def test_a_tail_that_is_worth_too_little_has_no_band() -> None:
    given = [trial[:700] for trial in trials(1, count=6, messages=1_000)]
    _, band = with_band(given, np.array([1]), [0.5, 0.9, 0.999], 0.05)
    assert [share for share, _, _ in band] == [0.5, 0.9]


def test_trials_without_messages_change_nothing() -> None:
    given = trials(2)
    ranks, shares = np.array([5, 500]), [0.25, 0.5, 0.99]
    values, band = with_band(given, ranks, shares, 0.05)
    again, same = with_band([np.empty(0, dtype=np.int64), *given], ranks, shares, 0.05)
    assert (values.tolist(), band) == (again.tolist(), same)
