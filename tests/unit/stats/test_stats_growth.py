# SPDX-License-Identifier: Apache-2.0
"""A queue that builds up in a trial: found with its slope, and no false alarm on steady trials."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import scipy

from lagometer.stats.trial.edges import samples as samples_of
from lagometer.stats.trial.estimate import summarise
from lagometer.stats.verdict.growth import Growth, response_growth
from lagometer.stats.verdict.sustained import verdict
from tests.fixtures.small_trial import SmallTrial

pytestmark = pytest.mark.by_turn

MS = 1_000_000


def samples(response_ns: np.ndarray, rate_hz: float) -> pl.DataFrame:
    """Messages of one edge, due at a rate, and how long after that each was taken."""
    count = len(response_ns)
    due = 5_000_000_000 + np.round(np.arange(count) * 1e9 / rate_hz).astype(np.int64)
    return pl.DataFrame(
        {
            "edge": ["end-to-end"] * count,
            "phase": ["measure"] * count,
            "outcome": ["delivered"] * count,
            "intended_ns": due,
            "publish_ns": due + 2_000,
            "taken_ns": due + response_ns.astype(np.int64),
        }
    )


def slow_sink(seconds: float, rate_hz: float, work_ns: int, depth: int | None) -> np.ndarray:
    """How long messages wait for a sink that works on each, with a queue of that depth (None: no end)."""
    free_ns, responses = 0, []
    period_ns = round(1e9 / rate_hz)
    for number in range(round(seconds * rate_hz)):
        due_ns = number * period_ns
        if depth is not None and free_ns - due_ns > depth * work_ns:
            continue  # there is no room: overwritten
        begin_ns = max(free_ns, due_ns)
        responses.append(begin_ns - due_ns + 50_000)
        free_ns = begin_ns + work_ns
    return np.array(responses)


def test_a_queue_is_found_with_its_slope() -> None:
    """100 Hz into 15 ms of work, as reported of a queue of one that holds seconds of old data."""
    found = response_growth(samples(slow_sink(10.0, 100.0, 15 * MS, None), 100.0))
    assert found is not None and found.builds_up
    assert found.per_s == pytest.approx(0.5, rel=0.01)  # each 10 ms another 5 ms
    assert found.slope == pytest.approx(1 / 3, rel=0.01)  # of which one is taken each 15 ms
    assert found.waiting == pytest.approx(10.0 * 100 * 5 / 6 * 0.5, rel=0.05)
    bounded = response_growth(samples(slow_sink(10.0, 100.0, 15 * MS, 1), 66.0))
    assert bounded is not None and not bounded.builds_up


@pytest.mark.parametrize(
    ("grown_ms_per_s", "builds_up"), [(5.0, False), (9.0, False), (11.0, True), (330.0, True), (-50.0, False)]
)
def test_more_than_a_hundredth_is_a_queue(grown_ms_per_s: float, builds_up: bool) -> None:
    response = 50_000 + np.arange(10_000) * (grown_ms_per_s * 1e6 / 1_000)
    found = response_growth(samples(response + 1e9 * (grown_ms_per_s < 0), 1_000.0))
    assert found is not None
    assert found.per_s == pytest.approx(grown_ms_per_s / 1e3, rel=0.01)
    assert found.builds_up == builds_up


def test_less_than_two_messages_are_no_queue() -> None:
    growth = 0.015  # 1.5 % of two thirds of 2 s: 20 ms
    for rate_hz, builds_up in ((60.0, False), (200.0, True)):
        response = 1_000_000 + np.arange(round(2 * rate_hz)) * (growth * 1e9 / rate_hz)
        found = response_growth(samples(response, rate_hz))
        assert found is not None and found.per_s == pytest.approx(growth, rel=0.01)
        assert found.builds_up == builds_up, rate_hz


def test_few_messages_tell_nothing() -> None:
    assert response_growth(samples(np.full(29, 1_000_000), 100.0)) is None
    found = response_growth(samples(np.full(30, 1_000_000), 100.0))
    assert found == Growth(0.0, pytest.approx(0.1), builds_up=False)


def latencies(family: str, generator: np.random.Generator, count: int, median_ns: float) -> np.ndarray:
    """A steady series."""
    if family == "uniform":
        return 2.0 * median_ns * generator.random(count)
    if family == "pareto":
        return median_ns * (1.0 + generator.pareto(2.0, count))
    phi = {"lognormal": 0.0, "autoregressive": 0.9}[family]
    noise = generator.normal(size=count) * math.sqrt(1.0 - phi * phi)
    noise[0] = generator.normal()
    return median_ns * np.exp(0.5 * scipy.signal.lfilter([1.0], [1.0, -phi], noise))


SEEDS = 400


@pytest.mark.parametrize(
    ("seconds", "rate_hz", "median_ms"),
    [(2.0, 200.0, 0.05), (2.0, 1_000.0, 5.0), (0.5, 200.0, 5.0), (10.0, 100.0, 15.0), (1.0, 100.0, 15.0)],
)
@pytest.mark.parametrize("family", ["lognormal", "uniform", "pareto", "autoregressive"])
def test_steady_trials_alarm_hardly_ever(
    family: str, seconds: float, rate_hz: float, median_ms: float
) -> None:
    """None of 400 where messages are independent, and at most 1 % where they hang together."""
    alarms = 0
    for seed in range(SEEDS):
        generator = np.random.default_rng(seed)
        series = latencies(family, generator, round(seconds * rate_hz), median_ms * MS)
        found = response_growth(samples(series, rate_hz))
        alarms += found is not None and found.builds_up
    assert alarms <= (SEEDS // 100 if family == "autoregressive" else 0), alarms


@pytest.mark.parametrize("family", ["lognormal", "uniform", "pareto"])
def test_latencies_of_many_periods_are_not_taken_for_a_queue(family: str) -> None:
    """60 messages of 30 ms, one each 5 ms: without the medians' intervals a tenth would alarm."""
    found = [
        response_growth(samples(latencies(family, np.random.default_rng(seed), 60, 30.0 * MS), 200.0))
        for seed in range(SEEDS)
    ]
    assert sum(each is not None and each.builds_up for each in found) <= SEEDS // 200


def test_search_and_the_warning_judge_alike() -> None:
    """The verdict of `lagometer search` and the warning come from one function."""
    rows = pl.DataFrame(
        [
            {
                "edge": "end-to-end",
                "n": 300,
                "lost": 0,
                "overwritten": 0,
                "censored": 0,
                "rejected": 0,
                "reasons": [],
            }
        ],
        schema_overrides={"reasons": pl.List(pl.String())},
    )
    for growth in (0.0, 0.008, 0.012, 0.5):
        frame = samples(100_000 + np.arange(3_000) * growth * 1e6, 1_000.0)
        found = response_growth(frame)
        assert found is not None
        assert verdict(rows, frame, 0.001).sustained is not found.builds_up
        assert verdict(rows, frame, 0.001).growth == found.per_s


# --- the warning of a trial


def trial(grown_ns: int, messages: int = 60, period_ns: int = 10_000, **factors: object) -> pl.DataFrame:
    """The rows of a trial in which each message takes so much longer than the one before."""
    small = SmallTrial()
    edge = small.edge(0, "source", "sink")
    for number in range(messages):
        at_ns = 1_000_000 + period_ns * number
        small.send(0, number, at_ns, intended_ns=at_ns)
        small.take(edge, number, at_ns + 1_000 + grown_ns * number)
    facts = small.facts({0}, {"sink"}, factors=factors)
    return summarise(samples_of(small.lanes(), facts), facts)


def test_a_trial_warns_of_its_queue_and_has_the_slope() -> None:
    grown = trial(5_000, depth=1)
    assert grown["response_growth_ns_per_s"].to_list() == pytest.approx([1e9 / 3, 1e9 / 3], rel=0.01)
    assert grown["valid"].all()
    (warning,) = grown["warnings"][0]
    assert warning == (
        "queue-builds-up: end-to-end, median response time grows by 333 ms a second; "
        "25 messages wait on source→sink, where depth is 1"
    )
    (plain,) = trial(5_000, depth=64)["warnings"][0]
    assert plain.endswith("grows by 333 ms a second")
    steady = trial(0, depth=1)
    assert steady["warnings"][0].to_list() == []
    assert steady["response_growth_ns_per_s"].to_list() == [0.0, 0.0]


def test_few_messages_and_closed_loops_have_no_slope() -> None:
    assert trial(5_000, messages=20)["response_growth_ns_per_s"].to_list() == [None, None]
