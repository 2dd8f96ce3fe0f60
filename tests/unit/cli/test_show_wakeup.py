# SPDX-License-Identifier: Apache-2.0
"""The machine's floor in the terminal: from the best to the worst CPU, and what was stolen."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from lagometer.cli.show.command import as_json
from lagometer.cli.show.wakeup import render_wakeup, wakeup_text
from lagometer.store.reader import open_campaign
from lagometer.summary.steadiness_data import CoreFloor, MachineFloor
from lagometer.summary.summarise import summarise

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, write_campaign  # noqa: E402

SHAPE = Shape(adapters=("shm",), payloads_bytes=(64,), trials=1, messages=50, machine_floor=True)


def core(cpu: int, p50_ns: float, p999_ns: float | None) -> CoreFloor:
    return CoreFloor(cpu=cpu, n=9_000, p50_ns=p50_ns, p99_ns=5_000, p999_ns=p999_ns, max_ns=90_000 + cpu)


def printed(directory: Path) -> str:
    out = io.StringIO()
    render_wakeup(summarise(open_campaign(directory)), Console(file=out, width=400))
    return out.getvalue().strip()


def test_it_is_told_from_the_best_to_the_worst_cpu(tmp_path: Path) -> None:
    directory = write_campaign(tmp_path, SHAPE)
    stored = json.loads((directory / "floor.json").read_text())
    assert printed(directory) == (
        "wake-up latency a thread wakes late by p50 2.10 – 2.50 µs, p99 5.20 – 6.10 µs, "
        "p99.9 21.0 – 30.0 µs, at most 220 µs (10 s on 2 CPUs, fifo); "
        "stolen by a hypervisor: 0.4 % meanwhile, at most 2 % during a trial"
    )
    assert as_json(open_campaign(directory))["machine_floor"] == stored


def test_a_quantile_that_one_cpu_lacks_is_not_told() -> None:
    floor = MachineFloor(
        policy=None, cores=[core(0, 2_000, 9_000), core(1, 2_000, None)], duration_s=0.5, steal_share=None
    )
    text = wakeup_text(floor, None)
    assert text == (
        "a thread wakes late by p50 2.00 µs, p99 5.00 µs, at most 90.0 µs (0.5 s on 2 CPUs); stolen by a "
        "hypervisor: not known meanwhile"
    )


@pytest.mark.parametrize("damage", ["", "{"])
def test_without_a_floor_nothing_is_printed(tmp_path: Path, damage: str) -> None:
    directory = write_campaign(tmp_path, SHAPE)
    (directory / "floor.json").unlink()
    if damage:
        (directory / "floor.json").write_text(damage)
    assert printed(directory) == ""
    assert as_json(open_campaign(directory))["machine_floor"] is None
