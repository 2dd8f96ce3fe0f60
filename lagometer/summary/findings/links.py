# SPDX-License-Identifier: Apache-2.0
"""Findings about emulated links, and about what a lossy link does to reliable messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from lagometer.store.format import ARROW
from lagometer.summary.findings.evidence import CellEvidence, Said, Trial, of_reasons
from lagometer.units import duration_text, plain_duration_text

NS_PER_S = 1e9
BEHIND_MIN = 2  # fewer messages behind a late one are not a burst
CHANGES_SHOWN = 4  # of many, in one sentence
JITTERS = 6.0  # standard deviations of the delay to ignore

_NAMES = {"mtu_bytes": "MTU", "burst": "lost in a row"}

REASONS = (
    (
        "link-differs",
        "the emulated link did not match the request, so the trial did not run, or does not count",
        "close what else uses the CPUs, or ask for a lower rate; tolerances: docs/methodology/links.md",
    ),
    (
        "link-failed",
        "the emulated link could not be made",
        "read the reason: a part of the kernel or a program may be missing",
    ),
    (
        "link-not-crossed",
        "messages bypassed the emulated link within the host",
        "choose a transport over the network (`fastdds: {transport: udp}`), or emulated hosts",
    ),
)


def links(cell: CellEvidence) -> Iterator[Said]:
    """The properties of a cell's link, and what it did to the order in time."""
    yield from of_reasons(cell, REASONS)
    yield from _emulated(cell)
    yield from _recovered(cell)
    yield from _bursts(cell)


def _emulated(cell: CellEvidence) -> Iterator[Said]:
    trials = [trial for trial in cell.trials if any(measured.get("figures") for measured in _of(trial))]
    if not trials:
        return
    measured = [link for trial in trials for link in _of(trial) if link.get("figures")]
    changed = _changed(measured)
    back_ends = " and ".join(dict.fromkeys(f"{link['back_end']} on {link['device']}" for link in measured))
    yield Said(
        "emulated-link",
        len(trials),
        "the link is emulated on one machine, and was measured before the workers started",
        f"{cell.factors.get('link')} by {back_ends}: {', '.join(_measured(measured))}{changed}",
        "compare with cells of other links on the same machine; a real link has more to it than its profile",
        "docs/methodology/links.md",
    )


def _of(trial: Trial) -> Sequence[Mapping[str, Any]]:
    entries = trial.line.get("links")
    return entries if isinstance(entries, list) else []


def _measured(links_of_trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """For each quantity: the measured range, and the requested value."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for link in links_of_trials:
        for figure in link["figures"]:
            by_name.setdefault(str(figure["what"]), []).append(figure)
    for name, figures in by_name.items():
        values = [float(entry["measured"]) for entry in figures if entry.get("measured") is not None]
        if not values:
            continue
        texts = list(dict.fromkeys(_quantity(name, value) for value in (min(values), max(values))))
        asked = _quantity(name, float(figures[0]["asked"]))
        yield f"{_NAMES.get(name, name.partition('_')[0])} {' – '.join(texts)} (asked {asked})"
    cpu_ns = [int(link["cpu_ns"]) for link in links_of_trials if link.get("cpu_ns") is not None]
    if any(cpu_ns):
        yield f"its own CPU time {duration_text(max(cpu_ns))} of a measure phase at most"


def _changed(links_of_trials: Sequence[Mapping[str, Any]]) -> str:
    """A link's changes as carried out in the first trial, and the largest delay of any change."""
    all_changes = [(link.get("did") or {}).get("program") or {} for link in links_of_trials]
    by_link = [list(program["changes"]) for program in all_changes if program.get("changes")]
    late = [
        int(change["late_ns"]) for changes in by_link for change in changes if change["late_ns"] is not None
    ]
    if not late:
        return ""
    shown = [_change(change) for change in by_link[0][:CHANGES_SHOWN]]
    more = len(by_link[0]) - len(shown)
    rest = f" and {more} more" if more else ""
    return f"; then {', '.join(shown)}{rest} (at most {duration_text(max(late))} late)"


def _change(change: Mapping[str, Any]) -> str:
    """What holds from then on, and what happened to frames that arrived before the next change."""
    at = f"at {plain_duration_text(int(change['at_ns']))}"
    dropped = int(change["lost"]) + int(change["full"])
    frames = f"{dropped:,} of {int(change['came']):,} frames dropped"
    if float(change["loss"]) >= 1:
        return f"{at} an outage ({frames})"
    rate = f"{_quantity('rate_bps', float(change['rate_bps']))}, " if change["rate_bps"] else ""
    delay = f"delay {duration_text(int(change['delay_ns']))}, loss {_quantity('loss', float(change['loss']))}"
    return f"{at} {rate}{delay} ({frames}, {int(change['carried_bytes']):,} B carried)"


def _recovered(cell: CellEvidence) -> Iterator[Said]:
    """How long after an outage the first message arrived, by edge."""
    by_edge: dict[str, list[int | None]] = {}
    trials = 0
    for trial in cell.valid:
        outages = trial.line.get("outages") or ()
        trials += bool(outages)
        for outage in outages:
            by_edge.setdefault(str(outage["edge"]), []).extend(outage["recovered_ns"])
    if not by_edge:
        return
    yield Said(
        "recovered-after-outage",
        trials,
        "how long after an outage of the emulated link the first message came through that was published "
        "since the outage began",
        "; ".join(f"{edge} {_recovery(times)}" for edge, times in by_edge.items()),
        "a shorter period, or with `reliability: reliable` resends that are asked for sooner (heartbeat "
        "period, TCP's time-out), shorten it; a message can't come sooner than the link's delay",
        "docs/methodology/links.md#links-that-change",
    )


def _recovery(times_ns: Sequence[int | None]) -> str:
    known = [time_ns for time_ns in times_ns if time_ns is not None]
    outages = f"{len(times_ns)} outages"
    if not known:
        return f"recovered after none of {outages} before the next, or before the trial ended"
    figures = f"median of {len(known)}, {duration_text(max(known))} at most"
    if len(known) < len(times_ns):
        figures += f"; nothing came before the next after {len(times_ns) - len(known)} of {outages}"
    return f"recovered after {duration_text(median(known))} ({figures})"


def _quantity(name: str, value: float) -> str:
    if name.endswith("_ns"):
        return duration_text(value)
    if name.endswith("_bps"):
        return f"{value / 1e6:.4g} Mbit/s"
    if name.endswith("_bytes"):
        return f"{value:.0f} B"
    return f"{value:.3g}" if name == "burst" else f"{100 * value:.3g} %"


def _bursts(cell: CellEvidence) -> Iterator[Said]:
    """RELIABLE keeps the order, so messages published after a late one wait for it."""
    bursts = [(trial, worst) for trial in cell.valid if (worst := _burst(cell, trial))]
    if not bursts:
        return
    _, (edge, late_ns, waiting) = max(bursts, key=lambda burst: burst[1][1])
    late = duration_text(late_ns)
    yield Said(
        "delivered-in-bursts",
        len(bursts),
        "for a while nothing was delivered, then several messages at once: RELIABLE keeps their order, so "
        "they waited for one that had to be sent again",
        f"{edge}: one message was {late} later than the fastest, and about {waiting:,} came together with it",
        "a lossy link does this: ask for resends sooner (heartbeat period), or use "
        "`reliability: best_effort` where only the newest message counts",
        "DDSI-RTPS 2.5, 8.4 (heartbeats and acknowledgements)",
    )


def _burst(cell: CellEvidence, trial: Trial) -> tuple[str, float, int] | None:
    """A trial's worst edge: how much later its latest message was than the fastest, beyond jitter, and how
    many messages waited for it. Only for links that lose frames: elsewhere, a stalled process does the same.
    """
    asked = {
        str(figure["what"]): float(figure["asked"])
        for link in _of(trial)
        for figure in link.get("figures", ())
    }
    if not asked.get("loss") or trial.warnings("queue-builds-up"):
        return None
    bursts = []
    for row in trial.rows:
        least, most, rate_hz = (
            row.get(name) for name in ("latency_min_ns", "latency_max_ns", "rate_intended_hz")
        )
        reliable = cell.of_topics("reliability") == "reliable" and not row.get("reordered")
        if ARROW not in str(row.get("edge")) or not reliable or not (least and most and rate_hz):
            continue
        late_ns = float(most) - float(least) - JITTERS * asked.get("jitter_ns", 0.0)
        waiting = int(late_ns / NS_PER_S * float(rate_hz))
        if waiting >= BEHIND_MIN:
            bursts.append((str(row["edge"]), late_ns, waiting))
    return max(bursts, key=lambda burst: burst[1], default=None)
