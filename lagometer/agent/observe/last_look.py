# SPDX-License-Identifier: Apache-2.0
"""What a trial that ends early had: read once, just before its processes are ended.

A trial that ends before the common start has no other evidence. Nothing is read while workers start, as their
start-up is measured.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lagometer.agent.observe.counters import NetworkCounters, load_between, machine_load
from lagometer.agent.observe.processes import ancestor_among, parents
from lagometer.agent.observe.reading import read_whole
from lagometer.agent.observe.sockets import find_workers
from lagometer.store.observed import MachineLoad

NS_PER_S = 1_000_000_000
KIB = 1024
CPU_FIELDS = slice(11, 15)  # of /proc/PID/stat behind the name: user, system, and both of ended children


@dataclass(frozen=True)
class Living:
    """A worker that was still there. worker: its place among those of its host."""

    worker: int
    threads: int
    descriptors: int


@dataclass(frozen=True)
class LastLook:
    """What was seen. Counts are from the workers' start on.

    network: the counters of the trial's own network, empty without one; cpu_ns: the CPU time of the trial's
    processes, also of those that have ended; descriptors_max: the limit of a worker; shared_memory: the room
    in the workers' own /dev/shm; memory: the machine's; oom_kills: how many processes of the machine the
    kernel killed because memory had run out. None in each: not readable.
    """

    window_ns: int
    load: MachineLoad = field(default_factory=MachineLoad)
    network: Mapping[str, int] = field(default_factory=dict)
    cpu_ns: int | None = None
    living: tuple[Living, ...] = ()
    descriptors_max: int | None = None
    shared_memory: Mapping[str, int] | None = None
    memory: Mapping[str, int] | None = None
    oom_kills: int | None = None

    def as_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns it in the journal's form. names: of the host's workers."""
        return {**asdict(self), "living": {names[each.worker]: _counts(each) for each in self.living}}

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any]) -> LastLook:
        """Reads the output of `asdict`. Raises KeyError, TypeError, ValueError for anything else."""
        living = tuple(Living(**each) for each in frame["living"])
        return cls(**{**frame, "load": MachineLoad(**frame["load"]), "living": living})


def _counts(living: Living) -> dict[str, int]:
    return {"threads": living.threads, "descriptors": living.descriptors}


class LastLookWatch:
    """Looks at one trial. `begin` once its workers start; always `close`."""

    def __init__(self) -> None:
        self._began_ns = 0
        self._load: Mapping[str, int] = {}
        self._oom_kills: int | None = None
        self._children_ns = 0
        self._counters: NetworkCounters | None = None

    def begin(self) -> None:
        """Notes the state before the workers start."""
        self._began_ns, self._load = time.monotonic_ns(), machine_load()
        self._oom_kills, self._children_ns = _oom_kills(), _children_ns()

    def note_network(self, supervisor: int | None, number: int) -> None:
        """Opens the counters of the trial's own network, while its first worker surely lives. number: of its
        process, in its own namespace."""
        if self._counters is None and supervisor is not None:
            (pid,) = find_workers(supervisor, (number,))
            self._counters = NetworkCounters(pid) if pid is not None else None

    def look(self, supervisor: int | None, numbers: Sequence[int]) -> LastLook | None:
        """Returns what there is now; None before `begin`. numbers: of the workers' processes, in their own
        namespace."""
        if not self._began_ns:
            return None
        # Of a supervisor that has ended, its children have, too.
        pids = find_workers(supervisor, numbers) if supervisor is not None else [None] * len(numbers)
        first = next((pid for pid in pids if pid is not None), None)
        seen = (_living(place, pid) for place, pid in enumerate(pids) if pid is not None)
        before, now = self._oom_kills, _oom_kills()
        return LastLook(
            window_ns=time.monotonic_ns() - self._began_ns,
            load=load_between(self._load, machine_load()),
            network=self._counters.read() if self._counters is not None else {},
            cpu_ns=_family_ns(supervisor) + _children_ns() - self._children_ns,
            living=tuple(each for each in seen if each is not None),
            descriptors_max=_descriptors_max(first) if first is not None else None,
            shared_memory=_room(f"/proc/{first}/root/dev/shm") if first is not None else None,
            memory=_memory(),
            oom_kills=now - before if now is not None and before is not None else None,
        )

    def close(self) -> None:
        """Releases the trial's network."""
        if self._counters is not None:
            self._counters.close()
            self._counters = None


def _living(place: int, pid: int) -> Living | None:
    try:
        status = read_whole(f"/proc/{pid}/status").partition(b"\nThreads:")[2].split(None, 1)
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 (much faster)
        return Living(place, int(status[0]), descriptors)
    except (OSError, ValueError, IndexError):
        return None


def _descriptors_max(pid: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = read_whole(f"/proc/{pid}/limits").partition(b"Max open files")[2]
        return int(line.split(None, 1)[0])
    return None


def _room(folder: str) -> dict[str, int] | None:
    try:
        room = os.statvfs(folder)
    except OSError:
        return None
    return {"bytes": room.f_blocks * room.f_frsize, "free_bytes": room.f_bavail * room.f_frsize}


def _memory() -> dict[str, int] | None:
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        names = {"bytes": "MemTotal", "available_bytes": "MemAvailable"}
        return {name: int(lines[source].split()[0]) * KIB for name, source in names.items()}
    return None


def _oom_kills() -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        counts = dict(line.split(None, 1) for line in Path("/proc/vmstat").read_text().splitlines())
        return int(counts["oom_kill"])
    return None


def _children_ns() -> int:
    """Returns the CPU time of this process's ended children, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * NS_PER_S)


def _family_ns(supervisor: int | None) -> int:
    """Returns the CPU time of a process and its descendants, including those that have ended. The process
    itself may have ended, too, as long as it is our child."""
    if supervisor is None:
        return 0
    tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
    parent_of = parents()
    family = [pid for pid in parent_of if ancestor_among(pid, (supervisor,), parent_of) is not None]
    total = 0
    for pid in {supervisor, *family}:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = read_whole(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            total += sum(map(int, fields[CPU_FIELDS])) * tick_ns
    return total
