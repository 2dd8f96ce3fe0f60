# SPDX-License-Identifier: Apache-2.0
"""The processes of a trial as the kernel shows them from outside: parents, CPU time, memory."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

KIB = 1024


def parents() -> dict[int, int]:
    """Returns the parent of every living process, without zombies."""
    parent_of: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 (much faster)
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    parent_of[int(name)] = int(fields[1])
    return parent_of


def ancestor_among(pid: int, those: Collection[int], parent_of: Mapping[int, int]) -> int | None:
    """Returns the nearest of `those` that is `pid` itself or its ancestor; None if there is none."""
    while pid not in those:
        if pid not in parent_of:
            return None
        pid = parent_of[pid]
    return pid


def cpu_time_ns(pid: int) -> int | None:
    """Returns the CPU time of all threads of a process, including ended ones; None if the process is gone.

    It reads the process's CPU clock, which costs one system call (clock_getcpuclockid(3) explains the clock's
    number).
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def proportional_bytes(pid: int, without: str | None = None) -> int | None:
    """Returns a process's proportional memory (PSS): shared memory is divided by the number of its users.
    None if it can't be read.

    Mappings whose name contains `without` are left out.
    """
    total, counts = 0, True
    try:
        with open(f"/proc/{pid}/smaps", errors="replace") as lines:  # noqa: PTH123 (a Path adds nothing)
            for line in lines:
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * KIB if counts else 0
                elif not line[0].isupper():  # the head of a mapping: its addresses are in lower case
                    counts = without is None or without not in line
    except (OSError, ValueError, IndexError):
        return None
    return total
