# SPDX-License-Identifier: Apache-2.0
"""Figures against independent implementations, and the rule that a quantile needs ten samples beyond it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import PERMILLE, moments, summarise
from lagometer.stats.trial.quantile import quantile
from lagometer.store import format as form
from tests.fixtures.small_trial import MEASURE_BEGIN_NS, SmallTrial, pipeline

NUMBERS = st.lists(st.integers(-(10**6), 10**12), min_size=1, max_size=3000)


@settings(max_examples=200, deadline=None)
@given(NUMBERS, st.sampled_from(sorted(PERMILLE.values())))
def test_quantiles_are_order_statistics(numbers: list[int], permille: int) -> None:
    ordered = np.sort(np.array(numbers, dtype=np.int64))
    share = Fraction(permille, 1000)
    # The definition itself: the smallest value with at least this share of the numbers at or below it.
    exact = next(int(v) for v in ordered if Fraction(int((ordered <= v).sum()), len(ordered)) >= share)
    rank = max(1, math.ceil(share * len(ordered)))
    beyond = len(ordered) - rank if permille >= 500 else rank - 1
    assert quantile(ordered, permille) == (exact if beyond >= 10 else None)


@pytest.mark.parametrize("count", [20, 101, 1000, 1024, 10_000, 33_333])
def test_quantiles_agree_with_numpy(count: int) -> None:
    ordered = np.sort(np.random.default_rng(count).lognormal(10, 1, count).astype(np.int64))
    for permille in PERMILLE.values():
        ours = quantile(ordered, permille)
        if ours is not None:
            # 2**-40 guards numpy against its own rounding of count * share just above a whole number.
            assert ours == np.quantile(ordered, permille / 1000 - 2**-40, method="inverted_cdf")


@pytest.mark.parametrize(
    ("permille", "least"), [(250, 41), (500, 20), (750, 40), (900, 100), (990, 1000), (999, 10_000)]
)
def test_a_quantile_needs_ten_samples_beyond_it(permille: int, least: int) -> None:
    assert quantile(np.arange(least - 1), permille) is None
    assert quantile(np.arange(least), permille) is not None


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 10**9), min_size=2, max_size=500).filter(lambda numbers: len(set(numbers)) > 1)
)
def test_moments_agree_with_scipy(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64)
    found = moments(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert found.sd == pytest.approx(np.std(values, ddof=1), rel=1e-9)
    assert found.skewness == pytest.approx(scipy.stats.skew(values), rel=1e-6, abs=1e-6)
    assert found.kurtosis == pytest.approx(scipy.stats.kurtosis(values), rel=1e-6, abs=1e-6)


def test_moments_that_are_not_defined_are_null() -> None:
    assert moments(np.array([], dtype=np.int64)).mean is None
    assert moments(np.array([5])) == type(moments(np.array([5])))(5.0, None, None, None)
    assert moments(np.array([5, 5])).skewness is None
    far = moments(np.array([10**18, 10**18 + 2]))  # no digits are lost to a common offset
    assert far.sd == pytest.approx(math.sqrt(2))


def row_of(summary: pl.DataFrame, edge: str) -> dict[str, object]:
    return summary.row(by_predicate=pl.col("edge") == edge, named=True)


def test_a_pipeline_worked_out_by_hand() -> None:
    trial, _, _ = pipeline(50, lost=(7,))
    facts = trial.facts({0}, {"sink"}, period_ns=20_000)
    summary = summarise(samples(trial.lanes(), facts), facts)
    assert summary["edge"].to_list() == ["source→relay", "relay→sink", "end-to-end"]
    first, last = row_of(summary, "source→relay"), row_of(summary, "end-to-end")
    assert (
        (first["n"], first["sent"], first["lost"]) == (last["n"], last["sent"], last["lost"]) == (49, 50, 1)
    )
    latencies = sorted(3_000 + n for n in range(50) if n != 7)
    assert (first["latency_min_ns"], first["latency_max_ns"]) == (3_000, 3_049)
    assert first["latency_p50_ns"] == latencies[24]
    assert first["latency_p90_ns"] is None  # 4 beyond
    assert last["latency_p50_ns"] == latencies[24] + 6_000
    assert last["response_p50_ns"] == latencies[24] + 6_100
    assert (first["send_lag_max_ns"], first["blocked_max_ns"], first["handle_p50_ns"]) == (100, 100, 50)
    assert row_of(summary, "relay→sink")["response_p50_ns"] is None
    assert (first["rate_intended_hz"], first["rate_achieved_hz"]) == (50_000, 50_000)
    assert (last["rate_intended_hz"], last["rate_achieved_hz"]) == (50_000, 50_000)
    assert first["cpu_per_message_ns"] == pytest.approx(10_000 / (49 + 49))
    assert (first["adapter"], first["payload_bytes"], first["depth"], first["workload"]) == (
        "udp",
        64,
        None,
        None,
    )
    assert summary["valid"].all()


def test_warm_up_and_drain_are_left_out() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number, at_ns in enumerate(
        (MEASURE_BEGIN_NS - 500, MEASURE_BEGIN_NS + 500, MEASURE_BEGIN_NS + 1_000_500)
    ):
        trial.send(0, number, at_ns)
        trial.take(edge, number, at_ns + 1_000 * (number + 1))
    facts = trial.facts({0}, {"sink"})
    row = row_of(summarise(samples(trial.lanes(), facts), facts), "end-to-end")
    assert (row["n"], row["latency_min_ns"], row["latency_max_ns"]) == (1, 2_000, 2_000)


def test_layers_are_given_where_observed() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(30):
        at_ns = MEASURE_BEGIN_NS + 1_000 * number
        trial.send(0, number, at_ns)
        trial.take(
            edge, number, at_ns + 600, signalled_ns=at_ns + 200, woken_ns=at_ns + 500 if number % 2 else 0
        )
    facts = trial.facts({0}, {"sink"})
    row = row_of(summarise(samples(trial.lanes(), facts), facts), "source→sink")
    assert (row["signalled_p50_ns"], row["woken_p50_ns"], row["wake_p50_ns"]) == (
        200,
        None,
        None,
    )  # 15 were woken
    assert row["take_p50_ns"] == 100  # woken → taken where there is a woken, else signalled → taken


def test_a_closed_loop_has_no_response_time() -> None:
    trial, _, _ = pipeline(30)
    facts = trial.facts({0}, {"sink"}, closed_loop=True)
    row = row_of(summarise(samples(trial.lanes(), facts), facts), "end-to-end")
    assert (
        row["response_p50_ns"] is None
        and row["send_lag_max_ns"] is None
        and row["latency_p50_ns"] is not None
    )


def test_columns_do_not_depend_on_what_was_measured() -> None:
    trial, _, _ = pipeline(5)
    facts = trial.facts({0}, {"sink"})
    full, empty = (summarise(samples(lanes, facts), facts) for lanes in (trial.lanes(), []))
    assert dict(full.schema) == dict(empty.schema) == form.cells_schema()
    assert pl.concat([full, empty, form.empty_cells()]).height == 6
