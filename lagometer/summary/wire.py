# SPDX-License-Identifier: Apache-2.0
"""What the messages of each cell cost on its networks, from the packets that were captured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import polars as pl

from lagometer.store.format import ARROW, END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.cell_data import OnTheWire
from lagometer.summary.data import Cell

NS_PER_S = 1_000_000_000
# What stands beside each message, and the column that it is counted in.
PER_MESSAGE = {
    "packets_per_message": "wire_packets",
    "fragments_per_message": "wire_fragments",
    "heartbeats_per_message": "wire_heartbeats",
    "acknacks_per_message": "wire_acknacks",
    "resent_per_message": "wire_resent",
}
OF_RTPS = ("fragments_per_message", "heartbeats_per_message", "acknacks_per_message", "resent_per_message")


def on_the_wire(campaign: Campaign, cells: Sequence[Cell]) -> list[OnTheWire]:
    """A row for each cell whose packets were counted in a valid trial, in the study's order."""
    rows = campaign.cells
    if "wire_bytes" not in rows.columns:
        return []
    captured = rows.filter(pl.col("valid") & pl.col("wire_bytes").is_not_null())
    single = captured.filter(pl.col("edge").str.contains(ARROW, literal=True))
    taken = {
        (cell, trial): n
        for cell, trial, n in single.group_by("cell", "trial").agg(pl.col("n").sum()).iter_rows()
    }
    found: dict[str, list[dict[str, float | None]]] = {}
    for row in captured.filter(pl.col("edge") == END_TO_END).sort("trial").iter_rows(named=True):
        measure_ns = _measure_ns(campaign, row)
        trial = _of_trial(row, taken.get((row["cell"], row["trial"]), 0), measure_ns)
        found.setdefault(row["cell"], []).append(trial)
    return [_of_cell(cell.id, found[cell.id]) for cell in cells if cell.id in found]


def _measure_ns(campaign: Campaign, row: Mapping[str, Any]) -> int | None:
    study = campaign.manifest.get("study") or {}
    duration_ns = (study.get("parts") or {}).get(row.get("part"), study).get("duration_ns")
    return duration_ns if isinstance(duration_ns, int) else None


def _of_trial(row: Mapping[str, Any], taken: int, measure_ns: int | None) -> dict[str, float | None]:
    sent_bytes, ratio = row["wire_bytes"], row["wire_bytes_per_payload_byte"]
    per_s = sent_bytes * NS_PER_S / measure_ns if measure_ns else None
    found: dict[str, float | None] = {
        "bytes_per_payload_byte": ratio,
        "bytes_per_s": per_s,
        "goodput_bytes_per_s": per_s / ratio if per_s is not None and ratio else None,
        "startup_discovery_bytes": row["wire_startup_discovery_bytes"],
        "control_share": row["wire_control_bytes"] / sent_bytes if sent_bytes else None,
        "discovery_share": row["wire_discovery_bytes"] / sent_bytes if sent_bytes else None,
    }
    has_rtps = row["wire_data"] or row["wire_startup_discovery_bytes"]
    for name, column in PER_MESSAGE.items():
        known = row[column] is not None and taken and (has_rtps or name not in OF_RTPS)
        found[name] = row[column] / taken if known else None
    if not has_rtps:
        found |= dict.fromkeys(("startup_discovery_bytes", "control_share", "discovery_share"))
    return found


def _of_cell(cell: str, trials: Sequence[Mapping[str, float | None]]) -> OnTheWire:
    middles = {name: _middle(trial[name] for trial in trials) for name in trials[0]}
    return OnTheWire(cell=cell, trials=len(trials), **middles)


def _middle(values: Iterable[float | None]) -> float | None:
    """The median; None unless each trial has the figure."""
    known = list(values)
    return None if None in known else median(value for value in known if value is not None)
