# SPDX-License-Identifier: Apache-2.0
"""What came of one trial, as the conductor saw it; nothing here is judged yet."""

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

# What a worker says when it has come so far: its process, its participants and endpoints, all matched.
STARTUP = {"hello": "process", "ready": "participant", "matched": "matched"}
PHASES = ("create", "discover", "warm-up", "measure", "drain", "tear-down")


@dataclass(frozen=True)
class WorkerOutcome:
    """One worker: what it said, and its records even if it did not live to hand them over.

    startup_ns: from when the workers were started until its process was up, its endpoints were created, and
    all that they expect was heard; as far as it came. `plan`: until one that comes later was let in.
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
    """One trial. `reasons` is empty if everything went as the protocol wants it.

    Each reason begins with its code (docs/methodology/validity.md) and a colon. Times named `_ns` are on
    CLOCK_MONOTONIC and 0 where the trial didn't get that far; `overhead_s` is first spawn to last exit, less
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
        """What the workers were kept apart from: what is so on every host."""
        first, *others = [host.isolation for host in self.hosts] or [{}]
        return {key: value for key, value in first.items() if all(each.get(key) == value for each in others)}

    @property
    def evidence(self) -> Evidence | None:
        """What was seen from outside; None if it ended before the common start."""
        seen = [host for host in self.hosts if host.evidence is not None]
        return together(seen) if seen and len(seen) == len(self.hosts) else None

    @property
    def load(self) -> LoadDone | None:
        """What the load beside the workers did; None without interference."""
        done = [host.load for host in self.hosts if host.load is not None]
        if len(done) < 2:
            return done[0] if done else None
        # Two ends of a connection: no more came through than either says.
        used, moved = [each.cpu_ns for each in done], [each.achieved_per_s for each in done]
        cpu_ns = None if None in used else sum(each or 0 for each in used)
        achieved = None if None in moved else min(each or 0 for each in moved)
        return LoadDone(done[0].name, cpu_ns, achieved)

    @property
    def daemons(self) -> tuple[DaemonDone, ...]:
        """What the daemons of all hosts did; emulated links are not the middleware's."""
        return tuple(daemon for host in self.hosts for daemon in host.daemons if daemon.name != LINK)

    @property
    def links(self) -> tuple[tuple[str, DaemonDone], ...]:
        """What made the emulated link on each host that has one, by the host's name."""
        return tuple((host.name, each) for host in self.hosts for each in host.daemons if each.name == LINK)


def together(hosts: Sequence[HostOutcome]) -> Evidence:
    """Returns what was seen on several hosts as if it were one.

    Counters add up, those of one network or one machine once, however many hosts it stands for. Of the clocks
    those of the first host are kept.
    """
    seen = [(host, host.evidence) for host in hosts if host.evidence is not None]
    every = [evidence for _, evidence in seen]
    first = every[0]
    if len(every) == 1:
        return first
    traces = {
        worker: trace
        for host, evidence in seen
        for worker, trace in zip(host.workers, evidence.traces, strict=True)
    }
    networks = {_own_or(host, "network", evidence.private): evidence for host, evidence in seen}
    machines = {_own_or(host, "boot"): evidence for host, evidence in seen}
    loads = [vars(each.load) for each in machines.values()]
    sizes = [each.workers_bytes for each in every]
    return replace(
        first,
        private=all(each.private for each in every),
        window_ns=max(each.window_ns for each in every),
        realtime_limit=first.realtime_limit if len({each.realtime_limit for each in every}) == 1 else None,
        network={
            name: sum(each.network[name] for each in networks.values())
            for name in first.network
            if all(name in each.network for each in every)
        },
        load=MachineLoad(**{name: _sum(load[name] for load in loads) for name in loads[0]}),
        traces=tuple(traces[worker] for worker in sorted(traces)),
        daemons=tuple(daemon for each in every for daemon in each.daemons),
        workers_bytes=_sum(sizes),
    )


def _own_or(host: HostOutcome, key: str, private: bool = False) -> str:
    """Returns what names the machine or network of a host; its own name where nothing does."""
    named = host.hello.get(key)
    return str(named) if named and not private else f"host {host.name}"


def _sum(counts: Iterable[int | None]) -> int | None:
    """Returns the sum; None if one is not known."""
    known = list(counts)
    return None if None in known else sum(each for each in known if each is not None)
