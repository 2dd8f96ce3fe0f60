# SPDX-License-Identifier: Apache-2.0
"""Findings about messages that a queue replaced, refused, kept too long, or gave twice."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.summary.findings.evidence import CellEvidence, Said
from lagometer.units import duration_text

DROPS_IN_KERNEL = ("udp_receive_buffer_errors", "ip_reassembly_failed", "udp_send_buffer_errors")


def queues(cell: CellEvidence) -> Iterator[Said]:
    """Everything that the counts of messages explain."""
    yield from _builds_up(cell)
    yield from _overwritten(cell)
    yield from _lost_in_a_queue(cell)
    yield from _censored(cell)
    yield from _rejected(cell)
    yield from _duplicated(cell)
    yield from _reordered(cell)


def _depth(cell: CellEvidence) -> str:
    depth = cell.factors.get("depth")
    return f"depth {depth}" if depth is not None else "the adapter's own depth"


def _builds_up(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.valid if trial.warnings("queue-builds-up")]
    if not trials:
        return
    slopes = [value for trial in trials if (value := trial.figure("response_growth_ns_per_s")) is not None]
    steepest = (
        f"median response time grows by up to {duration_text(max(slopes))} a second"
        if slopes
        else (trials[0].warnings("queue-builds-up")[0])
    )
    yield Said(
        "queue-builds-up",
        len(trials),
        "messages come faster than they are taken: a queue builds up, and this p50 depends on the "
        "trial's length",
        steepest,
        "lower the rate, shorten the receiver's work, or bound the queue where it grows (`lagometer "
        "search` finds "
        "the highest rate that is sustained)",
        "libzmq, issue 216; docs/methodology/sustained-rate.md",
    )


def _overwritten(cell: CellEvidence) -> Iterator[Said]:
    trials, count = cell.seen("overwritten")
    if trials:
        sent = sum(trial.count("sent") for trial in trials)
        yield Said(
            "queue-overwrote",
            len(trials),
            "newer messages replaced older ones before the reader took them: RELIABLE with KEEP_LAST "
            "allows that",
            f"{count:,} of {sent:,} messages at {_depth(cell)}",
            "raise the depth, use `history: keep_all`, or take messages sooner",
            "DDS 1.4, 2.2.3.18 HISTORY",
        )


def _lost_in_a_queue(cell: CellEvidence) -> Iterator[Said]:
    trials, count = cell.seen("lost")
    trials = [trial for trial in trials if not any(trial.kernel(name) for name in DROPS_IN_KERNEL)]
    if trials:
        count = sum(trial.count("lost") for trial in trials)
        sent = sum(trial.count("sent") for trial in trials)
        yield Said(
            "lost-in-a-queue",
            len(trials),
            "best-effort messages were lost, and the kernel dropped none: a queue of the middleware was full",
            f"{count:,} of {sent:,} messages at {_depth(cell)}, no drops in the kernel",
            "raise the depth, use `reliability: reliable`, or take messages sooner",
            "DDS 1.4, 2.2.3.14 RELIABILITY",
        )


def _censored(cell: CellEvidence) -> Iterator[Said]:
    trials, count = cell.seen("censored")
    if trials:
        sent = sum(trial.count("sent") for trial in trials)
        yield Said(
            "still-on-the-way",
            len(trials),
            "messages had not arrived when the drain ended; figures leave them out, so the real tail "
            "is longer",
            f"{count:,} of {sent:,} messages",
            "use a longer `drain`, or a lower rate; read the tails with the lost as infinite",
            "docs/methodology/messages.md",
        )


def _rejected(cell: CellEvidence) -> Iterator[Said]:
    trials, count = cell.seen("rejected")
    if trials:
        yield Said(
            "sender-refused",
            len(trials),
            "the middleware did not accept messages: its queue on the sender's side was full",
            f"{count:,} messages at {_depth(cell)}",
            "raise the depth, let `publish` block longer, or lower the rate",
            "docs/methodology/messages.md",
        )


def _duplicated(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.trials if trial.count("duplicated") > 0]
    if trials:
        yield Said(
            "taken-twice",
            len(trials),
            "a reader took the same message twice",
            f"{sum(trial.count('duplicated') for trial in trials):,} messages",
            "look for two paths between the same endpoints, such as two network interfaces or a "
            "bridge beside a "
            "direct match",
            "docs/methodology/validity.md",
        )


def _reordered(cell: CellEvidence) -> Iterator[Said]:
    trials, count = cell.seen("reordered")
    if trials:
        yield Said(
            "out-of-order",
            len(trials),
            "messages were taken after later ones",
            f"{count:,} messages",
            "use `reliability: reliable`, or one receiving thread, if the application needs the order",
            "docs/methodology/validity.md",
        )
