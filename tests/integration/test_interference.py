# SPDX-License-Identifier: Apache-2.0
"""Load beside real workers: it runs while they measure, is counted, dies loudly, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, running, wait_until, write_study
from needs import need

from lagometer.run.interference import files_folder

TIMEOUT_S = 60.0


def beside(interference: str, **factors: Any) -> dict[str, Any]:
    return {"adapter": "shm", "workload": "pingpong", "interference": interference, **factors}


def leftovers() -> list[str]:
    """Folders of I/O generators."""
    return [path.name for path in files_folder().glob("lagometer-*-*")]


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
