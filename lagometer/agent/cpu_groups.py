# SPDX-License-Identifier: Apache-2.0
"""The control groups of a trial on a host that is limited to a slower device: one for the host, and in it one
for each process. Each process gets the speed of one CPU of the device, all together that of all its CPUs.

A quota shapes throughput, not single bursts: a process runs at this machine's speed until its quota is used
up, then it stalls until the next period (docs/methodology/machine.md says why it is 5 ms).
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lagometer.agent.cpu_limit import (
    DIFFERS,
    FAILED,
    HOST_PERIOD_US,
    QUOTA_US,
    CpuLimit,
    CpuLimitError,
    Throttled,
    hierarchy,
    remove_group,
)

# How far the share may be off (docs/methodology/machine.md): this part of it, and for each CPU of the device
# a tick of 100 Hz, because a process runs up to a tick longer than its quota and pays for it later.
TOLERANCE = 0.1
TICK_NS = 10_000_000
SPIN_NS = 1_000_000_000
AHEAD_NS = 50_000_000  # for each process to start, to enter its group, and to use up what it may at once
ATTEMPTS = 3  # a busy machine takes CPU time from them
STALL_NS = 200_000  # the clock is read every 0.1 µs
_SPUN = struct.Struct("qqqqq")  # CPU time, begin, end, longest run and longest stall, in ns


@dataclass(frozen=True)
class Spun:
    """What busy processes got of the CPUs. share: all together, in CPUs; run_ns, stall_ns: the longest that
    one ran, and stalled."""

    share: float
    run_ns: int
    stall_ns: int


class CpuGroups:
    """Call `make`, `verify`, and always `close`."""

    def __init__(self, limit: CpuLimit, processes: int) -> None:
        self._limit, self._processes = limit, processes
        self._hierarchy = hierarchy()
        self._host = self._hierarchy.root / limit.group
        self._groups = [self._host / str(number) for number in range(processes)]
        self._verified: dict[str, Any] | None = None
        self._quotas: dict[str, Any] = {}
        self._began: tuple[int, Throttled, Throttled] | None = None
        self._throttled: dict[str, Any] | None = None

    def entry(self, number: int) -> str:
        """Returns the file by which a process enters its group."""
        return str(self._groups[number] / "cgroup.procs")

    def make(self) -> None:
        """Makes the groups, and reads their quotas back. Raises `CpuLimitError`."""
        if not remove_group(self._host):  # of an agent that was killed
            raise CpuLimitError(FAILED, f"{self._host} is still in use by an earlier trial")
        limit = self._limit
        try:
            self._host.mkdir()
            self._hierarchy.set_weight(self._host, self._processes)
            self._hierarchy.set_quota(self._host, limit.host_quota_us, HOST_PERIOD_US)
            if self._hierarchy.version == 2:
                (self._host / "cgroup.subtree_control").write_text("+cpu")
            for group in self._groups:
                group.mkdir()
                self._hierarchy.set_quota(group, QUOTA_US, limit.period_us)
            in_force = {
                self._host: (limit.host_quota_us, HOST_PERIOD_US),
                **dict.fromkeys(self._groups, (QUOTA_US, limit.period_us)),
            }
            for group, asked in in_force.items():
                if (quota := self._hierarchy.quota(group)) != asked:
                    raise CpuLimitError(FAILED, f"{group} has the quota {quota} instead of {asked} µs")
            self._quotas = {
                name: {
                    "quota_us": in_force[group][0],
                    "period_us": in_force[group][1],
                    "burst_us": self._hierarchy.burst_us(group),
                }
                for name, group in (("host", self._host), *(("process", group) for group in self._groups[:1]))
            }
        except (OSError, ValueError) as error:
            raise CpuLimitError(FAILED, f"no control group with a quota: {error}") from error

    def verify(self) -> None:
        """Lets one busy process for each group run. Raises `CpuLimitError` if they get another share of the
        CPUs than asked."""
        cpus = min(self._processes, self._limit.cpus)
        asked = cpus * self._limit.share
        margin = asked * TOLERANCE + cpus * TICK_NS / SPIN_NS
        low, high = asked - margin, asked + margin
        for attempt in range(1, ATTEMPTS + 1):
            spun = self._spin()
            self._verified = {
                "asked": asked,
                "measured": spun.share,
                "low": low,
                "high": high,
                "run_ns": spun.run_ns,
                "stall_ns": spun.stall_ns,
                "attempts": attempt,
            }
            if low <= spun.share <= high:
                return
            if spun.share > high:
                break
        got = f"busy processes got {spun.share:.3f} CPUs, and {asked:.3f} ± {margin:.3f} were asked"
        why = "the quota does not hold here" if spun.share > high else "something else uses the CPUs"
        raise CpuLimitError(DIFFERS, f"{got}: {why}")

    def _spin(self) -> Spun:
        start_ns = time.monotonic_ns() + AHEAD_NS * (1 + self._processes)
        children = [_spinner(self.entry(number), start_ns) for number in range(self._processes)]
        results = [_result(pid, reader) for pid, reader in children]
        if not all(results):
            raise CpuLimitError(FAILED, f"no process can enter {self._host}")
        spun = [_SPUN.unpack(result) for result in results]
        cpu_ns, begin_ns, end_ns, run_ns, stall_ns = zip(*spun, strict=True) if spun else [(0,)] * 5
        # One that began late left its part to the others meanwhile, so the time is that of all of them.
        time_ns = max(1, max(end_ns) - min(begin_ns))
        return Spun(sum(cpu_ns) / time_ns, max(run_ns), max(stall_ns))

    def begin(self) -> None:
        """Notes how often the quotas were used up so far."""
        self._began = (time.monotonic_ns(), *self._counts())

    def look(self) -> None:
        """Notes it again: `report` has the difference."""
        if self._began is None:
            return
        (began_ns, *before), now_ns = self._began, time.monotonic_ns()
        processes, host = (now.plus(then, -1) for now, then in zip(self._counts(), before, strict=True))
        window = {"window_ns": now_ns - began_ns}
        self._throttled = {**window, "processes": asdict(processes), "host": asdict(host)}

    def _counts(self) -> tuple[Throttled, Throttled]:
        total = Throttled()
        for group in self._groups:
            total = total.plus(self._hierarchy.throttled(group))
        return total, self._hierarchy.throttled(self._host)

    def report(self) -> dict[str, Any]:
        """Returns what was in force, what was measured before the trial, and how often the quotas were used
        up from the common start to the drain (None if the trial did not get that far)."""
        return {
            **asdict(self._limit),
            "hierarchy": f"cgroup v{self._hierarchy.version}",
            "processes": self._processes,
            "quotas": self._quotas,
            "verified": self._verified,
            "throttled": self._throttled,
        }

    def close(self) -> None:
        """Removes the groups, whose processes have ended. The conductor removes what is in use until then."""
        remove_group(self._host)


def _spinner(entry: str, start_ns: int) -> tuple[int, int]:
    """Starts a process that enters a group and is busy for `SPIN_NS`. Returns it, and where it writes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        Path(entry).write_text("0")
        os.write(writer, _SPUN.pack(*spin(start_ns, start_ns + SPIN_NS)))
        code = 0
    finally:
        os._exit(code)


def _result(pid: int, reader: int) -> bytes:
    """Waits for such a process; empty if it could not enter its group."""
    try:
        select.select([reader], [], [])
        return os.read(reader, _SPUN.size)
    finally:
        os.close(reader)
        os.waitpid(pid, 0)


def spin(start_ns: int, until_ns: int) -> Sequence[int]:
    """Is busy from one time to another, and before. Returns CPU time, begin, end, the longest run and the
    longest stall."""
    now_ns = time.monotonic_ns
    while now_ns() < start_ns:
        pass
    began_ns = last_ns = run_began_ns = now_ns()
    used_ns = time.process_time_ns()
    longest_run_ns = longest_stall_ns = 0
    while last_ns < until_ns:
        read_ns = now_ns()
        if read_ns - last_ns > STALL_NS:
            longest_run_ns = max(longest_run_ns, last_ns - run_began_ns)
            longest_stall_ns = max(longest_stall_ns, read_ns - last_ns)
            run_began_ns = read_ns
        last_ns = read_ns
    longest_run_ns = max(longest_run_ns, last_ns - run_began_ns)
    return time.process_time_ns() - used_ns, began_ns, last_ns, longest_run_ns, longest_stall_ns
