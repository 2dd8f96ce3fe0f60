# SPDX-License-Identifier: Apache-2.0
"""The machine's facts: all keys of the format, null for what can't be read, and never an error."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lagometer.store import environment, machine

FORMAT = Path(__file__).parents[3] / "docs" / "FORMAT.md"


def test_every_key_is_documented_and_the_whole_is_json() -> None:
    found = environment.collect()
    described = FORMAT.read_text(encoding="utf-8").partition("## environment.json")[2]
    for key in found:
        assert key in described
    json.dumps(found, allow_nan=False)


def test_what_this_kernel_must_know_is_there() -> None:
    found = environment.collect()
    assert found["kernel"] and found["clock_source"] and found["memory_bytes"] > 0
    assert found["cpu"]["threads"] >= 1 and found["cpu"]["allowed"]
    assert found["sysctls"]["net.core.rmem_max"] > 0
    assert found["rlimits"]["nofile"]["soft"] > 0
    assert found["clock_read_ns"] >= 0


def test_load_and_stolen_ticks_are_completed_at_the_end() -> None:
    whole = environment.completed(environment.collect())
    for name in ("load", "steal_ticks"):
        assert whole[name]["before"] is not None and whole[name]["after"] is not None
    assert environment.completed({})["load"]["before"] is None


def test_a_machine_that_shows_nothing_gives_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> str:
        raise PermissionError

    for name in ("read_text", "glob", "read_bytes"):
        monkeypatch.setattr(Path, name, refused)
    monkeypatch.setenv("PATH", "")
    found = environment.collect()
    assert found["clock_source"] is found["governor"] is found["isolation"] is found["machine_id"] is None
    assert set(found["sysctls"].values()) == {None}


def test_the_machine_id_itself_is_kept_out() -> None:
    own = machine.read_text("/etc/machine-id")
    if own:
        assert own not in json.dumps(environment.collect())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("CMAKE_BUILD_TYPE:STRING=Debug\n", "Debug"),
        ("CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nLAGOMETER_GUARD:BOOL=OFF\n", "RelWithDebInfo"),
        ("CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nLAGOMETER_GUARD:BOOL=ON\n", "guard"),
    ],
)
def test_the_build_of_the_worker_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, expected: str
) -> None:
    worker = tmp_path / "engine" / "lagometer-worker"
    worker.parent.mkdir()
    worker.write_bytes(b"\x7fELF...GCC: (Debian 12.2.0-14) 12.2.0\0")
    (tmp_path / "CMakeCache.txt").write_text(content)
    monkeypatch.setenv("LAGOMETER_WORKER", str(worker))
    found = environment.collect()
    assert (found["build_type"], found["compiler"]) == (expected, "GCC: (Debian 12.2.0-14) 12.2.0")
    worker.write_bytes(b"...__tsan_init...")
    assert environment.collect()["build_type"] == "sanitized"


def test_reading_the_clock_costs_something_but_no_system_call_here() -> None:
    begin = time.monotonic_ns()
    cost_ns = machine.clock_read_ns(reads=1000, rounds=3)
    assert 0 <= cost_ns <= (time.monotonic_ns() - begin) / 1000
