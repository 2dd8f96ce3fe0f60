# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the machine itself: how late it wakes a thread, and how much a hypervisor stole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagometer.units import duration_text, span_text

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.summary.data import Summary
    from lagometer.summary.steadiness_data import MachineFloor

QUANTILES = {"p50": "p50_ns", "p99": "p99_ns", "p99.9": "p999_ns"}


def render_wakeup(summary: Summary, console: Console) -> None:
    """Prints the line with the floor of every tail; nothing without a floor."""
    floor, control = summary.machine_floor, summary.control
    if floor is None:
        return
    shares = (
        [trial_load.stolen_share for trial_load in control.load if trial_load.stolen_share is not None]
        if control
        else []
    )
    text = wakeup_text(floor, max(shares, default=None))
    console.print(f"\n[bold]wake-up latency[/] {text}", soft_wrap=True)


def wakeup_text(floor: MachineFloor, stolen_most: float | None) -> str:
    """From the best to the worst CPU. stolen_most: the largest share of a trial's time that was stolen."""
    parts = []
    for name, field in QUANTILES.items():
        values = [getattr(core, field) for core in floor.cores]
        if None not in values:  # too few wake-ups on some CPU
            parts.append(f"{name} {_spread(min(values), max(values))}")
    parts.append(f"at most {duration_text(max(core.max_ns for core in floor.cores))}")
    cpus = f"{len(floor.cores)} CPU{'s' if len(floor.cores) > 1 else ''}"
    measurement = f"{floor.duration_s:.3g} s on {cpus}" + (f", {floor.policy}" if floor.policy else "")
    stolen = f"{_share(floor.steal_share)} meanwhile"
    if stolen_most is not None:
        stolen += f", at most {_share(stolen_most)} during a trial"
    delays = ", ".join(parts)
    return f"a thread wakes late by {delays} ({measurement}); stolen by a hypervisor: {stolen}"


def _spread(low_ns: float, high_ns: float) -> str:
    return duration_text(low_ns) if low_ns == high_ns else span_text(low_ns, high_ns)


def _share(share: float | None) -> str:
    return "not known" if share is None else f"{100.0 * share:.2g} %"
