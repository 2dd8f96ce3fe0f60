# SPDX-License-Identifier: Apache-2.0
"""The interval of the share of missed deadlines: known limits, clusters, and how often it holds the truth."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats as reference

from lagometer.stats.cell.cell_estimates import MISS_SHARE, estimates
from lagometer.stats.interval.misses import Mask, clopper_pearson, miss_limits, missed_in_order
from lagometer.store import format as form

ALPHA = 0.05
MESSAGES = 1_000


def limits(missed: list[Mask], worth: float | None = None) -> tuple[float, float]:
    due = sum(len(each) for each in missed)
    shares = [float(each.mean()) for each in missed]
    return miss_limits(shares, missed, due, worth if worth is not None else float(due), ALPHA)


def spread(hits: int) -> Mask:
    """A trial whose misses are spread evenly over it."""
    trial = np.zeros(MESSAGES, dtype=np.bool_)
    trial[np.linspace(0, MESSAGES - 1, hits).astype(int)] = True
    return trial


@pytest.mark.parametrize(("hits", "count"), [(0, 50), (3, 50), (50, 50), (17, 1000)])
def test_exact_limits_are_those_of_another_implementation(hits: int, count: int) -> None:
    exact = reference.binomtest(hits, count).proportion_ci(0.95, method="exact")
    assert clopper_pearson(hits, count, ALPHA) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("worth", [60.0, 6000.0])
def test_without_a_miss_the_limit_is_that_of_the_independent_messages(worth: float) -> None:
    """Its upper end is 1 - 0.025^(1 / n): a few hundredths of n's inverse, never 0."""
    none = [np.zeros(MESSAGES, dtype=np.bool_)] * 6
    assert limits(none, worth) == pytest.approx((0.0, 1.0 - 0.025 ** (1.0 / worth)))
    assert limits([~each for each in none], worth) == pytest.approx((0.025 ** (1.0 / worth), 1.0))


def test_one_miss_says_no_more_than_none() -> None:
    assert limits([spread(1), *[spread(0)] * 5])[1] > limits([spread(0)] * 6)[1]


def test_trials_that_differ_widen_the_interval() -> None:
    """60 misses in each trial, or 360 in one: the share is the same, what is known of it is not."""
    alike, apart = limits([spread(60)] * 6), limits([spread(360), *[spread(0)] * 5])
    assert alike[0] < 0.06 < alike[1] and apart[0] < 0.06 < apart[1]
    assert alike[1] - alike[0] < 0.02 and apart[1] > 0.3


def test_misses_in_a_row_widen_the_interval_though_trials_are_alike() -> None:
    """One stall of 60 messages a trial, in each: six stalls were seen, not 360 misses."""
    stall = np.zeros(MESSAGES, dtype=np.bool_)
    stall[400:460] = True
    scattered, stalled = limits([spread(60)] * 6), limits([stall] * 6)
    assert stalled[1] - stalled[0] > 2.0 * (scattered[1] - scattered[0])


def test_what_messages_are_worth_bounds_what_misses_are() -> None:
    trials = [spread(60)] * 6
    assert limits(trials, 100.0)[1] > limits(trials)[1]


def clustered(generator: np.random.Generator, share: float, length: float) -> Mask:
    """A trial of a two-state Markov chain: misses in runs of this mean length."""
    enter = share / (1.0 - share) / length
    first = bool(generator.random() < share)
    runs: list[int] = []
    while sum(runs) < MESSAGES:
        missing = first == (len(runs) % 2 == 0)
        runs.append(int(generator.geometric(1.0 / length if missing else enter)))
    states = np.arange(len(runs)) % 2 == (0 if first else 1)
    return np.repeat(states, runs)[:MESSAGES]


def independent(generator: np.random.Generator) -> Mask:
    return generator.random(MESSAGES) < 0.01


def of_its_own(generator: np.random.Generator) -> Mask:
    """Each trial has a share of misses of its own, 5 % on average."""
    return generator.random(MESSAGES) < generator.gamma(2.0, 0.025)


@pytest.mark.parametrize(
    ("draw", "share"),
    [
        (independent, 0.01),
        (of_its_own, 0.05),
        (lambda generator: clustered(generator, 0.05, 5.0), 0.05),
        (lambda generator: clustered(generator, 0.02, 20.0), 0.02),
    ],
    ids=["independent", "trials differ", "runs of 5", "runs of 20"],
)
@pytest.mark.parametrize("trials", [6, 20])
def test_the_interval_holds_the_truth(draw: object, share: float, trials: int) -> None:
    """In 200 simulated cells; 95 % of them should, 92 % is two standard errors below."""
    assert callable(draw)
    generator = np.random.default_rng(11)
    held = 0
    for _ in range(200):
        low, high = limits([draw(generator) for _ in range(trials)])
        held += low <= share <= high
    assert held >= 184


# --- as estimates.parquet has it


def campaign(trials: int) -> tuple[pl.DataFrame, dict[int, pl.DataFrame]]:
    """A cell of one edge; messages 50 to 59 of each trial are late, 70 is lost."""
    count = 200
    sequence = np.arange(count, dtype=np.int64)
    late = (sequence >= 50) & (sequence < 60)
    generator = np.random.default_rng(3)
    stored, rows = {}, []
    for trial in range(trials):
        latency: npt.NDArray[np.int64] = generator.integers(1_000, 9_000, count) + 50_000 * late
        publish = sequence * 1_000_000
        stored[trial] = pl.DataFrame(
            {
                "edge": ["a→b"] * count,
                "phase": ["measure"] * count,
                "outcome": ["lost" if number == 70 else "delivered" for number in sequence],
                "intended_ns": publish - 500,
                "publish_ns": publish,
                "taken_ns": [
                    None if n == 70 else int(t) for n, t in zip(sequence, publish + latency, strict=True)
                ],
            }
        )
        told = {"deadline_ns": 20_000, "deadline_missed": 11, "deadline_due": count, MISS_SHARE: 11 / count}
        rows.append(
            {"cell": "udp", "trial": trial, "edge": "a→b", "valid": True, "lost": 1, "censored": 0, **told}
        )
    return pl.DataFrame(rows), stored


def test_the_estimates_have_the_share_of_misses_with_its_interval() -> None:
    cells, stored = campaign(7)
    found = estimates(cells, lambda _, trial: stored[trial])
    assert dict(found.schema) == form.ESTIMATES_SCHEMA
    row = found.filter(pl.col("quantity") == MISS_SHARE).row(0, named=True)
    masks = [missed_in_order(stored[trial], 20_000) for trial in range(7)]
    assert [int(mask.sum()) for mask in masks] == [11] * 7
    assert (row["status"], row["trials"], row["n"], row["estimate_share"]) == ("ok", 7, 1_400, 11 / 200)
    assert 0.0 < row["low_share"] < 11 / 200 < row["high_share"] < 0.2
    assert row["estimate_ns"] is row["low_ns"] is None


def test_too_few_trials_have_a_share_and_no_interval() -> None:
    cells, stored = campaign(5)
    found = estimates(cells, lambda _, trial: stored[trial])
    row = found.filter(pl.col("quantity") == MISS_SHARE).row(0, named=True)
    assert (row["status"], row["needed_trials"], row["low_share"]) == ("not-enough-samples", 6, None)


def test_a_quantile_among_the_lost_is_infinite() -> None:
    """With one of 200 lost p50 is hardly another; with half of them gone p90 is infinite."""
    cells, stored = campaign(30)
    found = estimates(cells, lambda _, trial: stored[trial])
    rows = {row["quantity"]: row for row in found.iter_rows(named=True)}
    with_lost = rows["latency_p50_lost"]
    assert with_lost["n"] == rows["latency_p50"]["n"] + 30 == 6_000
    together = np.sort(
        np.concatenate(
            [
                np.append((each["taken_ns"] - each["publish_ns"]).drop_nulls().to_numpy(), 2**62)
                for each in stored.values()
            ]
        )
    )
    assert (
        with_lost["estimate_ns"] == together[math.ceil(0.5 * 6_000) - 1] >= rows["latency_p50"]["estimate_ns"]
    )
    never = [{"outcome": "censored", "taken_ns": None} if place % 2 else {} for place in range(200)]
    gone = {
        trial: frame.with_columns(
            outcome=pl.Series([each.get("outcome", "delivered") for each in never]),
            taken_ns=pl.Series([None if each else 5_000 + 1_000_000 * n for n, each in enumerate(never)]),
        )
        for trial, frame in stored.items()
    }
    found = estimates(cells, lambda _, trial: gone[trial])
    rows = {row["quantity"]: row for row in found.iter_rows(named=True)}
    assert rows["latency_p90_lost"]["status"] == "ok"
    assert rows["latency_p90_lost"]["estimate_ns"] is rows["latency_p90_lost"]["high_ns"] is None
    assert rows["latency_p90"]["estimate_ns"] == 5_000


def test_where_nothing_was_lost_and_no_deadline_set_there_is_nothing_to_tell() -> None:
    cells, stored = campaign(6)
    quiet = cells.with_columns(
        lost=pl.lit(0), deadline_ns=pl.lit(None, pl.Int64()), deadline_miss_share=pl.lit(None, pl.Float64())
    )
    found = estimates(quiet, lambda _, trial: stored[trial])
    assert not [name for name in found["quantity"] if "lost" in name or "deadline" in name]


# --- what the samples of end-to-end and of chains look like


def scattered(
    trials: int, unknown: frozenset[int] = frozenset()
) -> tuple[pl.DataFrame, dict[int, pl.DataFrame]]:
    """A cell whose messages are lost one by one, 3 % of them. `a→b` has its messages in the order in which
    they were sent; `end-to-end` has the same, and those that are lost after all others. unknown: trials
    between clocks whose offset nobody knows."""
    count = 2_000
    stored, rows = {}, []
    for trial in range(trials):
        generator = np.random.default_rng(100 + trial)
        publish = np.arange(count, dtype=np.int64) * 1_000_000 + 1
        lost = generator.random(count) < 0.03
        taken = publish + (100_000 * generator.lognormal(0.0, 0.3, count)).astype(np.int64)
        frame = pl.DataFrame({"publish_ns": publish, "taken_ns": taken}).with_columns(
            phase=pl.lit("measure"),
            outcome=pl.Series(np.where(lost, "lost", "delivered")),
            intended_ns=pl.lit(None, pl.Int64()),
            taken_ns=pl.when(~pl.Series(lost) & (trial not in unknown)).then("taken_ns"),
        )
        names = {"a→b": frame, "end-to-end": frame.sort(pl.col("outcome") == "lost", maintain_order=True)}
        stored[trial] = pl.concat(part.with_columns(edge=pl.lit(name)) for name, part in names.items())
        share = float(lost.mean())
        told = {"lost": int(lost.sum()), "censored": 0, "deadline_ns": 5_000_000, "deadline_due": count}
        rows += [
            {"cell": "udp", "trial": trial, "edge": name, "valid": True, **told, MISS_SHARE: share}
            for name in names
        ]
    return pl.DataFrame(rows), stored


def of_latency(cells: pl.DataFrame, stored: dict[int, pl.DataFrame]) -> pl.DataFrame:
    found = estimates(cells, lambda _, trial: stored[trial])
    return found.filter(pl.col("quantity").str.starts_with("latency"))


def test_losses_are_no_outage_because_the_samples_have_them_last() -> None:
    cells, stored = scattered(8)
    found = estimates(cells, lambda _, trial: stored[trial])
    quantities = [MISS_SHARE, *(f"latency_{name}_lost" for name in ("p50", "p90", "p99"))]
    each, whole = (
        found.filter((pl.col("edge") == name) & pl.col("quantity").is_in(quantities)).drop("edge")
        for name in ("a→b", "end-to-end")
    )
    assert whole.equals(each)
    low, high = whole.filter(pl.col("quantity") == MISS_SHARE).select("low_share", "high_share").row(0)
    assert 0.023 < low < 0.03 < high < 0.037, "as of 16,000 independent messages, nearly"


def test_what_is_lost_between_unknown_clocks_does_not_make_a_tail() -> None:
    """Where no latency is known, the lost ones alone would be a trial that loses everything."""
    cells, stored = scattered(8, unknown=frozenset({0}))
    known, rest = scattered(8)
    found, seven = of_latency(cells, stored), of_latency(known.filter(pl.col("trial") > 0), rest)
    assert found.equals(seven)
    assert found.filter(pl.col("quantity") == "latency_p90_lost")["trials"].to_list() == [7, 7]
    nothing, gone = scattered(8, unknown=frozenset(range(8)))
    found = of_latency(nothing, gone)
    assert set(found["status"]) == {"not-enough-samples"} and set(found["n"]) == {0}
