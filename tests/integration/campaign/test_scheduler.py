# SPDX-License-Identifier: Apache-2.0
"""The scheduler's share of layers, of real trials: who ran on a CPU while a worker waited for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import journal, lagometer, write_study
from needs import need

from lagometer.store.format import LAYERS_SCHEMA, SCHEDULER_SCHEMA
from lagometer.store.timelines import TIMELINES_SCHEMA

HOG = "lagometer-hog"
MATRIX = {"adapter": "udp", "workload": "pipeline-2", "rate": "500Hz", "placement": "process-per-node"}
# One that writes a file which is cut, or no file at all, in the place of the real one.
CUT = """
import os, sys
print('{"event":"ready","cpus":1}', flush=True)
sys.stdin.readline()
print('{"event":"began"}', flush=True)
sys.stdin.read()
CONTENT
"""


# Half of the time it computes as a real-time program, so that whoever wakes on its CPU then has to wait. A
# nice value would not do: with autogroups it counts within a session alone, and a thread that slept goes
# first.
HOGGING = f"""
import os, time
open('/proc/self/comm', 'w').write({HOG!r})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print('hogging', flush=True)
while True:
    end = time.monotonic() + 0.001
    while time.monotonic() < end:
        pass
    time.sleep(0.001)
"""


@pytest.fixture
def hog() -> Iterator[int]:
    """A real-time program that has the CPU of the workers for half of the time: that CPU's number."""
    need("root")
    need("realtime")
    cpu = min(os.sched_getaffinity(0))
    command = [sys.executable, "-c", HOGGING]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        os.sched_setaffinity(process.pid, {cpu})
        assert process.stdout is not None and process.stdout.readline() == "hogging\n"
        yield cpu
    finally:
        process.kill()
        process.communicate()


def campaign_of(folder: Path, environment: dict[str, str] | None = None, **keys: Any) -> Path:
    out = folder / "out"
    study = write_study(folder, layers="on", scheduler="on", machine_floor="off", **keys)
    code, _, errors = lagometer(folder, "run", str(study), "--out", str(out), environment=environment)
    assert code == 0, errors
    return out


def the_file(out: Path, folder: str) -> pl.DataFrame:
    (path,) = (out / folder).rglob("*.parquet")
    return pl.read_parquet(path)


def test_who_ran_instead_is_named(tmp_path: Path, hog: int) -> None:
    need("netns")
    need("scheduler")
    out = campaign_of(tmp_path, duration="2s", matrix={**MATRIX, "rate": "50Hz", "cpus": str(hog)})
    stays = the_file(out, "scheduler")
    assert dict(stays.schema) == SCHEDULER_SCHEMA
    added = stays.select(pl.sum_horizontal("asleep_ns", "waiting_ns", "running_ns")).to_series()
    assert added.equals((stays["end_ns"] - stays["begin_ns"]).alias(added.name))
    assert stays["waiting_ns"].min() >= 0
    ran = stays.explode("instead").select(pl.col("instead").struct.unnest()).drop_nulls()
    by_hog = ran.filter(pl.col("name") == HOG)
    assert by_hog.height > 0 and set(by_hog["cpu"]) == {hog}
    said = journal(out)[0]["scheduler"]
    assert said["stays"] == the_file(out, "layers").height >= said["known"] == stays.height > 0
    assert said["unavailable"] == {}

    events_are_kept(out)

    code, text, errors = lagometer(tmp_path, "show", str(out), "--json")
    assert code == 0, errors
    slowest = json.loads(text)["messages"][0]
    assert {call["name"] for call in slowest["calls"]} >= {"send", "receive"}
    ran_instead = {ran["name"] for state in slowest["states"] for ran in state["instead"]}
    assert HOG in ran_instead
    (found,) = json.loads(text)["scheduling"]
    assert HOG in [each["name"] for each in found["whole"]["instead"]]
    assert found["whole"]["waiting_share"] > 0
    code, text, errors = lagometer(tmp_path, "show", str(out))
    page = (out / "report.html").read_text(encoding="utf-8")
    told, _ = json.JSONDecoder().raw_decode(page, page.index('"scheduling":') + len('"scheduling":'))
    assert told == [found]
    assert code == 0 and "the scheduler's share" in text and f"{HOG} ran on CPU {hog}" in text, errors


def events_are_kept(out: Path) -> None:
    """Calls and states of the slowest messages and a median one, within the time that each was under way."""
    events = the_file(out, "timelines")
    assert dict(events.schema) == TIMELINES_SCHEMA
    counts = journal(out)[0]["timelines"]
    assert counts["messages"] == 4 and counts["left_out"] == 0
    states = events.filter(pl.col("kind") == "state")
    assert (counts["calls"], counts["states"]) == (events.height - states.height, states.height)
    assert (states["begin_ns"] >= states["publish_ns"]).all()
    assert (states["end_ns"] <= states["taken_ns"]).all()
    assert set(states["name"]) == {"asleep", "waiting", "running"}
    woken = states.filter(pl.col("name") == "asleep")["woken_by"].struct.field("name").drop_nulls()
    assert woken.len() > 0


def test_nothing_is_recorded_unless_asked_for(tmp_path: Path) -> None:
    need("netns")
    out = tmp_path / "out"
    study = write_study(tmp_path, layers="on", machine_floor="off", matrix=MATRIX)
    assert lagometer(tmp_path, "run", str(study), "--out", str(out))[0] == 0
    assert not (out / "scheduler").exists() and "scheduler" not in journal(out)[0]
    assert set(the_file(out, "timelines")["kind"]) == {"call"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("os.pwrite(int(sys.argv[1]), bytes(100), 0)", "magic"),
        ("", "header"),
        ("sys.exit(3)", "ended with 3"),
    ],
)
def test_a_damaged_file_costs_no_trial(tmp_path: Path, content: str, says: str) -> None:
    need("netns")
    program = tmp_path / "recorder"
    program.write_text(f"#!{sys.executable}{CUT.replace('CONTENT', content)}")
    program.chmod(0o755)
    out = campaign_of(tmp_path, {"LAGOMETER_SCHEDULER": str(program)}, matrix=MATRIX)
    (line,) = journal(out)
    assert line["valid"]
    (warning,) = [each for each in line["warnings"] if each.startswith("scheduler: ")]
    assert "not available" in warning and says in warning
    assert the_file(out, "layers").height > 0 and the_file(out, "scheduler").is_empty()
    assert dict(the_file(out, "layers").schema) == LAYERS_SCHEMA


def test_where_the_kernel_refuses_the_reason_is_said(tmp_path: Path) -> None:
    need("netns")
    need("root")
    need("setpriv")
    program = tmp_path / "recorder"
    real = shutil.which("lagometer-scheduler") or _built()
    program.write_text(
        f'#!/bin/sh\nexec setpriv --bounding-set -all --inh-caps -all --reuid 65534 {real} "$@"\n'
    )
    program.chmod(0o755)
    out = campaign_of(tmp_path, {"LAGOMETER_SCHEDULER": str(program)}, matrix=MATRIX)
    (line,) = journal(out)
    assert line["valid"]
    (why,) = line["scheduler"]["unavailable"].values()
    assert why.startswith(("EACCES", "EPERM", "ENOENT"))


def _built() -> str:
    from lagometer.installation import scheduler_path

    return str(scheduler_path())
