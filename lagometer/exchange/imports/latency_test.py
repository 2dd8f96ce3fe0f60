# SPDX-License-Identifier: Apache-2.0
"""Reads what Fast DDS's LatencyTest prints (a table) and writes with `--export_raw_data` (every latency).

A latency is half of the round trip, minus the time that the echo reports for itself and the cost of two clock
readings. It drops the first round trip of each payload, and with loans all above 10 ms. The table's standard
deviation is over n. Its quantiles have rank floor(n p), so they equal ours (rank ceil(n p)) if n p is a whole
number. The files of `--export_csv` have only minimum and mean, without a count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.source import Source, count, maybe_number, number
from lagometer.exchange.imports.trial import HALVED, Imported, Options, Trial, check_order, figures_of
from lagometer.stats.interval.confidence import SUPPORT

TOOL = "LatencyTest"
RAW = "Sample,Payload [Bytes],Latency [us]"
COLUMNS = ("Bytes", "Samples", "stdev", "mean", "min", "50%", "90%", "99%", "99.99%", "max")
SHARES = {"p50": ("50%", 0.5), "p90": ("90%", 0.9), "p99": ("99%", 0.99)}
_TABLE = re.compile(r"\s*Bytes,\s*Samples,\s*stdev,")
_SUMMARY = re.compile(r'\s*"(Minimum of \d+ samples|\d+ samples of \d+ bytes)')
COMMAS = "its decimals are written with a comma, which also separates the columns; run it with LC_ALL=C"
ABSENT = {
    "sent, lost": "the tool waits 100 ms for each echo and does not say which failed to come",
    "latency_p25_ns, latency_p75_ns, latency_p999_ns": "the table does not have them (raw data have)",
    "latency_p50_ns, latency_p90_ns, latency_p99_ns": (
        "where null: the table's rank floor(n p) is not ours, ceil(n p), or fewer than 10 samples lie beyond"
    ),
}
NOTE = "the first round trip of each payload was dropped, and with loans all above 10 ms"


def recognises(source: Source) -> bool:
    """Whether the file is the output, the raw data or a summary of LatencyTest."""
    first = source.text.lstrip()[:200]
    if first.startswith(RAW) or _SUMMARY.match(first):
        return True
    return any(_TABLE.match(line) for line in source.lines)


def read(sources: Sequence[Source], _: Options) -> Imported:
    """Reads outputs and raw data: a trial per payload and run. Raises ExchangeError."""
    trials: list[Trial] = []
    about = []
    for source in sources:
        first = source.text.lstrip()
        if _SUMMARY.match(first[:200]):
            raise ExchangeError(
                f"{source.path}: a summary of --export_csv: minimum and mean without the number of round "
                "trips that they are of; give the file of --export_raw_data, or the printed table"
            )
        raw = first.startswith(RAW)
        source_trials = _raw(source) if raw else _table(source)
        if not source_trials:
            raise ExchangeError(f"{source.path}: no payload was measured; leave the file out")
        trials += source_trials
        about.append({"content": "every latency" if raw else "the printed table"})
    return Imported(TOOL, None, trials, about, ABSENT, [NOTE])


def _trial(
    source: Source, payload_bytes: int, figures: dict[str, Any], more_warnings: Sequence[str] = ()
) -> Trial:
    factors = {"adapter": f"{TOOL}:fastdds", "payload_bytes": payload_bytes}
    return Trial([f"{payload_bytes}B"], figures, [source], factors, [HALVED, *more_warnings])


def _raw(source: Source) -> list[Trial]:
    """Every latency in microseconds with six digits, payload after payload."""
    start = next(index for index, line in enumerate(source.lines) if line.strip() == RAW)
    runs: list[tuple[int, list[int]]] = []
    previous = 0
    for line_number, line in enumerate(source.lines[start + 1 :], start=start + 2):
        if not line.strip():
            continue
        source.check_end(line_number)
        where = source.where(line_number)
        fields = line.split(",")
        if len(fields) != 3:
            advice = COMMAS if len(fields) == 4 else "if the file was cut off there, remove the line"
            raise ExchangeError(f"{where}: {len(fields)} fields, but 3 columns; {advice}")
        sample, payload_bytes = count(fields[0], where, "Sample"), count(fields[1], where, "Payload")
        if sample != previous + 1:
            raise ExchangeError(
                f"{where}: sample {sample} follows {previous}; lines are missing or twice there"
            )
        previous = sample
        latency_us = number(fields[2], where, "Latency")
        if not 0 <= latency_us < 1e12:
            raise ExchangeError(f"{where}: a latency of {latency_us:g} us can't be")
        if not runs or runs[-1][0] != payload_bytes:
            runs.append((payload_bytes, []))
        runs[-1][1].append(round(latency_us * 1000))
    return [
        _trial(source, payload_bytes, figures_of(np.array(latencies_ns, dtype=np.int64)))
        for payload_bytes, latencies_ns in runs
    ]


def _table(source: Source) -> list[Trial]:
    """The rows below each table head."""
    trials = []
    in_table = False
    for line_number, line in enumerate(source.lines, start=1):
        if _TABLE.match(line):
            in_table = True
        elif in_table and re.match(r"\s*[\d.+-]+\s*,", line) and not re.match(r"-{4}", line):
            source.check_end(line_number)
            trials.append(_row(source, line, source.where(line_number)))
        elif in_table and line.strip() and not re.match(r"-{4}", line):
            in_table = False
    return trials


def _row(source: Source, line: str, where: str) -> Trial:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != len(COLUMNS):
        advice = COMMAS if len(fields) > len(COLUMNS) else "if the output was cut off there, remove the line"
        raise ExchangeError(f"{where}: {len(fields)} fields, but {len(COLUMNS)} columns; {advice}")
    texts = dict(zip(COLUMNS, fields, strict=True))
    total = count(texts["Samples"], where, "Samples")
    if total == 0 or total > 2**53:
        raise ExchangeError(f"{where}: {total} samples; nothing came back, remove the line")
    times_us = {name: number(texts[name], where, name) for name in ("stdev", "mean", "min", "max")}
    if not (
        0 <= times_us["min"] <= times_us["mean"] + 1e-3 and times_us["mean"] <= times_us["max"] + 1e-3 < 1e12
    ):
        raise ExchangeError(f"{where}: the mean {times_us['mean']:g} is not between minimum and maximum")
    figures: dict[str, Any] = {
        "n": total,
        "latency_min_ns": round(times_us["min"] * 1000),
        "latency_max_ns": round(times_us["max"] * 1000),
        "latency_mean_ns": times_us["mean"] * 1000,
        "latency_sd_ns": times_us["stdev"] * 1000 * math.sqrt(total / (total - 1)) if total > 1 else None,
    }
    for name, (column, share) in SHARES.items():
        value = maybe_number(texts[column])
        if value is None or abs(value) == math.inf:
            raise ExchangeError(f"{where}: {texts[column][:40]!r} is not a number ({column})")
        comparable = _ours(total, share) and not math.isnan(value)
        figures[f"latency_{name}_ns"] = round(value * 1000) if comparable else None
    check_order(figures, where)
    return _trial(source, count(texts["Bytes"], where, "Bytes"), figures)


def _ours(total: int, share: float) -> bool:
    """Whether the table's rank equals ours, and enough samples lie beyond it."""
    permille = round(share * 1000)
    rank = -(-total * permille // 1000)
    return int(total * share) == rank and total - rank >= SUPPORT
