# SPDX-License-Identifier: Apache-2.0
"""The search for the highest sustained rate, and the verdict on one trial that it rests on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import polars as pl
import pytest

from lagometer.run.search.rate_search import Bounds, Found, rounded, search_rate
from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.verdict.sustained import Verdict, verdict
from tests.fixtures.small_trial import MEASURE_BEGIN_NS, SmallTrial

BOUNDS = Bounds(low_hz=100.0, floor_hz=10.0, ceiling_hz=1e6, precision=0.05, repeats=3)


def below(limit_hz: float) -> Callable[[float], bool]:
    return lambda rate_hz: rate_hz <= limit_hz


@pytest.mark.parametrize("limit_hz", [10.0, 37.0, 100.0, 999.0, 1234.5, 80_000.0, 999_000.0])
def test_a_sharp_limit_is_bracketed(limit_hz: float) -> None:
    found = search_rate(BOUNDS, below(limit_hz))
    assert found.status == "found"
    assert found.sustained_hz is not None and found.failed_hz is not None
    assert found.sustained_hz <= limit_hz < found.failed_hz <= 1.05 * found.sustained_hz * 1.001
    assert found.low_hz is None or found.low_hz == rounded(found.sustained_hz / 1.05)
    assert found.high_hz is None or found.high_hz == rounded(found.failed_hz * 1.05)
    assert sum(map(len, found.tried.values())) < 40


def test_the_ends_of_what_may_be_tried_are_told() -> None:
    most = search_rate(BOUNDS, below(2e6))
    assert (most.status, most.sustained_hz, most.failed_hz) == ("at-least", 1e6, None)
    least = search_rate(BOUNDS, below(1.0))
    assert (least.status, least.sustained_hz, least.failed_hz) == ("below", None, 10.0)


def test_one_success_at_the_highest_rate_is_not_enough() -> None:
    tried: list[float] = []

    def attempt(rate_hz: float) -> bool:
        tried.append(rate_hz)
        return rate_hz < 500 or (rate_hz == 1600 and tried.count(1600) == 1)

    found = search_rate(Bounds(100, 10, 1600, 0.1, 3), attempt)
    assert found.status == "found"
    assert found.sustained_hz is not None and found.failed_hz is not None
    assert found.sustained_hz < 500 <= found.failed_hz


def noisy(limit_hz: float, width: float, seed: int) -> Callable[[float], bool]:
    """A border that is soft: half of the trials at the limit are sustained, `width` in logarithms."""
    generator = random.Random(seed)

    def attempt(rate_hz: float) -> bool:
        return generator.random() < 1.0 / (1.0 + math.exp(math.log(rate_hz / limit_hz) / width))

    return attempt


def holds(one: Found, other: Found) -> bool:
    """Whether the interval of one search holds what the other found."""
    assert one.sustained_hz is not None and other.sustained_hz is not None
    low_hz = one.low_hz if one.low_hz is not None else 0.0
    high_hz = one.high_hz if one.high_hz is not None else math.inf
    return low_hz <= other.sustained_hz <= high_hz


def test_two_searches_agree_within_their_intervals() -> None:
    pairs = [
        [search_rate(BOUNDS, noisy(3_000.0, 0.03, 2 * seed + side)) for side in (0, 1)] for seed in range(200)
    ]
    agreed = sum(holds(one, other) and holds(other, one) for one, other in pairs)
    assert agreed >= 195
    covered = sum(found.low_hz <= 3_000.0 <= found.high_hz for pair in pairs for found in pair)  # type: ignore[operator]
    assert covered >= 396


def test_a_lucky_trial_on_the_way_up_is_found_out() -> None:
    tried: list[float] = []

    def attempt(rate_hz: float) -> bool:
        tried.append(rate_hz)
        return rate_hz <= 300.0 or (rate_hz == 400.0 and tried.count(400.0) == 1)

    found = search_rate(BOUNDS, attempt)
    assert found.sustained_hz is not None and found.sustained_hz <= 300.0 < (found.failed_hz or 0.0)


def test_rates_have_few_digits() -> None:
    assert rounded(1234.567) == 1235.0
    assert rounded(0.0123456) == 0.01235


def judged(trial: SmallTrial, loss_max: float = 0.0, **changes: object) -> Verdict:
    facts = trial.facts({0}, {"sink"}, **changes)
    taken = samples(trial.lanes(), facts)
    rows: pl.DataFrame = summarise(taken, facts)
    return verdict(rows, taken, loss_max)


def growing(share: float, lost: int = 0) -> SmallTrial:
    """A source whose messages wait longer and longer, by this share of the time that passes."""
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(100):
        at_ns = MEASURE_BEGIN_NS + 10_000 * number
        trial.send(0, number, at_ns, intended_ns=at_ns)
        if not 10 <= number < 10 + lost:
            trial.take(edge, number, at_ns + 500 + round(share * 10_000 * number))
    return trial


def test_a_queue_that_builds_up_is_not_sustained() -> None:
    assert judged(growing(0.0)) == Verdict(True, "", 0.0, 0.0)
    assert judged(growing(0.008)).sustained is True
    said = judged(growing(0.03))
    assert said.sustained is False
    assert said.growth == pytest.approx(0.03, rel=0.02)
    assert "response times grow by 3 %" in said.why


def test_loss_beyond_what_is_allowed_is_not_sustained() -> None:
    assert judged(growing(0.0, lost=2), 0.02).sustained is True
    said = judged(growing(0.0, lost=3), 0.02)
    assert (said.sustained, said.loss) == (False, 0.03)
    assert said.why == "3 of 100 messages did not arrive"


def test_only_reasons_of_load_speak_against_the_rate() -> None:
    assert judged(growing(0.0), period_ns=5_000).sustained is False
    said = judged(growing(0.0), reasons=("worker-died: source",))
    assert (said.sustained, said.why) == (None, "worker-died: source")
