# SPDX-License-Identifier: Apache-2.0
"""Findings about the machine: what took its time during trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lagometer.stats.verdict.noise import STOLEN_SHARE_MAX
from lagometer.summary.findings.evidence import CellEvidence, Json, Said, Trial, of_reasons
from lagometer.units import duration_text

RUN_BY_REAL_TIME = "`sysctl kernel.sched_rt_runtime_us=-1`, or leave the threads time to sleep"

# Reasons of failed trials: the code word, what happened, what to change.
REASONS = (
    (
        "clock-stepped",
        "the system's clock was set or pulled during the trial",
        "stop what sets the clock while you measure (chronyd, ntpd, a suspend)",
    ),
    (
        "realtime-throttled",
        "the kernel stopped a real-time thread that used up its share",
        RUN_BY_REAL_TIME,
    ),
    (
        "scheduling-refused",
        "the scheduling that the study asks for was not granted",
        "run as root, or raise the limits for real-time priority (`ulimit -r`, limits.conf)",
    ),
    (
        "no-memory",
        "there was no room for the records",
        "measure shorter, lower the rate, or give the machine more memory",
    ),
    (
        "recorder-full",
        "the room for records was used up",
        "measure shorter or lower the rate; report this, since the plan should have sized it",
    ),
)


def machine(cell: CellEvidence) -> Iterator[Said]:
    """Everything the machine did to the trials."""
    yield from _load(cell)
    yield from of_reasons(cell, REASONS)
    yield from _steady(cell)
    yield from _emulated(cell)
    yield from _clocks(cell)
    yield from _disagreeing(cell)
    yield from _hosts(cell)


def _load(cell: CellEvidence) -> Iterator[Said]:
    throttled = [trial for trial in cell.trials if (trial.load("quota_throttled") or 0) > 0]
    if throttled:
        periods = sum(int(trial.load("quota_throttled") or 0) for trial in throttled)
        yield Said(
            "cpu-quota",
            len(throttled),
            "the control group's CPU quota stopped the trial's processes",
            f"{periods:,} periods in which they were stopped",
            "raise or remove the quota (cpu.max; `--cpus` of a container)",
            "Linux, Documentation/admin-guide/cgroup-v2.rst",
        )
    hot = [trial for trial in cell.trials if (trial.load("thermal_throttled") or 0) > 0]
    if hot:
        yield Said(
            "too-hot",
            len(hot),
            "the processor was slowed down for its temperature",
            f"{sum(int(trial.load('thermal_throttled') or 0) for trial in hot):,} times",
            "cool the machine, or measure shorter",
            "Linux, thermal_throttle in /sys/devices/system/cpu",
        )
    stolen = [trial for trial in cell.trials if _stolen(trial) > STOLEN_SHARE_MAX]
    if stolen:
        yield Said(
            "hypervisor-stole-time",
            len(stolen),
            "a hypervisor gave the machine's CPUs to others",
            f"up to {max(_stolen(trial) for trial in stolen):.1%} of all CPUs' time",
            "measure on a machine of your own; read the figures without noise",
            "docs/methodology/noise.md",
        )


def _stolen(trial: Trial) -> float:
    capacity, stolen = trial.load("capacity_ns"), trial.load("stolen_ns")
    return stolen / capacity if capacity and stolen else 0.0


def _steady(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.valid if trial.warnings("not-steady")]
    if trials:
        response = cell.middle("latency_p50_ns")
        yield Said(
            "not-steady",
            len(trials),
            "no steady state began within the bounds of the warm-up: the figures still drift",
            f"{len(trials)} trials" + (f", p50 {duration_text(response)}" if response is not None else ""),
            "warm up longer, or measure longer",
            "docs/methodology/warm-up.md",
        )


def _emulated(cell: CellEvidence) -> Iterator[Said]:
    if cell.emulated and cell.trials:
        yield Said(
            "emulated-hosts",
            len(cell.trials),
            "the hosts are emulated hosts, made from namespaces of one machine: they share its CPUs and "
            "caches, and the CPU that sends a packet also carries it to the receiver's socket",
            ", ".join(cell.emulated),
            "compare such cells with each other; for the latency of a network measure on several machines",
            "docs/WORKLOADS.md",
        )


def _clocks(cell: CellEvidence) -> Iterator[Said]:
    apart = [(trial, row) for trial in cell.valid for row in trial.rows if row.get("clock") == "offset"]
    unknown = {str(row["edge"]): trial for trial, row in apart if row.get("clock_bound_ns") is None}
    if unknown:
        yield Said(
            "clocks-differ",
            len({id(trial) for trial, row in apart if row.get("clock_bound_ns") is None}),
            "the two ends are on hosts with an unknown clock offset, so there is no latency",
            f"of {', '.join(sorted(unknown))}",
            "give the hosts an `address` by which they reach each other, or measure a way that comes back to "
            "its own host, such as the workload `roundtrip`",
            "docs/methodology/clocks.md",
        )
    known = [(trial, row) for trial, row in apart if row.get("clock_bound_ns") is not None]
    if known:
        yield _bounded(known)


def _bounded(known: Sequence[tuple[Trial, Json]]) -> Said:
    """The bound known for one-way figures, and which figures are below it."""
    bounds_ns: dict[str, int] = {}
    for _, row in known:
        bounds_ns[str(row["edge"])] = max(bounds_ns.get(str(row["edge"]), 0), int(row["clock_bound_ns"]))
    below = {
        str(row["edge"])
        for _, row in known
        if row.get("latency_p50_ns") is not None and row["latency_p50_ns"] < row["clock_bound_ns"]
    }
    text = ", ".join(
        f"{edge} ± {duration_text(bound_ns)}" + (" (p50 is below that)" if edge in below else "")
        for edge, bound_ns in sorted(bounds_ns.items())
    )
    return Said(
        "one-way-bound",
        len({id(trial) for trial, _ in known}),
        "one-way figures span two clocks: each may be off by the bound of their offset",
        text,
        "measure a round trip where that is too much; name a link `symmetric: true` if it is",
        "docs/methodology/clocks.md",
    )


def _disagreeing(cell: CellEvidence) -> Iterator[Said]:
    """Time services whose own bound of the offset contradicts what the hosts' time stamps show."""
    trials = [trial for trial in cell.trials if trial.warnings("clock-disagrees")]
    if trials:
        yield Said(
            "clock-disagrees",
            len(trials),
            "a time service and the hosts' own time stamps contradict each other about the distance of two "
            "clocks",
            trials[0].warnings("clock-disagrees")[0],
            "find out what the service takes its time from, and whether the way there is as long as the way "
            "back; latency rests on the time stamps alone",
            "docs/methodology/clocks.md",
        )


def _hosts(cell: CellEvidence) -> Iterator[Said]:
    """Hosts with another build of an adapter or the worker, by hashes and versions."""
    machines = {host: report["machine"] for host, report in cell.hosts.items() if report.get("machine")}
    apart = len(set(machines.values())) > 1  # no build runs on both
    fix = "install the same build on each host, unless the difference is what you measure"
    if apart:
        fix = "install the same versions on each host: machines of different types can't have the same build"
    names = dict.fromkeys(name for host in cell.hosts.values() for name in host.get("files") or {})
    others = {name for host in cell.hosts.values() for name in host.get("adapters") or {}}
    others = others - set(cell.adapters) if "adapter" in cell.factors else set()  # of other cells
    for name in names:
        if name in others:
            continue
        by_host = {
            host: (str(report["files"][name] or "no file")[:12], (report.get("adapters") or {}).get(name))
            for host, report in cell.hosts.items()
            if name in (report.get("files") or {})
        }
        if len(set(by_host.values())) < 2:
            continue
        builds = [
            f"{host} has {digest}{f' of version {version}' if version else ''}"
            f"{f' for {machines[host]}' if apart and host in machines else ''}"
            for host, (digest, version) in by_host.items()
        ]
        yield Said(
            "hosts-differ",
            len(cell.trials),
            "hosts of this cell run different builds, so their figures are not of one middleware",
            f"{name}: {', '.join(builds)} (SHA-256)",
            fix,
            "the agents of the hosts (`hosts` in manifest.json)",
        )
