# SPDX-License-Identifier: Apache-2.0
"""Whole campaigns over real transports: files, order, resuming, selection, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from campaign_support import journal, lagometer, programs, running, write_study
from needs import need
from toy_campaign import CELL, write_toy

from lagometer.store.reader import open_campaign

pytestmark = pytest.mark.usefixtures("namespaces")


@pytest.fixture(scope="module")
def namespaces() -> None:
    need("netns")


def test_a_campaign_stores_every_trial_and_says_so(tmp_path: Path) -> None:
    matrix = {
        "adapter": ["null", "shm"],
        "workload": "pipeline-3",
        "rate": "10Hz",
        "payload": ["64B", "32KB"],
    }
    study, out = (
        write_study(tmp_path, trials=2, duration="1s", drain="500ms", matrix=matrix),
        tmp_path / "out",
    )
    code, output, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--json", "--no-report")
    assert code == 0, errors
    tally = json.loads(output)
    assert (tally["dir"], tally["valid"], tally["failed"], tally["failures"]) == (str(out), 4, 0, [])
    assert {each["cell"] for each in tally["excluded"]} == {
        "null/pipeline-3/64B/10Hz",
        "null/pipeline-3/32KB/10Hz",
    }
    assert len(errors.splitlines()) == 4

    campaign = open_campaign(out)
    assert campaign.manifest["state"] == "finished"
    assert campaign.manifest["settings"].keys() == {"shm/pipeline-3/64B/10Hz", "shm/pipeline-3/32KB/10Hz"}
    load, steal = campaign.environment["load"], campaign.environment["steal_ticks"]
    assert load["after"] is not None
    assert steal["after"]["total"] > steal["before"]["total"]
    edges = {"source→relay-1", "relay-1→sink", "end-to-end"}
    for cell in ("shm/pipeline-3/64B/10Hz", "shm/pipeline-3/32KB/10Hz"):
        for trial in (0, 1):
            rows = campaign.cells.filter((pl.col("cell") == cell) & (pl.col("trial") == trial))
            assert set(rows["edge"]) == edges
            assert rows["valid"].all()
            first = rows.filter(pl.col("edge") == "source→relay-1").row(0, named=True)
            assert first["n"] == first["sent"] == 10
            samples = campaign.samples(cell, trial)
            measured = samples.filter((pl.col("phase") == "measure") & (pl.col("edge") == "end-to-end"))
            assert measured["outcome"].to_list() == ["delivered"] * 10
            assert (measured["taken_ns"] > measured["publish_ns"]).all()
    for entry in journal(out):
        assert entry["valid"]
        assert entry["isolation"]["network"] is True
        assert set(entry["threads"]) == {"source", "relay-1", "sink"}
        assert entry["overhead_s"] > 0


def test_an_older_campaign_is_kept_and_a_finished_one_is_not_repeated(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, trials=2), tmp_path / "out"
    run = ("run", str(study), "--out", str(out), "--json", "--no-report")
    assert lagometer(tmp_path, *run)[0] == 0
    before = (out / "journal.jsonl").read_bytes()
    code, output, _ = lagometer(tmp_path, *run, "--resume")
    assert (code, json.loads(output)["resumed"], json.loads(output)["valid"]) == (0, 2, 2)
    assert (out / "journal.jsonl").read_bytes() == before
    code, output, _ = lagometer(tmp_path, *run)
    assert (code, json.loads(output)["moved"]) == (0, str(tmp_path / "out.1"))
    assert (tmp_path / "out.1" / "journal.jsonl").read_bytes() == before


def test_resume_rebuilds_what_a_power_cut_took(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, trials=3), tmp_path / "out"
    run = ("run", str(study), "--out", str(out), "--json", "--no-report")
    assert lagometer(tmp_path, *run)[0] == 0
    whole = pl.read_parquet(out / "cells.parquet")
    lines = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "journal.jsonl").write_bytes(lines[0] + lines[1] + lines[2][:40])
    (out / "cells.parquet").unlink()
    code, output, errors = lagometer(tmp_path, *run, "--resume")
    assert (code, json.loads(output)["resumed"]) == (0, 2), errors
    again = pl.read_parquet(out / "cells.parquet")
    assert again.schema == whole.schema
    kept = pl.col("trial") < 2
    assert again.filter(kept).equals(whole.filter(kept), null_equal=True)
    assert len(again) == len(whole)


def test_another_study_is_not_mixed_in(tmp_path: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "out"
    assert lagometer(tmp_path, "run", str(study), "--out", str(out), "--no-report")[0] == 0
    write_study(tmp_path, duration="400ms")
    code, _, errors = lagometer(tmp_path, "run", str(study), "--out", str(out), "--resume")
    assert code == 2
    assert "another study" in errors


def test_selection_and_time_limit(tmp_path: Path) -> None:
    payload = ["64B", "1KB", "4KB"]
    matrix = {"adapter": "shm", "workload": "pipeline-2", "payload": payload, "rate": "10Hz"}
    study, out = write_study(tmp_path, trials=50, matrix=matrix), tmp_path / "out"
    run = (
        "run",
        str(study),
        "--out",
        str(out),
        "--json",
        "--no-report",
        "--skip",
        "*/1KB/*",
        "--max-time",
        "5s",
    )
    code, output, _ = lagometer(tmp_path, *run)
    tally = json.loads(output)
    assert code == 0
    assert tally["valid"] >= 1
    assert tally["valid"] + tally["remaining"] == 100
    assert "shm/pipeline-2/1KB/10Hz" not in {entry["cell"] for entry in journal(out)}
    assert open_campaign(out).manifest["state"] == "interrupted"
    assert lagometer(tmp_path, "run", str(study), "--out", str(out), "--select", "nothing*")[0] == 4


def test_measure_needs_no_file(tmp_path: Path) -> None:
    line = (
        "measure",
        "null",
        "--placement",
        "single-process",
        "--rate",
        "20Hz",
        "--duration",
        "500ms",
        "--json",
    )
    code, output, errors = lagometer(tmp_path, *line)
    assert code == 0, errors
    rows = {row["edge"]: row for row in json.loads(output)["rows"]}
    assert rows["end-to-end"]["n"] == 10
    assert lagometer(tmp_path, "measure", "nul", "--json")[0] == 2
    assert lagometer(tmp_path, "measure", "null")[0] == 4


def test_the_hosts_network_leaves_nothing_in_shared_memory(tmp_path: Path) -> None:
    line = ("measure", "shm", "--network", "host", "--rate", "20Hz", "--duration", "500ms", "--json")
    code, _, errors = lagometer(tmp_path, *line)
    assert code == 0, errors


def test_closed_standard_streams_do_not_spoil_a_campaign(tmp_path: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--no-report")
    with running(tmp_path, *arguments, stdin=None, preexec_fn=lambda: os.close(0)) as run:
        assert run.end()[0] == 0
    reader, writer = os.pipe()
    os.close(reader)
    for streams in ({"stdout": writer}, {"stderr": writer}, {"stdout": writer, "stderr": writer}):
        with running(tmp_path, *arguments, **streams) as run:
            assert run.end()[0] == 0, (streams, journal(out)[0]["reasons"])
        assert len(journal(out)) == 1
    os.close(writer)


def test_a_worker_runs_from_a_printed_plan(tmp_path: Path) -> None:
    matrix = {"adapter": "null", "workload": "pipeline-2", "placement": "single-process"}
    study = write_study(tmp_path, matrix=matrix)
    cell = "null/pipeline-2/single-process"
    code, plan, errors = lagometer(tmp_path, "plan", str(study), "--worker", cell, "0")
    assert code == 0, errors
    from lagometer.installation import worker_path

    # Run by hand, a worker is in nobody's namespaces and nobody clears up its folder.
    plan = plan.replace('"/dev/shm/lagometer"', json.dumps(str(tmp_path / "runtime")))
    said = subprocess.run([str(worker_path())], input=plan.encode(), capture_output=True, timeout=30)
    assert said.returncode == 0, said.stderr
    assert said.stdout.endswith(b'{"event":"bye"}\n')


FAILS_ONCE = """
import pathlib

MARK = pathlib.Path(__file__).with_name("failed")


class FailsOnce(ToyWriter):
    def commit(self) -> bool:
        if self._buffer[3] == 0 and not MARK.exists():  # data, and no probe
            MARK.touch()
            raise RuntimeError("this once")
        return super().commit()


ToyWriter = FailsOnce
"""


def test_a_trial_that_fails_is_made_up_for_until_enough_are_valid(build: Path, tmp_path: Path) -> None:
    environment = {**programs(build), **write_toy(tmp_path, FAILS_ONCE)}
    matrix = {**CELL, "workload": "pipeline-2", "rate": "10Hz"}
    study = write_study(tmp_path, matrix=matrix, machine_floor="off", trials_valid=2)
    arguments = ("run", str(study), "--out", str(tmp_path / "out"), "--json", "--no-report")
    code, output, errors = lagometer(tmp_path, *arguments, environment=environment)
    tally = json.loads(output)
    assert (code, tally["valid"], tally["failed"], tally["stopped"]) == (3, 2, 1, {"valid": 1}), errors
    assert [entry["valid"] for entry in journal(tmp_path / "out")] == [False, True, True]
    again = lagometer(tmp_path, *arguments, "--resume", environment=environment)
    assert (again[0], json.loads(again[1])["resumed"]) == (3, 3), "nothing is left to do"
