# SPDX-License-Identifier: Apache-2.0
"""Whether the machine stayed the same: of many trials, none that stands out is left out, and no two machines
are taken for one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from lagometer.store import format as form
from lagometer.store.merge import merge
from lagometer.store.reader import Campaign, open_campaign
from lagometer.summary import limits
from lagometer.summary.steadiness import control

CELL = "shm/pingpong/64B"


def started(second: int) -> str:
    return f"2025-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}+00:00"


def test_the_most_of_neighbouring_trials_is_shown() -> None:
    def stolen(trial: int) -> dict[str, int]:
        return {"capacity_ns": 1000, "busy_ns": 1, "stolen_ns": 500 if trial == 1001 else 0}

    journal: Any = tuple(
        {"cell": CELL, "trial": trial, "started": started(trial), "evidence": {"load": stolen(trial)}}
        for trial in range(limits.LOAD_POINTS_MAX + 1)
    )
    found = control(Campaign(Path("out"), {}, {}, pl.DataFrame(), journal))
    assert found is not None and len(found.load) <= limits.LOAD_POINTS_MAX
    assert max(load.stolen_share or 0.0 for load in found.load) == 0.5


def campaign(directory: Path, p50_ns: float) -> Campaign:
    """Of one machine, with a control."""
    for folder, trials in ((directory, 2), (directory / form.CONTROL, 3)):
        folder.mkdir(parents=True)
        rows, lines = [], []
        for trial in range(trials):
            line = {"cell": CELL, "trial": trial, "valid": True, "started": started(trial)}
            lines.append(json.dumps({**line, "reasons": [], "warnings": []}) + "\n")
            figures = {"edge": form.END_TO_END, "n": 1000, "sent": 1000, "latency_p50_ns": p50_ns}
            texts = {"reasons": [], "warnings": [], "noise": []}
            rows.append({**dict.fromkeys(form.FIGURES_SCHEMA), **line, **figures, **texts})
        form.write_cells(form.cells_of_rows(rows), folder / form.CELLS)
        (folder / form.JOURNAL).write_text("".join(lines))
    cells = [{"id": CELL, "factors": {"adapter": "shm"}, "trials": 2}]
    manifest = {"format_version": 1, "name": "c", "created": "2025", "state": "finished", "cells": cells}
    (directory / form.MANIFEST).write_text(json.dumps(manifest | {"study": {"name": "s"}, "excluded": []}))
    machine = {"machine_id": directory.name * 16, "hostname": directory.name}
    (directory / form.ENVIRONMENT).write_text(json.dumps(machine))
    return open_campaign(directory)


def test_the_controls_of_two_machines_are_not_one(tmp_path: Path) -> None:
    slow, fast = campaign(tmp_path / "a", 80_000), campaign(tmp_path / "b", 8_000)
    alone = control(slow)
    assert alone is not None and alone.spread is not None
    assert (alone.cells, alone.spread.p50_min_ns, alone.spread.blocks) == ([CELL], 80_000, 3)
    merge([slow, fast], tmp_path / "both")
    both = control(open_campaign(tmp_path / "both"))
    assert both is not None
    assert (len(both.cells), both.trials, both.spread) == (2, [], None)
