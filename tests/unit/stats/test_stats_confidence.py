# SPDX-License-Identifier: Apache-2.0
"""Intervals of a cell's quantiles: against other implementations, known truths, and their own limits."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal
from scipy import stats as reference

from lagometer.stats.cell.cell_estimates import estimates
from lagometer.stats.interval import bootstrap
from lagometer.stats.interval.bootstrap import Bins, Floats, variance_of_trial_means
from lagometer.stats.interval.confidence import (
    NOT_ENOUGH,
    OK,
    Numbers,
    Pool,
    Stop,
    degrees_of_freedom,
    share_limits,
)
from lagometer.store import format as form


def autoregressive(phi: float, count: int, seed: int = 7) -> Floats:
    """An AR(1) series that starts at its first shock."""
    shocks = np.random.default_rng(seed).standard_normal(count)
    found: Floats = signal.lfilter([1.0], [1.0, -phi], shocks)
    return found


def latencies(
    trials: int, messages: int, phi: float = 0.0, offset: float = 0.0, seed: int = 0
) -> list[Numbers]:
    """Lognormal around 100 µs; offset: standard deviation of a trial's own, as a share."""
    generator = np.random.default_rng(seed)
    series = [
        autoregressive(phi, messages, seed * 1000 + n) * math.sqrt(1.0 - phi * phi) for n in range(trials)
    ]
    offsets = offset * generator.standard_normal(trials)
    return [
        (100_000 * (np.exp(0.3 * each) + own)).astype(np.int64)
        for each, own in zip(series, offsets, strict=True)
    ]


# --- within a trial


@pytest.mark.parametrize(
    ("phi", "count", "length"),
    # arch 8 (optimal_block_length, circular) gives 22 and 49 and 97, 31, 24 for these series.
    [(0.9, 300, 22), (0.9, 1000, 49), (0.9, 4000, 97), (0.8, 1000, 31), (0.5, 4000, 24)],
)
def test_block_lengths_agree_with_another_implementation(phi: float, count: int, length: int) -> None:
    series = autoregressive(phi, count)
    assert bootstrap.block_length((series - series.mean())[None, :]) == pytest.approx(length, rel=0.1)


def test_the_variance_is_that_of_drawn_blocks() -> None:
    series = autoregressive(0.8, 400)
    length = bootstrap.block_length((series - series.mean())[None, :])
    generator = np.random.default_rng(1)
    starts = generator.integers(0, len(series), (20_000, len(series) // length + 1))
    places = (starts[:, :, None] + np.arange(length)).reshape(len(starts), -1)[:, : len(series)] % len(series)
    drawn = series[places].mean(axis=1).var()
    bins = Bins([len(series)])
    assert variance_of_trial_means(bins.sums(series), bins.sizes) == pytest.approx(drawn, rel=0.05)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_bins_keep_sums_and_counts(counts: list[int], most: int, seed: int) -> None:
    numbers = np.random.default_rng(seed).random(sum(counts))
    limit, bootstrap.BINS_MAX = bootstrap.BINS_MAX, most
    try:
        bins = Bins(counts)
    finally:
        bootstrap.BINS_MAX = limit
    parts = np.split(numbers, np.cumsum(counts)[:-1])
    assert bins.sums(numbers).sum(axis=1) == pytest.approx([part.sum() for part in parts])
    assert bins.sizes.sum(axis=1).tolist() == counts
    assert bins.sizes.shape[1] <= most


def test_independent_messages_have_the_textbook_variance() -> None:
    rows = np.random.default_rng(3).standard_normal((40, 500))
    found = variance_of_trial_means(rows, np.ones_like(rows))
    assert found == pytest.approx(1.0 / rows.size, rel=0.1)


def test_what_hangs_together_is_worth_less() -> None:
    loose, tight = (Pool(latencies(12, 400, phi)).estimate(500) for phi in (0.0, 0.9))
    # The median's indicator of an AR(1) with 0.9 has about 13 times the variance of an independent one.
    assert 6.0 < loose.effective / tight.effective < 26.0


# --- the interval


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 1500))
def test_limits_are_those_of_clopper_and_pearson_when_all_is_known(hits: int) -> None:
    exact = reference.binomtest(hits, 2 * hits).proportion_ci(0.95, method="exact")
    # From so many trials the variance is known.
    assert share_limits(0.5, 2.0 * hits, 2 * hits, 10**9, 0.05) == pytest.approx((exact.low, exact.high))


def test_limits_widen_where_the_variance_is_known_badly() -> None:
    few, many = share_limits(0.5, 100.0, 10_000, 6, 0.05), share_limits(0.5, 100.0, 10_000, 100, 0.05)
    assert few[0] < many[0] < 0.5 < many[1] < few[1]
    assert degrees_of_freedom(0.5, 100.0, 6) == pytest.approx(5.0)
    assert degrees_of_freedom(0.99, 1000.0, 6) < 4.0


def test_six_trials_that_differ_give_about_their_range() -> None:
    """Where trials differ by more than their messages, no method can say more than lowest to highest."""
    trials = [np.arange(1000) + 1_000_000 * n for n in range(1, 7)]
    found = Pool(trials).estimate(500)
    assert found.status == OK
    assert found.effective == pytest.approx(5.0)
    assert (found.low_ns or 0) // 1_000_000 == 1
    assert (found.high_ns or 0) // 1_000_000 == 6


@settings(max_examples=50, deadline=None)
@given(st.integers(6, 12), st.integers(20, 200), st.integers(0, 10**6))
def test_an_interval_encloses_its_estimate_and_grows_with_confidence(
    count: int, each: int, seed: int
) -> None:
    pool = Pool(latencies(count, each, 0.3, 0.05, seed))
    wide, narrow = pool.estimate(500, 0.01), pool.estimate(500, 0.2)
    assert wide.low_ns is not None and narrow.low_ns is not None
    assert wide.high_ns is not None and narrow.high_ns is not None and narrow.estimate_ns is not None
    assert wide.low_ns <= narrow.low_ns <= narrow.estimate_ns <= narrow.high_ns <= wide.high_ns
    assert wide.half_width is not None and narrow.half_width is not None
    assert wide.half_width >= narrow.half_width


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=40), min_size=1, max_size=8))
def test_quantiles_weigh_trials_alike(trials: list[list[int]]) -> None:
    """The definition itself, with ties and trials of any length."""
    pool = Pool([np.array(each, dtype=np.int64) for each in trials])
    for share in (0.25, 0.5, 0.9):
        values = sorted({number for each in trials for number in each})
        below = [sum(sum(n <= v for n in each) / len(each) for each in trials) / len(trials) for v in values]
        exact = next(v for v, total in zip(values, below, strict=True) if total >= share - 1e-9)
        assert pool.quantile(share) == exact


def test_trials_of_one_length_and_nearly_one_length_agree() -> None:
    trials = latencies(8, 300, 0.5, 0.05)
    same, other = Pool(trials).estimate(900), Pool([trials[0][:-1], *trials[1:]]).estimate(900)
    assert same.estimate_ns == pytest.approx(other.estimate_ns, rel=0.01)
    assert same.low_ns == pytest.approx(other.low_ns, rel=0.02)
    assert same.effective == pytest.approx(other.effective, rel=0.1)


def test_messages_that_are_all_alike_have_an_interval_without_width() -> None:
    found = Pool([np.full(50, 7)] * 6).estimate(500)
    assert (found.status, found.low_ns, found.estimate_ns, found.high_ns) == (OK, 7, 7, 7)


# --- what cannot be said


@pytest.mark.parametrize(
    ("trials", "messages", "permille", "needed"),
    [(0, 0, 500, (6, 6)), (5, 200, 500, (6, 1200)), (3, 100, 990, (10, 1000)), (6, 50, 999, (200, 10_000))],
)
def test_too_little_is_not_enough_samples(
    trials: int, messages: int, permille: int, needed: tuple[int, int]
) -> None:
    found = Pool(latencies(trials, messages)).estimate(permille)
    assert found.status == NOT_ENOUGH
    assert (found.estimate_ns, found.low_ns, found.high_ns, found.half_width) == (None, None, None, None)
    assert found.needed_trials is not None and found.needed_messages is not None
    assert found.needed_trials == pytest.approx(needed[0], rel=0.7)
    assert found.needed_messages == pytest.approx(needed[1], rel=0.7)
    assert found.needed_trials > trials


def test_what_was_said_to_be_needed_is_enough() -> None:
    lacking = Pool(latencies(6, 300, 0.5)).estimate(990)
    assert lacking.status == NOT_ENOUGH and lacking.needed_trials is not None
    assert Pool(latencies(lacking.needed_trials * 3 // 2, 300, 0.5)).estimate(990).status == OK


def test_a_tail_of_few_stalls_is_not_enough_samples() -> None:
    """Thousands of messages beyond the quantile, but they came in two stalls."""
    trials = latencies(8, 2000)
    for number in (2, 5):
        trials[number][100:400] *= 10
    assert Pool(trials).estimate(990).status == NOT_ENOUGH
    assert Pool(trials).estimate(500).status == OK


# --- all cells


def campaign(trials: int, messages: int) -> tuple[pl.DataFrame, dict[tuple[str, int], pl.DataFrame]]:
    """Two cells with one edge and the chain; trial 1 of the second cell is not valid."""
    rows, stored = [], {}
    for number, cell in enumerate(("udp/64B", "shm/64B")):
        for trial, numbers in enumerate(latencies(trials, messages, seed=number)):
            for edge in ("a→b", form.END_TO_END):
                rows.append({"cell": cell, "trial": trial, "edge": edge, "valid": (number, trial) != (1, 1)})
            frame = pl.DataFrame({"sequence": np.arange(messages), "publish_ns": np.arange(messages) * 10**6})
            frame = frame.with_columns(
                taken_ns=pl.col("publish_ns") + numbers,
                intended_ns=pl.col("publish_ns") - 500 if number == 0 else pl.lit(None, dtype=pl.Int64()),
                phase=pl.when(pl.col("sequence") < 10).then(pl.lit("warm-up")).otherwise(pl.lit("measure")),
                outcome=pl.when(pl.col("sequence") == 20).then(pl.lit("lost")).otherwise(pl.lit("delivered")),
            )
            both = [frame.with_columns(edge=pl.lit(edge)) for edge in ("a→b", form.END_TO_END)]
            stored[cell, trial] = pl.concat(both)
    return pl.DataFrame(rows), stored


def test_estimates_of_a_campaign() -> None:
    cells, stored = campaign(7, 60)
    found = estimates(cells, lambda cell, trial: stored[cell, trial], {"shm/64B": Stop("time", 0.04)})
    assert dict(found.schema) == form.ESTIMATES_SCHEMA
    udp = found.filter((pl.col("cell") == "udp/64B") & (pl.col("edge") == form.END_TO_END))
    names = [
        f"{figure}_{name}" for figure in ("latency", "response") for name in ("p50", "p90", "p99", "p999")
    ]
    assert udp["quantity"].to_list() == names
    kept = [stored["udp/64B", n].filter(pl.col("edge") == "a→b").slice(10) for n in range(7)]
    pooled = [
        frame.filter(pl.col("outcome") == "delivered").select(pl.col("taken_ns") - pl.col("publish_ns"))
        for frame in kept
    ]
    exact = Pool([frame.to_series().to_numpy() for frame in pooled]).estimate(500)
    row = udp.row(0, named=True)
    assert (row["estimate_ns"], row["low_ns"], row["high_ns"]) == (
        exact.estimate_ns,
        exact.low_ns,
        exact.high_ns,
    )
    assert (row["trials"], row["n"], row["confidence"], row["stopped"]) == (7, 7 * 49, 0.95, None)
    assert udp.row(4, named=True)["estimate_ns"] == row["estimate_ns"] + 500
    assert udp["status"].to_list() == [OK, OK, NOT_ENOUGH, NOT_ENOUGH] * 2
    shm = found.filter(pl.col("cell") == "shm/64B")
    assert shm["quantity"].unique().sort().to_list() == sorted(names[:4])
    assert shm["trials"].unique().to_list() == [6]
    assert shm["stopped"].unique().to_list() == ["time"]


def test_a_cell_without_a_valid_trial_has_rows_too() -> None:
    cells, _ = campaign(1, 30)
    found = estimates(cells.with_columns(valid=pl.lit(False)), lambda _cell, _trial: pl.DataFrame())
    assert found["status"].unique().to_list() == [NOT_ENOUGH]
    assert found["needed_trials"].min() == 6
    assert found.height == 2 * 2 * 4


@pytest.mark.parametrize("shift_ns", [0, 5_000_000_000, -200_000])
def test_times_of_any_size_are_kept_whole(shift_ns: int) -> None:
    """Most fit into four bytes; of one trial they are above, or below zero."""
    cells, stored = campaign(7, 60)
    stored = {
        key: frame.with_columns(pl.col("taken_ns") + (shift_ns if key[1] == 3 else 0))
        for key, frame in stored.items()
    }
    found = estimates(cells, lambda cell, trial: stored[cell, trial])
    counted = (pl.col("edge") == "a→b") & (pl.col("phase") == "measure") & (pl.col("outcome") == "delivered")
    latency = pl.col("taken_ns") - pl.col("publish_ns")
    trials = [stored["udp/64B", n].filter(counted).select(latency).to_series().to_numpy() for n in range(7)]
    exact = Pool(trials).estimate(900)
    [row] = found.filter(
        (pl.col("cell") == "udp/64B") & (pl.col("edge") == "a→b") & (pl.col("quantity") == "latency_p90")
    ).iter_rows(named=True)
    assert (row["status"], row["estimate_ns"]) == (exact.status, exact.estimate_ns)
    assert (row["low_ns"], row["high_ns"]) == (exact.low_ns, exact.high_ns)
    assert {trial.dtype for trial in trials} == {np.dtype(np.int64)}
