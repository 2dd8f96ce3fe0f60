# SPDX-License-Identifier: Apache-2.0
"""Counts processor events of other processes: perf_event_open(2), through ctypes.

Each thread of a process gets its own counter, and its future threads inherit it. A counter counts what the
thread does, wherever it runs. It costs something at each switch to another thread, so it must be requested.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# By machine: the number of the system call (libc has no function for it).
SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
HARDWARE, SOFTWARE, HARDWARE_CACHE = 0, 1, 3
ATTRIBUTES_BYTES = 64  # PERF_ATTR_SIZE_VER0, which every kernel accepts
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
TIME_ENABLED, TIME_RUNNING = 1 << 0, 1 << 1
CLOSE_ON_EXEC = 1 << 3
DATA_TLB_READ_MISSES = 3 | (0 << 8) | (1 << 16)
# Name: type and number in the kernel (linux/perf_event.h).
COUNTERS: Mapping[str, tuple[int, int]] = {
    "cycles": (HARDWARE, 0),
    "instructions": (HARDWARE, 1),
    "cache_misses": (HARDWARE, 3),
    "tlb_misses": (HARDWARE_CACHE, DATA_TLB_READ_MISSES),
}
TASK_CLOCK = (SOFTWARE, 1)  # nanoseconds; available on every machine

# What an error from the kernel means for a counter.
_MEANINGS = {
    errno.ENOENT: "the machine has no such counter",
    errno.EOPNOTSUPP: "the processor has no such counter",
    errno.EACCES: "the kernel does not allow it (kernel.perf_event_paranoid)",
    errno.EPERM: "the kernel does not allow it (kernel.perf_event_paranoid, or the container)",
    errno.EMFILE: "too many descriptors for so many threads (ulimit -n)",
    errno.ENOSYS: "the kernel has no perf_event_open for us",
}
Readings = Mapping[str, Sequence[tuple[int, int, int]]]  # by counter, of each thread

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Count:
    """What a counter counted; None with the reason if it did not count."""

    value: int | None
    why: str | None = None


def open_counter(thread: int, counter: tuple[int, int], exclude_kernel: bool = False) -> int:
    """Opens a counter of one thread and of the threads it will start. Returns a descriptor. Raises
    OSError."""
    number = SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open is not known for {platform.machine()}")
    kind, config = counter
    flags = INHERIT | EXCLUDE_HYPERVISOR | (EXCLUDE_KERNEL if exclude_kernel else 0)
    form = TIME_ENABLED | TIME_RUNNING
    # type, size, config, sample_period, sample_type, read_format, flags, wakeup_events, bp_type, bp_addr
    packed = struct.pack("=IIQQQQQIIQ", kind, ATTRIBUTES_BYTES, config, 0, 0, form, flags, 0, 0, 0)
    attributes = ctypes.create_string_buffer(packed, ATTRIBUTES_BYTES)
    opened = _libc.syscall(
        ctypes.c_long(number),
        attributes,
        ctypes.c_int(thread),
        ctypes.c_int(-1),  # on any CPU
        ctypes.c_int(-1),  # of no group
        ctypes.c_ulong(CLOSE_ON_EXEC),
    )
    if opened < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(opened)


def read_counter(descriptor: int) -> tuple[int, int, int]:
    """Returns its count, and for how long it was enabled and did count, in nanoseconds. Raises OSError."""
    value, enabled, running = struct.unpack("=QQQ", os.read(descriptor, 24))
    return value, enabled, running


def reason_of(error: OSError) -> str:
    """Names an error as `EACCES: …`, with its meaning here."""
    number = error.errno or 0
    name = "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode.get(number, "error")
    return f"{name}: {_MEANINGS.get(number, error.strerror)}"


def unavailable(counters: Mapping[str, tuple[int, int]] = COUNTERS) -> dict[str, str]:
    """Returns why each counter is not available here; available counters are left out."""
    reasons = {}
    for name, counter in counters.items():
        try:
            os.close(open_counter(0, counter, exclude_kernel=True))
        except OSError as error:
            reasons[name] = reason_of(error)
    return reasons


@dataclass
class ProcessCounters:
    """The counters of one process: by the counter's name, a descriptor for each thread that the process
    had."""

    descriptors: dict[str, list[int]] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    user_alone: bool = False  # the kernel's own work can't be counted

    @classmethod
    def of(
        cls, pid: int, counters: Mapping[str, tuple[int, int]] = COUNTERS, proc: Path = Path("/proc")
    ) -> ProcessCounters:
        """Opens the counters. A counter that can't be opened has a reason."""
        process_counters = cls()
        try:
            threads = [int(name) for name in os.listdir(proc / str(pid) / "task")]  # noqa: PTH208
        except OSError as error:
            return cls(why=dict.fromkeys(counters, reason_of(error)))
        for name, counter in counters.items():
            process_counters._open(name, counter, threads)
        return process_counters

    def _open(self, name: str, counter: tuple[int, int], threads: Sequence[int]) -> None:
        opened: list[int] = []
        try:
            for thread in threads:
                try:
                    opened.append(open_counter(thread, counter, self.user_alone))
                except PermissionError:
                    if self.user_alone or opened or self.descriptors:
                        raise
                    opened.append(open_counter(thread, counter, exclude_kernel=True))
                    self.user_alone = True
                except ProcessLookupError:  # it ended meanwhile
                    continue
        except OSError as error:
            self.why[name] = reason_of(error)
            for descriptor in opened:
                os.close(descriptor)
            return
        self.descriptors[name] = opened

    def read(self) -> Readings:
        """Returns for each thread: the count, and for how long it was enabled and did count."""
        readings = {}
        for name, descriptors in self.descriptors.items():
            with contextlib.suppress(OSError, struct.error):
                readings[name] = [read_counter(descriptor) for descriptor in descriptors]
        return readings

    def between(self, before: Readings, after: Readings) -> dict[str, Count]:
        """Returns what each counter counted between two readings, summed over threads."""
        counts = {name: Count(None, why) for name, why in self.why.items()}
        for name in self.descriptors:
            if name in before and name in after:
                pairs = zip(before[name], after[name], strict=True)
                counts[name] = _sum([_counted(*pair) for pair in pairs])
            else:
                counts[name] = Count(None, "it could not be read")
        return counts

    def close(self) -> None:
        """Closes the counters."""
        for descriptor in (
            open_descriptor for opened in self.descriptors.values() for open_descriptor in opened
        ):
            os.close(descriptor)
        self.descriptors = {}


def _counted(before: tuple[int, int, int], after: tuple[int, int, int]) -> int | None:
    """Returns the increment; None if the counter never counted. If counters took turns on the processor, the
    count is scaled to the whole time, as perf(1) does."""
    value, enabled, running = (now - then for then, now in zip(before, after, strict=True))
    if running <= 0:
        return None if enabled > 0 else 0
    return round(value * enabled / running)


def _sum(counts: Sequence[int | None]) -> Count:
    if None in counts:
        return Count(None, "it never got its turn on the processor")
    return Count(sum(count for count in counts if count is not None))
