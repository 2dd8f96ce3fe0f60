# SPDX-License-Identifier: Apache-2.0
"""Logs of Apex.AI performance_test as trials: which logs belong together, and what their figures are.

The publisher's process and the subscriber's each write a log. Together they are one trial, with what was sent
and what was received. Counts are summed; minimum, maximum, mean and standard deviation are of all messages.
performance_test_log reads the logs, and knows what the figures mean in each version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.performance_test_counts import Span
from lagometer.exchange.imports.performance_test_head import TOOL, Head
from lagometer.exchange.imports.performance_test_log import Log, read_log
from lagometer.exchange.imports.source import Source
from lagometer.exchange.imports.trial import QUANTILES, Imported, Options, Trial

NS_PER_S = 1e9
NEAR_S = 60.0  # the longest time between the ends of two processes of one run
NO_DEVIATION = (
    "no standard deviation, since the variance of at least one row can't be relied on: "
    f"from 1.5 on {TOOL} computes it in 64-bit integers, which overflow"
)
CLOCKS = (
    "clocks: the minimum is negative, so sender's and receiver's clocks differ, as those of two hosts do; "
    "every latency holds that unknown offset"
)
ROUND_TRIP = "round trip: from publishing until the echo of a relay is back"
ABSENT = {
    **dict.fromkeys(QUANTILES, "the logs have minimum, maximum, mean and variance alone"),
    **dict.fromkeys(("latency_skewness", "latency_kurtosis"), "the logs have the first two moments alone"),
    "response, send_lag, blocked, layers, CPU time": f"{TOOL} does not print when a message was due",
}
LOST_NOTE = (
    "lost is a lower bound: a row's count is cut to whole numbers per second, so a single loss in a row that "
    "is longer than a second is not printed"
)


@dataclass(frozen=True)
class _Run:
    """The log with the latencies, and the log of the publishing process, which may be the same."""

    log: Log
    publisher: Log | None


def recognises(source: Source) -> bool:
    """Whether the file is a performance_test log, CSV or JSON, complete or damaged."""
    text = source.text
    if text.lstrip().startswith("{"):
        return '"analysis_results"' in text and '"com_mean_str"' in text
    head = text[:20_000]
    return "---EXPERIMENT-START---" in head or (
        "Experiment id:" in head and "Performance Test Version:" in head
    )


def read(sources: Sequence[Source], _: Options) -> Imported:
    """Reads logs; those that belong together become one trial. Raises ExchangeError."""
    logs = [read_log(source) for source in sources]
    runs = _runs(logs)
    versions = sorted({log.head.version for log in logs if log.head.version})
    return Imported(
        tool=TOOL,
        version=", ".join(f"git hash {version}" if _is_hash(version) else version for version in versions)
        or None,
        trials=[_trial(run) for run in runs],
        about=[_about(log) for log in logs],
        absent=ABSENT,
        notes=[LOST_NOTE],
    )


def _is_hash(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{7,40}", text) is not None


# --- which logs belong together


def _runs(logs: Sequence[Log]) -> list[_Run]:
    """One run per trial, in the order of the logs with latencies."""
    publishers = [log for log in logs if log.latencies is None]
    relays = [log for log in logs if log.head.roundtrip == "relay"]
    with_latencies = [log for log in logs if log.latencies is not None and log not in relays]
    mains = {_without_mode(log) for log in logs if log.head.roundtrip == "main"}
    for relay in relays:
        if _without_mode(relay) not in mains:
            raise ExchangeError(
                f"{relay.source.path}: the log of a relay (Roundtrip Mode), which holds no latency; "
                "give the log of the other side (Main) as well"
            )
    publishers = [log for log in publishers if log not in relays]
    partner = _joined([log for log in with_latencies if log.sent is None], publishers)
    return [_Run(log, log if log.sent is not None else partner.get(id(log))) for log in with_latencies]


def _without_mode(log: Log) -> tuple[tuple[str, str], ...]:
    return tuple(
        entry for entry in log.head.run if entry[0].lower() not in ("roundtrip mode", "roundtrip_mode")
    )


def _joined(subscribers: Sequence[Log], publishers: Sequence[Log]) -> dict[int, Log]:
    """The publisher of each subscriber, by the id of its log. Raises ExchangeError if one is missing."""
    partners: dict[int, Log] = {}
    for head in dict.fromkeys(log.head.run for log in publishers):
        senders = [log for log in publishers if log.head.run == head]
        takers = [log for log in subscribers if log.head.run == head]
        if not takers:
            raise ExchangeError(
                f"{senders[0].source.path}: no row says that a message was received; there is nothing to "
                "import: give the log of its subscriber as well, with the same head"
            )
        if len(senders) != len(takers):
            raise ExchangeError(
                f"{senders[0].source.path}: {len(senders)} logs of publishers but {len(takers)} of "
                "subscribers have this head, so which belong together can't be told; import them run by run"
            )
        partners.update((id(taker), sender) for taker, sender in _in_pairs(takers, senders))
    return partners


def _in_pairs(takers: Sequence[Log], senders: Sequence[Log]) -> list[tuple[Log, Log]]:
    """Pairs them by the time at which they were written, if they contain it; else in argument order."""
    if len(takers) == 1:
        return [(takers[0], senders[0])]
    ends = [[_written(log) for log in side] for side in (takers, senders)]
    times = [[end for end in side_ends if end is not None] for side_ends in ends]
    if any(len(side_times) < len(takers) for side_times in times):
        return list(zip(takers, senders, strict=True))
    by_time = [
        [log for _, _, log in sorted(zip(end, range(len(end)), logs, strict=True))]
        for end, logs in zip(times, (takers, senders), strict=True)
    ]
    for a, b, taker in zip(sorted(times[0]), sorted(times[1]), by_time[0], strict=True):
        if abs((a - b).total_seconds()) > NEAR_S:
            raise ExchangeError(
                f"{taker.source.path}: no publisher's log of this head was written at about the same time; "
                "import the logs run by run"
            )
    return list(zip(*by_time, strict=True))


def _written(log: Log) -> datetime | None:
    """The time at which a JSON log was written, from the end of its name."""
    stamp = re.search(r"_(\d\d-\d\d-\d{4}_\d\d-\d\d-\d\d)$", str(log.head.raw.get("final_logfile_name", "")))
    if not stamp:
        return None
    try:
        return datetime.strptime(stamp[1], "%d-%m-%Y_%H-%M-%S")  # noqa: DTZ007 only a difference matters
    except ValueError:
        return None


# --- what they say


def _trial(run: _Run) -> Trial:
    log, latencies = run.log, run.log.latencies
    assert latencies is not None
    sent, warnings = _sent(run)
    if not log.received.exact:
        low, high = log.received.low, log.received.high
        warnings.append(f"n lies between {low} and {high}: rows are cut to whole numbers per second")
    if log.beyond:
        warnings.append("the latencies are also of the first row's messages, which the log does not count")
    if latencies.sd_s is None and log.received.high > 1:
        warnings.append(NO_DEVIATION)
    if latencies.least_s < 0:
        warnings.append(CLOCKS)
    if log.head.roundtrip == "main":
        warnings.append(ROUND_TRIP)
    figures = {
        "n": max(1, log.received.middle),
        "sent": sent,
        "lost": log.lost.low,
        "latency_min_ns": round(latencies.least_s * NS_PER_S),
        "latency_max_ns": round(latencies.most_s * NS_PER_S),
        "latency_mean_ns": latencies.mean_s * NS_PER_S,
        "latency_sd_ns": None if latencies.sd_s is None else latencies.sd_s * NS_PER_S,
    }
    files = [log.source]
    if run.publisher is not None and run.publisher is not log:
        files.append(run.publisher.source)
    return Trial(_parts(run), figures, files, _factors(run), warnings)


def _sent(run: _Run) -> tuple[int | None, list[str]]:
    """The number of sent messages if the logs give it exactly, else None and why."""
    log = run.publisher
    if log is None or log.sent is None:
        return None, []
    if log.left_out and log.writer.cumulative:
        return None, ["sent is not known: the first row does not count what was sent in it"]
    if not log.sent.exact:
        return None, [_range("sent", log.sent)]
    return log.sent.low, []


def _range(name: str, span: Span) -> str:
    return (
        f"{name} is not known exactly ({span.low} to {span.high}): rows are cut to whole numbers per second"
    )


def _publishers(run: _Run) -> int | None:
    return run.publisher.head.publishers if run.publisher is not None else run.log.head.publishers


def _rate(run: _Run) -> float | None:
    """The requested rate. A process without publishers reports the option's default there."""
    head: Head = run.publisher.head if run.publisher is not None else run.log.head
    return head.rate_hz if run.publisher is not None or head.publishers else None


def _factors(run: _Run) -> dict[str, Any]:
    head = run.log.head
    return {
        "adapter": f"{TOOL}:{head.communicator}",
        "rate_hz": _rate(run),
        "reliability": head.quality.get("reliability"),
        "history": head.quality.get("history"),
        "depth": head.depth,
        "durability": head.quality.get("durability"),
    }


def _parts(run: _Run) -> list[str]:
    """The transport, message, rate, QoS and communication partners from the heads."""
    head, factors = run.log.head, _factors(run)
    parts = [f"{head.communicator}+{head.implementation}" if head.implementation else head.communicator]
    parts += [head.message] if head.message else []
    parts += [f"{factors['rate_hz']:g}Hz"] if factors["rate_hz"] else []
    parts += [factors[key] for key in ("reliability", "history", "durability") if factors[key]]
    parts += [f"depth-{factors['depth']}"] if factors["depth"] is not None else []
    publishers, subscribers = _publishers(run), head.subscribers
    if publishers is not None and subscribers is not None:
        parts.append(f"{publishers}-to-{subscribers}")
    parts += list(head.switches)
    return parts + ([head.roundtrip] if head.roundtrip != "none" else [])


def _about(log: Log) -> dict[str, Any]:
    return {
        "read_as": log.writer.versions,
        "told_by": log.decided,
        "rows_left_out": log.left_out,
        **{key: value for key, value in log.head.raw.items() if isinstance(value, str | int | float | bool)},
    }
