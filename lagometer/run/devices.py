# SPDX-License-Identifier: Apache-2.0
"""Hosts that are limited to devices: how fast this machine is, and which share of it each host gets.

The speed of this machine is measured as those of devices were: by 7-Zip's benchmark with one thread.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lagometer.agent.cpu_limit import SHARE_MIN, CpuLimit, remove_groups
from lagometer.errors import BadInput, Problem
from lagometer.study.cell import Cell
from lagometer.study.device_rules import SEVEN_ZIP
from lagometer.study.devices import Device
from lagometer.study.hosts import Host

SECONDS_MAX = 300.0  # it takes about a minute
USAGE_MIN = 0.95  # a speed measured with less of a CPU would be too low, and all shares too high
_PR_SET_PDEATHSIG = 1
_TOTAL = re.compile(r"^Tot:\s+(\d+)\s+\d+\s+(\d+)\s*$", re.MULTILINE)
_VERSION = re.compile(r"^7-Zip.*$", re.MULTILINE)


@dataclass(frozen=True)
class MachineSpeed:
    """How fast one CPU of this machine is. mips: by 7-Zip; cpus: how many this process may use; version: of
    7-Zip; usage: share of a CPU that it got meanwhile; seconds: how long it took."""

    mips: float
    cpus: int
    command: str
    version: str
    usage: float
    seconds: float


def speed_for(
    cells: Sequence[Cell], hosts: Mapping[str, Host], known: Mapping[str, Any] | None = None
) -> MachineSpeed | None:
    """Returns the speed of this machine if a cell has a host that is limited to a device, else None.

    known: what the campaign's manifest has. Raises BadInput if the speed can't be measured, or a device is
    faster than this machine. Removes what killed agents left of such hosts.
    """
    limited = [_devices(group, hosts) for group in dict.fromkeys(cell.hosts for cell in cells)]
    if not any(limited):
        return None
    remove_groups(os.getpid())
    speed = MachineSpeed(**known) if known is not None else measured_speed()
    problems = [problem for devices in limited for problem in too_fast(devices, speed)]
    if problems:
        raise BadInput.of(list(dict.fromkeys(problems)))
    return speed


def _devices(names: Sequence[str], hosts: Mapping[str, Host]) -> dict[str, Device]:
    devices = {name: hosts[name].device for name in names if name in hosts}
    return {name: device for name, device in devices.items() if device is not None}


def too_fast(devices: Mapping[str, Device], speed: MachineSpeed) -> Iterator[Problem]:
    """Why this machine can't be like the devices of a cell's hosts, by the hosts' names."""
    here = f"this machine has {speed.cpus} CPUs of {speed.mips:,.0f} MIPS ({speed.command})"
    for name, device in devices.items():
        called = device.name or "the device"
        if device.speed_mips > speed.mips:
            yield Problem(
                f"a CPU of {called} is faster than one of this machine: "
                f"{device.speed_mips:,.0f} MIPS, and {here}",
                f"hosts.{name}.device",
                "measure on a faster machine: a limit makes none faster",
            )
        elif device.speed_mips / speed.mips < SHARE_MIN:
            yield Problem(
                f"a CPU of {called} is slower than {SHARE_MIN:.0%} of one of this machine, and {here}",
                f"hosts.{name}.device",
                "no quota is that small",
            )
    needed_mips = sum(device.cpus * device.speed_mips for device in devices.values())
    if needed_mips > speed.cpus * speed.mips:
        texts = " + ".join(f"{device.cpus} × {device.speed_mips:,.0f}" for device in devices.values())
        yield Problem(
            f"{' and '.join(devices)} together are faster than this machine: {texts} MIPS, and {here}",
            "hosts",
            "give them fewer CPUs, such as `device: {cpus: 1, speed: 1600MIPS}`",
        )


def limit_of(name: str, host: Host, speed: MachineSpeed | None) -> CpuLimit | None:
    """Returns the limit of a host's processes; None if it is not limited. The name of its group says which
    conductor has it."""
    if host.device is None or speed is None:
        return None
    share = host.device.speed_mips / speed.mips
    return CpuLimit(f"lagometer-{os.getpid()}-{name}", host.device.cpus, share)


def measured_speed(seconds_max: float = SECONDS_MAX) -> MachineSpeed:
    """Runs 7-Zip's benchmark. Raises BadInput."""
    program = next((name for name in SEVEN_ZIP if shutil.which(name) is not None), None)
    if program is None:
        raise _unmeasured(f"none of {', '.join(SEVEN_ZIP)} is installed", "Debian package: p7zip")
    command, began_s = (program, "b", "-mmt1"), time.monotonic()
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds_max,
            preexec_fn=_end_with_parent,
        )
    except subprocess.TimeoutExpired as error:
        why = f"{' '.join(command)} did not end within {seconds_max:g} s"
        raise _unmeasured(why, "end what else runs") from error
    except OSError as error:
        raise _unmeasured(f"{program} can't be started: {error.strerror}", "install it again") from error
    output = done.stdout.decode(errors="replace")
    return parsed_speed(output, " ".join(command), time.monotonic() - began_s)


def parsed_speed(output: str, command: str, seconds: float) -> MachineSpeed:
    """Reads what the benchmark wrote. Raises BadInput if it is no speed of a whole CPU."""
    total, version = _TOTAL.search(output), _VERSION.search(output)
    if total is None or int(total[2]) == 0:
        last = (output.strip().splitlines() or ["nothing"])[-1]
        raise _unmeasured(f"{command} wrote no line `Tot:`, but: {last}", "see what it writes")
    usage = int(total[1]) / 100
    if usage < USAGE_MIN:
        raise _unmeasured(f"{command} got {usage:.0%} of a CPU", "end what else runs")
    cpus = len(os.sched_getaffinity(0))
    text = version[0].strip() if version is not None else ""
    return MachineSpeed(float(total[2]), cpus, command, text, usage, round(seconds, 1))


def _unmeasured(why: str, hint: str) -> BadInput:
    return BadInput(f"the speed of this machine can't be measured: {why}", where="hosts: device", hint=hint)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def speed_json(speed: MachineSpeed | None) -> dict[str, Any]:
    """Returns what the manifest keeps; empty if nothing was measured."""
    return {"machine_speed": asdict(speed)} if speed is not None else {}
