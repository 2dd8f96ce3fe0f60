# SPDX-License-Identifier: Apache-2.0
"""Tuning of this machine, as far as it allows it: everything is as before afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import lagometer, write_study
from needs import need

from lagometer.machine.settings import read, wanted
from lagometer.machine.tuning import Tuner

pytestmark = pytest.mark.alone

ROOT = Path("/")


@pytest.fixture(autouse=True)
def tunable() -> None:
    need("tuning")


def settings() -> dict[str, Any]:
    return {each.path: read(ROOT, each.path) for each in wanted(ROOT)}


def test_this_machine_is_tuned_and_put_back(tmp_path: Path) -> None:
    before = settings()
    tuning = Tuner(ROOT, tmp_path / "state").apply(lasting=False)
    try:
        assert tuning.effective
        for each in tuning.changes:
            assert (each.verdict in ("refused", "absent")) == bool(each.why), each
            if each.verdict == "changed":
                assert read(ROOT, each.path) == each.after != each.before
    finally:
        Tuner(ROOT, tmp_path / "state").revert()
    assert settings() == before


def test_trials_are_tuned_as_their_cells_say(tmp_path: Path) -> None:
    need("netns")
    before = settings()
    matrix = {"adapter": "shm", "workload": "pingpong", "tuning": ["none", "latency"]}
    study, out = write_study(tmp_path, matrix=matrix, machine_floor="off"), tmp_path / "out"
    _, output, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--json", "--no-report")
    tally = json.loads(output)
    assert tally["valid"] + tally["failed"] == 2, errors
    rows = {row["tuning"]: row for row in pl.read_parquet(out / "cells.parquet").to_dicts()}
    failures = [reason for row in rows.values() for reason in row["reasons"]]
    assert not [reason for reason in failures if reason.startswith("tuning-failed")], failures
    assert settings() == before
    assert Tuner().status() is None
