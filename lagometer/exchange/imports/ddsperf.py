# SPDX-License-Identifier: Apache-2.0
"""Reads the output of Cyclone DDS's ddsperf: each second, one line per peer with the latencies of that
second.

With `ping` they are half round trips, with `-l` (`sublat`) one-way between two clocks. The count, minimum,
maximum and mean of the seconds give those of the run. Their quantiles do not: both their rank (one above ours
if n p is a whole number) and their base (the first 20,000 of a second) differ from ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.source import Source
from lagometer.exchange.imports.trial import HALVED, QUANTILES, Imported, Options, Trial

TOOL = "ddsperf"
_PREFIX = r"\[(?P<pid>\d+)\] (?P<at>\d+\.\d{3}) "
_US = r"(-?\d+\.\d{3})us"
_LATENCY = re.compile(
    _PREFIX + r"(?P<kind> sublat)? (?P<peer>\S+) size (?P<size>\d+) "
    rf"mean {_US} min {_US} 50% {_US} 90% {_US} 99% {_US} max {_US} cnt (?P<count>\d+)\s*$",
    re.ASCII,
)
_RATE = re.compile(_PREFIX + r" size (?P<size>\d+) total (?P<total>\d+) lost (?P<lost>\d+) delta", re.ASCII)
_AT = re.compile(_PREFIX, re.ASCII)
_BEGINS = re.compile(r"\[\d+\] \S+ .*\bsize \d+ mean ")
CLOCKS = (
    "clocks: one way, from the writer's clock to the reader's: on two hosts their offset is in every latency"
)
ABSENT = {
    **dict.fromkeys(QUANTILES, "the quantiles of seconds do not give that of the run"),
    "latency_sd_ns": "ddsperf does not print it",
    "sent": "ddsperf does not print it for a run",
    "lost": "if null: ddsperf reports no losses of pings, and only the sum over several writers or sizes",
}


@dataclass
class _Peer:
    """The figures of one peer, over the seconds."""

    kind: str
    peer: str
    size_bytes: int
    number: int = 0
    sum_us: float = 0.0
    least_us: float = float("inf")
    most_us: float = float("-inf")
    lines: list[str] = field(default_factory=list)


def recognises(source: Source) -> bool:
    """Whether the file is an output of ddsperf."""
    lines = source.lines[:2000]
    return any(_BEGINS.match(line) or _RATE.match(line) for line in lines)


def read(sources: Sequence[Source], _: Options) -> Imported:
    """Reads outputs: a trial per peer, kind of latency and size. Raises ExchangeError."""
    trials: list[Trial] = []
    for source in sources:
        trials += _trials(source)
    return Imported(TOOL, None, trials, [{} for _ in sources], ABSENT)


def _trials(source: Source) -> list[Trial]:
    peers: dict[tuple[str, str, str, int], _Peer] = {}
    lost: dict[str, int] = {}
    last_s: dict[str, float] = {}
    for line_number, line in enumerate(source.lines, start=1):
        _check_one_run(last_s, line, source.where(line_number))
        rate = _RATE.match(line)
        if rate:
            lost[rate["pid"]] = int(rate["lost"])
        if not _BEGINS.match(line):
            continue
        source.check_end(line_number)
        _add(peers, line, source.where(line_number))
    if not peers:
        raise ExchangeError(
            f"{source.path}: throughput alone, no latency; run `ddsperf ping`, or `ddsperf -l sub`"
        )
    peer_list = list(peers.values())
    # A process prints one sum of what it lost, over all its writers and sizes.
    one_way = Counter(pid for pid, kind, *_ in peers if kind == "sublat")
    alike = len({(peer.kind, peer.size_bytes) for peer in peer_list}) == len(peer_list)
    return [
        _trial(source, peer, lost.get(pid) if kind == "sublat" and one_way[pid] == 1 else None, not alike)
        for (pid, kind, *_), peer in peers.items()
    ]


def _check_one_run(last_s: dict[str, float], line: str, where: str) -> None:
    """Raises ExchangeError where the time of a process goes back: it counts from the process's start, and in
    containers every run may have the same process id."""
    fields = _AT.match(line)
    if not fields:
        return
    pid, at_s = fields["pid"], float(fields["at"])
    if at_s < last_s.get(pid, 0.0):
        raise ExchangeError(f"{where}: another run of process {pid} begins; give each run a file of its own")
    last_s[pid] = at_s


def _add(peers: dict[tuple[str, str, str, int], _Peer], line: str, where: str) -> None:
    fields = _LATENCY.match(line)
    if not fields:
        advice = "if the output was cut off there, remove the line"
        if re.search(r"\d,\d{3}us", line):
            advice = "its decimals are written with a comma; run it with LC_ALL=C"
        raise ExchangeError(f"{where}: not a line of latencies as ddsperf prints it; {advice}")
    if len(fields["count"]) > 10 or len(fields["size"]) > 12:
        raise ExchangeError(f"{where}: a count or size that can't be")
    mean_us, minimum_us, maximum_us = (float(fields[group]) for group in (6, 7, 11))
    number = int(fields["count"])
    if not (
        number
        and abs(minimum_us) < 1e13
        and abs(maximum_us) < 1e13
        and minimum_us - 1e-3 <= mean_us <= maximum_us + 1e-3
    ):
        raise ExchangeError(f"{where}: the mean {mean_us:g} us is not between minimum and maximum")
    kind, size = "sublat" if fields["kind"] else "ping", int(fields["size"])
    peer = peers.setdefault((fields["pid"], kind, fields["peer"], size), _Peer(kind, fields["peer"], size))
    peer.number += number
    peer.sum_us += number * mean_us
    peer.least_us, peer.most_us = min(peer.least_us, minimum_us), max(peer.most_us, maximum_us)


def _trial(source: Source, peer: _Peer, lost: int | None, name_peer: bool) -> Trial:
    figures: dict[str, Any] = {
        "n": peer.number,
        "lost": lost,
        "latency_min_ns": round(peer.least_us * 1000),
        "latency_max_ns": round(peer.most_us * 1000),
        "latency_mean_ns": peer.sum_us / peer.number * 1000,
    }
    parts = [peer.kind, f"{peer.size_bytes}B", *([peer.peer] if name_peer else [])]
    warnings = [HALVED] if peer.kind == "ping" else [CLOCKS]
    if peer.least_us < 0:
        warnings.append("clocks: the minimum is negative, so the clocks of writer and reader differ")
    factors = {"adapter": f"{TOOL}:cyclonedds", "payload_bytes": peer.size_bytes}
    return Trial(parts, figures, [source], factors, warnings)
