# SPDX-License-Identifier: Apache-2.0
"""Single facts about this machine, each read from the kernel; None if it can't be read here."""

from __future__ import annotations

import collections
import gc
import gzip
import itertools
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

CPU_FOLDER = Path("/sys/devices/system/cpu")
CAPABILITIES = {12: "NET_ADMIN", 14: "IPC_LOCK", 21: "SYS_ADMIN", 23: "SYS_NICE", 24: "SYS_RESOURCE"}
RLIMITS = {
    "memlock": resource.RLIMIT_MEMLOCK,
    "rtprio": resource.RLIMIT_RTPRIO,
    "nice": resource.RLIMIT_NICE,
    "nofile": resource.RLIMIT_NOFILE,
}
CPU_FLAGS = ("constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_reliable", "hypervisor", "monitor")
TRY_SECONDS_MAX = 2.0


def read_text(path: str | Path) -> str | None:
    """A small text file, stripped of leading and trailing white space."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_number(path: str | Path) -> int | None:
    """A file that contains one whole number."""
    text = read_text(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def sysctl(name: str) -> int | str | None:
    """A sysctl's value, by its dotted name: a number, or text if it has several."""
    text = read_text("/proc/sys/" + name.replace(".", "/"))
    if text is None:
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else " ".join(text.split())


def cpu() -> dict[str, object]:
    """Model, cores, threads, current frequency, and the flags that affect the clock."""
    text = read_text("/proc/cpuinfo") or ""
    fields = dict(re.findall(r"^([^\n:]+?)[ \t]*:[ \t]*(.*)$", text, re.MULTILINE))  # the last CPU's
    cores = {
        (read_text(topology / "physical_package_id"), read_text(topology / "core_id"))
        for topology in CPU_FOLDER.glob("cpu[0-9]*/topology")
    }
    frequency = fields.get("cpu MHz")
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return {
        "model": fields.get("model name"),
        "cores": len(cores) or None,
        "threads": os.cpu_count(),
        "allowed": sorted(os.sched_getaffinity(0)),
        "isolated": read_text(CPU_FOLDER / "isolated") or None,
        "mhz": float(frequency) if frequency else None,
        "flags": [flag for flag in CPU_FLAGS if flag in flags],
    }


def governors() -> str | None:
    """The frequency governor, several if the CPUs differ; None if the kernel does not scale frequencies."""
    names = {read_text(path) for path in CPU_FOLDER.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(filter(None, names))) or None


def boost() -> bool | None:
    """Whether the CPU may raise its frequency above the nominal one."""
    no_turbo = read_number(CPU_FOLDER / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == 0
    allowed = read_number(CPU_FOLDER / "cpufreq/boost")
    return allowed == 1 if allowed is not None else None


def smt() -> bool | None:
    """Whether hardware threads share a core."""
    active = read_number(CPU_FOLDER / "smt/active")
    return active == 1 if active is not None else None


def idle_states() -> dict[str, object]:
    """The idle driver and its states: name, exit latency, disabled."""
    states = [
        {
            "name": read_text(folder / "name"),
            "exit_latency_us": read_number(folder / "latency"),
            "disabled": read_text(folder / "disable") == "1",
        }
        for folder in sorted((CPU_FOLDER / "cpu0/cpuidle").glob("state[0-9]*"))
    ]
    return {"driver": read_text(CPU_FOLDER / "cpuidle/current_driver"), "states": states}


def preemption() -> str | None:
    """The kernel's preemption model: PREEMPT_RT, or the one in force, or the one it was built with."""
    if read_text("/sys/kernel/realtime") == "1":
        return "PREEMPT_RT"
    chosen = re.search(r"\((\w+)\)", read_text("/sys/kernel/debug/sched/preempt") or "")
    if chosen:
        return chosen[1]
    for option in ("PREEMPT_LAZY", "PREEMPT_VOLUNTARY", "PREEMPT_NONE", "PREEMPT"):
        if f"\nCONFIG_{option}=y\n" in kernel_configuration():
            return option.removeprefix("PREEMPT_").lower() if option != "PREEMPT" else "full"
    version = re.search(r"PREEMPT\w*", os.uname().version)
    return version[0] if version else None


def kernel_configuration() -> str:
    """The kernel's build options; empty if they can't be read anywhere."""
    try:
        with gzip.open("/proc/config.gz", "rt", encoding="utf-8") as stream:
            return stream.read()
    except (OSError, EOFError):
        return read_text(f"/boot/config-{os.uname().release}") or ""


def virtualisation() -> str | None:
    """`none`, or the hypervisor and container this runs in, as far as they can be detected."""
    layers = []
    if "hypervisor" in (read_text("/proc/cpuinfo") or "").split():
        names = (read_text("/sys/hypervisor/type"), read_text("/sys/class/dmi/id/sys_vendor"))
        clocks = read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
        guess = "kvm" if "kvm-clock" in clocks else "hyper-v" if "hyperv" in clocks else None
        layers.append(f"virtual machine ({next(filter(None, (*names, guess)), 'unknown')})")
    container = read_text("/run/systemd/container")
    if container is None and Path("/run/.containerenv").exists():
        container = "podman"
    if container is None and Path("/.dockerenv").exists():
        container = "docker"
    if container:
        layers.append(f"container ({container})")
    return ", ".join(layers) or "none"


def capabilities() -> list[str] | None:
    """The effective capabilities that matter for measuring."""
    mask = re.search(r"^CapEff:\s*([0-9a-f]+)$", read_text("/proc/self/status") or "", re.MULTILINE)
    if mask is None:
        return None
    return [name for bit, name in CAPABILITIES.items() if int(mask[1], 16) >> bit & 1]


def limits() -> dict[str, dict[str, int | None]]:
    """Resource limits, soft and hard; None for unlimited."""
    by_name: dict[str, dict[str, int | None]] = {}
    for name, number in RLIMITS.items():
        soft, hard = (
            None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(number)
        )
        by_name[name] = {"soft": soft, "hard": hard}
    return by_name


def clock_read_ns(reads: int = 5000, rounds: int = 5) -> float:
    """The cost of reading CLOCK_MONOTONIC, in ns. It is an upper bound: it includes creating a Python number.

    The fastest of several rounds, minus the cost of calling an empty function of the same kind.
    """

    def fastest(call: Callable[[], object]) -> float:
        best = float("inf")
        for _ in range(rounds):
            begin = time.perf_counter_ns()
            collections.deque(itertools.islice(iter(call, None), reads), maxlen=0)
            best = min(best, (time.perf_counter_ns() - begin) / reads)
        return best

    return round(max(0.0, fastest(time.monotonic_ns) - fastest(gc.isenabled)), 1)


def processor_ticks() -> dict[str, int] | None:
    """Ticks of all CPUs since boot: all of them, and those the hypervisor took away (steal)."""
    first = (read_text("/proc/stat") or "").partition("\n")[0].split()
    if first[:1] != ["cpu"] or len(first) < 9:
        return None
    return {"total": sum(map(int, first[1:9])), "steal": int(first[8])}


def shared_memory() -> dict[str, int] | None:
    """Size and free space of /dev/shm in bytes."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return None
    return {"bytes": room.f_blocks * room.f_frsize, "free_bytes": room.f_bavail * room.f_frsize}


def may_isolate() -> bool | None:
    """Whether a process may get its own network, mount, IPC and PID namespaces; found by trying."""
    namespaces = ["--net", "--mount", "--ipc", "--pid", "--fork"]
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return _succeeds("unshare", *user, *namespaces, "true")


def may_run_realtime() -> bool | None:
    """Whether a process may get SCHED_FIFO; found by trying, since a control group can also refuse it."""
    return _succeeds("chrt", "--fifo", "1", "true")


def _succeeds(program: str, *arguments: str) -> bool | None:
    path = shutil.which(program)
    if path is None:
        return None
    try:
        completed = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TRY_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.returncode == 0
