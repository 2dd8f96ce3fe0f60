# SPDX-License-Identifier: Apache-2.0
"""A log of Apex.AI performance_test as a campaign folder, marked as imported: aggregates that another tool
made, never our own measurements.

There are no samples and no quantiles, and none are made up: counts are summed, least and greatest latency
taken over all rows, mean and standard deviation pooled from the rows' means and variances. Nothing of it went
through our validity checks, and the warning `imported` says so on every row.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lagometer import __version__
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.performance_test import START
from lagometer.store import format as form

TOOL = "performance_test"
WARNING = f"imported: aggregates of {TOOL}, not measured by lagometer"
IMPORTED = "imported"  # the folder that keeps the logs, and the first part of a cell's id
REQUIRED = (
    *("received", "sent", "lost"),
    *("latency_min (ms)", "latency_max (ms)", "latency_mean (ms)", "latency_variance (ms)"),
)
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Log:
    """One log as it was read: its head, and its rows with a message in them."""

    path: Path
    head: Mapping[str, str]
    loops: Sequence[Mapping[str, float]]


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


def read_log(path: Path) -> Log:
    """Reads one log. Raises ExchangeError: file, line and what was expected there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExchangeError(f"{path}: cannot be read: {error}") from error
    start = next((place for place, line in enumerate(lines) if line.strip().startswith("---")), None)
    if start is None or start + 1 >= len(lines):
        raise ExchangeError(f"{path}: no line {START!r} with a table after it; not a log of {TOOL}")
    head = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines[:start])}
    names = _cells(lines[start + 1])
    absent = [name for name in REQUIRED if name not in names]
    if absent:
        raise ExchangeError(f"{path}:{start + 2}: column {absent[0]!r} is missing; not a log of {TOOL}")
    loops = []
    for number, line in enumerate(lines[start + 2 :], start=start + 3):
        if not line.strip():
            continue
        values = _numbers(names, _cells(line), f"{path}:{number}")
        if values["received"] or values["sent"]:
            loops.append(values)
    if not any(loop["received"] for loop in loops):
        raise ExchangeError(f"{path}: no row says that a message was received; there is nothing to import")
    return Log(path, {key: value for key, value in head.items() if key}, loops)


def _cells(line: str) -> list[str]:
    """The fields of a line; older versions end each with a comma."""
    return [cell.strip() for cell in line.rstrip(" \t,").split(",")]


def _numbers(names: Sequence[str], cells: Sequence[str], where: str) -> dict[str, float]:
    """What is needed of a row. Without a message received its latencies say nothing."""
    if len(cells) != len(names):
        raise ExchangeError(
            f"{where}: {len(cells)} fields, but {len(names)} columns; if the log was cut off there, "
            "remove the line"
        )
    values: dict[str, float] = {}
    for name, cell in zip(names, cells, strict=True):
        if name not in REQUIRED or (name.startswith("latency") and not values.get("received")):
            continue
        try:
            values[name] = float(cell)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]):
            raise ExchangeError(f"{where}: {cell!r} in column {name!r} is no number")
    return values


def cell_id(log: Log) -> str:
    """`imported/performance_test/…`: what the head says of transport, message, rate and QoS."""
    head, factors = log.head, _factors(log)
    mean = head.get("Communication mean") or "unknown"
    implementation = head.get("RMW Implementation", "N/A")
    parts = [mean if implementation in ("", "N/A") else f"{mean}+{implementation}"]
    parts += [head[key] for key in ("Msg name", "Topic name") if head.get(key)][:1]
    parts += [f"{factors['rate_hz']:g}Hz"] if factors["rate_hz"] else []
    parts += [str(factors[key]) for key in ("reliability", "history", "durability") if factors[key]]
    parts += [f"{head['Roundtrip Mode'].lower()}"] if head.get("Roundtrip Mode", "NONE") != "NONE" else []
    return "/".join([IMPORTED, TOOL, *(re.sub(r"[^\w.+:-]", "_", part).strip(".") or "_" for part in parts)])


def _factors(log: Log) -> dict[str, Any]:
    quality = log.head.get("QOS", "")

    def word(key: str) -> str | None:
        found = re.search(rf"{key}: (\S+)", quality)
        return found[1].lower() if found and found[1] != "DEFAULT" else None

    depth = word("History depth")
    return {
        "adapter": f"{TOOL}:{log.head.get('Communication mean') or 'unknown'}",
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
    loops = [loop for loop in log.loops if loop["received"] > 0]
    count = sum(loop["received"] for loop in loops)
    mean_s = sum(loop["received"] * loop["latency_mean (ms)"] / 1000 for loop in loops) / count
    square = sum(
        loop["received"] * (loop["latency_variance (ms)"] / 1000 + (loop["latency_mean (ms)"] / 1000) ** 2)
        for loop in loops
    )
    variance = max(0.0, square / count - mean_s**2)  # over n, as in each row
    sd_ns = math.sqrt(variance * count / (count - 1)) * 1e9 if count > 1 else None
    return {
        "edge": form.END_TO_END,
        "valid": True,
        "reasons": [],
        "warnings": [WARNING],
        "n": round(count),
        "sent": round(sum(loop["sent"] for loop in log.loops)),
        "lost": round(sum(loop["lost"] for loop in log.loops)),
        "latency_min_ns": round(min(loop["latency_min (ms)"] for loop in loops) * NS_PER_MS),
        "latency_max_ns": round(max(loop["latency_max (ms)"] for loop in loops) * NS_PER_MS),
        "latency_mean_ns": mean_s * 1e9,
        "latency_sd_ns": sd_ns,
        "imported_from": TOOL,
    }


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("cell", "trial", "valid", "reasons", "warnings")
    return {**{key: row[key] for key in keys}, IMPORTED: TOOL, "adapters": [], "rows": [row]}


def _manifest(
    logs: Sequence[Log], rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]
) -> dict[str, Any]:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    names = tuple(_factors(logs[0]))
    factors = {row["cell"]: {name: row[name] for name in names} for row in rows}
    heads = [{"file": log.path.name, **log.head} for log in logs]
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
