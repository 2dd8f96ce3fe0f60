# SPDX-License-Identifier: Apache-2.0
"""Findings about failed trials: what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lagometer.summary.findings.buffers import receive_buffer_option
from lagometer.summary.findings.evidence import CellEvidence, Said, Trial, of_reasons
from lagometer.summary.findings.network import UDP_DATAGRAM_BYTES
from lagometer.units import size_text

SIGNALS = {
    7: (
        "worker-out-of-shared-memory",
        "a worker died of SIGBUS, as it does where shared memory has no room left",
        "give /dev/shm more room (`mount -o remount,size=…`), or use smaller segments",
    ),
    9: (
        "worker-killed",
        "a worker was killed (SIGKILL), as the kernel does where memory runs out",
        "look for `Out of memory` in `dmesg`; make payloads or queues smaller",
    ),
    11: (
        "worker-crashed",
        "a worker crashed (SIGSEGV)",
        "see the trial's log; report it to the adapter's vendor",
    ),
    6: (
        "worker-aborted",
        "a worker aborted (SIGABRT): an assertion or an exception of the middleware",
        "see the trial's log for the assertion; report it to the adapter's vendor",
    ),
}
# The others: the code word, what happened, what to change.
REASONS = (
    (
        "transport-mismatch",
        "messages did not go the way that the adapter claims",
        "see which transport was seen: a setting did not take effect, or an adapter of yours claims another",
    ),
    (
        "lost-keep-all",
        "a message was lost although RELIABLE and KEEP_ALL promise every one",
        "raise what bounds the middleware's queues (resource limits), and report it to its vendor",
    ),
    ("corrupted", "a payload was not what had been sent", "report it to the middleware's vendor"),
    (
        "daemon-not-ready",
        "a daemon that the workers need did not serve in time",
        "start it by hand with the command in the manifest's settings, and read what it prints",
    ),
    (
        "daemon-died",
        "a daemon that the workers need ended during the trial",
        "read its output in the trial's log",
    ),
    (
        "agent-lost",
        "the agent of a host was lost",
        "read the reason: it has the agent's last words; install the same lagometer on both hosts",
    ),
    (
        "worker-hung",
        "a worker stopped answering",
        "read the trial's log: the adapter's last call hangs or is slow; try a longer `discovery_timeout`",
    ),
    (
        "incompatible-qos",
        "reader and writer never matched: one asks for a quality of service that the other does not offer",
        "offer at least what readers ask for, in reliability, durability and deadline",
    ),
    ("adapter-failed", "the middleware refused or broke", "read the reason: it is the middleware's own"),
)
LOSSY_FIX = "repeat the trial, or lose less: discovery and acknowledgements are lost, too; "
_SIGNAL = re.compile(r"signal (\d+)")


def failures(cell: CellEvidence) -> Iterator[Said]:
    """Everything that made trials of the cell fail."""
    yield from _nothing_received(cell)
    yield from _never_met(cell)
    yield from _died(cell)
    yield from of_reasons(cell, REASONS)


def _failed(cell: CellEvidence, word: str) -> list[Trial]:
    return [trial for trial in cell.trials if trial.reasons(word)]


def _nothing_received(cell: CellEvidence) -> Iterator[Said]:
    # Where nothing was sent, either, the sender is what to look at (`sending`).
    trials = [
        trial
        for trial in _failed(cell, "nothing-received")
        if trial.count("sent") or not trial.reasons("rate-missed")
    ]
    if not trials:
        return
    dropped = sum(trial.kernel("udp_receive_buffer_errors") for trial in trials)
    payload, buffer_bytes = cell.payload_bytes, cell.receive_buffer_bytes()
    if payload is not None and payload > UDP_DATAGRAM_BYTES and buffer_bytes is not None and dropped:
        yield Said(
            "nothing-received-too-large",
            len(trials),
            f"nothing was received: each message is {-(-payload // UDP_DATAGRAM_BYTES)} or more datagrams, "
            "and the receive buffer is full before the last one comes",
            f"a message has {size_text(payload)}, a receive buffer holds {size_text(buffer_bytes)}, "
            f"{dropped:,} datagrams dropped by the kernel",
            f"raise the receive buffer: {receive_buffer_option(cell)}, and `sysctl net.core.rmem_max`; or "
            "send smaller messages",
            "man 7 udp; Cyclone DDS, issue 294",
        )
        return
    numbers = [f"{sum(_sent_for_nothing(trial) for trial in trials):,} messages were sent"]
    first, *others = trials[0].reasons("nothing-received")
    numbers.append(f"{first or 'on all edges'}{f' and {len(others)} more' if others else ''}")
    if all(trial.watched for trial in trials):
        numbers.append(
            f"{dropped:,} datagrams dropped by the kernel" if dropped else "no drops in the kernel"
        )
    lost_by_link = sum(trial.frames_dropped_by_link for trial in trials)
    if lost_by_link:
        numbers.append(f"the emulated link dropped {lost_by_link:,} frames, its verification included")
    yield Said(
        "nothing-received",
        len(trials),
        "publishers and subscribers met, yet no message arrived in the measure phase",
        "; ".join(numbers),
        (LOSSY_FIX if lost_by_link else "")
        + "compare the largest message of both sides (limits of `lagometer adapters --json`) and their QoS; "
        "try a payload below 1 KB, then double it",
        "docs/methodology/validity.md",
    )


def _sent_for_nothing(trial: Trial) -> int:
    """How many messages were sent on the edges that delivered none; on all of them if no edge is named."""
    named = set(trial.reasons("nothing-received"))
    rows = [row for row in trial.rows if row.get("edge") in named]
    return sum(int(row.get("sent") or 0) for row in rows) if rows else trial.count("sent")


def _never_met(cell: CellEvidence) -> Iterator[Said]:
    trials = _failed(cell, "endpoints-missing")
    if not trials:
        return
    mixed = "+" in cell.adapter
    yield Said(
        "pair-never-met" if mixed else "never-met",
        len(trials),
        "publishers and subscribers did not find each other"
        + (
            f", or {cell.adapter.replace('+', ' and ')} do not understand each other's messages"
            if mixed
            else ""
        ),
        trials[0].reasons("endpoints-missing")[0] or f"{len(trials)} trials",
        "see docs/INTEROPERABILITY.md for what this pair can exchange; compare domain, transport, QoS "
        "and the type's name on both sides"
        if mixed
        else "compare domain, transport and QoS of both sides; give discovery more time",
        "docs/INTEROPERABILITY.md" if mixed else "docs/methodology/validity.md",
    )


def _died(cell: CellEvidence) -> Iterator[Said]:
    by_signal: dict[int, list[Trial]] = {}
    for trial in _failed(cell, "worker-died"):
        match = _SIGNAL.search(" ".join(trial.reasons("worker-died")))
        by_signal.setdefault(int(match[1]) if match else 0, []).append(trial)
    for signal, trials in by_signal.items():
        if signal in SIGNALS:
            kind, description, fix = SIGNALS[signal]
            yield Said(
                kind, len(trials), description, trials[0].reasons("worker-died")[0], fix, "man 7 signal"
            )
