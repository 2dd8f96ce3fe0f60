# SPDX-License-Identifier: Apache-2.0
"""A disk that is full: the campaign ends with exit code 5, says where and how much, and stays readable."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from campaign_support import journal, lagometer, write_study
from needs import need, require

from lagometer.report.page import BUNDLE
from lagometer.store.reader import open_campaign


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True)
    require(
        "mount", mounted.returncode == 0, f"the right to mount a tmpfs ({mounted.stderr.decode().strip()})"
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.by_turn
@pytest.mark.parametrize("inside", ["", "out"], ids=["the disk itself", "a folder on it"])
def test_a_full_disk_ends_the_campaign_and_keeps_what_is_finished(
    tmp_path: Path, small_disk: Path, inside: str
) -> None:
    need("netns")
    matrix = {"adapter": "shm", "workload": "pipeline-2", "rate": "5kHz", "payload": ["64B", "128B"]}
    study, out = write_study(tmp_path, trials=200, duration="1s", matrix=matrix), small_disk / inside
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")
    assert code == 5, errors
    last = errors.strip().splitlines()[-1]
    assert str(out) in last
    assert re.search(r"No space left on device; \d+ bytes", last), last

    campaign = open_campaign(out)
    entries = journal(out)
    assert len(entries) >= 2
    finished = {(entry["cell"], entry["trial"]) for entry in entries}
    assert set(campaign.cells.select("cell", "trial").unique().iter_rows()) == finished
    for cell, trial in finished:
        assert len(campaign.samples(cell, trial)) > 0
    assert not list(out.glob("**/.*.partial"))
    assert lagometer(tmp_path, "show", str(out))[0] == 0


def test_resuming_on_a_larger_disk_goes_on(tmp_path: Path, small_disk: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, trials=6), small_disk / "out"
    filler = small_disk / "filler"
    filler.write_bytes(bytes(2_000_000))  # there is room for two or three small trials
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    code, _, errors = lagometer(tmp_path, *arguments)
    assert code == 5, errors
    assert len(journal(out)) < 6
    filler.unlink()
    code, _, errors = lagometer(tmp_path, *arguments, "--resume")
    assert code == 0, errors
    assert sorted(pl.read_parquet(out / "cells.parquet")["trial"].unique()) == [0, 1, 2, 3, 4, 5]


def test_a_disk_that_may_not_be_written_is_said_at_once(tmp_path: Path, small_disk: Path) -> None:
    need("netns")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    out = small_disk / "out"
    code, _, errors = lagometer(tmp_path, "run", str(write_study(tmp_path)), "--out", str(out))
    assert code == 5, errors
    assert str(out) in errors
    assert os.strerror(30) in errors


def test_a_report_without_room_is_said_and_can_be_made_elsewhere(tmp_path: Path, small_disk: Path) -> None:
    need("netns")
    need_bundle()
    out, filler = small_disk / "out", small_disk / "filler"
    study = write_study(tmp_path)
    filler.write_bytes(bytes(1_855_000))  # leaves room for a trial and its tables twice, but for no page
    code, output, errors = lagometer(tmp_path, "run", str(study), "--out", str(out))
    assert code == 5, errors
    assert "1 valid, 0 failed" in output
    last = errors.strip().splitlines()[-1]
    assert str(out / "report.html") in last
    assert re.search(r"No space left on device; \d+ bytes", last), last
    assert "the results are safe; free some space, or write the page elsewhere: " in last
    assert f"lagometer report {out} --out FILE" in last
    assert not list(out.glob("**/.*.partial"))

    code, _, errors = lagometer(tmp_path, "report", str(out))
    assert (code, errors.strip().splitlines()[-1]) == (5, last)
    elsewhere = tmp_path / "report.html"
    assert lagometer(tmp_path, "report", str(out), "--out", str(elsewhere))[0] == 0
    assert elsewhere.stat().st_size > 100_000


def need_bundle() -> None:
    require("bundle", BUNDLE.is_file(), "the page's bundle (npm run build in web/)")
