# SPDX-License-Identifier: Apache-2.0
"""What a host lacks is asked from its agent before the first trial, and excludes the cells that need it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from campaign_support import journal, lagometer, write_study
from needs import ROOT, adapter_library, need, require

MOCK = [sys.executable, str(ROOT / "tests" / "mock_agent.py")]
BOTH = {"adapter": ["shm", "uds"], "workload": "pipeline-2", "rate": "10Hz"}


def hidden(folder: Path, file: Path, unless: str = "") -> list[str]:
    """The words that give an agent and all below it an empty file in this one's place, unless another file
    exists."""
    need("mount")
    empty = folder / "empty"
    empty.touch()
    hide = f'test -n "{unless}" && test -e "{unless}" || mount --bind {empty} {file} || exit 1; exec "$@"'
    return ["unshare", "--mount", "sh", "-c", hide, "sh"]


def run(folder: Path, study: Path, *more: str) -> tuple[int, str]:
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(folder / "out"), "--no-report", *more)
    return code, errors


def excluded(folder: Path) -> dict[str, str]:
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    return {each["cell"]: each["reason"] for each in manifest["excluded"]}


def test_cells_whose_adapter_a_host_cannot_load_are_excluded_and_the_others_run(tmp_path: Path) -> None:
    """The library is there for the conductor, and no library for the host."""
    need("netns")
    hosts = {"robot": {"before": hidden(tmp_path, adapter_library("shm"))}, "base": {}}
    matrix = {**BOTH, "hosts": ["robot", "base"]}
    code, errors = run(tmp_path, write_study(tmp_path, hosts=hosts, matrix=matrix))
    assert code == 0, errors
    ((cell, reason),) = excluded(tmp_path).items()
    assert cell == "shm/pipeline-2/10Hz/on-robot" and reason.startswith("host robot: lacks shm: ")
    assert adapter_library("shm").name in reason and "{" not in reason, reason
    trials = journal(tmp_path / "out")
    assert all(trial["valid"] for trial in trials), [trial["reasons"] for trial in trials]
    assert {trial["cell"] for trial in trials} == {
        "shm/pipeline-2/10Hz/on-base",
        "uds/pipeline-2/10Hz/on-robot",
        "uds/pipeline-2/10Hz/on-base",
    }


def test_what_a_host_has_by_the_next_call_is_measured_then(tmp_path: Path) -> None:
    need("netns")
    installed = tmp_path / "installed"
    before = hidden(tmp_path, adapter_library("shm"), unless=str(installed))
    study = write_study(tmp_path, hosts={"robot": {"before": before}}, matrix=BOTH)
    code, errors = run(tmp_path, study)
    assert code == 0 and list(excluded(tmp_path)) == ["shm/pipeline-2/10Hz/on-robot"], errors
    installed.touch()
    code, errors = run(tmp_path, study, "--resume")
    assert code == 0 and not excluded(tmp_path), errors
    assert [trial["cell"].partition("/")[0] for trial in journal(tmp_path / "out")] == ["uds", "shm"]
    # It is measured, and stays so when the host lacks it again.
    installed.unlink()
    code, errors = run(tmp_path, study, "--resume")
    assert code == 0 and not excluded(tmp_path) and len(journal(tmp_path / "out")) == 2, errors


def test_nothing_is_written_if_the_hosts_lack_what_every_cell_needs(tmp_path: Path) -> None:
    need("netns")
    hosts = {"robot": {"before": hidden(tmp_path, adapter_library("shm"))}}
    code, errors = run(tmp_path, write_study(tmp_path, hosts=hosts))
    assert code == 4 and "host robot: lacks shm: " in errors and "lagometer doctor --hosts" in errors, errors
    assert not (tmp_path / "out").exists()


def test_load_that_a_host_has_no_program_for_is_excluded(tmp_path: Path) -> None:
    need("netns")
    need("stress-ng")
    program = Path(shutil.which("stress-ng") or "")
    hosts = {"robot": {"before": hidden(tmp_path, program)}}
    matrix = {"adapter": "shm", "workload": "pipeline-2", "rate": "10Hz", "interference": ["none", "cpu"]}
    code, errors = run(tmp_path, write_study(tmp_path, hosts=hosts, matrix=matrix))
    assert code == 0, errors
    ((cell, reason),) = excluded(tmp_path).items()
    assert "/interference-cpu/" in cell and reason == "host robot: lacks the program stress-ng"


def test_a_cell_pinned_to_a_cpu_that_its_host_may_not_use_is_excluded(tmp_path: Path) -> None:
    need("netns")
    need("taskset")
    first, *others = sorted(os.sched_getaffinity(0))
    require("cpus", bool(others), "two CPUs")
    hosts = {"robot": {"before": ["taskset", "-c", str(first)]}}
    matrix = {
        "adapter": "shm",
        "workload": "pipeline-2",
        "rate": "10Hz",
        "cpus": [str(first), str(others[0])],
    }
    code, errors = run(tmp_path, write_study(tmp_path, hosts=hosts, matrix=matrix))
    assert code == 0, errors
    (reason,) = excluded(tmp_path).values()
    assert reason == f"host robot: CPU {others[0]} is not available here (there are: {first})"


def test_no_rate_is_tried_where_a_host_lacks_the_adapter(tmp_path: Path) -> None:
    need("netns")
    hosts = {"robot": {"before": hidden(tmp_path, adapter_library("shm"))}}
    study = write_study(tmp_path, hosts=hosts, matrix={"adapter": "shm", "workload": "pipeline-2"})
    code, output, errors = lagometer(tmp_path, "search", str(study), "--out", str(tmp_path / "out"), "--json")
    assert code == 3, errors
    (cell,) = json.loads(output)["cells"]
    assert (cell["status"], cell["trials"]) == ("failed", [])
    assert cell["reason"].startswith("host robot: lacks shm: ")


@pytest.mark.parametrize("wrong", ["numbers:tried", "die:tried", "garbage:tried"])
def test_an_agent_that_does_not_answer_excludes_nothing(tmp_path: Path, wrong: str) -> None:
    need("netns")
    hosts: dict[str, Any] = {"robot": {"before": [*MOCK, wrong]}}
    code, errors = run(tmp_path, write_study(tmp_path, hosts=hosts))
    (trial,) = journal(tmp_path / "out")
    assert code == 0 and not excluded(tmp_path) and trial["valid"], (errors, trial["reasons"])
