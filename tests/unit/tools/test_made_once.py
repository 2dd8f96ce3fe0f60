# SPDX-License-Identifier: Apache-2.0
"""What several processes of a run of tests need is made by one of them, and by the next one if that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_support import wait_until
from made_once import made_once
from needs import ROOT

SCRIPT = """
import os, sys
from pathlib import Path
from made_once import made_once

def make():
    print("makes", flush=True)
    sys.stdin.readline()
    return {"by": os.getpid()}

print("asks", flush=True)
print(made_once(Path(sys.argv[1]), make)["by"], flush=True)
"""


def asks(place: Path) -> subprocess.Popen[str]:
    """A process that asks for what is made."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(place)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asks\n"
    return process


def waits(pid: int) -> bool:
    """Whether a process waits for a lock that another one has."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and str(pid) in line.split() for line in lines)


def test_one_makes_it_and_the_others_wait(tmp_path: Path) -> None:
    first = asks(tmp_path / "made")
    assert first.stdout is not None
    assert first.stdout.readline() == "makes\n"
    second = asks(tmp_path / "made")
    assert wait_until(lambda: waits(second.pid), 10)
    assert first.communicate("\n", timeout=60)[0] == f"{first.pid}\n"
    assert second.communicate("\n", timeout=60)[0] == f"{first.pid}\n"


def test_where_it_fails_the_next_one_tries(tmp_path: Path) -> None:
    def fails() -> str:
        raise ValueError("no browser")

    with pytest.raises(ValueError, match="no browser"):
        made_once(tmp_path / "made", fails)
    assert made_once(tmp_path / "made", lambda: "made") == "made"
    assert made_once(tmp_path / "made", fails) == "made"
