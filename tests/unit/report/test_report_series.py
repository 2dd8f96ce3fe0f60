# SPDX-License-Identifier: Apache-2.0
"""Thinning, periods and quantiles of the report, on generated inputs."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagometer.report.samples import selection
from lagometer.report.samples.curves import curve, supported_probabilities
from lagometer.report.samples.period import find_period
from lagometer.report.samples.selection import order_statistics
from lagometer.report.samples.series import _spread, keep_extremes
from lagometer.units import factor_text, plain_text

latencies = st.lists(st.integers(0, 10**12), min_size=1, max_size=3000)


@given(latencies, st.integers(60, 500))
def test_thinning_keeps_every_extreme(values: list[int], points_max: int) -> None:
    array = np.array(values, dtype=np.int64)
    kept = keep_extremes(array, points_max)
    assert len(kept) <= max(points_max, 1) and np.all(np.diff(kept) > 0)
    slowest = np.sort(array)[-20:]
    assert np.sort(array[kept])[-20:].tolist() == slowest.tolist()
    assert array[kept].min() == array.min()


@given(st.integers(1, 200_000))
def test_supported_probabilities_have_ten_samples_beyond(count: int) -> None:
    probabilities = supported_probabilities(count)
    if count < 21:
        assert len(probabilities) == 0
        return
    for probability in probabilities:
        rank = math.ceil(probability * count - 1e-9)
        assert rank - 1 >= 10 and count - rank >= 10
    assert (0.99 in probabilities) == (count - math.ceil(0.99 * count - 1e-9) >= 10)


@given(st.lists(st.integers(0, 10**9), min_size=21, max_size=500))
def test_quantiles_are_measured_values(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    made = curve("cell", "edge", [array])
    assert made is not None
    found = dict(zip(made.probabilities, made.latency_ns, strict=True))
    shares = [share for share in (0.25, 0.5, 0.75) if share in found]
    assert 0.5 in shares
    assert [found[share] for share in shares] == np.quantile(array, shares, method="inverted_cdf").tolist()


@given(
    st.lists(
        st.lists(st.one_of(st.integers(-20, 20), st.integers(-(10**12), 10**12)), max_size=300), min_size=1
    ),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
)
def test_order_statistics_are_those_of_the_sorted_numbers(
    values: list[list[int]], shares: list[float]
) -> None:
    ordered = np.sort(np.array([each for part in values for each in part], dtype=np.int64))
    if not len(ordered):
        return
    parts = [np.array(part, dtype=np.int64) for part in values]
    ranks = np.array([1 + int(share * (len(ordered) - 1)) for share in shares])
    before = [part.copy() for part in parts]
    small = {"CHUNK": 64, "SAMPLE": 16, "BINS_BITS_MAX": 4}
    for partitioned, in_order in ((0, 0), (0, 10**9), (10**9, 0)):
        with mock.patch.multiple(selection, PARTITIONED_MAX=partitioned, SORTED_MAX=in_order, **small):
            assert order_statistics(parts, ranks).tolist() == ordered[ranks - 1].tolist()
    assert all(np.array_equal(part, old) for part, old in zip(parts, before, strict=True))


def test_too_few_messages_make_no_curve() -> None:
    assert curve("cell", "edge", []) is None
    assert curve("cell", "edge", [np.arange(20)]) is None
    made = curve("cell", "edge", [np.arange(21)])
    assert made is not None and made.latency_ns == [10] * len(made.latency_ns)


def test_marks_are_spread_over_the_trial() -> None:
    """The first alone would show a trial that became calm."""
    for count in (0, 1, 5, 199, 200, 201, 1999, 10_000):
        places = _spread(count, 200)
        assert len(places) == min(count, 200) and places.tolist() == sorted(set(places.tolist()))
        assert not count or (places[0], places[-1]) == (0, count - 1)


def test_a_curve_is_of_the_same_quantity_as_its_band() -> None:
    """In both, each trial weighs the same: five slow trials, and a fast one with more messages than all."""
    random = np.random.default_rng(3)
    trials = [random.normal(200_000, 3_000, 1000).astype(np.int64) for _ in range(5)]
    trials.append(random.normal(100_000, 3_000, 6000).astype(np.int64))
    found = curve("c", "a→b", trials, 0.05)
    assert found is not None
    middle = found.latency_ns[found.probabilities.index(0.5)]
    place = found.band_probabilities.index(0.5)
    assert found.band_low_ns[place] <= middle <= found.band_high_ns[place]
    assert middle > 190_000


@pytest.mark.parametrize("count", [2000, 2003])  # a prime number: the last three are left out
@pytest.mark.parametrize("seed", range(5))
def test_a_period_is_found(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    place = np.arange(count)
    values = 50_000 * np.exp(0.1 * generator.standard_normal(count) + 0.08 * np.sin(2 * np.pi * place / 50))
    found = find_period(values.astype(np.int64), 5e6)
    assert found is not None and found.period_ns == pytest.approx(250e6, rel=0.03)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_noise_has_no_period_however_slow_it_drifts(seed: int, memory: float) -> None:
    generator = np.random.default_rng(seed)
    values = np.zeros(2000)
    for place in range(1, 2000):
        values[place] = memory * values[place - 1] + 0.1 * generator.standard_normal()
    assert find_period((50_000 * np.exp(values)).astype(np.int64), 5e6) is None


def test_nothing_to_find_in_a_constant_or_short_series() -> None:
    assert find_period(np.full(1000, 7), 1e6) is None
    assert find_period(np.arange(100), 1e6) is None


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("payload_bytes", 32768, "32 KB"),
        ("payload_bytes", 65507, "65,507 B"),
        ("rate_hz", 200.0, "200 Hz"),
        ("work_ns", 1_000_000, "1 ms"),
        ("domain", 0, "0"),
        ("adapter", "cyclonedds", "cyclonedds"),
    ],
)
def test_factors_read_well(column: str, value: object, text: str) -> None:
    assert factor_text(column, value) == text


def test_any_value_is_one_line() -> None:
    assert [plain_text(each) for each in (None, True, [1, None], [], {"a": [1]})] == [
        None,
        "yes",
        "1, unknown",
        "none",
        '{"a": [1]}',
    ]
