# SPDX-License-Identifier: Apache-2.0
"""What on a machine spoils a measurement, judged from its environment: this machine's, or a stored one's.

docs/methodology/machine.md lists the checks by their code words. An unknown value gives the verdict
`unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lagometer.units import NS_PER_US, duration_text, plain_duration_text

Verdict = Literal["ok", "warn", "fail", "unknown"]
Environment = Mapping[str, Any]

TIMER_SLACK_DEFAULT_NS = 50_000
CLOCK_READ_NS_MAX = 100.0  # a read through the vDSO takes 20 to 60 ns, a system call several hundred
CLOCK_READ_NS_TERRIBLE = 1000.0
EXIT_LATENCY_US_MAX = 10
LOAD_SHARE_MAX = 0.3  # of the CPUs, over the last minute
SWAPPINESS_MAX = 10
STEAL_SHARE_MAX = 0.01
SOCKET_BYTES_WANTED = 4 * 1024 * 1024  # a few messages of 1 MB in flight
FRAGMENT_BYTES_WANTED = 4 * 1024 * 1024
SHARED_MEMORY_BYTES_WANTED = 256 * 1024 * 1024
MEMLOCK_BYTES_WANTED = 64 * 1024 * 1024


@dataclass(frozen=True)
class Finding:
    """One check: its code word, the verdict, what was found, what it spoils, and how to fix it."""

    check: str
    verdict: Verdict
    found: str
    spoils: str = ""
    fix: str = ""


Outcome = tuple[Verdict, str, str]  # verdict, what was found, how to fix it


def examine(environment: Environment) -> tuple[Finding, ...]:
    """Every check, in the order of CHECKS."""
    findings = []
    for check, (spoils, judge) in CHECKS.items():
        try:
            verdict, observation, fix = judge(environment)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError):
            verdict, observation, fix = "unknown", "cannot be read here", ""
        findings.append(Finding(check, verdict, observation, spoils, fix))
    return tuple(findings)


def _known(value: Any) -> Any:
    """The value; raises KeyError, meaning the verdict `unknown`, if there is none."""
    if value is None:
        raise KeyError
    return value


def _clock_source(environment: Environment) -> Outcome:
    source = str(_known(environment["clock_source"]))
    good = source in ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page")
    return (
        ("ok" if good else "fail"),
        source,
        "" if good else "boot with clocksource=tsc tsc=reliable if the CPU allows",
    )


def _clock_cost(environment: Environment) -> Outcome:
    cost_ns = float(_known(environment["clock_read_ns"]))
    observation = f"at most {duration_text(cost_ns)} a read"
    if cost_ns <= CLOCK_READ_NS_MAX:
        return "ok", observation, ""
    return (
        "fail" if cost_ns > CLOCK_READ_NS_TERRIBLE else "warn",
        observation,
        "see clock-source; or the machine was busy",
    )


def _governor(environment: Environment) -> Outcome:
    governor = environment["governor"]
    if governor is None:
        return "unknown", "no frequency scaling visible; a host may still scale", ""
    good = governor == "performance"
    return (
        ("ok" if good else "warn"),
        str(governor),
        "" if good else "cpupower frequency-set --governor performance",
    )


def _boost(environment: Environment) -> Outcome:
    on = bool(_known(environment["boost"]))
    fix = "echo 0 > /sys/devices/system/cpu/cpufreq/boost (intel_pstate: echo 1 > …/intel_pstate/no_turbo)"
    return ("warn", "on", fix) if on else ("ok", "off", "")


def _smt(environment: Environment) -> Outcome:
    on = bool(_known(environment["smt"]))
    return (
        ("warn", "on", "echo off > /sys/devices/system/cpu/smt/control, or pin to one thread a core")
        if on
        else ("ok", "off", "")
    )


def _idle_states(environment: Environment) -> Outcome:
    states = environment["idle_states"]["states"]
    if not states:
        return "unknown", "no idle states visible; a host may still use them", ""
    deep = [
        state
        for state in states
        if not state["disabled"] and (state["exit_latency_us"] or 0) > EXIT_LATENCY_US_MAX
    ]
    if not deep:
        limit = plain_duration_text(EXIT_LATENCY_US_MAX * NS_PER_US)
        return "ok", f"none that takes more than {limit} to leave", ""
    deepest = max(deep, key=lambda state: int(state["exit_latency_us"]))
    leaving = plain_duration_text(int(deepest["exit_latency_us"]) * NS_PER_US)
    observation = f"{deepest['name']}, {leaving} to leave"
    return "warn", observation, "cpupower idle-set --disable-by-latency 10, or hold /dev/cpu_dma_latency at 0"


def _load(environment: Environment) -> Outcome:
    load = float(_known(environment["load"]["before"])[0])
    cpus = int(_known(environment["cpu"]["threads"]))
    observation = f"{load:.2f} over the last minute on {cpus} CPUs"
    if load > cpus:
        return "fail", observation, "stop what else is running, or wait"
    if load > LOAD_SHARE_MAX * cpus:
        return "warn", observation, "stop what else is running, or wait"
    return "ok", observation, ""


def _steal(environment: Environment) -> Outcome:
    ticks = _known(environment["steal_ticks"])
    first, last = ticks["before"], ticks["after"]
    if last is None:
        first, last = {"total": 0, "steal": 0}, first
    share = (last["steal"] - first["steal"]) / (last["total"] - first["total"])
    observation = f"{share:.2%} of the CPU time went to other machines on this host"
    return (
        ("warn", observation, "measure on a machine of your own")
        if share > STEAL_SHARE_MAX
        else ("ok", observation, "")
    )


def _cpus(environment: Environment) -> Outcome:
    allowed = len(_known(environment["cpu"]["allowed"]))
    observation = f"{allowed} of {environment['cpu']['threads']} may be used"
    if allowed >= 2:
        return "ok", observation, ""
    return (
        "fail",
        observation,
        "allow at least two: with one, a sender and its receiver never run at the same time",
    )


def _rt_throttling(environment: Environment) -> Outcome:
    runtime_us = int(_known(environment["sysctls"]["kernel.sched_rt_runtime_us"]))
    period_us = int(_known(environment["sysctls"]["kernel.sched_rt_period_us"]))
    if runtime_us < 0 or runtime_us >= period_us:
        return "ok", "off", ""
    runtime, period = (plain_duration_text(value * NS_PER_US) for value in (runtime_us, period_us))
    observation = f"real-time threads get {runtime} of every {period}"
    return (
        "warn",
        observation,
        "only for studies with scheduling: fifo that spin: sysctl kernel.sched_rt_runtime_us=-1",
    )


def _realtime(environment: Environment) -> Outcome:
    if _known(environment["realtime"]):
        return "ok", "SCHED_FIFO is granted", ""
    capable = "SYS_NICE" in (environment["capabilities"] or [])
    if capable:
        return (
            "warn",
            "SCHED_FIFO is refused although CAP_SYS_NICE is granted",
            "give the control group a cpu.rt_runtime_us",
        )
    return "warn", "SCHED_FIFO is refused", "run as root, give CAP_SYS_NICE, or set rtprio in limits.conf"


def _memlock(environment: Environment) -> Outcome:
    limit = environment["rlimits"]["memlock"]["soft"]
    if "IPC_LOCK" in (environment["capabilities"] or []) or limit is None:
        return "ok", "unlimited", ""
    observation = f"{limit // 1024} KiB"
    if limit >= MEMLOCK_BYTES_WANTED:
        return "ok", observation, ""
    return "warn", observation, "set memlock to unlimited in limits.conf, or give CAP_IPC_LOCK"


def _socket_buffers(environment: Environment) -> Outcome:
    sysctls = environment["sysctls"]
    names = ("net.core.rmem_max", "net.core.wmem_max")
    small = [name for name in names if int(_known(sysctls[name])) < SOCKET_BYTES_WANTED]
    observation = f"receive at most {sysctls[names[0]]} B, send {sysctls[names[1]]} B"
    if not small:
        return "ok", observation, ""
    return "warn", observation, "sysctl " + " ".join(f"{name}={SOCKET_BYTES_WANTED}" for name in small)


def _fragments(environment: Environment) -> Outcome:
    limit = int(_known(environment["sysctls"]["net.ipv4.ipfrag_high_thresh"]))
    observation = (
        f"{limit} B for incomplete datagrams, kept {environment['sysctls']['net.ipv4.ipfrag_time']} s"
    )
    if limit >= FRAGMENT_BYTES_WANTED:
        return "ok", observation, ""
    return "warn", observation, "sysctl net.ipv4.ipfrag_high_thresh=134217728 net.ipv4.ipfrag_time=3"


def _isolation(environment: Environment) -> Outcome:
    if _known(environment["isolation"]):
        return "ok", "each trial gets a private network, /dev/shm and process tree", ""
    return (
        "fail",
        "namespaces are refused",
        "run as root, or allow them: sysctl user.max_user_namespaces=10000",
    )


def _shared_memory(environment: Environment) -> Outcome:
    free = int(_known(environment["shared_memory"]["free_bytes"]))
    observation = f"{free // 1024**2} MiB free in /dev/shm"
    if free >= SHARED_MEMORY_BYTES_WANTED:
        return "ok", observation, ""
    return "warn", observation, "mount -o remount,size=1g /dev/shm (a container: --shm-size 1g)"


def _swappiness(environment: Environment) -> Outcome:
    value = int(_known(environment["sysctls"]["vm.swappiness"]))
    locked = "IPC_LOCK" in (environment["capabilities"] or [])
    if value <= SWAPPINESS_MAX or locked:
        return "ok", f"{value}" + (", but workers lock their memory" if locked else ""), ""
    return "warn", str(value), "sysctl vm.swappiness=1, or let workers lock their memory (see memlock)"


def _timer_slack(environment: Environment) -> Outcome:
    slack_ns = int(_known(environment["timer_slack_ns"]))
    observation = f"{plain_duration_text(slack_ns)} inherited; workers set their own threads to 1 ns"
    return (
        ("ok", observation, "")
        if slack_ns <= TIMER_SLACK_DEFAULT_NS
        else ("warn", observation, "start from an ordinary shell")
    )


def _huge_pages(environment: Environment) -> Outcome:
    mode = str(_known(environment["transparent_hugepages"]))
    if mode == "always":
        return "warn", mode, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    return "ok", mode, ""


def _virtualisation(environment: Environment) -> Outcome:
    kind = str(_known(environment["virtualisation"]))
    if "virtual machine" in kind:
        return "warn", kind, "measure on the robot's own hardware before trusting tails"
    return "ok", kind, ""


def _preemption(environment: Environment) -> Outcome:
    model = str(_known(environment["preempt"]))
    if model in ("none", "voluntary"):
        return "warn", model, "for tails: a kernel with PREEMPT_RT, or boot with preempt=full"
    return "ok", model, ""


def _build(environment: Environment) -> Outcome:
    kind = str(_known(environment["build_type"]))
    if kind in ("Release", "RelWithDebInfo", "MinSizeRel"):
        return "ok", kind, ""
    return "fail", kind, "make setup builds the worker with optimisation; LAGOMETER_WORKER may name another"


CHECKS: dict[str, tuple[str, Callable[[Environment], Outcome]]] = {
    "clock-source": ("a clock that needs a system call or drifts adds to every stamp", _clock_source),
    "clock-cost": ("each message is stamped several times; a slow clock slows what it measures", _clock_cost),
    "cpus": ("processes take turns instead of running side by side", _cpus),
    "load": ("other work delays threads and empties caches", _load),
    "steal": ("a host takes the CPU away without notice: tails belong to the host", _steal),
    "virtualisation": (
        "wake-ups and timers go through a hypervisor, which adds to the tails",
        _virtualisation,
    ),
    "governor": ("frequency follows the load, so latency falls as the rate rises", _governor),
    "boost": ("frequency depends on temperature and on the other cores", _boost),
    "smt": ("a neighbour on the same core takes part of it", _smt),
    "idle-states": ("the first message after a pause pays for waking the core", _idle_states),
    "preemption": ("the kernel finishes its own work first: longer tails", _preemption),
    "rt-throttling": ("real-time threads are stopped when they have used up their share", _rt_throttling),
    "realtime": ("cells with scheduling: fifo can't run", _realtime),
    "memlock": ("memory may be paged out during a measurement", _memlock),
    "swappiness": ("memory may be paged out during a measurement", _swappiness),
    "huge-pages": ("the kernel stops a process to merge its pages", _huge_pages),
    "timer-slack": ("timers fire late by the slack", _timer_slack),
    "socket-buffers": (
        "messages of 64 KB and 1 MB are dropped or resent when a buffer is full",
        _socket_buffers,
    ),
    "fragments": ("large datagrams are dropped while the room for incomplete ones is full", _fragments),
    "shared-memory": ("shared-memory transports fail or fall back to sockets", _shared_memory),
    "isolation": ("trials share the network and /dev/shm with everything that runs here", _isolation),
    "build": ("a debug, guard or sanitized worker measures itself", _build),
}
