# SPDX-License-Identifier: Apache-2.0
"""environment.json: the machine and what on it affects latency (docs/FORMAT.md). Never raises an error."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lagometer
from lagometer.store import machine

SYSCTLS = (
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_time",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "kernel.sched_rt_period_us",
    "kernel.sched_rt_runtime_us",
    "kernel.sched_autogroup_enabled",
    "kernel.timer_migration",
    "kernel.numa_balancing",
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
    "user.max_user_namespaces",
    "vm.swappiness",
    "vm.overcommit_memory",
)
CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
WORKER = "lagometer-worker"
SANITIZERS = (b"__asan_init", b"__tsan_init", b"__ubsan_handle")


def collect() -> dict[str, Any]:
    """The environment as it is now; a value that can't be read is None. `completed` finishes it."""
    worker = _worker()
    facts: dict[str, Callable[[], object]] = {
        "hostname": socket.gethostname,
        "machine_id": _machine_id,
        "os": _distribution,
        "kernel": platform.release,
        "kernel_command_line": lambda: machine.read_text("/proc/cmdline"),
        "cpu": machine.cpu,
        "memory_bytes": lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "governor": machine.governors,
        "idle_states": machine.idle_states,
        "boost": machine.boost,
        "smt": machine.smt,
        "clock_source": lambda: machine.read_text(CLOCK_SOURCE),
        "clock_read_ns": machine.clock_read_ns,
        "preempt": machine.preemption,
        "virtualisation": machine.virtualisation,
        "sysctls": lambda: {name: machine.sysctl(name) for name in SYSCTLS},
        "rlimits": machine.limits,
        "capabilities": machine.capabilities,
        "cgroup": lambda: (machine.read_text("/proc/self/cgroup") or "").splitlines() or None,
        "shared_memory": machine.shared_memory,
        "transparent_hugepages": lambda: _chosen(machine.read_text(HUGE_PAGES)),
        "isolation": machine.may_isolate,
        "realtime": machine.may_run_realtime,
        "load": lambda: {"before": load_now(), "after": None},
        "steal_ticks": lambda: {"before": ticks_now(), "after": None},
        "timer_slack_ns": lambda: machine.read_number("/proc/self/timerslack_ns"),
        "python": lambda: platform.python_implementation() + " " + platform.python_version(),
        "compiler": lambda: _compiler(worker),
        "build_type": lambda: _build_type(worker),
        "lagometer_version": lambda: lagometer.__version__,
        "commit": _commit,
    }
    return {name: _or_none(read) for name, read in facts.items()}


def load_now() -> list[float] | None:
    """Load averages over 1, 5 and 15 minutes."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except OSError:
        return None


def ticks_now() -> dict[str, int] | None:
    """Ticks of all CPUs since boot: `total`, and `steal`: those a hypervisor gave to others."""
    return machine.processor_ticks()


def completed(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment of a finished campaign: adds the current load and stolen ticks as `after`."""
    whole = dict(environment)
    for name, value in (("load", load_now()), ("steal_ticks", ticks_now())):
        before = environment.get(name)
        whole[name] = {**(before if isinstance(before, Mapping) else {"before": None}), "after": value}
    return whole


def _or_none(read: Callable[[], object]) -> object:
    # A file may be missing, unreadable or in another kernel's format; that does not fail a campaign.
    try:
        return read()
    except Exception:
        return None


def _machine_id() -> str | None:
    """Distinguishes machines without revealing the id that the distribution asks to keep confidential."""
    identity = machine.read_text("/etc/machine-id")
    return hashlib.sha256(f"lagometer:{identity}".encode()).hexdigest()[:16] if identity else None


def _distribution() -> str | None:
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', machine.read_text("/etc/os-release") or "", re.MULTILINE)
    return name[1] if name else None


def _chosen(text: str | None) -> str | None:
    chosen = re.search(r"\[(\w+)\]", text or "")
    return chosen[1] if chosen else None


def _worker() -> Path | None:
    named = os.environ.get("LAGOMETER_WORKER")
    path = named or shutil.which(WORKER, path=str(Path(sys.executable).parent)) or shutil.which(WORKER)
    return Path(path).resolve() if path else None


def _compiler(worker: Path | None) -> str | None:
    """The compiler that built the worker, from the comment section it left in the program."""
    if worker is None:
        return None
    note = re.search(rb"(GCC: \([^)\0]*\) [0-9.]+|[A-Za-z ]*clang version [0-9.]+)", worker.read_bytes())
    return note[1].decode(errors="replace").strip() if note else None


def _build_type(worker: Path | None) -> str | None:
    """CMake's build type of the worker, or `guard`, `sanitized` for a test build; None if not visible."""
    if worker is None:
        return None
    content = worker.read_bytes()
    if any(mark in content for mark in SANITIZERS):
        return "sanitized"
    for folder in worker.parents:
        cache = machine.read_text(folder / "CMakeCache.txt")
        if cache is None:
            continue
        if re.search(r"^LAGOMETER_GUARD:\w+=(ON|1|TRUE|YES)$", cache, re.MULTILINE):
            return "guard"
        built = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w+)$", cache, re.MULTILINE)
        return built[1] if built else None
    return None


def _commit() -> str | None:
    """The commit of the checkout this package runs from, if any; read without starting git."""
    git = Path(__file__).resolve().parents[2] / ".git"
    if git.is_file():  # a linked work tree
        git = Path((machine.read_text(git) or "").removeprefix("gitdir: "))
    head = machine.read_text(git / "HEAD") or ""
    if not head.startswith("ref: "):
        return head or None
    name = head.removeprefix("ref: ")
    common = git / (machine.read_text(git / "commondir") or ".")
    loose = machine.read_text(common / name)
    if loose:
        return loose
    packed = re.search(
        rf"^([0-9a-f]+) {re.escape(name)}$", machine.read_text(common / "packed-refs") or "", re.MULTILINE
    )
    return packed[1] if packed else None
