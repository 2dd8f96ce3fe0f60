# SPDX-License-Identifier: Apache-2.0
"""What messages cost on the wire, over the valid trials whose packets were counted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl

from lagometer.store.format import FIGURES_SCHEMA
from lagometer.store.observed import WIRE_COUNTS
from lagometer.store.reader import Campaign
from lagometer.summary.wire import on_the_wire


def rows(
    cell: str, trial: int, *, valid: bool = True, ratio: float = 1.5, **counts: int
) -> list[dict[str, Any]]:
    wire = {f"wire_{name}": counts.get(name, 0) for name in WIRE_COUNTS}
    common = {"cell": cell, "trial": trial, "valid": valid, "wire_bytes_per_payload_byte": ratio, **wire}
    return [{**common, "edge": "source→sink", "n": 10}, {**common, "edge": "end-to-end", "n": 10}]


def found(*of_trials: list[dict[str, Any]]) -> Any:
    wanted = {name: FIGURES_SCHEMA[name] for name in (*of_trials[0][0],)}
    frame = pl.DataFrame([row for each in of_trials for row in each], schema=wanted)
    campaign = Campaign(Path("out"), {"study": {"duration_ns": 500_000_000}}, {}, frame, ())
    names = dict.fromkeys(frame["cell"])
    return on_the_wire(campaign, cast("Any", [SimpleNamespace(id=name) for name in names]))


def test_figures_are_medians_over_valid_trials() -> None:
    few: dict[str, Any] = {"bytes": 1500, "packets": 20, "data": 10, "heartbeats": 5, "control_bytes": 300}
    (cell,) = found(
        rows("a", 0, **few), rows("a", 1, **{**few, "bytes": 2500}, ratio=2.5), rows("a", 2, valid=False)
    )
    assert (cell.cell, cell.trials, cell.bytes_per_payload_byte) == ("a", 2, 2.0)
    assert cell.bytes_per_s == 4000 and cell.goodput_bytes_per_s == 2000
    assert (cell.packets_per_message, cell.heartbeats_per_message) == (2.0, 0.5)
    assert round(cell.control_share, 3) == 0.16


def test_what_belongs_to_rtps_is_unknown_without_it() -> None:
    (cell,) = found(rows("a", 0, bytes=1500, packets=20, other_bytes=1500))
    assert cell.packets_per_message == 2.0
    assert (cell.heartbeats_per_message, cell.resent_per_message, cell.discovery_share) == (None, None, None)
