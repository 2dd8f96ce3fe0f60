# SPDX-License-Identifier: Apache-2.0
"""Workers that go wrong: the trial fails with the reason, the campaign goes on, nothing is left behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from campaign_support import journal, lagometer, write_study
from needs import need

WORKER = Path(__file__).with_name("scripted_worker.py")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "garbage@hello",
            r"protocol-error: sink wrote a line that is not JSON: '[INFO] middleware speaking'",
        ),
        ("garbage@done", r"protocol-error: sink wrote a line that is not JSON: '[INFO] middleware speaking'"),
        ("endless@ready", "protocol-error: sink wrote a line of more than"),
        ("die@hello", "worker-died: sink was killed by SIGKILL in phase create"),
        ("die@matched", "worker-died: sink was killed by SIGKILL in phase discover"),
        ("die@bye", "worker-died: sink was killed by SIGKILL in phase tear-down"),
        ("stop@hello", "worker-hung: sink was stopped by SIGSTOP in phase create"),
        ("stop@matched", "worker-hung: sink was stopped by SIGSTOP in phase discover"),
        ("stop@bye", "worker-hung: sink was stopped by SIGSTOP in phase tear-down"),
        ("leave@ready", "worker-died: sink exited with code 0"),
        ("hang@ready", "worker-hung: no 'ready' from sink"),
        ("hang@matched", "endpoints-missing: no 'matched' from sink"),
        ("hang@done", "worker-hung: no 'done' from sink"),
        ("hang@bye", "worker-hung: no 'bye' from sink"),
        ("refuse@ready", "adapter-failed: sink in phase ready: no such thing"),
        ("checksum@records", "protocol-error: source wrote 22 bytes of records with the checksum"),
        # Half a megabyte of talk on stderr blocks nobody; what is wrong with this worker is its block alone.
        ("chatter@ready", "protocol-error: records of source"),
    ],
)
def test_a_worker_that_goes_wrong_fails_its_trial(tmp_path: Path, script: str, reason: str) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=2, discovery_timeout="1500ms"), tmp_path / "out"
    environment = {"LAGOMETER_WORKER": str(WORKER), "LAGOMETER_TEST_SCRIPT": script}
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    code, _, errors = lagometer(tmp_path, *arguments, environment=environment)
    assert code == 3, errors
    entries = journal(out)
    assert len(entries) == 2
    for entry in entries:
        assert not entry["valid"]
        assert any(each.startswith(reason) for each in entry["reasons"]), entry["reasons"]


def test_a_worker_that_is_no_program_is_said(tmp_path: Path) -> None:
    need("netns")
    text = tmp_path / "text"
    text.write_text("not a program")
    text.chmod(0o755)
    study, out = write_study(tmp_path), tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    code, _, errors = lagometer(tmp_path, *arguments, environment={"LAGOMETER_WORKER": str(text)})
    assert code == 3, errors
    # All end at once; which of them is noticed first is the kernel's choice.
    reason = journal(out)[0]["reasons"][0]
    assert re.match(r"worker-died: (source|relay-1|sink) exited with code 127 in phase create", reason), (
        reason
    )
    assert "not found" in next(out.glob("samples/**/0.log")).read_text()
    assert lagometer(tmp_path, *arguments, environment={"LAGOMETER_WORKER": str(tmp_path)})[0] in (3, 6)
    assert lagometer(tmp_path, *arguments, environment={"LAGOMETER_WORKER": "/nowhere"})[0] == 6
    assert lagometer(tmp_path, *arguments, environment={"LAGOMETER_SUPERVISOR": str(text)})[0] == 3
