# SPDX-License-Identifier: Apache-2.0
"""The machine's floor: how long it is measured, what the worker says of it, and what is made of a worker that
can't."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from lagometer.errors import Interrupted
from lagometer.run.interruption import Interruption
from lagometer.run.wakeup import (
    LEAST_NS,
    MOST_NS,
    WakeupError,
    measure_wakeup,
    wakeup_duration_ns,
    write_wakeup,
)
from lagometer.store import machine
from lagometer.study import Study, study_from_mapping
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import discover_adapters
from lagometer.study.matrix import expand

MATRIX = {"adapter": "shm", "workload": "pingpong"}


def study(**keys: object) -> Study:
    return study_from_mapping({"name": "floor", "matrix": MATRIX, **keys}, "test")


@pytest.fixture
def adapters() -> dict[str, Adapter]:
    return dict(discover_adapters({}))


def script(folder: Path, text: str) -> Path:
    """A program that stands for a worker."""
    path = folder / "worker"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("text", "wanted_ns"), [("10s", 10**10), ("off", 0), ("auto", None)])
def test_a_study_names_a_time_or_a_word(text: str, wanted_ns: int | None) -> None:
    assert study(machine_floor=text).machine_floor_ns == wanted_ns


def test_by_itself_it_takes_ten_seconds_or_a_tenth_of_the_campaign(adapters: dict[str, Adapter]) -> None:
    def automatic(**keys: object) -> int:
        plan = study(**keys)
        return wakeup_duration_ns(plan, expand(plan, adapters, (0, 1)).cells)

    assert automatic(duration="100ms", trials=1) == LEAST_NS
    assert automatic(duration="1s", trials=10_000) == MOST_NS == 10**10
    between_ns = automatic(duration="2s", warmup="300ms", drain="200ms", trials=20)
    assert between_ns == round(20 * 2.65e9 / 10)
    plan = study(duration="1s", trials=10_000)
    cells = expand(plan, adapters, (0, 1)).cells
    assert wakeup_duration_ns(plan, cells, 30.0) == 3 * 10**9, "of the time that --max-time leaves"
    assert wakeup_duration_ns(plan, cells, 1e6) == MOST_NS
    # 100 s and more: a campaign of two minutes has the whole.
    assert automatic(duration="2s", warmup="300ms", drain="200ms", trials=46) == MOST_NS
    assert automatic(duration="100ms", machine_floor="7s") == 7 * 10**9


WOKEN = {"cpu": 0, "n": 10, "p50_ns": 2_000, "p99_ns": 5_000, "p999_ns": 9_000, "max_ns": 9_000}
SAID = {"policy": "other", "period_ns": 1_000_000, "duration_ns": 10**7, "cores": [WOKEN], "warnings": []}


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        # user nice system idle iowait irq softirq steal guest guest_nice, in ticks of all CPUs
        ("cpu 100 0 50 800 10 0 5 35 7 0", "cpu 120 0 55 860 12 1 7 45 9 0", 0.1),
        ("cpu 100 0 50 800 10 0 5 35 7 0", "cpu 120 0 55 860 12 1 7 35 9 0", 0.0),
        ("cpu 100 0 50 800 10 0 5 35 7 0", "cpu 100 0 50 800 10 0 5 85 7 0", 1.0),
        ("cpu 100 0 50 800 10 0 5 35 7 0", "cpu 100 0 50 800 10 0 5 35 7 0", None),  # no tick has passed
        ("cpu 100 0 50 800", "cpu 120 0 55 860", None),  # a kernel that does not count it
        ("", "", None),
    ],
)
def test_stolen_time_is_what_the_kernel_counted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, share: float | None
) -> None:
    """The worker itself puts the later figures in place, so they can't have been read before it ran."""
    statistics, later = tmp_path / "stat", tmp_path / "later"
    statistics.write_text(f"{before}\ncpu0 1 2 3 4 5 6 7 999999 9 10\n")
    later.write_text(f"{after}\ncpu0 1 2 3 4 5 6 7 999999 9 10\n")
    read_text = machine.read_text
    monkeypatch.setattr(
        machine, "read_text", lambda path: read_text(statistics if path == "/proc/stat" else path)
    )
    worker = script(tmp_path, f"cp {later} {statistics}; echo '{json.dumps(SAID)}'")
    with Interruption() as interruption:
        floor = measure_wakeup(worker, 10**7, 20, interruption)
    assert floor["steal_share"] == (None if share is None else pytest.approx(share))
    assert floor["cores"] == [WOKEN]


def test_a_worker_that_cannot_is_named_with_what_it_said(tmp_path: Path) -> None:
    with Interruption() as interruption:
        for text, wanted in (
            ("echo no such option >&2; exit 2", "no such option"),
            ("echo '{\"policy\": 1}'", "which is not a valid floor"),
        ):
            with pytest.raises(WakeupError, match=wanted):
                measure_wakeup(script(tmp_path, text), 10**7, 20, interruption)
        with pytest.raises(WakeupError, match="can't be started"):
            measure_wakeup(tmp_path / "absent", 10**7, 20, interruption)


def test_an_interruption_ends_the_measuring(tmp_path: Path) -> None:
    worker = script(tmp_path, "exec sleep 3600")
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted):
            measure_wakeup(worker, 10**7, 20, interruption)


def test_a_floor_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "floor.json").write_text("{}")
    with Interruption() as interruption:
        write_wakeup(tmp_path, tmp_path / "absent", 10**7, 20, interruption)
    assert json.loads((tmp_path / "floor.json").read_text()) == {}
