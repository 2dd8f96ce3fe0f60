# SPDX-License-Identifier: Apache-2.0
"""Findings about senders that could not keep their schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lagometer.store.format import ARROW
from lagometer.summary.findings.evidence import CellEvidence, Said, Trial
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


@dataclass(frozen=True)
class _Blocked:
    """How long the call that publishes takes on one edge, and the time between two messages there."""

    blocked_ns: float
    period_ns: float

    @property
    def share(self) -> float:
        return self.blocked_ns / self.period_ns

    def __str__(self) -> str:
        return (
            f"{duration_text(self.blocked_ns)} in the call, a message every {duration_text(self.period_ns)}"
        )


def _most_blocked(trial: Trial, sender: str = "") -> _Blocked | None:
    """Of the edge whose call takes the largest share of its own period, perhaps of one sender alone; a sender
    without a timer has the rate that it reached. None if no edge tells both."""
    known = []
    for row in trial.rows:
        rate_hz = row.get("rate_intended_hz") or row.get("rate_achieved_hz")
        of_sender = str(row.get("edge")).startswith(f"{sender}{ARROW}" if sender else "")
        if ARROW in str(row.get("edge")) and of_sender and rate_hz and row.get("blocked_p50_ns") is not None:
            known.append(_Blocked(float(row["blocked_p50_ns"]), 1e9 / float(rate_hz)))
    return max(known, key=lambda each: each.share, default=None)


def _publish_blocks(cell: CellEvidence) -> Iterator[Said]:
    blocked = [most for trial in cell.valid if (most := _most_blocked(trial)) is not None]
    if not blocked or len(blocked) < len(cell.valid):
        return
    middle = sorted(blocked, key=lambda most: most.share)[(len(blocked) - 1) // 2]
    if middle.share < BLOCKED_SHARE_MIN:
        return
    yield Said(
        "publish-blocks",
        len(cell.valid),
        "the call that publishes takes a large part of the time between two messages",
        f"median {middle}",
        "publish asynchronously where the middleware can, make messages smaller, or lower the rate",
        "docs/methodology/stamps.md",
    )


def _rate_missed(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.trials if trial.reasons("rate-missed")]
    if not trials:
        return
    slowest = [
        most
        for trial in trials
        for reason in trial.reasons("rate-missed")
        if (most := _most_blocked(trial, reason.partition(" ")[0])) is not None
    ]
    worst = max(slowest, key=lambda most: most.share, default=None)
    busy = worst is not None and worst.share >= BLOCKED_SHARE_MIN
    number = trials[0].reasons("rate-missed")[0]
    if busy:
        number += f"; {worst}"
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
