# SPDX-License-Identifier: Apache-2.0
"""Adaptive campaigns over a real transport: they stop, say why, and come to the same after a kill."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, running, wait_until, write_study
from needs import need

from lagometer.stats.cell.campaign_estimates import campaign_estimates, progress_of_cells
from lagometer.store.reader import open_campaign

CELLS = ("shm/pipeline-2/64B/500Hz", "shm/pipeline-2/1KB/500Hz")
STUDY: Mapping[str, Any] = {
    "duration": "60ms",
    "warmup": "10ms",
    "drain": "10ms",
    "precision": "5%",
    "trials_max": 8,
    "long_trial": "200ms",
    "matrix": {"adapter": "shm", "workload": "pipeline-2", "rate": "500Hz", "payload": ["64B", "1KB"]},
}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adaptive campaign that is finished; `tally.json` is what it printed."""
    need("netns")
    folder = tmp_path_factory.mktemp("adaptive")
    study = write_study(folder, **STUDY)
    run = ("run", str(study), "--out", str(folder / "out"), "--json", "--no-report")
    code, output, errors = lagometer(folder, *run, seconds=120)
    assert code in (0, 3), errors
    (folder / "tally.json").write_text(output)
    return folder


def test_each_cell_stops_and_says_by_what(campaign: Path) -> None:
    tally = json.loads((campaign / "tally.json").read_text())
    assert sum(tally["stopped"].values()) == 2
    assert set(tally["stopped"]) <= {"precision", "trials"}
    assert tally["remaining"] == 0
    opened = open_campaign(campaign / "out")
    assert opened.manifest["state"] == "finished"
    counts = dict.fromkeys(CELLS, 0)
    for entry in opened.journal:
        assert entry["trial"] == counts[entry["cell"]]  # block after block, each cell once
        counts[entry["cell"]] += 1
    assert all(6 <= count <= 8 for count in counts.values())
    assert tally["valid"] + tally["failed"] == sum(counts.values())


def test_the_estimates_are_those_of_the_files(campaign: Path) -> None:
    opened = open_campaign(campaign / "out")
    stored = pl.read_parquet(campaign / "out" / "estimates.parquet")
    assert campaign_estimates(opened).equals(stored, null_equal=True)
    progress = progress_of_cells(opened)
    for cell in CELLS:
        rows = stored.filter((pl.col("cell") == cell) & (pl.col("edge") == "end-to-end"))
        assert set(rows["quantity"]) >= {"latency_p50", "latency_p90", "latency_p99", "latency_p999"}
        assert set(rows["stopped"]) == {progress[cell].stopped}
        median = rows.filter(pl.col("quantity") == "latency_p50").row(0, named=True)
        assert median["trials"] == progress[cell].valid
        if median["status"] == "ok":
            assert median["low_ns"] <= median["estimate_ns"] <= median["high_ns"]
    (campaign / "out" / "estimates.parquet").rename(campaign / "estimates.parquet")
    assert campaign_estimates(opened).equals(stored, null_equal=True)
    (campaign / "estimates.parquet").rename(campaign / "out" / "estimates.parquet")


def test_control_and_long_trials_lie_apart(campaign: Path) -> None:
    tally = json.loads((campaign / "tally.json").read_text())
    opened = open_campaign(campaign / "out")
    assert {entry["cell"] for entry in opened.journal} == set(opened.cells["cell"]) == set(CELLS)
    control, long = opened.control, opened.long_trials
    assert control is not None and long is not None
    blocks = max(entry["trial"] for entry in opened.journal) + 1
    assert [(entry["cell"], entry["trial"]) for entry in control.journal] == [
        ("shm/pingpong", number) for number in range(blocks)
    ]
    assert tally["control"]["cells"] == ["shm/pingpong"]
    assert tally["control"]["valid"] + tally["control"]["failed"] == blocks
    assert len(long.journal) == 1 and long.journal[0]["cell"] in CELLS
    messages = long.cells.filter(pl.col("edge") == "end-to-end")["sent"].item()
    assert messages > 90  # 200 ms at 500 Hz, where the short ones have 30


def test_show_prints_the_intervals_the_control_and_the_long_trial(campaign: Path) -> None:
    code, output, errors = lagometer(campaign, "show", str(campaign / "out"))
    assert code == 0, errors
    assert "with 95 % intervals" in output or "not enough samples" in output
    assert "control shm/pingpong: p50" in output
    assert "long trials" in output
    code, output, _ = lagometer(campaign, "show", str(campaign / "out"), "--json")
    shown = json.loads(output)
    assert {row["cell"] for row in shown["estimates"]} == set(CELLS)
    assert shown["control"]["cells"] == ["shm/pingpong"]
    for long in shown["long_trials"]:  # none if it failed
        assert long["cpu_per_message_ns"] > 0 and long["short_cpu_per_message_ns"] > 0
        found = long["p50"]
        estimates = [row for row in shown["estimates"] if row["cell"] == long["cell"]]
        [median] = [row for row in estimates if row["quantity"] == "latency_p50"]
        if median["status"] == "ok":
            assert (found["short_ns"], found["low_ns"], found["high_ns"]) == (
                median["estimate_ns"],
                median["low_ns"],
                median["high_ns"],
            )
            inside = median["low_ns"] <= found["long_ns"] <= median["high_ns"]
            assert (found["place"] == "inside") == inside
            tally = json.loads((campaign / "tally.json").read_text())
            warned = [text for text in tally["warnings"] if "long trial of" in text and " p50 lies " in text]
            assert bool(warned) != inside


def test_plan_foresees_the_time_from_it(campaign: Path) -> None:
    study, out = str(campaign / "study.yaml"), str(campaign / "out")
    code, output, errors = lagometer(campaign, "plan", study, "--out", out, "--json")
    assert code == 0, errors
    plan = json.loads(output)
    assert plan["predicted_from"] == out
    assert plan["predicted_min_s"] <= plan["predicted_s"] <= plan["predicted_max_s"]
    assert 12 <= plan["predicted_trials"] <= 16


@pytest.mark.alone
def test_plan_foresees_about_the_time_that_is_taken(tmp_path: Path) -> None:
    """Control, long trial and the machine's floor included: each is far more than what may be missed."""
    need("netns")
    short = {"duration": "400ms", "warmup": "100ms", "drain": "100ms"}
    parts = {"trials": 4, "control": "floor", "long_trial": "2s", "machine_floor": "2s"}
    study, out = write_study(tmp_path, **short, **parts), tmp_path / "out"
    plan = ("plan", str(study), "--out", str(out), "--json")
    _, before, _ = lagometer(tmp_path, *plan)
    code, output, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--json", "--no-report")
    assert code in (0, 3), errors
    taken_s = json.loads(output)["seconds"]
    _, after, _ = lagometer(tmp_path, *plan)
    told = json.loads(after)
    assert told["predicted_from"] == str(out)
    # What is between the trials, such as the start, comes on top; a median is no mean.
    assert 0.5 * taken_s <= told["predicted_s"] <= 1.1 * taken_s
    spent_s = [entry["spent_s"] for part in ("", "control", "long") for entry in journal(out / part)]
    assert len(spent_s) == 9
    assert told["predicted_s"] == pytest.approx(sum(spent_s) + 2, rel=0.15)
    assert told["predicted_min_s"] == told["predicted_s"] == told["predicted_max_s"]
    # Without experience no more is known than the phases: nine trials, one of them long, and the floor.
    phases_s = 9 * 0.6 + 1.6 + 2
    assert json.loads(before)["predicted_from"] is None
    assert phases_s < json.loads(before)["predicted_s"] < 2 * phases_s
    assert phases_s < taken_s


def test_a_killed_campaign_decides_as_if_it_had_gone_on(tmp_path: Path) -> None:
    need("netns")
    study, out = write_study(tmp_path, **STUDY), tmp_path / "out"
    run = ("run", str(study), "--out", str(out), "--json", "--no-report")
    with running(tmp_path, *run) as first:
        assert wait_until(lambda: first.reached("measure", 6)), first.events()
        first.process.kill()
        first.process.wait()
        assert wait_until(first.nothing_left, 3)
    before = (out / "journal.jsonl").read_bytes()
    code, output, errors = lagometer(tmp_path, *run, "--resume", seconds=120)
    assert code in (0, 3), errors
    assert (out / "journal.jsonl").read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    tally, opened = json.loads(output), open_campaign(out)
    keys = [(entry["cell"], entry["trial"]) for entry in journal(out)]
    assert len(keys) == len(set(keys))
    # Made again from nothing but the files, every cell stops at its last trial, and for the reason given.
    progress = progress_of_cells(opened)
    whys = [each.stopped for each in progress.values()]
    assert {why: whys.count(why) for why in set(whys)} == tally["stopped"]
    for cell in CELLS:
        assert progress[cell].carried_out == sum(key[0] == cell for key in keys)
