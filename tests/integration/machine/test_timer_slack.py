# SPDX-License-Identifier: Apache-2.0
"""Programs that send or wake at fixed times end in words if the kernel lets their sleeps end late."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import ROOT, need

from lagometer.installation import link_path, worker_path

IN_PYTHON = "from lagometer.agent.link.__main__ import wake_on_time as wait; wait()"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that keeps the timer slack as it is."""
    need("cc")
    library = tmp_path_factory.mktemp("preload") / "kept_slack.so"
    source = ROOT / "tests" / "preload" / "kept_slack.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return str(library)


def ended(library: str, refused: bool, *command: str | Path) -> tuple[int, str, str]:
    variables = {**os.environ, "LD_PRELOAD": library} | (
        {"LAGOMETER_TEST_SLACK_REFUSED": "1"} if refused else {}
    )
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("refused", "said"),
    [(False, "ns although 1 ns was set: sleeps end late"), (True, "timer slack not set: ")],
)
def test_sleeps_that_end_late_are_refused(kept: str, refused: bool, said: str) -> None:
    """Before anything else: the link makes no device, the floor has no figures."""
    code, output, errors = ended(kept, refused, worker_path(), "--wake-up", "5", "20")
    assert (code, output) == (1, "") and "CPU " in errors and said in errors, errors
    code, output, _ = ended(kept, refused, link_path(), "nowhere", "nowhere", "rate_bps=1")
    message = json.loads(output)
    assert code == 1 and message["event"] == "failed" and said in message["message"]
    code, _, errors = ended(kept, refused, sys.executable, "-c", IN_PYTHON)
    assert code == 1 and said in errors.splitlines()[-1], errors
