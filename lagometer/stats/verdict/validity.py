# SPDX-License-Identifier: Apache-2.0
"""Whether a trial can be trusted. This is judged from causes, never from its latency.

Every reason and warning begins with its code word. docs/methodology/validity.md explains each and says what
to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from lagometer.stats.verdict.causes import trial_causes, where_lost
from lagometer.stats.verdict.growth import Growth
from lagometer.store import format as form
from lagometer.store.facts import EdgeSpec, TrialFacts
from lagometer.units import duration_text, plain_duration_text

SATURATED = "saturated"
RATE_SHARE_MIN = 0.99  # of the messages that the schedule called for in the measure phase

REASONS = {
    "rate-missed": "a source published fewer than 99 % of the messages that its schedule called for",
    "saturated": "the same, in a study that keeps such trials (`saturation: keep`): a state of its own",
    "nothing-received": "an edge, or every chain, delivered no message in the measure phase",
    "recorder-full": "the space for records was used up, so later records are missing",
    "lost-keep-all": "a message was lost although RELIABLE and KEEP_ALL promise every one",
    "duplicated": "a message was taken twice by the same reader",
    "reordered-reliable": "a message was taken after a later one although RELIABLE keeps a publisher's order",
    "misdelivered": "a reader took messages that were not for it",
    "corrupted": "a payload was not what had been sent",
    "transport-mismatch": "messages can't have used the transport that the adapters claim",
    "clock-stepped": "the system's clocks moved against each other, or the clock source changed",
    "realtime-throttled": "the kernel stopped a real-time thread that had used up its share",
    "records-inconsistent": "a message was taken that nobody recorded sending",
    "clock-inconsistent": "a message was taken before it was published",
    # found by the conductor
    "launch-failed": "the trial's processes could not be started",
    "capture-died": "the program that copies packets did not start, or ended before the trial did",
    "capture-lost": "the file of captured packets could not be written",
    "agent-lost": "the agent of a host could not be reached, or ended, or stopped answering",
    "endpoints-missing": "a reader did not get a probe from every publisher that it expects",
    "incompatible-qos": "a reader asks for a quality of service that its writer does not offer",
    "not-in-force": "the middleware says that another value is in force than the cell asks for",
    "worker-died": "a worker ended before it delivered its records",
    "worker-hung": "a worker stopped answering",
    "tuning-failed": "the machine could not be tuned as the cell asks, or was already tuned",
    "interference-died": "the requested load beside the workers did not run all the time",
    "daemon-died": "a daemon that the workers need ended during the trial",
    "daemon-not-ready": "a daemon that the workers need was not ready in time",
    "link-failed": "the emulated link could not be made",
    "link-differs": "the emulated link was measured as something else than asked, or lost frames by itself",
    "link-not-crossed": "messages went past the emulated link on the loopback",
    "device-failed": "the CPU limit of a host that is like a slower device could not be made",
    "device-differs": "busy processes got another share of the CPUs than that of the device",
    "scheduling-refused": "the requested scheduling was not granted, or would have starved the machine",
    "protocol-error": "a worker sent something that the protocol does not know",
    "adapter-missing": "a worker could not open the adapter",
    "adapter-failed": "the middleware refused or failed",
    "bad-plan": "a worker refused its plan",
    "no-memory": "there was no memory for the records",
    "internal": "a worker found a defect of lagometer",
}
WORSE = {
    "lost": "lost-keep-all",
    "reordered": "reordered-reliable",
}  # the reason that makes a warning redundant
# What to do about each is said by a finding (lagometer/summary/findings/), which also has the numbers.
WARNINGS = {
    "lost": "messages were lost (BEST_EFFORT)",
    "overwritten": "messages were dropped before they were taken (RELIABLE with KEEP_LAST or a lifespan)",
    "censored": "messages had not arrived when the drain ended; they may have been lost or late",
    "rejected": "the middleware did not accept messages (full queue, back-pressure)",
    "reordered": "messages were taken after later ones (BEST_EFFORT, or replies of a service)",
    "resent": "a closed loop timed out and sent again",
    "unanswered": "calls of a service were due while its server was away, or had not been found yet",
    "skipped": "a source dropped messages that were late (late: skip); they are in no figure of times",
    "shifted": "a source was late and its schedule moved (late: shift); intended times are the original ones",
    "queue-builds-up": "median response time grows through the trial, so p50 depends on how long that is",
    "not-steady": "no steady state began within the bounds of the warm-up",
}

LACKING = ("lost", "overwritten")  # messages that a lifespan also explains


def judge(
    facts: TrialFacts, summary: pl.DataFrame, growths: Mapping[str, Growth] | None = None
) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """Whether the trial is valid, the reasons why not, and warnings. `summary`: the result of summarise().
    `growths`: of each edge's response time.

    A reason is a code word of REASONS, mostly followed by ": ", who and how many; the conductor's come first.
    """
    rows = {str(row["edge"]): row for row in summary.iter_rows(named=True)}
    reasons = list(facts.reasons)
    if not _never_measured(facts, rows):
        reasons += _recorder_full(facts)
        reasons += _rate_missed(facts, rows)
        reasons += _nothing_received(facts, rows)
        reasons += _broken_promises(facts, rows)
        reasons += _inconsistent(facts, rows)
        reasons += trial_causes(facts.observed, facts.measure_end_ns - facts.measure_begin_ns)
    if facts.keeps_saturated and reasons and all(reason.startswith("rate-missed:") for reason in reasons):
        reasons = [SATURATED + reason.removeprefix("rate-missed") for reason in reasons]
    warnings = [*facts.warnings, *_classes(facts, rows, reasons), *_queues(facts, growths or {})]
    return not reasons, tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(warnings))


def is_saturated(reasons: Iterable[str]) -> bool:
    """Whether a trial that is invalid for these reasons is saturated rather than failed."""
    words = {reason.partition(":")[0] for reason in reasons}
    return words == {SATURATED}


def _never_measured(facts: TrialFacts, rows: dict[str, dict[str, Any]]) -> bool:
    """The trial ended before its measure phase, or nobody sent anything in it, and a reason says why: nothing
    else is to blame."""
    sent = any(row.get("sent") for row in rows.values())
    return bool(facts.reasons) and (facts.measure_end_ns <= facts.measure_begin_ns or not sent)


def _recorder_full(facts: TrialFacts) -> Iterator[str]:
    for writer in facts.writers:
        if writer.recorder_full:
            yield f"recorder-full: writer of stream {writer.stream}"
    for reader in facts.readers:
        if reader.recorder_full:
            yield f"recorder-full: reader {reader.reader} of node {reader.node}"


def _rate_missed(facts: TrialFacts, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    writers = {writer.stream: writer for writer in facts.writers}
    for edge in _one_of_each_stream(facts):
        writer, window_ns = writers.get(edge.stream), facts.measure_end_ns - facts.measure_begin_ns
        if writer is None or window_ns <= 0 or facts.closed_loop:
            continue
        if writer.due is None and not writer.period_ns:
            continue
        row = rows.get(edge.name, {})
        # Messages the middleware rejected were offered in time: they are a class of their own.
        offered = round((row.get("rate_achieved_hz") or 0.0) * window_ns / 1e9) + int(
            row.get("rejected") or 0
        )
        if not edge.is_whole:  # what was sent while nobody was there has no row: the writer's count applies
            window_ns = facts.measure_end_ns - facts.begin_ns
            offered = writer.sent + writer.rejected
        due = window_ns // writer.period_ns if writer.period_ns else (writer.due or 0)
        # This many fewer may be published if the window's ends fall between two ticks.
        if offered < RATE_SHARE_MIN * due - writer.at_once:
            reached_hz = offered / (window_ns / 1e9)
            asked_hz = 1e9 / writer.period_ns if writer.period_ns else due / (window_ns / 1e9)
            yield (
                f"rate-missed: {edge.sender} published {offered} of {due} messages, "
                f"{reached_hz:.6g} Hz instead of {asked_hz:.6g} Hz"
            )


def _one_of_each_stream(facts: TrialFacts) -> Iterator[EdgeSpec]:
    """The first edge of each stream whose subscriber was there all the time, or otherwise the first."""
    by_stream: dict[int, EdgeSpec] = {}
    for edge in facts.edges:
        if edge.stream not in by_stream or (edge.is_whole and not by_stream[edge.stream].is_whole):
            by_stream[edge.stream] = edge
    return iter(by_stream.values())


def _nothing_received(facts: TrialFacts, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    for edge in facts.edges:
        if not rows.get(edge.name, {}).get("n"):
            yield f"nothing-received: {edge.name}"
    if not rows.get(form.END_TO_END, {}).get("n"):
        yield f"nothing-received: {form.END_TO_END}"


def _broken_promises(facts: TrialFacts, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    for edge in facts.edges:
        row = rows.get(edge.name, {})
        if row.get("lost") and edge.reliability == "reliable" and not edge.may_drop:
            where = where_lost(facts.observed)
            yield f"lost-keep-all: {edge.name}, {row['lost']} of {row['sent']}{where}"
        if row.get("reordered") and edge.reliability == "reliable" and edge.in_order:
            yield f"reordered-reliable: {edge.name}, {row['reordered']} messages"
        if row.get("duplicated"):
            yield f"duplicated: {edge.name}, {row['duplicated']} messages"
        if row.get("corrupted"):
            yield f"corrupted: {edge.name}, {row['corrupted']} messages"
    reported = {
        (edge.receiver_node, edge.reader) for edge in facts.edges if rows.get(edge.name, {}).get("corrupted")
    }
    for reader in facts.readers:  # in warm-up or drain, so not in the rows
        if reader.corrupted and (reader.node, reader.reader) not in reported:
            yield f"corrupted: reader {reader.reader} of node {reader.node}, {reader.corrupted} messages"


def _inconsistent(facts: TrialFacts, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    cut = {writer.stream for writer in facts.writers if writer.recorder_full}
    for edge in facts.edges:
        row = rows.get(edge.name, {})
        if row.get("unmatched") and edge.stream not in cut:
            yield f"records-inconsistent: {edge.name}, {row['unmatched']} messages nobody sent"
        lowest_ns, bound_ns = row.get("latency_min_ns"), row.get("clock_bound_ns") or 0
        if lowest_ns is not None and lowest_ns + bound_ns < 0:
            within = f", where their clocks are known to {duration_text(bound_ns)}" if bound_ns else ""
            early = duration_text(-lowest_ns)
            yield f"clock-inconsistent: {edge.name}, taken {early} before it was published{within}"


def _shifted(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    moved = {name: int(row["shift_ns"]) for name, row in rows.items() if row.get("shift_ns")}
    moved.pop(form.END_TO_END, None)
    if moved:
        name = max(moved, key=lambda edge: moved[edge])
        yield f"shifted: {name}, by {duration_text(moved[name])} at the end"


def _classes(facts: TrialFacts, rows: dict[str, dict[str, Any]], reasons: list[str]) -> Iterator[str]:
    """What happened to messages without making the figures wrong; counted per edge in the table."""
    failed = {reason.partition(":")[0] for reason in reasons}
    for word in WARNINGS:
        if WORSE.get(word) in failed:
            continue
        if word == "shifted":
            yield from _shifted(rows)
            continue
        names = [name for name, row in rows.items() if row.get(word) and name != form.END_TO_END]
        if names:
            total = sum(int(rows[name][word]) for name in names)
            where = names[0] if len(names) == 1 else f"{len(names)} edges"
            more = where_lost(facts.observed) if word == "lost" else ""
            yield f"{word}: {where}, {total} messages{more}{_lifespan(facts, word, names)}"


def _lifespan(facts: TrialFacts, word: str, names: Sequence[str]) -> str:
    """The shortest lifespan of the edges, if messages may be missing because of it."""
    spans = [edge.lifespan_ns for edge in facts.edges if edge.name in names and edge.lifespan_ns]
    return f", with a lifespan of {plain_duration_text(min(spans))}" if spans and word in LACKING else ""


def _queues(facts: TrialFacts, growths: Mapping[str, Growth]) -> Iterator[str]:
    """Where a queue builds up, and whether more messages wait than the middleware was asked to keep."""
    growing = {name: growth for name, growth in growths.items() if growth.builds_up}
    if not growing:
        return
    name = (
        form.END_TO_END if form.END_TO_END in growing else max(growing, key=lambda edge: growing[edge].per_s)
    )
    slope = duration_text(1e9 * growing[name].slope)
    text = f"queue-builds-up: {name}, median response time grows by {slope} a second"
    depth = facts.factors.get("depth")
    edges = {edge: growth for edge, growth in growing.items() if edge != form.END_TO_END}
    for edge, growth in edges.items():
        # The publisher and the subscriber may each keep that many.
        if isinstance(depth, int) and growth.waiting > 2 * depth + 1:
            text += f"; {growth.waiting:.0f} messages wait on {edge}, where depth is {depth}"
    yield text
