# SPDX-License-Identifier: Apache-2.0
"""Load beside real workers: it runs while they measure, is counted, dies loudly, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import (
    ENDED_S,
    Running,
    journal,
    lagometer,
    namespaces_of,
    running,
    wait_until,
    write_study,
)
from needs import ROOT, need

from lagometer.agent.load import files_folder
from lagometer.agent.observe.processes import ancestor_among, parents

pytestmark = pytest.mark.alone

TIMEOUT_S = 60.0


def beside(interference: str, **factors: Any) -> dict[str, Any]:
    return {"adapter": "shm", "workload": "pingpong", "interference": interference, **factors}


def leftovers() -> list[str]:
    """Folders of I/O generators."""
    return [path.name for path in files_folder().glob("lagometer-*-*")]


@pytest.mark.by_turn
@pytest.mark.parametrize("interference", ["cpu-2", "memory", "cache", "io", "network"])
def test_load_runs_beside_the_workers_and_is_counted(tmp_path: Path, interference: str) -> None:
    need("netns")
    need("iperf3" if interference == "network" else "stress-ng")
    study, out = write_study(tmp_path, matrix=beside(interference), machine_floor="off"), tmp_path / "out"
    _, output, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--json", "--no-report")
    assert json.loads(output)["valid"] == 1, (output, errors)
    rows = pl.read_parquet(out / "cells.parquet")
    assert rows["interference"].unique().to_list() == [interference]
    assert (rows["interference_cpu_ns"] > 0).all()
    assert (rows["interference_achieved_per_s"] > 0).all()
    (entry,) = journal(out)
    assert entry["interference"]["name"] == interference
    assert leftovers() == []
    _, output, errors = lagometer(tmp_path, "show", str(out), "--json")
    (told,) = json.loads(output)["interference"]
    assert (told["cell"], told["load"], told["trials"]) == (entry["cell"], interference, 1), errors
    assert told["cpu_ns"] == entry["interference"]["cpu_ns"]
    assert told["achieved_per_s"] == entry["interference"]["achieved_per_s"]
    assert told["unit"] == ("bytes" if interference in ("io", "network") else "operations")


@pytest.mark.parametrize("interference", ["cpu@base", "network@robot"])
def test_load_runs_on_a_chosen_host(tmp_path: Path, interference: str) -> None:
    for name in ("root", "netns", "mount", "ip", "ethtool", "stress-ng", "iperf3"):
        need(name)
    hosts = {"robot": {"launcher": "netns"}, "base": {"launcher": "netns", "runs": ["sink"]}}
    matrix = {"adapter": "tcp", "workload": "pipeline-2", "network": "host", "interference": interference}
    study, out = write_study(tmp_path, matrix=matrix, hosts=hosts, machine_floor="off"), tmp_path / "out"
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, errors or journal(out)[0]["reasons"]
    row = pl.read_parquet(out / "cells.parquet").row(0, named=True)
    assert row["interference_cpu_ns"] > 0 and row["interference_achieved_per_s"] > 0
    if interference.startswith("network"):  # it crosses the link between hosts, and nothing else does so much
        assert row["kernel_link_bytes"] > 1_000_000
    _, output, errors = lagometer(tmp_path, "show", str(out), "--json")
    (told,) = json.loads(output)["interference"]
    unit = "bytes" if interference.startswith("network") else "operations"
    assert (told["load"], told["unit"]) == (interference, unit), errors


@pytest.mark.parametrize("slow", ["robot", "base"])
def test_load_between_hosts_ends_only_after_both_were_asked(tmp_path: Path, slow: str) -> None:
    """One end of the connection must not end while the other host still counts."""
    for name in ("root", "netns", "mount", "ip", "ethtool", "iperf3"):
        need(name)
    hosts: dict[str, dict[str, Any]] = {
        "robot": {"launcher": "netns"},
        "base": {"launcher": "netns", "runs": ["sink"]},
    }
    hosts[slow]["before"] = [sys.executable, str(ROOT / "tests" / "mock_agent.py"), "late:collect"]
    matrix = {"adapter": "tcp", "workload": "pipeline-2", "network": "host", "interference": "network@robot"}
    study, out = write_study(tmp_path, matrix=matrix, hosts=hosts, machine_floor="off"), tmp_path / "out"
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 0, (errors, journal(out)[0]["reasons"])


def test_a_generator_that_dies_fails_the_trial(tmp_path: Path) -> None:
    need("netns")
    need("stress-ng")
    study = write_study(tmp_path, duration="60s", matrix=beside("cpu"), machine_floor="off")
    out = tmp_path / "out"
    with running(tmp_path, "run", str(study), "--out", str(out), "--json", "--no-report") as run:
        assert wait_until(lambda: run.reached("warm-up", 0), TIMEOUT_S)
        os.kill(min(run.processes("stress-ng")), signal.SIGKILL)
        run.end()
        assert wait_until(run.nothing_left, TIMEOUT_S), run.processes()
    (entry,) = journal(out)
    assert [reason for reason in entry["reasons"] if reason.startswith("interference-died: stress-ng")], entry
    assert leftovers() == []


def generators(run: Running) -> list[int]:
    """The load's processes: by their ancestor, since those that stress-ng forks have no environment."""
    above = parents()
    ours = [pid for pid in above if ancestor_among(pid, {run.process.pid}, above)]
    return [pid for pid in ours if Path(f"/proc/{pid}/comm").read_text().startswith(("stress-ng", "iperf3"))]


@pytest.mark.by_turn
@pytest.mark.parametrize("interference", ["cpu-2", "io", "network"])
def test_generators_run_in_the_trials_namespaces_and_end_with_a_killed_conductor(
    tmp_path: Path, interference: str
) -> None:
    need("netns")
    need("iperf3" if interference == "network" else "stress-ng")
    study = write_study(tmp_path, duration="60s", matrix=beside(interference), machine_floor="off")
    with running(tmp_path, "run", str(study), "--out", str(tmp_path / "out"), "--no-report") as run:
        assert wait_until(lambda: run.reached("measure", 0), TIMEOUT_S), run.events()
        run.note_namespaces()
        (workers,) = {frozenset(namespaces_of(pid)) for pid in run.processes("lagometer-worke")}
        load = generators(run)
        assert len(load) >= 2
        assert {frozenset(namespaces_of(pid)) for pid in load} == {workers}
        assert len(workers) == 4 and not workers & namespaces_of(os.getpid())
        run.process.kill()
        run.process.wait()
        assert wait_until(run.nothing_left, ENDED_S), run.processes()


def test_what_a_killed_agent_left_on_the_disk_is_removed_at_the_next_start(tmp_path: Path) -> None:
    need("netns")
    need("stress-ng")
    study = write_study(tmp_path, duration="60s", matrix=beside("io"), machine_floor="off")
    with running(tmp_path, "run", str(study), "--out", str(tmp_path / "out"), "--no-report") as run:
        assert wait_until(lambda: run.processes() and run.agents, TIMEOUT_S)
        (agent,) = run.agents
        folder = files_folder() / f"lagometer-{agent}-0"
        # Its files are there: that nothing is left of them later says something.
        assert wait_until(lambda: run.reached("measure", 0) and any(folder.rglob("*")), TIMEOUT_S)
        mine = files_folder() / f"lagometer-{os.getpid()}-0"
        mine.mkdir()
        try:
            os.kill(agent, signal.SIGKILL)
            run.process.kill()
            run.process.wait()
            assert wait_until(run.nothing_left, ENDED_S), run.processes()
            assert folder.is_dir()
            next_one = write_study(tmp_path, matrix=beside("none"), machine_floor="off")
            lagometer(tmp_path, "run", str(next_one), "--out", str(tmp_path / "next"), "--no-report")
            assert not folder.exists()
            assert mine.is_dir(), "whose process lives"
        finally:
            mine.rmdir()
    assert leftovers() == []
