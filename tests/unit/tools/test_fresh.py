# SPDX-License-Identifier: Apache-2.0
"""What `make fresh` lets pass of a study on a busy machine, and what it does not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
VALID: dict[str, Any] = {"valid": True, "reasons": []}
LATE: dict[str, Any] = {"valid": False, "reasons": ["rate-missed: source published 338 of 1040 messages"]}
BROKEN: dict[str, Any] = {"valid": False, "reasons": [*LATE["reasons"], "worker-died: sink: signal 11"]}


def study(
    folder: Path, trials: list[dict[str, Any]], *, state: str = "finished", command: str = "false"
) -> int:
    """The exit code of the step, for a command that leaves this campaign."""
    (folder / "manifest.json").write_text(json.dumps({"state": state}))
    (folder / "journal.jsonl").write_text("".join(json.dumps(trial) + "\n" for trial in trials))
    step = [str(ROOT / "tools" / "fresh_steps"), "study", str(folder), command]
    return subprocess.run(step, cwd=ROOT, capture_output=True, check=False, timeout=60).returncode


def test_a_missed_rate_alone_is_let_pass(tmp_path: Path) -> None:
    assert study(tmp_path, [VALID, LATE]) == 0


@pytest.mark.parametrize("trials", [[VALID, BROKEN], [LATE, LATE], []], ids=["another", "none valid", "none"])
def test_any_other_failure_is_not(tmp_path: Path, trials: list[dict[str, Any]]) -> None:
    assert study(tmp_path, trials) != 0


def test_a_campaign_that_did_not_finish_is_not(tmp_path: Path) -> None:
    assert study(tmp_path, [VALID, LATE], state="running") != 0


def test_a_command_that_succeeds_is_believed(tmp_path: Path) -> None:
    assert study(tmp_path, [], command="true") == 0
