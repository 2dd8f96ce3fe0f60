# SPDX-License-Identifier: Apache-2.0
"""The finding that messages waited for a CPU while other threads ran (docs/methodology/scheduler.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lagometer.stats.trial.run_queue import IDLE_NAME
from lagometer.stats.trial.way import NODE_THREAD
from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.summary.scheduling import KNOWN_WHOLE, MOST, reason, who_ran
from lagometer.summary.scheduling_data import CellScheduling, RanInstead
from lagometer.units import duration_text

WAITING_SHARE_MIN = 0.25  # of the slowest messages' time, including what is not known of it
WORKER = "lagometer-worke"  # the kernel's name for its other threads


def scheduling_findings(cell: CellEvidence, shares: Sequence[CellScheduling]) -> Iterator[Said]:
    """A finding for each edge whose slowest messages waited for a CPU. shares: of any cells."""
    for share in shares:
        slowest = share.slowest
        if share.cell != cell.cell or slowest is None or share.p99_ns is None or not slowest.instead:
            continue
        surely_waiting_share = slowest.waiting_share * slowest.known_share
        if surely_waiting_share < WAITING_SHARE_MIN:
            continue
        first = slowest.instead[0]
        waiting = max(slowest.layers, key=lambda layer: layer.waiting_ns * layer.known)
        known = ""
        if slowest.known_share < KNOWN_WHOLE:
            known = f" of the {slowest.known_share:.0%} that is known"
        ran, layer = reason(slowest.instead), waiting.name.replace("_", " ")
        part = " because" if surely_waiting_share >= MOST else f", {surely_waiting_share:.0%} of it because"
        longest = duration_text(first.longest_ns)
        yield Said(
            "waited-for-a-cpu",
            share.trials,
            f"{share.edge}: p99 is {duration_text(share.p99_ns)}{part} {ran}",
            f"of the time of the slowest 1 % of messages {slowest.waiting_share:.0%}{known} is waiting for a "
            f"CPU, most of it in {layer} ({duration_text(waiting.waiting_ns)} on average); "
            f"{first.share:.0%} of it while {who_ran(first)}, up to {longest} at once",
            _fix(first),
            "docs/methodology/scheduler.md",
        )


def _fix(first: RanInstead) -> str:
    if first.name == IDLE_NAME:
        return "keep CPUs from idling deeply (`tuning: latency`, `lagometer tune-host apply`)"
    if first.name.startswith(NODE_THREAD) or first.name == WORKER:
        return (
            "the trial's own threads share a CPU: give its nodes CPUs of their own (`cpus`), or more of them"
        )
    return (
        f"keep {first.name} off these CPUs (`taskset`, a cpuset, `isolcpus`), or give the nodes others "
        "(`cpus`) or a real-time priority (`scheduling`)"
    )
