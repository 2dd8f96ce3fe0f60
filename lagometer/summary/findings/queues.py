# SPDX-License-Identifier: Apache-2.0
"""Findings about messages that a queue replaced, rejected, kept too long, or delivered twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lagometer.summary.findings.evidence import CellEvidence, Said, Trial
from lagometer.units import duration_text

DROPS_IN_KERNEL = ("udp_receive_buffer_errors", "ip_reassembly_failed", "udp_send_buffer_errors")


@dataclass(frozen=True)
class Counted:
    """A count of messages that means something if it is above zero.

    number: what shows it, with `{count}`, `{sent}`, `{lost}`, `{frames}`, `{depth}` and `{lifespan}` filled
    in. counts: whether it applies to a trial with such messages.
    """

    column: str
    kind: str
    what: str
    number: str
    fix: str
    source: str
    counts: Callable[[Trial], bool] = lambda trial: trial.valid


def _nothing_else_dropped(trial: Trial) -> bool:
    dropped = trial.frames_dropped_by_link or any(trial.kernel(name) for name in DROPS_IN_KERNEL)
    return trial.valid and trial.watched and not dropped


def _link_dropped(trial: Trial) -> bool:
    return trial.valid and trial.frames_dropped_by_link > 0


COUNTED = (
    Counted(
        "overwritten",
        "queue-overwrote",
        "newer messages replaced older ones before they were taken: RELIABLE with KEEP_LAST allows that",
        "{count} of {sent} messages at {depth}",
        "raise the depth, use `history: keep_all`, or take messages sooner",
        "DDS 1.4, 2.2.3.18 HISTORY",
    ),
    Counted(
        "lost",
        "lost-in-a-queue",
        "messages were lost, and the kernel dropped none: most likely a queue of the middleware was full",
        "{count} of {sent} messages at {depth}, no drops in the kernel",
        "raise the depth, use `reliability: reliable`, or take messages sooner",
        "DDS 1.4, 2.2.3.14 RELIABILITY",
        _nothing_else_dropped,
    ),
    Counted(
        "lost",
        "lost-on-the-link",
        "messages were lost, and the emulated link dropped frames, as its profile says",
        "{count} of {sent} messages; the link dropped {frames} frames, its verification included",
        "use `reliability: reliable` where every message counts, or compare with a profile that loses less",
        "docs/methodology/links.md",
        _link_dropped,
    ),
    Counted(
        "censored",
        "still-on-the-way",
        "messages had not arrived when the drain ended; figures leave them out, so the real tail is longer",
        "{count} of {sent} messages",
        "use a longer `drain`, or a lower rate; read the tails with the lost as infinite",
        "docs/methodology/messages.md",
    ),
    Counted(
        "rejected",
        "sender-refused",
        "the middleware did not accept messages: its queue on the sender's side was full",
        "{count} messages at {depth}",
        "raise the depth, let `publish` block longer, or lower the rate",
        "docs/methodology/messages.md",
    ),
    Counted(
        "resent",
        "sent-again",
        "a closed loop got no reply in time and sent again",
        "{count} of {sent} messages",
        "use `reliability: reliable`, lower the rate, or make messages smaller: some are lost or very late",
        "docs/methodology/messages.md",
    ),
    Counted(
        "unanswered",
        "server-was-away",
        "calls were due while their server was away or not found yet: it starts late, leaves or restarts",
        "{count} calls, next to {sent} messages that were sent",
        "expect that many time-outs; `join_first_message_ns` of the service's chain says how long clients "
        "took to get an answer once the server had created its endpoints",
        "docs/WORKLOADS.md",
    ),
    Counted(
        "event_lost",
        "middleware-noticed-loss",
        "the middleware itself reported to a reader that messages were lost",
        "{count} reported, {lost} of {sent} messages missing by the records",
        "raise the depth and the receive buffer, or use `reliability: reliable`",
        "DDS 1.4, 2.2.4.1 SAMPLE_LOST",
    ),
    Counted(
        "event_deadline_missed",
        "reader-missed-deadline",
        "a reader got no message within its deadline (the quality of service)",
        "{count} times in the measure phase",
        "publish more often than the deadline asks, or ask for a longer one",
        "DDS 1.4, 2.2.3.7 DEADLINE",
    ),
    Counted(
        "event_deadline_missed_offered",
        "writer-missed-deadline",
        "a writer published less often than the deadline that it offers (the quality of service)",
        "{count} times in the measure phase",
        "publish more often, or offer a longer deadline",
        "DDS 1.4, 2.2.3.7 DEADLINE",
    ),
    Counted(
        "duplicated",
        "taken-twice",
        "a reader took the same message twice",
        "{count} messages",
        "look for two paths between the same endpoints: two network interfaces, or a bridge",
        "docs/methodology/validity.md",
        lambda _: True,
    ),
    Counted(
        "reordered",
        "out-of-order",
        "messages were taken after later ones",
        "{count} messages",
        "use `reliability: reliable`, or one receiving thread, if the application needs the order",
        "docs/methodology/validity.md",
    ),
)


COLUMNS = frozenset(counted.column for counted in COUNTED)
LIFESPAN = ", with a lifespan of "


def _outlived(counted: Counted) -> Counted:
    """The alternative text if a message may be missing because it got too old."""
    return replace(
        counted,
        kind="older-than-lifespan",
        what="messages were dropped before they were taken: older than their lifespan, or replaced by newer",
        number="{count} of {sent} messages, with a lifespan of {lifespan}, at {depth}",
        fix="take messages sooner, or ask for a longer lifespan",
        source="DDS 1.4, 2.2.3.16 LIFESPAN",
    )


def queues(cell: CellEvidence) -> Iterator[Said]:
    """Everything the message counts explain."""
    yield from _builds_up(cell)
    rows = [row for trial in cell.trials for row in trial.rows]
    above_zero = {column for column in COLUMNS if any(row.get(column) for row in rows)}
    for counted in COUNTED:
        if counted.column in above_zero:
            yield from _of_count(cell, counted)
    yield from _cut_off(cell)


def _of_count(cell: CellEvidence, counted: Counted) -> Iterator[Said]:
    trials = [trial for trial in cell.trials if trial.count(counted.column) > 0 and counted.counts(trial)]
    if not trials:
        return
    ended = [
        trial for trial in trials if any(LIFESPAN in warning for warning in trial.warnings(counted.column))
    ]
    yield from _counted(cell, _outlived(counted), ended)
    yield from _counted(cell, counted, [trial for trial in trials if trial not in ended])


def _counted(cell: CellEvidence, counted: Counted, trials: Sequence[Trial]) -> Iterator[Said]:
    if not trials:
        return
    lifespans = [warning.partition(LIFESPAN)[2] for warning in trials[0].warnings(counted.column)]
    number = counted.number.format(
        count=f"{sum(trial.count(counted.column) for trial in trials):,}",
        sent=f"{sum(trial.count('sent') for trial in trials):,}",
        lost=f"{sum(trial.count('lost') for trial in trials):,}",
        frames=f"{sum(trial.frames_dropped_by_link for trial in trials):,}",
        depth=_depth(cell),
        lifespan=lifespans[0] if lifespans else "",
    )
    yield Said(counted.kind, len(trials), counted.what, number, counted.fix, counted.source)


def _depth(cell: CellEvidence) -> str:
    depth = cell.of_topics("depth")
    if cell.of_topics("history") == "keep_all":
        return "`history: keep_all`"
    return f"depth {depth}" if depth is not None else "depths that differ or are not known"


def _cut_off(cell: CellEvidence) -> Iterator[Said]:
    """Messages that nobody was there to pass on; only whole ways count them."""
    ways = [way for trial in cell.valid if (way := trial.way_with_most("unreachable")) is not None]
    if not ways:
        return
    count, sent = (sum(int(way[name] or 0) for way in ways) for name in ("unreachable", "sent"))
    names = ", ".join(dict.fromkeys(str(way["edge"]) for way in ways))
    yield Said(
        "node-was-away",
        len(ways),
        "nobody was there to pass messages on: a node on their way had left or not yet joined, or it waits "
        "for all of its inputs and nobody published another one",
        f"{count:,} of {count + sent:,} messages ({names})",
        "expect that many while a node is away (`start`, `stop`, `restart`); where each message counts, let "
        "another node take over before it leaves; `join_first_message_ns` says how long a node that comes "
        "waits for its first message",
        "docs/methodology/messages.md",
    )


def _builds_up(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.valid if trial.warnings("queue-builds-up")]
    if not trials:
        return
    slopes = [value for trial in trials if (value := trial.figure("response_growth_ns_per_s")) is not None]
    number = trials[0].warnings("queue-builds-up")[0]
    if slopes:
        number = f"median response time grows by up to {duration_text(max(slopes))} a second"
    yield Said(
        "queue-builds-up",
        len(trials),
        "messages come faster than they are taken: a queue builds up, and p50 depends on the trial's length",
        number,
        "lower the rate, shorten the receiver's work, or bound the queue where it grows "
        "(`lagometer search` finds the highest rate that is sustained)",
        "libzmq, issue 216; docs/methodology/sustained-rate.md",
    )
