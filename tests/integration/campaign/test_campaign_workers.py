# SPDX-License-Identifier: Apache-2.0
"""Workers that go wrong: the trial fails with the reason, the campaign goes on, nothing is left behind."""

from __future__ import annotations

import json
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
from campaign_support import journal, lagometer, write_study
from needs import adapter_library, need

pytestmark = pytest.mark.by_turn

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


def test_what_a_trial_had_that_ended_early_is_kept(tmp_path: Path) -> None:
    """Two workers wait for the third, which is matched with nobody."""
    need("netns")
    study, out = write_study(tmp_path, discovery_timeout="1500ms"), tmp_path / "out"
    environment = {"LAGOMETER_WORKER": str(WORKER), "LAGOMETER_TEST_SCRIPT": "hang@matched"}
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    assert lagometer(tmp_path, *arguments, environment=environment)[0] == 3
    (entry,) = journal(out)
    assert entry["evidence"] is None
    (look,) = entry["last_look"]
    assert look["host"] == entry["hosts"][0]["name"]
    assert set(look["living"]) == set(entry["hosts"][0]["workers"])
    assert all(each["threads"] >= 1 and each["descriptors"] >= 3 for each in look["living"].values())
    assert look["cpu_ns"] > 0 and look["window_ns"] > 0 and look["descriptors_max"] > 0
    assert look["network"]["udp_receive_buffer_errors"] == 0
    assert look["shared_memory"]["free_bytes"] > 0


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


def reasons_of(folder: Path, study: Path, **more: Any) -> list[str]:
    """Why the only trial of a campaign failed, which is kept as one that did."""
    out = folder / "out"
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(out), "--no-report", **more)
    assert code == 3, errors
    (entry,) = journal(out)
    assert not entry["valid"]
    found: list[str] = entry["reasons"]
    return found


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("not a program", "can't be started: Exec format error"),
        ("#!/bin/sh\necho no room on this machine >&2\nexit 1\n", "no room on this machine"),
        ("#!/bin/sh\nread -r specification\nexit 0\n", "ended early: it said nothing"),
        ("#!/bin/sh\nread -r specification\necho hello\n", "wrote an unknown line: b'hello'"),
        (
            '#!/bin/sh\nread -r specification\necho \'{"event": "failed", "message": "no namespaces"}\'\n',
            "no namespaces",
        ),
    ],
)
def test_a_supervisor_that_does_not_start_the_workers_is_said(
    tmp_path: Path, program: str, said: str
) -> None:
    supervisor = tmp_path / "supervisor"
    supervisor.write_text(program)
    supervisor.chmod(0o755)
    environment = {"LAGOMETER_SUPERVISOR": str(supervisor)}
    found = reasons_of(tmp_path, write_study(tmp_path), environment=environment)
    assert found[0].startswith("launch-failed: ") and said in found[0], found
    assert {reason.partition(":")[0] for reason in found} == {"launch-failed"}, found


def test_too_few_open_files_for_the_workers_are_said(tmp_path: Path) -> None:
    """A limit that leaves no room for the pipes of three workers."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    (reason,) = reasons_of(tmp_path, write_study(tmp_path), preexec_fn=limited)
    assert re.fullmatch(
        r"launch-failed: \d+ open files are needed and the limit is 64: raise it \(ulimit -n \d+\)", reason
    ), reason


@pytest.mark.parametrize(
    ("worker", "text", "said"),
    [
        ("lagometer-worker", "cut", "can't open the adapter: .*: file too short"),
        ("lagometer-worker", "z" * 4096, "can't open the adapter: .*: invalid ELF header"),
        ("lagometer-worker", None, "is not an adapter: it has no symbol lagometer_adapter"),
        ("python", "import no_such_client_library", "No module named 'no_such_client_library'"),
        ("python", "def probe(options): ...", "AttributeError: .*open_context"),
    ],
)
def test_an_adapter_that_cannot_be_opened_is_said(
    build: Path, tmp_path: Path, worker: str, text: str | None, said: str
) -> None:
    """text: of its library; None: a library that is no adapter."""
    need("netns")
    library = "damaged.py" if worker == "python" else "liblagometer_damaged.so"
    folder = tmp_path / "adapters" / "damaged"
    folder.mkdir(parents=True)
    if text is None:
        need("cc")
        subprocess.run(["cc", "-shared", "-o", str(folder / library), "-x", "c", "/dev/null"], check=True)
    else:
        (folder / library).write_text(text)
    sidecar = json.loads((adapter_library("shm", build).parent / "adapter.json").read_text())
    own = {"name": "damaged", "library": library, "worker": worker, "options": {}, "interoperates_with": []}
    (folder / "adapter.json").write_text(json.dumps({**sidecar, **own}))
    study = write_study(tmp_path, matrix={"adapter": "damaged", "workload": "pipeline-3", "rate": "10Hz"})
    environment = {"LAGOMETER_ADAPTER_PATH": str(folder.parent)}
    found = reasons_of(tmp_path, study, environment=environment)
    assert {reason.partition(":")[0] for reason in found} == {"adapter-missing"}, found
    assert re.match(rf"adapter-missing: (source|relay-1|sink) in phase create: .*{said}", found[0]), found
