# SPDX-License-Identifier: Apache-2.0
"""How a control group limits CPU time: its quota in each period, in cgroup v1 (`cpu.cfs_quota_us`) and v2
(`cpu.max`)."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lagometer.agent.commands import LaunchError

LEAST_US = 1000  # of a quota and of a period: min_cfs_quota_period in kernel/sched/core.c
# Above the tick of a kernel with 250 Hz: what is refilled while a process runs on to the next tick is lost,
# and with 1 ms a busy one got half of a large share. docs/methodology/machine.md has the measurements.
QUOTA_US = 5000
# The processes of a host together stall only if more are busy than the device has CPUs. Each CPU takes 5 ms
# of a quota at a time (sched_cfs_bandwidth_slice_us), so a short period would leave some CPUs without any.
HOST_PERIOD_US = 20_000
SHARE_MIN = LEAST_US / HOST_PERIOD_US  # of a CPU: with less, a host's quota would be below the least
REMOVED_S = 2.0  # for processes that were killed to be gone
MOUNTS = Path("/proc/self/mountinfo")
# The conductor's process number, and the host's name.
GROUP = re.compile(r"lagometer-(\d+)-[A-Za-z0-9][A-Za-z0-9._-]*")


class CpuLimitError(LaunchError):
    """The limit can't be made (`device-failed`), or was measured as another (`device-differs`)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


FAILED, DIFFERS = "device-failed", "device-differs"


@dataclass(frozen=True)
class CpuLimit:
    """What a host's processes may use. group: name of its control group; cpus: how many of them may be busy
    at once; share: of one CPU of this machine, for each process."""

    group: str
    cpus: int
    share: float

    @property
    def period_us(self) -> int:
        """In this time a process may use `QUOTA_US`."""
        return math.ceil(QUOTA_US / self.share)

    @property
    def host_quota_us(self) -> int:
        """What all may use in `HOST_PERIOD_US`. Rounded up: v1 refuses a group that may use more than its
        parent."""
        return math.ceil(self.cpus * self.share * HOST_PERIOD_US)


@dataclass(frozen=True)
class Throttled:
    """How often a quota was used up. periods: those with a busy process; throttled_ns: time that processes
    stalled, added up over CPUs."""

    periods: int = 0
    throttled: int = 0
    throttled_ns: int = 0

    def plus(self, other: Throttled, sign: int = 1) -> Throttled:
        """Returns the sum, or with the sign -1 the difference."""
        return Throttled(
            self.periods + sign * other.periods,
            self.throttled + sign * other.throttled,
            self.throttled_ns + sign * other.throttled_ns,
        )


@dataclass(frozen=True)
class Hierarchy:
    """Where control groups for CPUs are. version: 1 or 2; root: the folder."""

    version: int
    root: Path

    def set_quota(self, group: Path, quota_us: int, period_us: int) -> None:
        """Also lets a group save up to one quota, where the kernel can (since Linux 5.14). Raises OSError."""
        if self.version == 2:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        if self._burst(group).exists():
            self._burst(group).write_text(str(quota_us))

    def burst_us(self, group: Path) -> int:
        """Returns how much of its quotas a group may save, in µs. Raises OSError, ValueError."""
        return int(self._burst(group).read_text()) if self._burst(group).exists() else 0

    def _burst(self, group: Path) -> Path:
        return group / ("cpu.max.burst" if self.version == 2 else "cpu.cfs_burst_us")

    def set_weight(self, group: Path, processes: int) -> None:
        """Makes a group as important as that many processes outside: groups count as one process otherwise.
        Raises OSError."""
        if self.version == 2:
            (group / "cpu.weight").write_text(str(min(10_000, 100 * max(1, processes))))
        else:
            (group / "cpu.shares").write_text(str(min(262_144, 1024 * max(1, processes))))

    def quota(self, group: Path) -> tuple[int, int]:
        """Returns quota and period in force, in µs; the quota is -1 without a limit. Raises OSError,
        ValueError."""
        if self.version == 2:
            quota, period = (group / "cpu.max").read_text().split()
            return (-1 if quota == "max" else int(quota)), int(period)
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        quota_us, period_us = (int((group / name).read_text()) for name in names)
        return quota_us, period_us

    def throttled(self, group: Path) -> Throttled:
        """Raises OSError, ValueError."""
        pairs = (line.split() for line in (group / "cpu.stat").read_text().splitlines())
        counts = {name: int(value) for name, value in pairs}
        stalled_ns = counts.get("throttled_time", 1000 * counts.get("throttled_usec", 0))
        return Throttled(counts.get("nr_periods", 0), counts.get("nr_throttled", 0), stalled_ns)


def hierarchy(mounts: Path = MOUNTS) -> Hierarchy:
    """Returns what is mounted here. The controller for CPUs is in one hierarchy only. Raises
    `CpuLimitError`."""
    second = None
    for line in mounts.read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        root = Path(before.split()[4])
        if kind == "cgroup" and "cpu" in options.split(","):
            return Hierarchy(1, root)
        if kind == "cgroup2" and "cpu" in _words(root / "cgroup.controllers"):
            second = root
    if second is None:
        raise CpuLimitError(FAILED, "no control groups for CPUs are mounted here (cgroup `cpu`, or v2)")
    if "cpu" not in _words(second / "cgroup.subtree_control"):
        enable = f"echo +cpu > {second}/cgroup.subtree_control"
        raise CpuLimitError(FAILED, f"the control groups in {second} have no CPU controller: {enable}")
    return Hierarchy(2, second)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def remove_group(group: Path, patience_s: float = REMOVED_S) -> bool:
    """Removes a group and those in it, once its processes are gone; returns whether it is gone."""
    deadline_s = time.monotonic() + patience_s
    while group.is_dir():
        with contextlib.suppress(OSError):
            for child in [path for path in group.iterdir() if path.is_dir()]:
                child.rmdir()
            group.rmdir()
            return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(0.01)
    return True


def remove_groups(owner: int, root: Path | None = None) -> list[Path]:
    """Removes what agents of a conductor with this process number left, and what those of conductors left
    that no longer run. Returns what could not be removed."""
    try:
        folder = hierarchy().root if root is None else root
    except (CpuLimitError, OSError, ValueError, IndexError):
        return []
    return [
        group
        for group, conductor in _groups(folder)
        if (conductor == owner or not Path(f"/proc/{conductor}").exists()) and not remove_group(group)
    ]


def _groups(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in folder.glob("lagometer-*"):
        if match := GROUP.fullmatch(path.name):
            yield path, int(match[1])
