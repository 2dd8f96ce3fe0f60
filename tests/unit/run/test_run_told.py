# SPDX-License-Identifier: Apache-2.0
"""What time services on two hosts say of the offset between their clocks, and when they say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.agent.observe.time_service import ServiceReport
from lagometer.run.hosts.link import ClockOffset
from lagometer.run.hosts.part import HostOutcome
from lagometer.run.told import told_offsets
from lagometer.store.exchanges import ToldOffset

PTP: dict[str, Any] = {
    "master": "m",
    "present": True,
    "offset_ns": -40,
    "clock": "own",
    "timestamping": "HARDWARE",
}
SERVED: dict[str, Any] = {"synchronised": True, "services": ["phc2sys", "ptp4l"], "ptp": PTP}
CHRONY: dict[str, Any] = {"stratum": 3, "leap": "Normal", "bound_ns": 1_000}
BY_CHRONY: dict[str, Any] = {"synchronised": True, "services": ["chronyd"], "chrony": CHRONY}
AHEAD = (10_000, 10_010)  # of robot's wall clock
FURTHER = (4_000, 4_020)  # of base's


def reports(facts: dict[str, Any], *ahead: tuple[int, int]) -> tuple[ServiceReport, ...]:
    return tuple(ServiceReport(place, each, facts) for place, each in enumerate(ahead))


def told(
    robot: dict[str, Any] = SERVED,
    base: dict[str, Any] = SERVED,
    robot_ahead: tuple[tuple[int, int], ...] = (AHEAD, AHEAD),
    base_ahead: tuple[tuple[int, int], ...] = (FURTHER, FURTHER),
    shift_ns: int = 0,
) -> tuple[ToldOffset, ...]:
    ours = HostOutcome("robot", (0,), services=reports(robot, *robot_ahead))
    clock = ClockOffset(False, shift_ns)
    return told_offsets(ours, HostOutcome("base", (1,), clock=clock, services=reports(base, *base_ahead)))


def test_equal_wall_clocks_show_how_far_the_others_are_apart() -> None:
    """Base's CLOCK_MONOTONIC is ahead by what its wall clock is less ahead of it."""
    (found,) = told()
    assert found == ToldOffset("ptp", 10_000 - 4_020 - 80, 10_010 - 4_000 + 80, 80)
    (shifted,) = told(shift_ns=6_000)  # as exchanges are, by what the conductor knows
    assert (shifted.least_ns, shifted.most_ns) == (found.least_ns - 6_000, found.most_ns - 6_000)
    assert found.reversed() == ToldOffset("ptp", -found.most_ns, -found.least_ns, 80)


def test_chrony_allows_for_its_own_bound() -> None:
    (found,) = told(BY_CHRONY, BY_CHRONY)
    assert found == ToldOffset("chrony", 10_000 - 4_020 - 2_000, 10_010 - 4_000 + 2_000, 2_000)


def test_a_master_is_off_itself_by_nothing() -> None:
    master = {**SERVED, "ptp": {**PTP, "master": "m", "clock": "m", "present": False}}
    (found,) = told(master)
    assert found.error_ns == 40


@pytest.mark.parametrize(
    "facts",
    [
        {**SERVED, "ptp": {**PTP, "timestamping": "SOFTWARE"}},
        {**SERVED, "ptp": {**PTP, "timestamping": None}},
        {**SERVED, "ptp": {**PTP, "present": False}},
        {**SERVED, "ptp": {**PTP, "master": "another"}},
        {**SERVED, "ptp": None},
        {**SERVED, "services": ["ptp4l"]},
        {**SERVED, "synchronised": False},
        {**SERVED, "synchronised": None},
        {"synchronised": True, "services": []},
        {**SERVED, "ptp": "?"},
        {**BY_CHRONY, "chrony": {**CHRONY, "leap": "Not synchronised"}},
        {**BY_CHRONY, "chrony": None},
    ],
)
def test_what_is_not_locked_to_the_same_master_by_its_card_says_nothing(facts: dict[str, Any]) -> None:
    assert told(base=facts) == () == told(robot=facts)
    assert told(BY_CHRONY, facts) == ()


def test_a_wall_clock_that_was_set_says_nothing() -> None:
    assert told(base_ahead=(FURTHER, (5_000, 5_020))) == ()
    assert told(base_ahead=(FURTHER,)) == () == told(base_ahead=())
    (found,) = told(base_ahead=(FURTHER, (4_015, 4_040)))  # both are true of a distance in between
    assert (found.least_ns, found.most_ns) == (10_000 - 4_020 - 80, 10_010 - 4_015 + 80)
