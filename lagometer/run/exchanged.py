# SPDX-License-Identifier: Apache-2.0
"""The time stamps that the hosts of a trial exchanged, in the form that statistics need."""

from __future__ import annotations

from collections.abc import Mapping

from lagometer.run.hosts.part import HostOutcome
from lagometer.run.told import told_offsets
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.exchanges import HostExchanges, exchanges_of
from lagometer.store.observed import Clocks
from lagometer.study.hosts import Host

PPM = 1e-6
EVEN = 1.2  # the fastest pull is that of the whole trial, give or take what readings are off by


def exchanges(outcome: TrialOutcome, hosts: Mapping[str, Host]) -> tuple[HostExchanges, ...]:
    """Returns the time stamps of each pair of hosts, converted to the conductor's clock like records."""
    by_name = {host.name: host for host in outcome.hosts}
    host_exchanges = []
    for host in outcome.hosts:
        for name in dict.fromkeys(other for other, *_ in host.exchanged if other in by_name):
            other = by_name[name]
            stamps = exchanges_of([row[1:] for row in host.exchanged if row[0] == name])
            pair = hosts.get(host.name, Host()), hosts.get(name, Host())
            host_exchanges.append(
                HostExchanges(
                    host=host.name,
                    other=name,
                    clock=_clock(host),
                    other_clock=_clock(other),
                    stamps=stamps.shifted(host.clock.offset_ns, other.clock.offset_ns),
                    drift=_apart(_fastest(host, pair[0]), _fastest(other, pair[1])),
                    symmetric=all(study_host.symmetric for study_host in pair),
                    told=told_offsets(host, other),
                )
            )
    return tuple(host_exchanges)


def _clock(host: HostOutcome) -> str:
    return "" if host.clock.same else host.name


def _fastest(host: HostOutcome, study: Host) -> float:
    """Returns by how much a clock may be fast or slow: its oscillator's tolerance, plus the observed
    correction by NTP, over the trial or the fastest in it."""
    clocks, whole = _seen(host), 0.0
    if clocks is not None and clocks.slewed_ns is not None and _is_pulled(clocks):
        whole = (abs(clocks.slewed_ns) + clocks.uncertainty_ns) / clocks.elapsed_ns
    return study.drift_ppm * PPM + max(whole, host.pulled_ppm * PPM)


def _seen(host: HostOutcome) -> Clocks | None:
    clocks = host.evidence.clocks if host.evidence is not None else None
    return clocks if clocks is not None and clocks.elapsed_ns else None


def _is_pulled(clocks: Clocks) -> bool:
    """Whether CLOCK_MONOTONIC drifted from CLOCK_MONOTONIC_RAW by more than the uncertainty of the
    readings."""
    return abs(clocks.slewed_ns or 0) > clocks.uncertainty_ns


def slewed(outcome: TrialOutcome, hosts: Mapping[str, Host]) -> list[str]:
    """Returns a warning for each host whose clock was corrected by more than its own drift."""
    warnings = []
    for host in outcome.hosts if any(other.exchanged for other in outcome.hosts) else ():
        clocks, whole_ppm = _seen(host), 0.0
        if clocks is not None and _is_pulled(clocks):
            whole_ppm = (clocks.slewed_ns or 0) / clocks.elapsed_ns / PPM
        if max(abs(whole_ppm), host.pulled_ppm) > hosts.get(host.name, Host()).drift_ppm:
            pull = f"{whole_ppm:+.0f} ppm"
            if host.pulled_ppm > EVEN * abs(whole_ppm):
                pull += f" (at times by {host.pulled_ppm:.0f} ppm)"
            warnings.append(
                f"clock-slewed: the clock of {host.name} was pulled by {pull} against the hardware's; "
                "the bound of one-way figures allows for it"
            )
    return warnings


def _apart(one: float, other: float) -> float:
    """Returns how fast one clock may drift from another, measured by the first: both off in opposite
    directions."""
    return (1 + other) / (1 - one) - 1
