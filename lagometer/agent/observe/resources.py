# SPDX-License-Identifier: Apache-2.0
"""What the processes of a trial cost: read before and after the measure phase, and once in the drain.

Nothing is read while messages are measured. The kernel's texts are kept as they are and parsed once all are
read.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lagometer.agent.link.commands import TAP
from lagometer.agent.observe import usage
from lagometer.agent.observe.energy import Energy, energy_between, read_energy
from lagometer.agent.observe.hardware import COUNTERS, Count, ProcessCounters, Readings, unavailable
from lagometer.agent.observe.sockets import RECORDS
from lagometer.agent.observe.usage import Account, Memory, RawAccount

OFF, ON, WITH_COUNTERS = "off", "on", "counters"
# The first reading begins this long before the measure phase, and this much earlier for each process, but not
# before the middle of the warm-up: it should be over when the phase begins.
AHEAD_NS, AHEAD_NS_PER_PROCESS = 10_000_000, 2_000_000
BEHIND_NS = 2_000_000  # the last message should have arrived when the second reading begins
WORKER, DAEMON = "worker", "daemon"
NOT_ASKED = "not asked for (resources: counters)"
INTERFACE_FIELDS = {"received_bytes": 0, "sent_bytes": 8}  # in /proc/net/dev, after the name


@dataclass(frozen=True)
class Process:
    """A process to observe: a worker, by its place among those of its host, or a daemon, by its name."""

    pid: int
    kind: str
    name: str = ""
    worker: int | None = None


@dataclass(frozen=True)
class ProcessUse:
    """What one process cost. account: the increment from `began_ns` (this host's CLOCK_MONOTONIC) to the end
    of the measure phase; memory, sockets, descriptors: in the drain. None in each: not readable."""

    kind: str
    name: str
    worker: int | None
    began_ns: int | None = None
    account: Account | None = None
    memory: Memory | None = None
    descriptors: int | None = None
    sockets: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True)
class Resources:
    """What one host's part of a trial cost. measure_begin_ns, measure_end_ns: on the same clock as each
    `began_ns`; network_bytes: sent and received over all interfaces since `began_ns`, None if the trial does
    not have its own interfaces; energy_nj: of the whole machine, with the reason if it is not known;
    unavailable: why counters are not available."""

    measure_begin_ns: int
    measure_end_ns: int
    began_ns: int | None
    processes: tuple[ProcessUse, ...]
    network_bytes: Mapping[str, int] | None = None
    energy_nj: int | None = None
    energy_why: str | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)
    user_alone: bool = False

    def workers_bytes(self, count: int) -> int | None:
        """Returns the memory (PSS) of all workers, of which there must be this many; None if one is not
        known."""
        memories = [
            process.memory
            for process in self.processes
            if process.kind == WORKER and process.memory is not None
        ]
        return sum(memory.proportional_bytes for memory in memories) if len(memories) == count else None

    def as_frame(self) -> dict[str, Any]:
        """Returns it in the form that `from_frame` reads."""
        return {**vars(self), "processes": [_frame_of(process) for process in self.processes]}

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any]) -> Resources:
        """Reads the output of `as_frame`. Raises KeyError, TypeError, ValueError for anything else."""
        return cls(**{**frame, "processes": tuple(_process_use(process) for process in frame["processes"])})


def _frame_of(use: ProcessUse) -> dict[str, Any]:
    """Returns the form that `_process_use` reads. A trial waits for it; `asdict` copies every value."""
    account, memory = use.account, use.memory
    threads = {number: vars(thread) for number, thread in account.threads.items()} if account else {}
    libraries = [vars(library) for library in memory.libraries] if memory else []
    return {
        **vars(use),
        "account": account and {**vars(account), "threads": threads},
        "memory": memory and {**vars(memory), "libraries": libraries},
        "counts": {name: vars(count) for name, count in use.counts.items()},
    }


def _process_use(values: Mapping[str, Any]) -> ProcessUse:
    account, memory = values["account"], values["memory"]
    if account is not None:
        threads = {int(number): usage.Thread(**thread) for number, thread in account["threads"].items()}
        account = Account(**{**account, "threads": threads})
    if memory is not None:
        libraries = tuple(usage.Library(**library) for library in memory["libraries"])
        memory = Memory(**{**memory, "libraries": libraries})
    counts = {name: Count(**count) for name, count in values["counts"].items()}
    return ProcessUse(**{**values, "account": account, "memory": memory, "counts": counts})


class ResourceWatch:
    """Observes the processes of one trial. Always call `close`. wanted: `off`, `on` or `counters`."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._processes: tuple[Process, ...] = ()
        self._private = False
        self._phase = (0, 0)
        self._begin: dict[int, RawAccount | None] = {}
        self._end: dict[int, RawAccount | None] = {}
        self._counters: dict[int, ProcessCounters] = {}
        self._counted: tuple[dict[int, Readings], dict[int, Readings]] = ({}, {})
        self._network: list[tuple[int, bytes]] = []
        self._energy: list[Energy] = []
        self._smaps: dict[int, bytes | None] = {}
        self._descriptors: dict[int, tuple[str, ...] | None] = {}
        self._tables: dict[str, bytes] = {}
        self._parsed: Resources | None = None

    @property
    def wanted(self) -> bool:
        """Whether it observes anything."""
        return self._wanted != OFF

    def attach(
        self, processes: Sequence[Process], private: bool, begin_ns: int, measure_ns: int, drain_ns: int
    ) -> list[tuple[int, Callable[[], object]]]:
        """Notes what to observe, and returns when. private: the trial has its own network; begin_ns,
        measure_ns, drain_ns: when warm-up, measure phase and drain begin."""
        if not self.wanted:
            return []
        self._processes, self._private, self._phase = tuple(processes), private, (measure_ns, drain_ns)
        if self._wanted == WITH_COUNTERS:
            self._counters = {process.pid: ProcessCounters.of(process.pid) for process in processes}
        ahead_ns = AHEAD_NS + AHEAD_NS_PER_PROCESS * len(processes)
        ahead_ns = min(ahead_ns, (measure_ns - begin_ns) // 2)
        return [(measure_ns - ahead_ns, self._look_before), (drain_ns + BEHIND_NS, self._look_after)]

    def _look_before(self) -> None:
        self._look_at_machine()
        self._begin = self._look_at_accounts()
        self._counted = (self._read_counters(), {})

    def _look_after(self) -> None:
        self._counted = (self._counted[0], self._read_counters())
        self._look_at_machine()
        self._end = self._look_at_accounts()

    def look_at_memory(self) -> None:
        """Reads memory, descriptors and sockets."""
        self._smaps = {process.pid: usage.read_smaps(process.pid) for process in self._processes}
        self._descriptors = {process.pid: usage.read_descriptors(process.pid) for process in self._processes}
        living = next((pid for pid, smaps in self._smaps.items() if smaps is not None), None)
        self._tables = usage.read_socket_tables(living) if living is not None else {}

    def _look_at_machine(self) -> None:
        self._energy.append(read_energy())
        if not self._private:
            return
        for process in self._processes:
            with contextlib.suppress(OSError), open(f"/proc/{process.pid}/net/dev", "rb") as file:  # noqa: PTH123
                self._network.append((time.monotonic_ns(), file.read()))
                return

    def _look_at_accounts(self) -> dict[int, RawAccount | None]:
        return {
            process.pid: usage.read_account(process.pid, time.monotonic_ns()) for process in self._processes
        }

    def _read_counters(self) -> dict[int, Readings]:
        return {pid: counters.read() for pid, counters in self._counters.items()}

    def parse(self) -> None:
        """Parses what was read. In the drain this takes no time from the trial, which would wait for it after
        its end."""
        self._parsed = self._parse()

    def result(self) -> Resources | None:
        """Returns the result; None if the trial ended before its measure phase did."""
        return self._parsed or self._parse()

    def _parse(self) -> Resources | None:
        if not self._end:
            return None
        network_bytes = _network_bytes([text for _, text in self._network])
        energy_nj: int | None = None
        why: str | None = "it could not be read"
        if len(self._energy) == 2:
            energy_nj, why = energy_between(*self._energy)
        kinds = usage.socket_kinds(self._tables)
        reasons = unavailable()
        if self._wanted == ON:
            reasons |= {name: NOT_ASKED for name in COUNTERS if name not in reasons}
        starts_ns = [raw.at_ns for raw in self._begin.values() if raw is not None]
        return Resources(
            measure_begin_ns=self._phase[0],
            measure_end_ns=self._phase[1],
            began_ns=min(starts_ns, default=None),
            processes=tuple(self._use(process, kinds) for process in self._processes),
            network_bytes=network_bytes,
            energy_nj=energy_nj,
            energy_why=why,
            unavailable=reasons,
            user_alone=any(counters.user_alone for counters in self._counters.values()),
        )

    def _use(self, process: Process, kinds: Mapping[str, str]) -> ProcessUse:
        pid = process.pid
        before, after = self._begin.get(pid), self._end.get(pid)
        account = memory = None
        with contextlib.suppress(ValueError, IndexError, KeyError):
            if before is not None and after is not None:
                account = usage.between(usage.account_of(before), usage.account_of(after))
        smaps = self._smaps.get(pid)
        with contextlib.suppress(ValueError, IndexError):
            memory = usage.memory_of(smaps, RECORDS) if smaps is not None else None
        descriptors = self._descriptors.get(pid)
        counts: Mapping[str, Count] = {}
        if pid in self._counters:
            first, second = self._counted
            counts = self._counters[pid].between(first.get(pid, {}), second.get(pid, {}))
        return ProcessUse(
            kind=process.kind,
            name=process.name,
            worker=process.worker,
            began_ns=before.at_ns if before is not None else None,
            account=account,
            memory=memory,
            descriptors=len(descriptors) if descriptors is not None else None,
            sockets=usage.count_sockets(descriptors, kinds) if descriptors is not None else {},
            counts=counts,
        )

    def close(self) -> None:
        """Closes all counters."""
        for counters in self._counters.values():
            counters.close()
        self._counters = {}


def _network_bytes(texts: Sequence[bytes]) -> dict[str, int] | None:
    """Returns the bytes sent and received between two readings of the interfaces; None without two."""
    if len(texts) != 2:
        return None
    with contextlib.suppress(ValueError, IndexError):
        before, after = (_interfaces(text) for text in texts)
        return {
            name: sum(now[name] - before.get(interface, {}).get(name, 0) for interface, now in after.items())
            for name in INTERFACE_FIELDS
        }
    return None


def _interfaces(text: bytes) -> dict[str, dict[str, int]]:
    interfaces = {}
    for line in text.decode(errors="replace").splitlines()[2:]:
        name, _, values = line.partition(":")
        if name.strip() == TAP:  # of an emulated link, whose frames count where they leave
            continue
        fields = values.split()
        interfaces[name.strip()] = {key: int(fields[place]) for key, place in INTERFACE_FIELDS.items()}
    return interfaces
