# SPDX-License-Identifier: Apache-2.0
"""Findings about the effect of more subscribers or nodes; they use several cells of a campaign."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import scipy

from lagometer.stats.interval.shares import Floats
from lagometer.summary.findings.causes import Ended, cause_of
from lagometer.summary.findings.evidence import CellEvidence, Json, Said, Trial
from lagometer.summary.findings.network import UDP_DATAGRAM_BYTES
from lagometer.units import duration_text

TRIALS_MIN = 6  # of all cells together
# Relative to one subscriber's datagrams, what each additional one adds: its own copy, or next to nothing.
COPY_MIN, COPY_MAX = 0.75, 0.1
GROWTH_MIN = 0.2  # of the smallest cell's discovery time; less is not worth reporting
_SIZED = re.compile(r"(pipeline|fanout|fanin)-([0-9]+)")
# Reasons for which a trial fails if a middleware has too many participants or endpoints.
ENDS = ("worker-died", "worker-hung", "adapter-failed", "endpoints-missing", "nothing-received")
REASON_MAX = 300  # characters; the journal has all of it
FIX = (
    "read the end of the trial's log; use fewer processes (`placement: groups`), a newer release, or a "
    "discovery server"
)


def scaling(
    cells: Sequence[CellEvidence], log_of: Callable[[Json], str]
) -> Iterator[tuple[CellEvidence, Said]]:
    """For each group of cells that differ only in their number of nodes: what grows, and where it ends.

    log_of: what the workers of a trial wrote at last, by its line in the journal.
    """
    groups: dict[tuple[object, ...], list[tuple[int, CellEvidence]]] = {}
    for cell in cells:
        match = _SIZED.fullmatch(str(cell.factors.get("workload")))
        if match:
            others = tuple(
                sorted((name, str(value)) for name, value in cell.factors.items() if name != "workload")
            )
            groups.setdefault((match[1], *others), []).append((int(match[2]), cell))
    for (family, *_), group in groups.items():
        ordered = sorted(group, key=lambda item: item[0])
        if ordered[0][0] < ordered[-1][0]:
            yield from _end(ordered, log_of)
        if family == "fanout" and ordered[0][0] < ordered[-1][0]:
            yield from _discovery(ordered)
            yield from _copies(ordered)


def _end(
    ordered: Sequence[tuple[int, CellEvidence]], log_of: Callable[[Json], str]
) -> Iterator[tuple[CellEvidence, Said]]:
    """The first size at which workers die, hang, stay unmatched or get nothing, while smaller ones are valid
    and no larger one is free of that, and why."""
    fine = max((nodes for nodes, cell in ordered if cell.valid and not _ends(cell)), default=0)
    ended = [(nodes, cell, ends) for nodes, cell in ordered if nodes > fine and (ends := _ends(cell))]
    if not ended:
        return
    nodes, cell, ends = ended[0]
    alive = {smaller: each.valid for smaller, each in ordered if smaller < nodes and each.valid}
    if not alive:
        return
    smaller_trials = [trial for trials in alive.values() for trial in trials]
    with_logs = (replace(each, log=log_of(each.trial.line)) for each in ends)
    causes = (cause for each in with_logs if (cause := cause_of(each, smaller_trials)) is not None)
    cause = next(causes, None)
    why = (
        f"likeliest because {cause.what}" if cause else "cause not known: nothing that was recorded shows it"
    )
    reason = ends[0].reason if len(ends[0].reason) <= REASON_MAX else f"{ends[0].reason[:REASON_MAX]}…"
    numbers = [reason, *([cause.number] if cause and cause.number else [])]
    yield (
        cell,
        Said(
            "too-many-nodes",
            len(ends),
            "workers die, hang, don't find each other or get no message with so many nodes, and not "
            f"with fewer; {why}",
            f"{'; '.join(numbers)}; with {nodes} nodes, while {max(alive)} were valid",
            cause.fix if cause else FIX,
            "docs/methodology/findings.md",
        ),
    )


def _ends(cell: CellEvidence) -> list[Ended]:
    """The first of these reasons for each trial that ended because of one."""
    by_trial = (
        [
            Ended(trial, code, _in_words(code, reason))
            for code in ENDS
            if code != "nothing-received" or not _is_too_large(cell, trial)
            for reason in trial.reasons(code)
        ]
        for trial in cell.trials
    )
    return [reasons[0] for reasons in by_trial if reasons]


def _is_too_large(cell: CellEvidence, trial: Trial) -> bool:
    """Whether nothing came because each message is several datagrams and the receive buffer is full before
    the last one (`nothing-received-too-large`): then the number of nodes is not to blame."""
    large = cell.payload_bytes is not None and cell.payload_bytes > UDP_DATAGRAM_BYTES
    return large and trial.kernel("udp_receive_buffer_errors") > 0


def _in_words(code: str, reason: str) -> str:
    """A reason that is only an edge's name says what is the matter with it."""
    return f"nothing was received on {reason}" if code == "nothing-received" else reason


def _discovery(ordered: Sequence[tuple[int, CellEvidence]]) -> Iterator[tuple[CellEvidence, Said]]:
    points = [
        (subscribers, value)
        for subscribers, cell in ordered
        for trial in cell.valid
        if (value := trial.figure("discovery_ns")) is not None
    ]
    if len(points) < TRIALS_MIN or len({subscribers for subscribers, _ in points}) < 2:
        return
    x, y = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    slope, half_width = slope_of(x, y)
    fewest, most = x.min(), x.max()
    if slope - half_width <= 0.0 or slope * (most - fewest) < GROWTH_MIN * float(np.median(y[x == fewest])):
        return
    low, high = (duration_text(slope + sign * half_width) for sign in (-1.0, 1.0))
    cell = ordered[-1][1]
    yield (
        cell,
        Said(
            "discovery-grows",
            len(cell.valid),
            "discovery takes longer with every subscriber",
            f"{duration_text(slope)} more per subscriber (95 %: {low} to {high}), "
            f"{duration_text(float(np.median(y[x == most])))} with {most:.0f}",
            "start subscribers early and wait until they are matched, or use a discovery server",
            "docs/methodology/findings.md",
        ),
    )


def _copies(ordered: Sequence[tuple[int, CellEvidence]]) -> Iterator[tuple[CellEvidence, Said]]:
    """Whether each subscriber gets its own datagrams (unicast), or all get the same ones (multicast)."""
    points = [
        (subscribers, per_message)
        for subscribers, cell in ordered
        for trial in cell.valid
        if (per_message := _datagrams_per_message(trial)) is not None
    ]
    if len({subscribers for subscribers, _ in points}) < 2:
        return
    x, y = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    fewest, most = x.min(), x.max()
    first, last = float(np.median(y[x == fewest])), float(np.median(y[x == most]))
    share = (last - first) / (most - fewest) / (first / fewest)  # of one subscriber's datagrams
    if not (share >= COPY_MIN or (share <= COPY_MAX and first >= 1.0)):
        return
    cell = ordered[-1][1]
    text = f"{first:.3g} datagrams a message with {fewest:.0f}, {last:.3g} with {most:.0f}"
    if share >= COPY_MIN:
        yield (
            cell,
            Said(
                "a-copy-for-each-subscriber",
                len(cell.valid),
                "each subscriber is sent its own copy of every message (unicast)",
                text,
                "let the middleware send by multicast, or by shared memory, if sending takes too long",
                "docs/methodology/findings.md",
            ),
        )
    else:
        yield (
            cell,
            Said(
                "one-copy-for-all",
                len(cell.valid),
                "all subscribers get the same datagrams (multicast)",
                text,
                "nothing; on Wi-Fi, where multicast is slow and is not acknowledged, prefer unicast",
                "docs/methodology/findings.md",
            ),
        )


def _datagrams_per_message(trial: Trial) -> float | None:
    """How many UDP datagrams were sent per message; None if messages went another way."""
    evidence = trial.line.get("evidence") or {}
    datagrams = (evidence.get("network") or {}).get("udp_sent")
    workers = (trial.line.get("counters") or {}).values()
    sent = sum(writer.get("sent") or 0 for worker in workers for writer in worker.get("writers", ()))
    over_udp = {row.get("transport") for row in trial.rows if row.get("transport")} == {"udp"}
    if not evidence.get("private") or not datagrams or not sent or not over_udp:
        return None
    return float(datagrams) / float(sent)


def slope_of(x: Floats, y: Floats) -> tuple[float, float]:
    """The slope of the least-squares line and half of its 95 % interval (Student's t, n - 2 degrees).

    The interval is too narrow if y is not linear in x; the slope is then the mean growth.
    """
    fit = scipy.stats.linregress(x, y)
    half_width = float(scipy.special.stdtrit(len(x) - 2, 0.975) * fit.stderr)
    return float(fit.slope), half_width
