# SPDX-License-Identifier: Apache-2.0
"""Why a cell can't run on a host that is limited to a device: the limit would not hold, or not be its."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from lagometer.study.cell import Cell
from lagometer.study.hosts import Host
from lagometer.study.interference import NETWORK, host_named
from lagometer.study.interference import NONE as NO_LOAD

# What Linux distributions call 7-Zip. All have the benchmark.
SEVEN_ZIP = ("7zr", "7zz", "7za", "7z")
MOUNTS = Path("/proc/self/mounts")


def device_reasons(cell: Cell, hosts: Mapping[str, Host]) -> Iterator[str]:
    """hosts: those of the cell."""
    limited = [name for name, host in hosts.items() if host.device is not None]
    if not limited:
        return
    yield from machine_reasons()
    for name in limited:
        load = cell.factors.interference
        loaded = (host_named(load) or cell.hosts[0]) == name or load.startswith(NETWORK)
        if load != NO_LOAD and loaded:
            yield f"host {name} is limited to a device, and interference would run there without its limit"
        for worker, nodes in enumerate(cell.workers):
            if cell.host_of[nodes[0]] != name:
                continue
            if cell.worker_scheduling(worker) == "fifo":
                yield f"host {name} is limited to a device, and no quota limits SCHED_FIFO threads"
            if len(nodes) > 1 and cell.factors.threads == "per-node":
                yield (
                    f"host {name} is limited to a device, and the threads of {' and '.join(nodes)} would "
                    "share one of its CPUs: use a process for each node, or `threads: per-process`"
                )


def machine_reasons(mounts: Path = MOUNTS) -> Iterator[str]:
    """Why this machine can't limit a host to a device."""
    if os.geteuid() != 0:
        yield "a host is limited to a device by control groups, which root makes: run as root"
    if not _has_groups(mounts):
        yield "a host is limited to a device by control groups, and none for CPUs (`cpu`, or v2) are mounted"
    if all(shutil.which(program) is None for program in SEVEN_ZIP):
        programs = f"{', '.join(SEVEN_ZIP[:-1])} or {SEVEN_ZIP[-1]}"
        yield (
            f"`device` needs the speed of this machine, measured by 7-Zip ({programs}), which is not "
            "installed (Debian package: p7zip)"
        )


def _has_groups(mounts: Path) -> bool:
    """The agent looks closer when it makes one."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return False
    return any(
        len(words) > 3 and (words[2] == "cgroup2" or (words[2] == "cgroup" and "cpu" in words[3].split(",")))
        for words in lines
    )
