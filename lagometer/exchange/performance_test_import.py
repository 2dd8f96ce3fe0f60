# SPDX-License-Identifier: Apache-2.0
"""A log of Apex.AI performance_test as a campaign folder, marked as imported: aggregates that another tool
made, never our own measurements.

There are no samples and no quantiles, and none are made up: counts are summed, least and greatest latency
taken over all rows, mean and standard deviation pooled from the rows' means and variances. Nothing of it went
through our validity checks, and the warning `imported` says so on every row. How a log is read, and what its
figures mean in which version, is in performance_test_log.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lagometer import __version__
from lagometer.exchange.performance_test_log import TOOL, Log, Loop, read_log
from lagometer.store import format as form

IMPORTED = "imported"  # the folder that keeps the logs, and the first part of a cell's id
NS_PER_MS = 1e6
WARNING = f"{IMPORTED}: aggregates of {TOOL}, not measured by lagometer"
NO_DEVIATION = (
    f"{IMPORTED}: no standard deviation, since the variance of at least one row can't be relied on: "
    f"from 1.5 on {TOOL} computes it in 64-bit integers, which overflow"
)


def import_logs(paths: Sequence[Path], directory: Path) -> list[str]:
    """Writes a campaign of these logs into `directory`; returns its cells. Raises ExchangeError, OSError.

    Logs with the same head (but for id and file name) are trials of one cell.
    """
    logs = [read_log(path) for path in paths]
    numbers: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    directory.mkdir(parents=True, exist_ok=True)
    (directory / IMPORTED).mkdir()
    for place, log in enumerate(logs):
        cell = cell_id(log)
        trial = numbers.get(cell, 0)
        numbers[cell] = trial + 1
        kept = f"{IMPORTED}/{place}-{log.path.name}"
        shutil.copyfile(log.path, directory / kept)
        rows.append({"cell": cell, "trial": trial, **_figures(log), **_factors(log)})
    lines = [json.dumps(_entry(row), ensure_ascii=False) + "\n" for row in rows]
    form.write_bytes_atomic("".join(lines).encode(), directory / form.JOURNAL)
    form.write_cells(form.cells_of_rows(rows), directory / form.CELLS)
    form.write_json_atomic({}, directory / form.ENVIRONMENT)
    form.write_json_atomic(_manifest(logs, rows, numbers), directory / form.MANIFEST)
    return list(numbers)


def cell_id(log: Log) -> str:
    """`imported/performance_test/…`: what the head says of transport, message, rate and QoS."""
    head, factors = log.head, _factors(log)
    implementation = head.get("RMW Implementation") or head.get("rmw_implementation") or "N/A"
    parts = [log.communicator if implementation == "N/A" else f"{log.communicator}+{implementation}"]
    parts += [head[key] for key in ("Msg name", "Topic name") if head.get(key)][:1]
    parts += [f"{factors['rate_hz']:g}Hz"] if factors["rate_hz"] else []
    parts += [str(factors[key]) for key in ("reliability", "history", "durability") if factors[key]]
    mode = head.get("Roundtrip Mode", "none").lower()
    parts += [mode] if mode != "none" else []
    return "/".join([IMPORTED, TOOL, *(re.sub(r"[^\w.+:-]", "_", part).strip(".") or "_" for part in parts)])


def _factors(log: Log) -> dict[str, Any]:
    quality = log.head.get("QOS", "")

    def word(key: str) -> str | None:
        found = re.search(rf"{key}: (\S+)", quality)
        return found[1].lower() if found and found[1] != "DEFAULT" else None

    depth = word("History depth")
    return {
        "adapter": f"{TOOL}:{log.communicator}",
        "rate_hz": _number(log.head.get("Publishing rate")),
        "reliability": word("Reliability"),
        "history": word("History kind"),
        "depth": int(depth) if depth and depth.isdigit() else None,
        "durability": word("Durability"),
    }


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _figures(log: Log) -> dict[str, Any]:
    """Counts and pooled moments over all rows; what was not told is null."""
    loops = [loop for loop in log.loops if loop.received]
    count = sum(loop.received for loop in loops)
    mean_ms = sum(loop.received * loop.mean_ms for loop in loops) / count
    sd_ns = _deviation_ns(loops, log.writer.less, count, mean_ms)
    told = sd_ns is not None or count == 1
    return {
        "edge": form.END_TO_END,
        "valid": True,
        "reasons": [],
        "warnings": [WARNING] if told else [WARNING, NO_DEVIATION],
        "n": count,
        # A process without publishers does not know what the others sent.
        "sent": sum(loop.sent for loop in log.loops) or None,
        "lost": sum(loop.lost for loop in log.loops),
        "latency_min_ns": round(min(loop.least_ms for loop in loops) * NS_PER_MS),
        "latency_max_ns": round(max(loop.most_ms for loop in loops) * NS_PER_MS),
        "latency_mean_ns": mean_ms * NS_PER_MS,
        "latency_sd_ns": sd_ns,
        "imported_from": TOOL,
    }


def _deviation_ns(loops: Sequence[Loop], less: int, count: int, mean_ms: float) -> float | None:
    """The standard deviation (over n - 1) of all messages; the rows' variances are over n less `less`."""
    if count < 2:
        return None
    squares_s2 = 0.0
    for loop in loops:
        if loop.variance is None:
            return None
        squares_s2 += (loop.received - less) * loop.variance / 1000
        squares_s2 += loop.received * ((loop.mean_ms - mean_ms) / 1000) ** 2
    return math.sqrt(squares_s2 / (count - 1)) * 1e9


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("cell", "trial", "valid", "reasons", "warnings")
    return {**{key: row[key] for key in keys}, IMPORTED: TOOL, "adapters": [], "rows": [row]}


def _manifest(
    logs: Sequence[Log], rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]
) -> dict[str, Any]:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    names = tuple(_factors(logs[0]))
    factors = {row["cell"]: {name: row[name] for name in names} for row in rows}
    heads = [
        {"file": log.path.name, "read_as": log.writer.versions, "rows_left_out": log.left_out, **log.head}
        for log in logs
    ]
    return {
        "format_version": form.FORMAT_VERSION,
        "name": f"imported from {TOOL}",
        "created": now,
        "finished": now,
        "state": "finished",
        "study": {"name": IMPORTED, "description": WARNING},
        "study_text": "",
        "study_path": None,
        "seed": None,
        "lagometer_version": __version__,
        "versions": {},
        "settings": {},
        "cells": [
            {"id": cell, "factors": factors[cell], "trials": trials} for cell, trials in numbers.items()
        ],
        "excluded": [],
        IMPORTED: {"from": TOOL, "logs": heads},
    }
