# SPDX-License-Identifier: Apache-2.0
"""What daemons take beside the workers: medians over the valid trials, the same in every view."""

from __future__ import annotations

import io

import polars as pl
from rich.console import Console

from lagometer.cli.show.daemons import render_daemons
from lagometer.summary.cell_data import Daemons
from lagometer.summary.daemons import daemons

MIB = 1 << 20


def trial(cell: str, number: int, daemon_cpu_ns: int | None, valid: bool = True) -> list[dict[str, object]]:
    """Two edges of 10 messages each, so 20 deliveries, and the row end to end."""
    own = {
        "cell": cell,
        "trial": number,
        "valid": valid,
        "n": 10,
        "cpu_per_message_ns": 1_000.0 + number,
        "daemon_cpu_ns": daemon_cpu_ns,
        "memory_pss_bytes": 8 * MIB,
        "daemon_pss_bytes": None if daemon_cpu_ns is None else (1 + number) * MIB,
    }
    return [{**own, "edge": edge} for edge in ("end-to-end", "a→b", "b→c")]


CELLS = pl.DataFrame(
    [
        *trial("second", 0, 2_000),
        *trial("second", 1, 6_000),
        *trial("second", 2, 10_000),
        *trial("second", 3, 900_000, valid=False),
        *trial("first", 0, None),
        *trial("silent", 0, 0),
    ]
)


def test_they_are_medians_over_the_valid_trials() -> None:
    second, silent = daemons(CELLS)
    assert second == Daemons(
        cell="second",
        trials=3,
        cpu_per_message_ns=1_001.0,
        daemon_cpu_per_message_ns=6_000 / 20,
        memory_pss_bytes=8 * MIB,
        daemon_pss_bytes=2 * MIB,
    )
    assert (silent.cell, silent.daemon_cpu_per_message_ns) == ("silent", 0.0)


def test_a_named_chain_is_no_further_edge() -> None:
    """Its row counts the same messages again, as end to end does."""
    rows = trial("first", 0, 2_000)
    (alone,) = daemons(pl.DataFrame(rows))
    (beside,) = daemons(pl.DataFrame([*rows, {**rows[0], "edge": "there"}]))
    assert alone.daemon_cpu_per_message_ns == beside.daemon_cpu_per_message_ns == 100


def test_without_daemons_there_are_none() -> None:
    assert daemons(CELLS.filter(pl.col("cell") == "first")) == []
    assert daemons(CELLS.drop("daemon_cpu_ns")) == []


def test_show_prints_them() -> None:
    out = io.StringIO()
    render_daemons(daemons(CELLS), Console(file=out, width=200))
    line = next(line for line in out.getvalue().splitlines() if line.strip().startswith("second"))
    assert line.split() == ["second", "1.00", "µs", "300", "ns", "8.0", "MiB", "2.0", "MiB"]
