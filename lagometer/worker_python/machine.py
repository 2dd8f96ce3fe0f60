# SPDX-License-Identifier: Apache-2.0
"""Priority, affinity and memory locking: requested before a client library is loaded, so its threads inherit
them, and read back from every thread afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lagometer.worker_python.plan import Plan

PR_SET_TIMERSLACK = 29
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
TRIAL_BYTES = 256 << 20
TASKS = Path("/proc/self/task")
# Minimum size of a buffer that moves; holes of this size and more are filled first.
HEAP_BLOCK_BYTES = 4096
HEAP_HOLES_MAX = 16384
POLICIES = {os.SCHED_FIFO: "fifo", os.SCHED_RR: "rr", os.SCHED_OTHER: "other"}
RunTimes = Mapping[int, tuple[int, int]]


class _Allocator(ctypes.Structure):
    """`struct mallinfo2` of glibc; the last member is the size in bytes of the free end of the heap."""

    _fields_ = (("others", ctypes.c_size_t * 9), ("end_bytes", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.malloc.argtypes, _libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
_libc.sbrk.argtypes, _libc.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p


class SchedulingRefused(Exception):
    """The plan's scheduling would starve the machine."""


def apply_scheduling(plan: Plan) -> list[str]:
    """Applies the plan to the calling (main) thread. Returns warnings for what the machine refuses.

    Raises SchedulingRefused.
    """
    scheduling = plan.scheduling
    _refuse_starvation(plan)
    warnings = []
    try:
        if scheduling.cpus:
            os.sched_setaffinity(0, scheduling.cpus)
    except (OSError, ValueError) as error:
        warnings.append(f"affinity not set: {_reason(error)}")
    if _libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0) != 0:
        warnings.append(f"timer slack not set: {os.strerror(ctypes.get_errno())}")
    if scheduling.lock_memory:
        warnings += _lock_memory()
    if scheduling.fifo:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(scheduling.priority))
        except OSError as error:
            warnings.append(
                f"SCHED_FIFO priority {scheduling.priority} not set: {_reason(error)} "
                "(needs CAP_SYS_NICE or a real-time limit: ulimit -r)"
            )
    return warnings


def move_heap(offset_bytes: int) -> None:
    """Moves all later allocations of the process by this many bytes. Raises MemoryError.

    The start of a buffer within its page decides how fast it is copied. Otherwise it would be the same in
    every trial. The interpreter's start leaves holes in the heap, where a block would move nothing, so they
    are filled first.
    """
    for _ in range(HEAP_HOLES_MAX):
        end = heap_end()
        if _allocated(HEAP_BLOCK_BYTES) >= end:
            break
    _allocated(HEAP_BLOCK_BYTES + offset_bytes)


def heap_end() -> int:
    """Returns the address after which nothing of the heap is in use; 0 if the C library does not report
    it."""
    try:
        look = _libc.mallinfo2
    except AttributeError:  # glibc before 2.33, musl
        return 0
    look.restype = _Allocator
    return int(_libc.sbrk(0) or 0) - int(look().end_bytes)


def _allocated(size_bytes: int) -> int:
    """Returns the address of a block that stays allocated until the process ends and is never touched."""
    block = _libc.malloc(size_bytes)
    if block is None:
        raise MemoryError("no room to move the heap")
    return int(block)


def pin_thread(cpus: Sequence[int]) -> None:
    """Pins the calling thread, if CPUs are named; threads() reports the result."""
    if cpus:
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, cpus)


def name_thread(name: str) -> None:
    """Sets the calling thread's name, as tools show it; the kernel keeps 15 bytes."""
    with contextlib.suppress(OSError):
        (TASKS / str(threading.get_native_id()) / "comm").write_bytes(name.encode()[:15])


def run_times() -> RunTimes:
    """Returns by thread, as the kernel counts it: the time on a CPU, and the time ready to run without
    one."""
    times = {}
    for task in _tasks():
        with contextlib.suppress(OSError, ValueError, IndexError):
            account = (task / "schedstat").read_text().split()
            times[int(task.name)] = int(account[0]), int(account[1])
    return times


def threads(before: RunTimes | None = None, after: RunTimes | None = None) -> list[dict[str, Any]]:
    """Returns every thread of this process, with its kernel data; with accounts, also the time spent between
    them."""
    entries = []
    for task in _tasks():
        number = int(task.name)
        facts: dict[str, Any] = {"tid": number}
        with contextlib.suppress(OSError, ValueError):
            facts["name"] = (task / "comm").read_text(errors="replace").rstrip("\n")
            facts["policy"] = POLICIES.get(os.sched_getscheduler(number), "unknown")
            facts["priority"] = os.sched_getparam(number).sched_priority
            facts["cpus"] = sorted(os.sched_getaffinity(number))
            facts["timer_slack_ns"] = _timer_slack_ns(number)
            if before and after and number in before and number in after:
                facts["run_ns"] = after[number][0] - before[number][0]
                facts["wait_ns"] = after[number][1] - before[number][1]
            entries.append(facts)
    return entries


def _tasks() -> list[Path]:
    try:
        return list(TASKS.iterdir())
    except OSError:
        return []


def _timer_slack_ns(number: int) -> int:
    try:
        return int(Path(f"/proc/{number}/timerslack_ns").read_text())
    except (OSError, ValueError):
        return -1  # can't be read


def _refuse_starvation(plan: Plan) -> None:
    """Spinning FIFO threads on every core leave no CPU for the rest, and the kernel throttles them."""
    if not plan.scheduling.fifo:
        return
    spinning = sum(node.dispatch == "poll" and bool(node.readers) for node in plan.nodes)
    cpus = len(plan.scheduling.cpus) or len(os.sched_getaffinity(0))
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    if spinning and (spinning >= online or spinning > cpus):
        raise SchedulingRefused(
            f"{spinning} busy-polling threads under SCHED_FIFO on {cpus} of {online} CPUs would starve the "
            "machine; use the waitset, fewer nodes, or scheduling: other"
        )


def _lock_memory() -> list[str]:
    """Without the right to lock, mlockall succeeds and makes later allocations fail. So this tries one."""
    if _libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0:
        return [f"memory not locked: {os.strerror(ctypes.get_errno())}"]
    try:
        mmap.mmap(-1, TRIAL_BYTES).close()
    except (OSError, MemoryError):
        _libc.munlockall()
        return ["memory not locked: the limit on locked memory is too low (ulimit -l)"]
    return []


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
