# SPDX-License-Identifier: Apache-2.0
"""What `lagometer search` prints for people: a line for each cell, with bracket and interval."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lagometer.cli import search
from lagometer.run.search.rate_search import Found
from lagometer.run.search.searching import CellSearch


def cell(name: str, found: Found | None = None, trials: int = 0, **told: str) -> CellSearch:
    """What came of the search in one cell."""
    result = CellSearch(name, {}, trials=[{}] * trials)
    if found is not None:
        result.take(found)
    for key, text in told.items():
        setattr(result, key, text)
    return result


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (
            cell("shm/64B", Found("found", 1_906.0, 2_000.0, 1_815.0, 2_205.0), trials=17),
            "shm/64B: found: sustained 1906Hz, not 2kHz; interval 1815Hz to 2205Hz; 17 trials",
        ),
        (
            cell("shm/64B", Found("found", 190.6, 200.0, None, None), trials=9),
            "shm/64B: found: sustained 190.6Hz, not 200Hz; interval (none) to (none); 9 trials",
        ),
        (
            cell("shm", Found("at-least", 1e6, None, 500_000.0, None), trials=5),
            "shm: at-least: sustained 1000kHz, not (none); interval 500kHz to (none); 5 trials",
        ),
        (
            cell("shm", Found("below", None, 10.0, None, 10.5), trials=6),
            "shm: below: sustained (none), not 10Hz; interval (none) to 10.5Hz; 6 trials",
        ),
        (
            cell("udp", status="failed", reason="worker-died: sink [signal 9]", trials=3),
            "udp: failed: worker-died: sink [signal 9]",
        ),
        (
            cell("udp", trials=1),
            "udp: interrupted: sustained (none), not (none); interval (none) to (none); 1 trials",
        ),
    ],
)
def test_a_cell_is_a_line(result: CellSearch, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    search._print(SimpleNamespace(results=[result]), Path("out/[a]"))  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines() == [line, "out/[a]/search.json"]
