# SPDX-License-Identifier: Apache-2.0
"""Findings about hosts that are limited to the CPUs of a slower device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lagometer.summary.findings.evidence import CellEvidence, Json, Said, Trial, of_reasons
from lagometer.units import NS_PER_US, duration_text

SOURCE = "docs/methodology/machine.md"

REASONS = (
    (
        "device-differs",
        "busy processes got another share of the CPUs than that of the device, so the trial did not run",
        "close what else uses the CPUs; tolerance: docs/methodology/machine.md",
    ),
    (
        "device-failed",
        "the CPU limit of a host could not be made",
        "read the reason: control groups for CPUs may be missing, or another program uses them",
    ),
)


def devices(cell: CellEvidence) -> Iterator[Said]:
    """What a cell's hosts are limited to, and whether the limit ever acted."""
    yield from of_reasons(cell, REASONS)
    trials = [trial for trial in cell.trials if _of(trial)]
    if not trials:
        return
    reports = [report for trial in trials for report in _of(trial)]
    hosts = list(dict.fromkeys(str(report["host"]) for report in reports))
    yield Said(
        "emulated-device",
        len(trials),
        "the hosts' CPUs are an approximation of slower ones: a quota shapes throughput, so a callback "
        "shorter than it runs at this machine's full speed, and a longer one runs at that speed and stalls, "
        "in turn",
        "; ".join(_described(host, cell.devices.get(host) or {}, reports) for host in hosts),
        "trust which load a device can carry, not the time of a short callback: measure that on the device",
        SOURCE,
    )
    untouched = [host for host in hosts if _never_stalled(host, reports)]
    if untouched:
        yield Said(
            "device-without-effect",
            len(trials),
            "the quota of a host never stopped a process: its figures are those of this machine, not of the "
            "device",
            ", ".join(untouched),
            "raise the rate or the work until the device would be busy, or leave `device` out",
            SOURCE,
        )


def _of(trial: Trial) -> Sequence[Mapping[str, Any]]:
    entries = trial.line.get("devices")
    return entries if isinstance(entries, list) else []


def _described(host: str, device: Json, reports: Sequence[Json]) -> str:
    mine = [report for report in reports if report["host"] == host]
    quota = mine[0]["quotas"]["process"]
    verified = [report["verified"] for report in mine if report.get("verified")]
    counts = [report["throttled"] for report in mine if report.get("throttled")]
    called = device.get("name") or "a device"
    speed = f" of {float(device['speed_mips']):,g} MIPS" if device.get("speed_mips") else ""
    budget, period = (duration_text(quota[name] * NS_PER_US) for name in ("quota_us", "period_us"))
    cpus, share = mine[0]["cpus"], float(mine[0]["share"])
    each = f"each process {share:.1%} of a CPU, {budget} in each {period}"
    parts = [f"{host} as {called} ({cpus} CPUs{speed}): {each}"]
    if verified:
        shares = [float(each["measured"]) / float(each["asked"]) for each in verified]
        run_ns, stall_ns = (max(int(each[name]) for each in verified) for name in ("run_ns", "stall_ns"))
        parts.append(
            f"busy processes got {min(shares):.0%} to {max(shares):.0%} of that, ran up to "
            f"{duration_text(run_ns)} and stalled up to {duration_text(stall_ns)} at a time"
        )
    if counts:
        stalled_ns = sum(int(each["processes"]["throttled_ns"]) for each in counts)
        window_ns = sum(int(each["window_ns"]) for each in counts)
        parts.append(f"in the trials they stalled {duration_text(stalled_ns)} of {duration_text(window_ns)}")
    return ", ".join(parts)


def _never_stalled(host: str, reports: Sequence[Json]) -> bool:
    counts = [each["throttled"] for each in reports if each["host"] == host and each.get("throttled")]
    parts = [count[part] for count in counts for part in ("processes", "host")]
    return bool(parts) and not any(int(part["throttled"]) for part in parts)
