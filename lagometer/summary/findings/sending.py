# SPDX-License-Identifier: Apache-2.0
"""Findings about senders that could not keep their schedule."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.units import duration_text

BLOCKED_SHARE_MIN = 0.5  # of the period: the rest does not suffice for a second such call
# By a trial's warning: the kind, and what the sender did with late messages.
LATE = {
    "skipped": ("schedule-skipped", "the sender dropped messages that were late (`late: skip`)"),
    "shifted": ("schedule-shifted", "the sender was late, and its schedule moved (`late: shift`)"),
}


def sending(cell: CellEvidence) -> Iterator[Said]:
    """Everything about the sender's side."""
    yield from _publish_blocks(cell)
    yield from _rate_missed(cell)
    yield from _late(cell)


def _period_ns(cell: CellEvidence) -> float | None:
    rate_hz = cell.factors.get("rate_hz")
    return 1e9 / rate_hz if isinstance(rate_hz, (int, float)) and rate_hz > 0 else None


def _publish_blocks(cell: CellEvidence) -> Iterator[Said]:
    period_ns, blocked_ns = _period_ns(cell), cell.middle("blocked_p50_ns")
    if period_ns is None or blocked_ns is None or blocked_ns < BLOCKED_SHARE_MIN * period_ns:
        return
    yield Said(
        "publish-blocks",
        len(cell.valid),
        "the call that publishes takes a large part of the time between two messages",
        f"median {duration_text(blocked_ns)} in the call, a message every {duration_text(period_ns)}",
        "publish asynchronously where the middleware can, make messages smaller, or lower the rate",
        "docs/methodology/stamps.md",
    )


def _rate_missed(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.trials if trial.reasons("rate-missed")]
    if not trials:
        return
    blocked_ns = max((value for trial in trials if (value := trial.figure("blocked_p50_ns"))), default=None)
    period_ns = _period_ns(cell)
    busy = blocked_ns is not None and period_ns is not None and blocked_ns >= BLOCKED_SHARE_MIN * period_ns
    number = trials[0].reasons("rate-missed")[0]
    if busy and blocked_ns is not None and period_ns is not None:
        number += f"; {duration_text(blocked_ns)} in the call, a message every {duration_text(period_ns)}"
    yield Said(
        "rate-beyond-the-sender",
        len(trials),
        "the sender did not keep its rate: "
        + ("the call that publishes took too long" if busy else "its thread did not get to run in time"),
        number,
        "lower the rate or the payload"
        if busy
        else "give the sender a CPU of its own (`cpus`), a real-time "
        "priority (`priority`), or lower the rate",
        "docs/methodology/validity.md",
    )


def _late(cell: CellEvidence) -> Iterator[Said]:
    for word, (kind, description) in LATE.items():
        trials = [trial for trial in cell.valid if trial.warnings(word)]
        if trials:
            yield Said(
                kind,
                len(trials),
                f"{description}, so the load was below what was asked",
                trials[0].warnings(word)[0] or f"{len(trials)} trials",
                "lower the rate, or use `late: burst` to keep every message",
                "docs/methodology/schedules.md",
            )
