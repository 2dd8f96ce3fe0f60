# SPDX-License-Identifier: Apache-2.0
"""Whether two cells differ by more than a bare transport that did the same work twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from lagometer.store.reader import Campaign
from lagometer.summary.floor_change import FloorChange, floor_change

SPREAD = (0.98, 1.0, 1.01, 0.99, 1.02, 1.0)  # of trials about their median
RATES = (1000.0, 10.0)


def campaign(p50s_us: dict[str, tuple[float, float]], spread: tuple[float, ...] = SPREAD) -> Campaign:
    """p50s_us: of each adapter, at 1 kHz and at 10 Hz."""
    rows, cells = [], []
    for adapter, figures in p50s_us.items():
        for rate, p50_us in zip(RATES, figures, strict=True):
            cell = f"{adapter}/{rate:g}"
            cells.append({"id": cell, "factors": {"adapter": adapter, "rate_hz": rate}})
            for trial, factor in enumerate(spread):
                p50_ns = int(1000 * p50_us * factor)
                rows.append([cell, trial, "end-to-end", True, p50_ns])
    frame = pl.DataFrame(rows, schema=["cell", "trial", "edge", "valid", "latency_p50_ns"], orient="row")
    return Campaign(Path("out"), {"cells": cells}, {}, frame, [])


def change(given: Campaign, adapter: str, *, back: bool = False) -> FloorChange | None:
    fast, slow = ((given, f"{adapter}/{rate:g}") for rate in RATES)
    return floor_change(slow, fast) if back else floor_change(fast, slow)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("reported", ["cyclonedds", "zenoh", "iceoryx2"])
def test_slow_rates_that_slow_the_floor_as_well_are_the_machines(reported: str, back: bool) -> None:
    """As users reported it: a middleware is slow at 10 Hz. So is bare shared memory."""
    given = campaign({"shm": (4.7, 29.6), "cyclonedds": (45, 224), "zenoh": (85, 329), "iceoryx2": (15, 71)})
    found = change(given, reported, back=back)
    assert found is not None
    assert found.verdict == "machine"
    assert found.floor_times == pytest.approx(6.3, abs=0.05)
    assert "the floor (shm) changed by 6.3 ×, this cell by " in found.sentence
    assert found.sentence.endswith("the machine (waking up, cold caches), not the middleware")


def test_figures_between_two_clocks_are_not_held_against_a_floor() -> None:
    given = campaign({"shm": (4.7, 29.6), "cyclonedds": (45, 224)})
    bound = pl.lit(1_000, dtype=pl.Int64).alias("clock_bound_ns")
    assert change(replace(given, cells=given.cells.with_columns(bound)), "cyclonedds") is None


def test_what_the_floor_does_not_do_is_the_middlewares() -> None:
    found = change(campaign({"shm": (4.7, 4.8), "tardy": (45, 224)}), "tardy")
    assert found is not None and found.verdict == "middleware"
    assert (
        found.sentence == "the floor (shm) changed by 1 ×, this cell by 5 ×: the middleware, not the machine"
    )
    both = change(campaign({"shm": (4.7, 9.4), "tardy": (45, 224)}), "tardy")
    assert both is not None and both.verdict == "both"


def test_the_fastest_floor_is_taken_and_the_same_one_for_both() -> None:
    given = campaign({"udp": (20, 25), "shm": (4.7, 29.6), "zenoh": (85, 329)})
    found = change(given, "zenoh")
    assert found is not None
    assert (found.floor_a, found.floor_b) == ("shm/1000", "shm/10")


def test_nothing_is_said_without_evidence() -> None:
    assert change(campaign({"zenoh": (85, 329)}), "zenoh") is None, "no floor"
    assert change(campaign({"shm": (4.7, 29.6)}), "shm") is None, "the floor itself"
    alone = change(campaign({"shm": (4.7, 29.6), "zenoh": (85, 329)}, (1.0,)), "zenoh")
    assert alone is not None and alone.verdict == "unknown"
    given = campaign({"shm": (4.7, 29.6), "zenoh": (85, 329), "udp": (9, 40)})
    assert floor_change((given, "zenoh/1000"), (given, "udp/10")) is None, "two middlewares"
