# SPDX-License-Identifier: Apache-2.0
"""The runner of all tests: what fails beside others is run again by itself, and what stays broken fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from needs import ROOT

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
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stdout
    assert lines[-1] == "4 passed, 1 failed, 0 skipped"
    again = {line.split("::", 1)[1] for line in lines if "run again" in line}
    assert again == {"test_disturbed_once[a b]", "test_disturbed_once[c::d]", "test_broken"}
