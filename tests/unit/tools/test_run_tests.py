# SPDX-License-Identifier: Apache-2.0
"""The runner of all tests: what fails beside others is run again by itself, and what stays broken fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from needs import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import run_tests

TESTS = """
import pathlib, pytest

def test_whole():
    pass

@pytest.mark.parametrize("word", ["a b", "c::d"])
def test_disturbed_once(word):
    flag = pathlib.Path(__file__).with_name(word)
    seen = flag.exists()
    flag.touch()
    assert seen

def test_broken():
    assert False

@pytest.mark.alone
def test_of_the_machine():
    pass
"""


def test_what_fails_beside_others_is_run_again(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tools" / "run_tests.py", tmp_path / "tools")
    (tmp_path / "tests" / "test_some.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["alone: by itself"]\n')
    command = [sys.executable, str(tmp_path / "tools" / "run_tests.py")]
    one_cpu = {min(os.sched_getaffinity(0))}  # three processes of tests are enough here
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:hypothesispytest"},  # takes a second in each
        preexec_fn=lambda: os.sched_setaffinity(0, one_cpu),
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stdout
    assert lines[-1] == "4 passed, 1 failed, 0 skipped"
    again = {line.split("::", 1)[1] for line in lines if "run again" in line}
    assert again == {"test_disturbed_once[a b]", "test_disturbed_once[c::d]", "test_broken"}


def test_cpp_tests_run_two_at_a_time_and_none_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    assert run_tests.runners() == []
    for preset in ("release", "guard"):
        (tmp_path / "build" / preset).mkdir(parents=True)
        (tmp_path / "build" / preset / "CTestTestfile.cmake").touch()
    commands = [runner.command for runner in run_tests.runners()]
    assert len(commands) == 2
    for command in commands:
        assert "--no-tests=error" in command
        assert command[command.index("--parallel") + 1] == "2"


def test_three_tests_run_for_each_cpu_and_some_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def run(runner: run_tests.Runner) -> tuple[run_tests.Counts, list[str]]:
        begun.append(runner.command)
        return run_tests.Counts(passed=1), [runner.name]

    monkeypatch.setattr(run_tests, "run", run)
    assert run_tests.run_python(["-x"]) == (
        run_tests.Counts(passed=2),
        ["Python, side by side", "Python, alone"],
    )
    beside, alone = begun
    assert beside[beside.index("-n") + 1] == str(3 * len(os.sched_getaffinity(0)))
    assert beside[beside.index("-m", 3) + 1] == "not alone" and "-n" not in alone
    assert beside[-1] == alone[-1] == "-x"


def test_for_those_that_run_alone_no_other_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def run(runner: run_tests.Runner) -> tuple[run_tests.Counts, list[str]]:
        begun.append(runner.command)
        return run_tests.Counts(passed=1), [runner.name]

    (tmp_path / "tests" / "deep").mkdir(parents=True)
    alone = tmp_path / "tests" / "deep" / "test_alone.py"
    alone.write_text("import pytest\n\npytestmark = pytest.mark.alone\n")
    (tmp_path / "tests" / "test_beside.py").write_text("def test_it():\n    pass\n")
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "run", run)
    run_tests.run_python([])
    assert begun[-1][-3:] == ["-m", "alone", str(alone)]


@pytest.mark.parametrize(("failed", "again"), [(20, True), (21, False)])
def test_where_many_fail_none_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: int, again: bool
) -> None:
    begun = []

    def run(runner: run_tests.Runner) -> tuple[run_tests.Counts, list[str]]:
        begun.append(runner.name)
        if "beside" in runner.name or "side by side" in runner.name:
            return run_tests.Counts(failed=failed), []
        return run_tests.Counts(passed=failed), []

    monkeypatch.setattr(run_tests, "run", run)
    monkeypatch.setattr(run_tests, "failed_in", lambda _: [f"a::test_{number}" for number in range(failed)])
    counts, _ = run_tests.run_python([])
    assert len(begun) == (3 if again else 2)
    assert counts.failed == (0 if again else failed)
