# SPDX-License-Identifier: Apache-2.0
"""`latency_all.txt` of iRobot's ros2-performance: a row per subscription, in CSV or in columns.

Messages that arrived later than their period (or 50 ms) are *too late*: counted, but not among the latencies.
If there are any, mean, standard deviation and maximum cover only the others, and are not imported. Latencies
are in whole microseconds, the standard deviation is over n. `latency_total.txt` averages the means of all
topics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.source import Source, count, maybe_number
from lagometer.exchange.imports.trial import QUANTILES, Imported, Options, Trial

TOOL = "ros2-performance"
COLUMNS = (
    *("node", "topic", "size_b", "received_msgs", "late_msgs", "too_late_msgs", "lost_msgs"),
    *("mean_us", "sd_us", "min_us", "max_us", "freq_hz", "throughput_Kb_per_sec"),
)
TOTAL = ("received_msgs", "mean_us", "late_msgs", "late_perc")
HEARD = ("Subscriptions stats:", "Clients stats:")
_TITLE = re.compile(r"\s*\w[\w ]* stats:\s*$")
LARGEST_US = 1e12
ABSENT = {
    **dict.fromkeys(QUANTILES, "the tool does not print quantiles"),
    "latency_mean_ns, latency_sd_ns, latency_max_ns": (
        "where null: messages came too late, and the tool leaves those out of its latencies"
    ),
    "sent": "the tool does not print it for a subscription",
}
LOST_NOTE = (
    "lost counts from the first message ever sent, so also what was sent before the subscriber was there"
)


def recognises(source: Source) -> bool:
    """Whether the file contains latencies of ros2-performance, of all subscriptions or the total."""
    return any(_words(line)[:4] in (list(COLUMNS[:4]), list(TOTAL)) for line in source.lines[:50])


def read(sources: Sequence[Source], _: Options) -> Imported:
    """Reads files: a trial per subscription. Raises ExchangeError."""
    trials: list[Trial] = []
    for source in sources:
        source_trials = _trials(source)
        if not source_trials:
            raise ExchangeError(f"{source.path}: no subscription received a message; leave the file out")
        trials += source_trials
    return Imported(TOOL, None, trials, [{} for _ in sources], ABSENT, [LOST_NOTE])


def _words(line: str) -> list[str]:
    return [word.strip() for word in line.split(",")] if "," in line else line.split()


def _trials(source: Source) -> list[Trial]:
    trials: list[Trial] = []
    title = ""
    names: list[str] = []
    for line_number, line in enumerate(source.lines, start=1):
        words = _words(line)
        where = source.where(line_number)
        if not words or not line.strip():
            continue
        if _TITLE.match(line):
            title, names = line.strip(), []
        elif words[:4] == list(TOTAL):
            raise ExchangeError(
                f"{where}: the total of all topics, whose latency is an average of averages; give "
                "latency_all.txt"
            )
        elif words[0] == "node":
            if words != list(COLUMNS):
                raise ExchangeError(
                    f"{where}: other columns than {', '.join(COLUMNS)}; another version wrote it"
                )
            names = words
        elif names:
            row = _row(source, words, where)
            if row is not None and (title in HEARD or not title):
                trials.append(row)
    return trials


def _row(source: Source, words: Sequence[str], where: str) -> Trial | None:
    if len(words) != len(COLUMNS):
        raise ExchangeError(
            f"{where}: {len(words)} fields, but {len(COLUMNS)} columns; long names run together without CSV: "
            "run it with --csv-out on; if the file was cut off there, remove the line"
        )
    texts = dict(zip(COLUMNS, words, strict=True))
    received, too_late, lost = (
        count(texts[name], where, name) for name in ("received_msgs", "too_late_msgs", "lost_msgs")
    )
    if too_late > received:
        raise ExchangeError(f"{where}: {too_late} of {received} messages came too late; that can't be")
    if not received:
        return None
    times_us = {
        name: _time(texts[f"{name}_us"], where, f"{name}_us") for name in ("mean", "sd", "min", "max")
    }
    figures: dict[str, Any] = {"n": received, "lost": lost}
    warnings = []
    minimum_us, maximum_us, mean_us, sd_us = (times_us[name] for name in ("min", "max", "mean", "sd"))
    if minimum_us is not None:
        figures["latency_min_ns"] = round(minimum_us * 1000)
    if too_late:
        warnings.append(
            f"{too_late} messages came too late: no mean, deviation or maximum, which leave those out"
        )
    elif (
        minimum_us is None
        or maximum_us is None
        or mean_us is None
        or sd_us is None
        or not minimum_us - 1 <= mean_us <= maximum_us + 1
    ):
        raise ExchangeError(f"{where}: the mean {texts['mean_us']} is not between minimum and maximum")
    else:
        figures["latency_max_ns"] = round(maximum_us * 1000)
        figures["latency_mean_ns"] = mean_us * 1000
        figures["latency_sd_ns"] = (
            sd_us * 1000 * math.sqrt(received / (received - 1)) if received > 1 else None
        )
    rate = maybe_number(texts["freq_hz"])
    factors = {
        "adapter": f"{TOOL}:ros2",
        "payload_bytes": count(texts["size_b"], where, "size_b"),
        "rate_hz": rate if rate is not None and 0 < rate < 1e9 else None,
    }
    parts = [f"{texts['topic']}-{texts['node']}", f"{factors['payload_bytes']}B"]
    return Trial(parts, figures, [source], factors, warnings)


def _time(text: str, where: str, column: str) -> float | None:
    """A time in microseconds with six digits; null for `nan`, without any message."""
    value = maybe_number(text)
    if value is None or not (math.isnan(value) or 0 <= value < LARGEST_US):
        raise ExchangeError(f"{where}: {text[:40]!r} is not a time in us ({column})")
    return None if math.isnan(value) else value
