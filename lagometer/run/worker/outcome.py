# SPDX-License-Identifier: Apache-2.0
"""The result of one trial, as the conductor saw it; nothing is judged here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lagometer.agent.daemons import Done as DaemonDone
from lagometer.agent.link.orders import NAME as LINK
from lagometer.agent.load import Done as LoadDone
from lagometer.agent.observe.witness import Evidence
from lagometer.run.hosts.part import HostOutcome
from lagometer.run.worker.messages import Done, Ready
from lagometer.store.observed import MachineLoad

# What a worker reports at each step: its process runs, its participants and endpoints exist, all are matched.
STARTUP = {"hello": "process", "ready": "participant", "matched": "matched"}
PHASES = ("create", "discover", "warm-up", "measure", "drain", "tear-down")


@dataclass(frozen=True)
class WorkerOutcome:
    """One worker: its messages, and its records even if it died before it handed them over.

    startup_ns: from the start of the workers until its process ran, its endpoints were created, and every
    expected stream was heard; only the steps that it reached. `plan`: until a worker that joins later was
    admitted.
    """

    index: int
    name: str
    ready: Ready | None
    done: Done | None
    records: bytes | bytearray | memoryview | None
    stderr: str
    startup_ns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialOutcome:
    """One trial. `reasons` is empty if everything went as the protocol requires.

    Each reason begins with its code (docs/methodology/validity.md) and a colon. Times named `_ns` are on
    CLOCK_MONOTONIC, and 0 if the trial didn't get that far. `overhead_s` is first spawn to last exit, minus
    warm-up, measure and drain.
    """

    workers: tuple[WorkerOutcome, ...]
    begin_ns: int
    measure_begin_ns: int
    measure_end_ns: int
    drain_end_ns: int
    started: str
    seconds: float
    overhead_s: float
    phases_s: Mapping[str, float]
    hosts: tuple[HostOutcome, ...] = ()
    workers_started_ns: int = 0  # on CLOCK_MONOTONIC
    discovery_ns: int | None = None  # from the last worker's `ready` to the last one's `matched`
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def isolation(self) -> Mapping[str, Any]:
        """What the workers were isolated from: only what holds on every host."""
        first, *others = [host.isolation for host in self.hosts] or [{}]
        return {
            key: value for key, value in first.items() if all(other.get(key) == value for other in others)
        }

    @property
    def evidence(self) -> Evidence | None:
        """What was observed from outside; None if the trial ended before the common start."""
        observed_hosts = [host for host in self.hosts if host.evidence is not None]
        return together(observed_hosts) if observed_hosts and len(observed_hosts) == len(self.hosts) else None

    @property
    def load(self) -> LoadDone | None:
        """What the load next to the workers did; None without interference."""
        loads = [host.load for host in self.hosts if host.load is not None]
        if len(loads) < 2:
            return loads[0] if loads else None
        # Two ends of a connection: the smaller figure is what came through.
        cpu_times_ns, rates = [load.cpu_ns for load in loads], [load.achieved_per_s for load in loads]
        cpu_ns = None if None in cpu_times_ns else sum(time_ns or 0 for time_ns in cpu_times_ns)
        achieved = None if None in rates else min(rate or 0 for rate in rates)
        return LoadDone(loads[0].name, cpu_ns, achieved)

    @property
    def daemons(self) -> tuple[DaemonDone, ...]:
        """What the daemons of all hosts did. Emulated links are not daemons of the middleware."""
        return tuple(daemon for host in self.hosts for daemon in host.daemons if daemon.name != LINK)

    @property
    def links(self) -> tuple[tuple[str, DaemonDone], ...]:
        """What made the emulated link on each host that has one, by the host's name."""
        return tuple(
            (host.name, daemon) for host in self.hosts for daemon in host.daemons if daemon.name == LINK
        )


def together(hosts: Sequence[HostOutcome]) -> Evidence:
    """Returns the observations of several hosts as if they were one.

    Counters add up. A network or machine that several hosts share counts once. Clocks are those of the first
    host.
    """
    by_host = [(host, host.evidence) for host in hosts if host.evidence is not None]
    evidences = [evidence for _, evidence in by_host]
    first = evidences[0]
    if len(evidences) == 1:
        return first
    traces = {
        worker: trace
        for host, evidence in by_host
        for worker, trace in zip(host.workers, evidence.traces, strict=True)
    }
    networks = {_own_or(host, "network", evidence.private): evidence for host, evidence in by_host}
    machines = {_own_or(host, "boot"): evidence for host, evidence in by_host}
    loads = [vars(evidence.load) for evidence in machines.values()]
    sizes = [evidence.workers_bytes for evidence in evidences]
    return replace(
        first,
        private=all(evidence.private for evidence in evidences),
        window_ns=max(evidence.window_ns for evidence in evidences),
        realtime_limit=first.realtime_limit
        if len({evidence.realtime_limit for evidence in evidences}) == 1
        else None,
        network={
            name: sum(evidence.network[name] for evidence in networks.values())
            for name in first.network
            if all(name in evidence.network for evidence in evidences)
        },
        load=MachineLoad(**{name: _sum(load[name] for load in loads) for name in loads[0]}),
        traces=tuple(traces[worker] for worker in sorted(traces)),
        daemons=tuple(daemon for evidence in evidences for daemon in evidence.daemons),
        workers_bytes=_sum(sizes),
    )


def _own_or(host: HostOutcome, key: str, private: bool = False) -> str:
    """Returns the identity of a host's machine or network; the host's own name if there is none."""
    named = host.hello.get(key)
    return str(named) if named and not private else f"host {host.name}"


def _sum(counts: Iterable[int | None]) -> int | None:
    """Returns the sum; None if one count is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
