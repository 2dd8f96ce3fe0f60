# SPDX-License-Identifier: Apache-2.0
"""How many system calls the kernel carried out for other processes: those that moved bytes, or waited and had
something to report.

The probe in a worker sees what goes through the C library. The kernel sees everything: its tracepoint
`raw_syscalls:sys_exit` is counted with a filter, as perf_event_open(2) offers, once for each thread and group
of calls. Future threads inherit the counters. The counters are read shortly before and after the measure
phase.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import resource
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lagometer.agent.observe.hardware import open_counter, read_counter, reason_of

TRACEPOINT = 2  # PERF_TYPE_TRACEPOINT
SET_FILTER = 0x40082406  # PERF_EVENT_IOC_SET_FILTER, where a pointer has eight bytes
# The calls of each group, by machine. `read` and `write` also serve files.
_GENERIC = {
    "send": (206, 211, 269),  # sendto, sendmsg, sendmmsg
    "receive": (207, 212, 243),  # recvfrom, recvmsg, recvmmsg
    "write": (64, 66),  # write, writev
    "read": (63, 65),  # read, readv
    "wait": (73, 72, 22, 441),  # ppoll, pselect6, epoll_pwait, epoll_pwait2
}
NUMBERS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "x86_64": {
        "send": (44, 46, 307),
        "receive": (45, 47, 299),
        "write": (1, 20),
        "read": (0, 19),
        "wait": (7, 271, 23, 270, 232, 281, 441),  # poll, ppoll, select, pselect6, epoll_wait, …
    },
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
AHEAD_NS = 5_000_000  # from the first reading to the measure phase, unless the warm-up is too short
BEHIND_NS = 2_000_000  # the last message should have arrived when the second reading begins
ATTEMPTS = 3
DESCRIPTORS_MAX = 4096  # for all workers of a host
NOT_WANTED = "not asked for (scheduler: on)"
NO_TRACEPOINT = "ENOENT: the tracepoint raw_syscalls:sys_exit is not available"
RESTLESS = "a worker kept starting threads while its counters were opened"
NOT_READ = "the worker or the trial ended before they could be counted"

Span = tuple[int, int]


@dataclass(frozen=True)
class Called:
    """The calls of one worker, by group. first, last: when the counters were read, from and to, on this
    host's CLOCK_MONOTONIC; counts: between the two; why: the reason if nothing was counted."""

    why: str | None = NOT_WANTED
    first: Span = (0, 0)
    last: Span = (0, 0)
    counts: Mapping[str, int] = field(default_factory=dict)

    def as_frame(self) -> dict[str, Any]:
        """Returns it in the form that `from_frame` reads."""
        return asdict(self)

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any]) -> Called:
        """Reads the output of `as_frame`. Raises KeyError, TypeError, ValueError for anything else."""
        first, last = ((int(begin), int(end)) for begin, end in (frame["first"], frame["last"]))
        counts = {str(name): int(count) for name, count in frame["counts"].items()}
        why = frame["why"]
        return cls(None if why is None else str(why), first, last, counts)


@dataclass(frozen=True)
class Reading:
    """One reading of a process's counters: from and to, and the counts by group."""

    span: Span
    counts: Mapping[str, int]


class CallCounters:
    """The counters of some threads. Raises OSError if they can't be opened. Always call `close`."""

    def __init__(self, threads: Sequence[int], tracepoint: int) -> None:
        self._descriptors: dict[str, list[int]] = {}
        try:
            for thread in threads:
                self._attach(thread, tracepoint)
        except BaseException:
            self.close()
            raise

    def _attach(self, thread: int, tracepoint: int) -> None:
        for group, numbers in NUMBERS.get(platform.machine(), {}).items():
            try:
                opened = open_counter(thread, (TRACEPOINT, tracepoint))
            except ProcessLookupError:  # it ended meanwhile
                return
            self._descriptors.setdefault(group, []).append(opened)
            fcntl.ioctl(opened, SET_FILTER, filter_of(numbers))

    def read(self) -> Reading:
        """Reads all of them. Raises OSError."""
        begin_ns = time.monotonic_ns()
        counts = {
            group: sum(read_counter(opened)[0] for opened in descriptors)
            for group, descriptors in self._descriptors.items()
        }
        return Reading((begin_ns, time.monotonic_ns()), counts)

    def close(self) -> None:
        """Closes them; may be called twice."""
        for descriptors in self._descriptors.values():
            for opened in descriptors:
                os.close(opened)
        self._descriptors = {}


def threads_of(pid: int | None) -> list[int]:
    """The numbers of a process's threads; empty if it has ended."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 (much faster)
    return []


def filter_of(numbers: Sequence[int]) -> bytes:
    """The kernel's filter for successful calls with these numbers."""
    calls = " || ".join(f"id == {number}" for number in numbers)
    return f"({calls}) && ret > 0".encode() + b"\0"


class SystemCallWatch:
    """Counts the calls of the workers of one trial. Always call `close`."""

    def __init__(self) -> None:
        self._why: dict[int, str] = {}
        self._counters: dict[int, CallCounters] = {}
        self._first: dict[int, Reading] = {}
        self._last: dict[int, Reading] = {}
        self._wanted = False

    def attach(self, workers: Sequence[int | None], tracepoint: Callable[[], int | None]) -> None:
        """Opens the counters. tracepoint: returns its number, None if it is not known."""
        self._wanted = True
        number = tracepoint()
        why = self._obstacle(sum(len(threads_of(pid)) for pid in workers))
        for worker, pid in enumerate(workers):
            if number is None or why is not None:
                self._why[worker] = why or NO_TRACEPOINT
            else:
                self._attach(worker, pid, number)

    def _attach(self, worker: int, pid: int | None, tracepoint: int) -> None:
        """Opens those of one worker. A thread that starts meanwhile may have no counter: then they are opened
        again."""
        self._why[worker] = NOT_READ
        for _ in range(ATTEMPTS):
            threads = threads_of(pid)
            if not threads:
                return
            try:
                counters = CallCounters(threads, tracepoint)
            except OSError as error:
                self._why[worker] = reason_of(error)
                return
            if set(threads_of(pid)) <= set(threads):
                self._counters[worker] = counters
                return
            counters.close()
        self._why[worker] = RESTLESS

    @staticmethod
    def _obstacle(threads: int) -> str | None:
        """Why it can't be done on this machine, or for so many threads; None if nothing is in the way."""
        groups = NUMBERS.get(platform.machine())
        if groups is None:
            return f"the numbers of system calls are not known for {platform.machine()}"
        count = threads * len(groups)
        most = min(DESCRIPTORS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        if count > most:
            return f"{count} counters are needed for so many threads, and at most {most} are opened"
        return None

    def looks(self, begin_ns: int, measure_ns: int, drain_ns: int) -> list[tuple[int, Callable[[], object]]]:
        """When to read them: before the measure phase and after it."""
        ahead_ns = min(AHEAD_NS, (measure_ns - begin_ns) // 2)
        return [(measure_ns - ahead_ns, self.look_before), (drain_ns + BEHIND_NS, self.look_after)]

    def look_before(self) -> None:
        """Reads the counters for the first time."""
        self._first = self._read()

    def look_after(self) -> None:
        """Reads the counters for the last time."""
        self._last = self._read()

    def _read(self) -> dict[int, Reading]:
        readings = {}
        for worker, counters in self._counters.items():
            with contextlib.suppress(OSError, struct.error):
                readings[worker] = counters.read()
        return readings

    def result(self, worker: int) -> Called:
        """What one worker called."""
        first, last = self._first.get(worker), self._last.get(worker)
        if first is None or last is None:
            return Called(self._why.get(worker, NOT_READ if self._wanted else NOT_WANTED))
        counts = {name: last.counts[name] - first.counts[name] for name in last.counts}
        return Called(None, first.span, last.span, counts)

    def close(self) -> None:
        """Closes all counters; may be called twice."""
        for counters in self._counters.values():
            counters.close()
        self._counters = {}
