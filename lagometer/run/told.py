# SPDX-License-Identifier: Apache-2.0
"""What time services say of the offset between two hosts' clocks (docs/methodology/clocks.md).

A service says how far its host's wall clock is off. If it says so on both hosts, before and after a trial,
then the wall clocks agree within both errors, and the distance of each to CLOCK_MONOTONIC shows how far the
latter are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lagometer.agent.observe.time_service import ServiceReport
from lagometer.run.hosts.part import HostOutcome
from lagometer.store.exchanges import CHRONY, PTP, ToldOffset

LOOKS = 2  # before the trial and after it
HARDWARE = "HARDWARE"
SETS_SYSTEM_CLOCK = "phc2sys"
NOT_SYNCHRONISED = "Not synchronised"


def told_offsets(host: HostOutcome, other: HostOutcome) -> tuple[ToldOffset, ...]:
    """Returns what services say of how far the other's clock is ahead, on the conductor's clock like
    exchanges. Empty if a host has no such service, or its wall clock was set meanwhile."""
    shift_ns = host.clock.offset_ns - other.clock.offset_ns
    try:
        return tuple(
            ToldOffset(told.source, told.least_ns + shift_ns, told.most_ns + shift_ns, told.error_ns)
            for told in _told(host.services, other.services)
        )
    except (AttributeError, KeyError, TypeError, ValueError):  # a report that we don't know
        return ()


def _told(ours: tuple[ServiceReport, ...], others: tuple[ServiceReport, ...]) -> Iterator[ToldOffset]:
    ahead, other_ahead = _ahead(ours), _ahead(others)
    if ahead is None or other_ahead is None:
        return
    least_ns, most_ns = ahead[0] - other_ahead[1], ahead[1] - other_ahead[0]
    for source, error_of in _SOURCES.items():
        errors_ns = [_largest(error_of, reports) for reports in (ours, others)]
        if None in errors_ns or (source == PTP and not _one_master((*ours, *others))):
            continue
        error_ns = sum(error_ns for error_ns in errors_ns if error_ns is not None)
        yield ToldOffset(source, least_ns - error_ns, most_ns + error_ns, error_ns)


def _ahead(reports: tuple[ServiceReport, ...]) -> tuple[int, int] | None:
    """Returns how far the wall clock is ahead, at least and at most; None if it was set."""
    if len(reports) < LOOKS:
        return None
    least_ns = max(report.ahead_ns[0] for report in reports)
    most_ns = min(report.ahead_ns[1] for report in reports)
    return (least_ns, most_ns) if least_ns <= most_ns else None


def _largest(
    error_of: Callable[[Mapping[str, Any]], int | None], reports: tuple[ServiceReport, ...]
) -> int | None:
    errors_ns = [error_of(report.facts) for report in reports]
    known_ns = [error_ns for error_ns in errors_ns if error_ns is not None]
    return max(known_ns) if known_ns and len(known_ns) == len(errors_ns) else None


def _chrony_error(facts: Mapping[str, Any]) -> int | None:
    """Returns chrony's own bound of the distance to true time; None while it is not synchronised."""
    chrony = facts.get("chrony")
    if not chrony or chrony["leap"] == NOT_SYNCHRONISED or chrony["stratum"] == 0:
        return None
    return int(chrony["bound_ns"])


def _ptp_error(facts: Mapping[str, Any]) -> int | None:
    """Returns how far the host's PTP clock is off its master, by its own word. None unless the network card
    stamps packets: without that, PTP sees the same delays of programs as our exchanges do, so it confirms
    nothing. None, too, unless the system's clock follows the card's."""
    ptp = facts.get("ptp")
    if not ptp or not facts.get("synchronised") or SETS_SYSTEM_CLOCK not in facts.get("services", ()):
        return None
    if ptp.get("timestamping") != HARDWARE:
        return None
    if ptp["clock"] and ptp["master"] == ptp["clock"]:
        return 0
    return abs(int(ptp["offset_ns"])) if ptp["present"] else None


def _one_master(reports: tuple[ServiceReport, ...]) -> bool:
    return len({report.facts["ptp"]["master"] for report in reports}) == 1


_SOURCES = {CHRONY: _chrony_error, PTP: _ptp_error}
