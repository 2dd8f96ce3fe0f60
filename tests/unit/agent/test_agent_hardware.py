# SPDX-License-Identifier: Apache-2.0
"""Counters of other processes and energy: of this test's own, of what never counted, of folders made up."""

from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path

import pytest
from needs import need

from lagometer.agent.observe import hardware
from lagometer.agent.observe.energy import Energy, energy_between, read_energy
from lagometer.agent.observe.hardware import TASK_CLOCK, Count, ProcessCounters, reason_of, unavailable

SWITCHES = (hardware.SOFTWARE, 3)


def test_a_counter_that_every_machine_has_counts_this_process() -> None:
    need("perf")
    software = {"task_clock": TASK_CLOCK, "switches": SWITCHES}
    counters = ProcessCounters.of(os.getpid(), software)
    try:
        before, began_ns = counters.read(), time.process_time_ns()
        while time.process_time_ns() - began_ns < 20_000_000:
            pass
        found = counters.between(before, counters.read())
    finally:
        counters.close()
    value = found["task_clock"].value
    assert value is not None and value >= 15_000_000
    assert found["switches"].value is not None and found["switches"].why is None
    assert counters.descriptors == {}


def test_what_can_not_be_counted_has_its_reason() -> None:
    none = {"none": (hardware.SOFTWARE, 4711)}
    why = unavailable(none)["none"]
    assert re.match(r"E[A-Z]+: .", why)
    counters = ProcessCounters.of(os.getpid(), none)
    assert counters.between(counters.read(), counters.read())["none"].value is None
    assert not counters.descriptors


def test_reasons_name_the_error_and_what_it_means() -> None:
    assert reason_of(OSError(errno.EACCES, "x")).startswith("EACCES: the kernel does not allow it")
    assert reason_of(OSError(errno.ENOENT, "x")) == "ENOENT: the machine has no such counter"
    assert reason_of(OSError(errno.EOPNOTSUPP, "x")) == "EOPNOTSUPP: the processor has no such counter"
    assert reason_of(OSError(errno.EBUSY, "it is busy")) == "EBUSY: it is busy"


def test_a_process_that_is_gone_has_no_counters() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    found = ProcessCounters.of(child, {"task_clock": TASK_CLOCK}).between({}, {})
    assert found["task_clock"].value is None and found["task_clock"].why


def test_counters_that_took_turns_stand_for_the_whole_time() -> None:
    counters = ProcessCounters(descriptors={"cycles": [1], "misses": [2]})
    before = {"cycles": [(100, 1000, 1000)], "misses": [(0, 1000, 0)]}
    after = {"cycles": [(300, 5000, 3000)], "misses": [(0, 5000, 0)]}
    assert counters.between(before, after) == {
        "cycles": Count(400),  # 200 in half of the time
        "misses": Count(None, "it never got its turn on the processor"),
    }
    idle = {"cycles": [(100, 1000, 1000)], "misses": [(0, 1000, 0)]}
    assert counters.between(before, idle) == {"cycles": Count(0), "misses": Count(0)}


def zone(folder: Path, name: str, text: str, uj: int) -> None:
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "name").write_text(f"{text}\n")
    (place / "energy_uj").write_text(f"{uj}\n")
    (place / "max_energy_range_uj").write_text("999999\n")


def test_energy_is_that_of_the_packages(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 100)
    zone(tmp_path, "intel-rapl:1", "package-1", 999_990)
    zone(tmp_path, "intel-rapl:2", "psys", 5)
    zone(tmp_path, "intel-rapl:0:0", "core", 50)
    before = read_energy(tmp_path)
    zone(tmp_path, "intel-rapl:0", "package-0", 150)
    zone(tmp_path, "intel-rapl:1", "package-1", 10)  # it began again: 20 more
    zone(tmp_path, "intel-rapl:2", "psys", 9999)
    assert energy_between(before, read_energy(tmp_path)) == (70_000, None)


def test_without_energy_there_is_a_reason(tmp_path: Path) -> None:
    none = read_energy(tmp_path)
    assert none.why == f"ENOENT: no package in {tmp_path}"
    assert energy_between(none, Energy({"a": 1}, {"a": 9})) == (None, none.why)
    zone(tmp_path, "intel-rapl:0", "package-0", 1)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir()
    assert read_energy(tmp_path).why == f"EISDIR: {tmp_path} can't be read"
    assert energy_between(Energy({"a": 1}, {"a": 9}), Energy({"b": 1}, {"b": 9}))[0] is None


@pytest.mark.parametrize("machine", ["vax"])
def test_a_machine_that_is_not_known_is_said(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert unavailable({"x": TASK_CLOCK}) == {"x": "ENOSYS: the kernel has no perf_event_open for us"}
