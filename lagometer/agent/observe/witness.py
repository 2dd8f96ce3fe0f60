# SPDX-License-Identifier: Apache-2.0
"""Observes a trial from outside: reads the kernel's data just before the common start and after the end.

Between the two it reads only memory, during the drain, so observing costs the measure phase nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lagometer.agent.observe.clocks import Reading, moved, read_clocks
from lagometer.agent.observe.counters import NetworkCounters, load_between, machine_load, realtime_limit
from lagometer.agent.observe.processes import proportional_bytes
from lagometer.agent.observe.resources import Resources
from lagometer.agent.observe.sockets import RECORDS, Network, Traces, find_workers, read_network, read_traces
from lagometer.store.observed import Clocks, MachineLoad, RealtimeLimit


@dataclass(frozen=True)
class Evidence:
    """What was seen, before any conclusion.

    traces: by worker, None if not readable; daemons: likewise, for the daemons' processes; workers_bytes: the
    workers' memory during the drain, without that of their records, None if not readable; resources: what the
    trial's processes cost, separate in the journal.
    """

    private: bool
    window_ns: int
    network: Mapping[str, int]  # increments, by the names of `lagometer.agent.observe.counters`
    clocks: Clocks
    load: MachineLoad
    traces: Sequence[Traces | None] = field(default_factory=tuple)
    daemons: Sequence[Traces] = field(default_factory=tuple)
    workers_bytes: int | None = None
    realtime_limit: RealtimeLimit | None = None
    resources: Resources | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns it in the journal's form."""
        return {
            "private": self.private,
            "window_ns": self.window_ns,
            "network": dict(self.network),
            "clocks": asdict(self.clocks),
            "load": asdict(self.load),
            "traces": [traces.as_json() if traces is not None else None for traces in self.traces],
            "daemons": [traces.as_json() for traces in self.daemons],
            "workers_bytes": self.workers_bytes,
        }

    def as_frame(self) -> dict[str, Any]:
        """Returns it in the form that `from_frame` reads."""
        return {
            **self.as_json(),
            "traces": [traces and traces.as_frame() for traces in self.traces],
            "daemons": [traces.as_frame() for traces in self.daemons],
            "realtime_limit": self.realtime_limit and asdict(self.realtime_limit),
            "resources": self.resources and self.resources.as_frame(),
        }

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any]) -> Evidence:
        """Reads the output of `as_frame`. Raises KeyError, TypeError, ValueError for anything else."""
        return cls(
            private=bool(frame["private"]),
            window_ns=int(frame["window_ns"]),
            network={str(name): int(count) for name, count in frame["network"].items()},
            clocks=Clocks(**frame["clocks"]),
            load=MachineLoad(**frame["load"]),
            traces=tuple(traces and Traces.from_frame(traces) for traces in frame["traces"]),
            daemons=tuple(Traces.from_frame(traces) for traces in frame["daemons"]),
            workers_bytes=frame["workers_bytes"],
            realtime_limit=frame["realtime_limit"] and RealtimeLimit(**frame["realtime_limit"]),
            resources=frame["resources"] and Resources.from_frame(frame["resources"]),
        )


class Witness:
    """Observes one trial. Call `begin` and `end` once each, and always `close`."""

    def __init__(self) -> None:
        self._counters: NetworkCounters | None = None
        self._traces: list[Traces | None] = []
        self._daemons: list[Traces] = []
        self._workers: list[int | None] = []
        self._served_by: Sequence[int] = ()
        self._workers_bytes: int | None = None
        self._private = False
        self._clocks: Reading | None = None
        self._network: dict[str, int] = {}
        self._load: dict[str, int] = {}

    def begin(
        self, supervisor: int | None, workers: Sequence[int], private: bool, daemons: Sequence[int] = ()
    ) -> None:
        """Records the state at the start. `workers`: their process numbers in their own namespace;
        `supervisor`: the process that started them, None if it is not on this machine; `daemons`: processes
        that serve them."""
        self._private = private
        pids: list[int | None] = [None] * len(workers)
        if supervisor is not None:
            pids = find_workers(supervisor, workers)
        self._workers = pids
        first = next((pid for pid in pids if pid is not None), None)
        sockets = read_network(first) if first is not None else {}
        self._served_by = daemons
        self._look_at_ends(sockets)
        if first is not None:
            self._counters = NetworkCounters(first)
            self._network = self._counters.read()
        self._load = machine_load()
        self._clocks = read_clocks()

    @property
    def workers(self) -> Sequence[int | None]:
        """Their processes, as `begin` found them; None for a process that can't be seen."""
        return self._workers

    def look_at_ends_again(self) -> None:
        """Notes again what workers have open, for a trial in which some workers create it after the start."""
        first = next((pid for pid in self._workers if pid is not None), None)
        sockets = read_network(first) if first is not None else {}
        self._look_at_ends(sockets)

    def _look_at_ends(self, sockets: Network) -> None:
        self._traces = [read_traces(pid, sockets) if pid is not None else None for pid in self._workers]
        daemon_traces = [read_traces(pid, sockets) for pid in self._served_by]
        self._daemons = [traces for traces in daemon_traces if traces is not None]

    def look_at_memory(self) -> None:
        """Notes the workers' memory after they have measured."""
        sizes = [proportional_bytes(pid, RECORDS) if pid is not None else None for pid in self._workers]
        known = [size for size in sizes if size is not None]
        self._workers_bytes = sum(known) if sizes and len(known) == len(sizes) else None

    def end(self) -> Evidence | None:
        """Returns what changed since `begin`; None if `begin` was not called."""
        if self._clocks is None:
            return None
        now = read_clocks()
        network = self._counters.read() if self._counters is not None else {}
        return Evidence(
            private=self._private,
            window_ns=now.monotonic_ns - self._clocks.monotonic_ns,
            network={
                name: network[name] - before for name, before in self._network.items() if name in network
            },
            clocks=moved(self._clocks, now),
            load=load_between(self._load, machine_load()),
            traces=tuple(self._traces),
            daemons=tuple(self._daemons),
            workers_bytes=self._workers_bytes,
            realtime_limit=realtime_limit(),
        )

    def close(self) -> None:
        """Releases the trial's namespace."""
        if self._counters is not None:
            self._counters.close()
            self._counters = None
