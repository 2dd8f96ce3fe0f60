# SPDX-License-Identifier: Apache-2.0
"""What each middleware and setting can do at all, over payload: table 4 of Maruyama et al. 2016.

Only for a study with a deadline. `late`: more than 1 % of the deadlines were missed. `lossy`: more than 0.1 %
of the messages did not arrive. `halt`: nothing arrived, or less than half. `size` and `configuration`: the
cell can't exist, because of its payload or for another reason, which is given. `failed`: its trials failed,
though messages arrived. Anything not installed here or not measured yet has no verdict, and neither has a
cell whose trials failed because of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from lagometer.stats.verdict.validity import is_saturated
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.cell_data import Feasibility, Feasible
from lagometer.units import format_bytes

LATE_SHARE = 0.01
LOSSY_SHARE = 0.001
HALT_SHARE = 0.5
LOSSES = ("lost", "overwritten", "censored", "rejected")
OF_SIZE = ("carries at most", "the type ", "a payload of")  # in reasons about the payload
# In reasons that say nothing about what the middleware can do.
OF_ELSE = re.compile(
    r"(needs|left out|every topic|variant) |.*(not found|not built|not installed|is missing)"
)
# Reasons of failed trials that say nothing about it, either.
OF_MACHINE = (
    *("agent-lost", "capture-died", "capture-lost", "clock-inconsistent", "clock-stepped", "device-differs"),
    *("device-failed", "interference-died", "internal", "launch-failed", "link-differs", "link-failed"),
    *("link-not-crossed", "realtime-throttled", "recorder-full", "records-inconsistent"),
    *("scheduling-refused", "tuning-failed"),
)


def feasibility(campaign: Campaign) -> list[Feasibility]:
    """One line per series of cells, in the study's order; empty without a deadline or with one payload."""
    study = campaign.manifest.get("study") or {}
    studies = (study, *(study.get("parts") or {}).values())  # a part may have payloads of its own
    payloads = [size for each in studies for size in (each.get("matrix") or {}).get("payload", ())]
    labels = {format_bytes(size): size for size in payloads if isinstance(size, int)}
    if all(each.get("deadline_ns") is None for each in studies) or len(labels) < 2:
        return []
    by_series: dict[str, list[Feasible]] = {}
    rows, initial = _rows(campaign), _initial_loss(campaign)
    for cell in campaign.manifest.get("cells", []):
        name = str(cell["id"])
        verdict, why = _measured(rows.get(name, []))
        if verdict:
            _add(by_series, name, labels, verdict, why, initial.get(name))
    for exclusion in campaign.manifest.get("excluded", []):
        reason = str(exclusion["reason"])
        if not OF_ELSE.match(reason):
            kind = "size" if any(words in reason for words in OF_SIZE) else "configuration"
            _add(by_series, str(exclusion["cell"]), labels, kind, reason)
    return [
        Feasibility(series=series, payloads=sorted(cells, key=lambda cell: cell.payload_bytes))
        for series, cells in by_series.items()
    ]


def _add(
    by_series: dict[str, list[Feasible]],
    cell: str,
    labels: Mapping[str, int],
    verdict: str,
    why: str,
    initial_loss: bool | None = None,
) -> None:
    parts = cell.split("/")
    place = next((place for place, part in enumerate(parts) if part in labels), None)
    if place is None:
        return
    series = "/".join((*parts[:place], *parts[place + 1 :]))
    entry = Feasible(
        cell=cell,
        payload_bytes=labels[parts[place]],
        verdict=verdict,
        why=why,
        initial_loss=initial_loss,
    )
    by_series.setdefault(series, []).append(entry)


def _rows(campaign: Campaign) -> dict[str, list[dict[str, Any]]]:
    by_cell: dict[str, list[dict[str, Any]]] = {}
    for row in campaign.cells.filter(pl.col("edge") == END_TO_END).iter_rows(named=True):
        by_cell.setdefault(row["cell"], []).append(row)
    return by_cell


def _initial_loss(campaign: Campaign) -> dict[str, bool]:
    """For each cell, whether any of its subscribers missed messages before its first one ("initial loss")."""
    if "initial_lost" not in campaign.cells.columns:
        return {}
    maxima = campaign.cells.drop_nulls("initial_lost").group_by("cell").agg(pl.col("initial_lost").max())
    return {str(cell): count > 0 for cell, count in maxima.iter_rows()}


def _is_of_machine(row: Mapping[str, Any]) -> bool:
    reasons = row["reasons"] or ()
    return bool(reasons) and all(reason.partition(":")[0] in OF_MACHINE for reason in reasons)


def _measured(rows: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """The verdict on a cell's trials, and why; empty if they tell nothing about what is possible."""
    trials = [row for row in rows if not _is_of_machine(row)]
    if not trials:
        return "", ""
    counted = [row for row in trials if row["valid"] or is_saturated(row["reasons"] or ())]
    if not counted and any(row["n"] for row in trials):
        return "failed", next(
            (reason for row in trials for reason in row["reasons"] or ()), "no trial is valid"
        )
    trials = counted or trials
    delivered = sum(row["n"] or 0 for row in trials)
    missing = sum(row[name] or 0 for row in trials for name in LOSSES)
    if not delivered:
        reasons = [reason for row in trials for reason in row["reasons"] or ()]
        return "halt", reasons[0] if reasons else "nothing was measured"
    share = missing / (delivered + missing)
    if share > HALT_SHARE:
        return "halt", f"{share:.0%} of the messages did not arrive"
    late = max((row["deadline_miss_share"] or 0.0 for row in trials), default=0.0)
    if share > LOSSY_SHARE:
        return "lossy", f"{share:.1%} of the messages did not arrive"
    if late > LATE_SHARE:
        return "late", f"{late:.1%} of the deadlines were missed"
    return "possible", ""
