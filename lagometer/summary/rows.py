# SPDX-License-Identifier: Apache-2.0
"""Rows of the report's table: those of `cells.parquet`, and one per cell and edge over its valid trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from lagometer.store.format import END_TO_END
from lagometer.summary.data import Row

_SUMMED = (
    "n",
    "sent",
    "lost",
    "overwritten",
    "censored",
    "rejected",
    "send_failed",
    "duplicated",
    "reordered",
    "corrupted",
    "unreachable",
)
_FIGURES = (
    *(f"latency_{name}_ns" for name in ("min", "p50", "p90", "p99", "p999", "max", "mean")),
    *(f"response_{name}_ns" for name in ("p50", "p90", "p99", "max")),
    *("send_lag_p50_ns", "send_lag_p99_ns", "blocked_p50_ns", "blocked_p99_ns", "wake_p50_ns"),
    *("rate_intended_hz", "rate_achieved_hz", "cpu_per_message_ns", "overhead_s"),
)
_LOST_SHARE = "lost_share"
_MISSING = "missing"
_LOSSES = ("lost", "overwritten", "censored", "rejected")
COUNTS = {"sent", *_LOSSES}


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float)) or math.isnan(value) or math.isinf(value):
        return None
    return value


def _texts(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, (list, tuple)) else []


def trial_row(record: Mapping[str, object]) -> Row:
    """A row of `cells.parquet`; a missing column counts as not observed."""
    counts = {name: None if (value := _number(record.get(name))) is None else int(value) for name in _SUMMED}
    return Row.model_validate(
        {name: _number(record.get(name)) for name in _FIGURES}
        | counts
        | {
            "cell": record["cell"],
            "trial": record["trial"],
            "trials": 1,
            "edge": record["edge"],
            "valid": bool(record["valid"]),
            "reasons": _texts(record.get("reasons")),
            "warnings": _texts(record.get("warnings")),
            "n": counts["n"] or 0,
            _MISSING: _sum(counts[name] for name in _LOSSES),
            _LOST_SHARE: _share(*of_missing(counts)),
            "floor_cell": None,
            "floor_latency_p50_ns": None,
            "noise": _texts(record.get("noise")),
            "trials_noisy": int(bool(record["valid"]) and bool(_texts(record.get("noise")))),
            "transport": record.get("transport"),
            "clock_bound_ns": _number(record.get("clock_bound_ns")),
            "clock_bound": record.get("clock_bound"),
            "intervals": [],
            "stopped": None,
        }
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of those that are known; None if none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def of_missing(counts: Mapping[str, int | None]) -> tuple[int | None, int | None]:
    """How many messages did not arrive, and of how many: rejected ones are not among those sent."""
    sent = counts["sent"]
    return _sum(counts[name] for name in _LOSSES), None if sent is None else sent + (counts["rejected"] or 0)


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def missing_rows(rows: Sequence[Row], journal: Iterable[Mapping[str, object]]) -> list[Row]:
    """A row without figures for each failed trial that has none, so that every trial shows."""
    known = {(row.cell, row.trial) for row in rows}
    return [
        trial_row({**line, "edge": END_TO_END})
        for line in journal
        if not line.get("valid") and (line["cell"], line["trial"]) not in known
    ]


def _combine(name: str, values: Sequence[float | None]) -> float | None:
    """One figure over trials; null unless every trial has it."""
    if len(values) == 1:
        return values[0]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    if name in (*_SUMMED, _MISSING):
        return sum(known)
    if name == _LOST_SHARE:
        return fmean(known)
    if name.endswith("_max_ns"):
        return max(known)
    return min(known) if name.endswith("_min_ns") else median(known)


def over_trials(rows: Sequence[Row]) -> Row:
    """One cell's edge over its valid trials; without a valid trial the figures are null and `n` is 0."""
    valid = [row for row in rows if row.valid]
    if len(valid) == len(rows) == 1:  # the usual case in a campaign of thousands of cells with one trial each
        sets = {name: sorted(set(getattr(valid[0], name))) for name in ("reasons", "warnings", "noise")}
        return valid[0].model_copy(update={"trial": None, "transport": valid[0].transport or None, **sets})
    names = (*_SUMMED, _MISSING, *_FIGURES, _LOST_SHARE)
    figures = {name: _combine(name, [getattr(row, name) for row in valid]) for name in names}
    bounds = {row.clock_bound for row in valid}
    return Row.model_validate(
        figures
        | {
            "cell": rows[0].cell,
            "trial": None,
            "trials": len(valid),
            "edge": rows[0].edge,
            "valid": bool(valid),
            "reasons": sorted({reason for row in rows for reason in row.reasons}),
            "warnings": sorted({warning for row in rows for warning in row.warnings}),
            "n": int(figures["n"] or 0),
            "floor_cell": None,
            "floor_latency_p50_ns": None,
            "noise": sorted({noise for row in valid for noise in row.noise}),
            "trials_noisy": sum(row.trials_noisy for row in valid),
            "transport": " or ".join(sorted({row.transport for row in valid if row.transport})) or None,
            "clock_bound_ns": max((row.clock_bound_ns for row in valid if row.clock_bound_ns), default=None),
            "clock_bound": next((kind for kind in ("hard", "narrow", "ptp") if kind in bounds), None),
            "intervals": [],
            "stopped": None,
        }
    )


def group_by_edge(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows of each (cell, edge), in the order of their first appearance."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.cell, row.edge), []).append(row)
    return groups
