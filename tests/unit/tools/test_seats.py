# SPDX-License-Identifier: Apache-2.0
"""Tests that compute take seats, and long files begin first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import seats
from needs import ROOT


@contextmanager
def taken(folder: Path, first: int) -> Iterator[int]:
    """The number of the seat of two that one gets who asks for `first`, held meanwhile."""
    descriptor = seats.take(folder, 2, first)
    try:
        yield int(Path(f"/proc/self/fd/{descriptor}").readlink().stem[-1])
    finally:
        os.close(descriptor)


def test_one_gets_the_seat_asked_for_or_else_a_free_one(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with taken(tmp_path, 1) as first, taken(tmp_path, 1) as second:
        assert (first, second) == (1, 0)
    with taken(tmp_path, 1) as again:
        assert again == 1
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_third_waits_until_one_gets_up(tmp_path: Path) -> None:
    script = "import sys, seats; from pathlib import Path; print('asks', flush=True); "
    script += "seats.take(Path(sys.argv[1]), 2, 0); print('sits')"
    with taken(tmp_path, 1), taken(tmp_path, 0):
        third = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert third.stdout is not None
        assert third.stdout.readline() == "asks\n"
        assert third.poll() is None
    assert third.communicate(timeout=60)[0] == "sits\n"


def item(name: str, *marks: str) -> Any:
    def closest(mark: str) -> object:
        return object() if mark in marks else None

    return SimpleNamespace(path=ROOT / "tests" / name, get_closest_marker=closest)


def test_what_computes_is_known_by_its_folder_or_its_mark() -> None:
    assert seats.is_heavy(item("unit/stats/test_a.py"))
    assert seats.is_heavy(item("web/test_a.py"))
    assert seats.is_heavy(item("integration/test_a.py", "cpu_heavy"))
    assert not seats.is_heavy(item("integration/test_a.py", "alone"))


def test_long_files_come_first_and_the_rest_keeps_its_order(tmp_path: Path) -> None:
    known = tmp_path / "durations.json"
    assert seats.durations(known) == {}
    known.write_text(json.dumps({"test_b.py": 30, "test_c.py": 200}))
    items = [item(f"integration/test_{letter}.py") for letter in "abacbd"]
    ordered = seats.long_first(items, seats.durations(known))
    assert ordered == [items[index] for index in (3, 1, 4, 0, 2, 5)]


TEST = """
import os
from pathlib import Path

def test_it():
    opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    seats = [each for each in opened if "cpu-seat" in each]
    assert (len(seats), os.getpriority(os.PRIO_PROCESS, 0)) == ({seats}, {nice})
"""


def test_a_test_that_computes_has_a_seat_and_steps_back(tmp_path: Path) -> None:
    """In a tree of its own, with the conftest of this one."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    stepped_back = max(own, seats.NICE) if os.geteuid() == 0 else own
    for name, count, nice in (("unit", 1, stepped_back), ("integration", 0, own)):
        folder = tmp_path / "tests" / name
        folder.mkdir(parents=True)
        text = TEST.replace("{seats}", str(count)).replace("{nice}", str(nice))
        (folder / f"test_{name}.py").write_text(text)
    for name in ("seats.py", "turns.py", "conftest.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "tests" / "needs.py").write_text("def end_turn(): pass\n")
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    beside = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *settings, "-n", "1", str(tmp_path / "tests")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert beside.returncode == 0, beside.stdout
    assert "2 passed" in beside.stdout
