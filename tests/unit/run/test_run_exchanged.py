# SPDX-License-Identifier: Apache-2.0
"""Exchanges of a trial as statistics take them: on the conductor's clock, with the drift that was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lagometer.agent.observe.witness import Evidence
from lagometer.run.exchanged import exchanges, slewed
from lagometer.run.hosts.link import ClockOffset
from lagometer.run.hosts.part import HostOutcome
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.observed import Clocks, MachineLoad
from lagometer.study.hosts import Host

S = 1_000_000_000
GONE = ("gone", 1, 2, 3, 4, 0, 0)


def outcome(slewed_ns: int = 0) -> TrialOutcome:
    seen = Evidence(False, S, {}, Clocks(S, 0, 0, slewed_ns, uncertainty_ns=100), MachineLoad())
    robot = HostOutcome("robot", (0,), exchanged=(("base", 10, 7_011, 7_012, 13, 1, 2), GONE))
    base = HostOutcome(
        "base",
        (1,),
        clock=ClockOffset(False, 7_000),
        evidence=seen,
        exchanged=(("robot", 7_020, 21, 22, 7_023, -1, -1),),
    )
    return TrialOutcome(
        workers=(),
        begin_ns=0,
        measure_begin_ns=0,
        measure_end_ns=0,
        drain_end_ns=0,
        started="",
        seconds=0,
        overhead_s=0,
        phases_s={},
        hosts=(robot, base),
    )


def test_stamps_are_brought_to_the_conductors_clock() -> None:
    ours, theirs = exchanges(outcome(), {})
    assert (ours.clock, ours.other_clock, theirs.clock, theirs.other_clock) == ("", "base", "base", "")
    stamps = [int(column[0]) for column in vars(ours.stamps).values()]
    assert stamps == [10, 11, 12, 13, 1, 2]
    assert [int(column[0]) for column in vars(theirs.stamps).values()] == [20, 21, 22, 23, -1, -1]
    (received,), (returned,) = ours.stamps.by_kernel().received, ours.stamps.by_kernel().returned
    assert (received, returned, len(theirs.stamps.by_kernel())) == (10, 11, 0)
    assert ours.drift == pytest.approx(200e-6, rel=1e-3) and ours.drift > 200e-6 and not ours.symmetric


def test_the_study_says_how_clocks_drift_and_which_links_are_symmetric() -> None:
    hosts = {"robot": Host(symmetric=True, drift_ppm=10), "base": Host(symmetric=True, drift_ppm=40)}
    ours, _ = exchanges(outcome(), hosts)
    assert ours.symmetric and ours.drift == pytest.approx(50e-6, rel=1e-3)
    ours, _ = exchanges(outcome(), {**hosts, "base": replace(hosts["base"], symmetric=False)})
    assert not ours.symmetric


def test_a_clock_that_was_pulled_may_drift_by_that_as_well_and_is_named() -> None:
    ours, _ = exchanges(outcome(slewed_ns=-300_000), {})
    assert ours.drift == pytest.approx(500e-6, rel=1e-2) and ours.drift > 500e-6
    (warning,) = slewed(outcome(slewed_ns=-300_000), {})
    assert warning.startswith("clock-slewed: the clock of base was pulled by -300 ppm")
    assert not slewed(outcome(slewed_ns=50_000), {}) and not slewed(outcome(), {})


def test_a_clock_that_was_pulled_forwards_and_back_counts_as_at_its_fastest() -> None:
    seen = outcome()
    robot, base = seen.hosts
    seen = replace(seen, hosts=(robot, replace(base, pulled_ppm=500.0)))
    assert [each.drift for each in exchanges(seen, {})] == [pytest.approx(700e-6, rel=1e-2)] * 2
    (warning,) = slewed(seen, {})
    assert warning.startswith("clock-slewed: the clock of base was pulled by +0 ppm (at times by 500 ppm)")
    assert not slewed(seen, {"base": Host(drift_ppm=600)})
    even = outcome(slewed_ns=-300_000)
    even = replace(even, hosts=(even.hosts[0], replace(even.hosts[1], pulled_ppm=305.0)))
    assert "pulled by -300 ppm against" in slewed(even, {})[0]
