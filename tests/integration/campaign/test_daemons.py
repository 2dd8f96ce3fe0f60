# SPDX-License-Identifier: Apache-2.0
"""Daemons beside real workers: they serve before workers start, are counted, die loudly, leave nothing."""

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
    journal,
    lagometer,
    programs,
    running,
    wait_until,
    write_study,
)
from needs import adapter_library, need

TIMEOUT_S = 60.0
WAITING_NS_MAX = 1_000_000  # what one that waits for a signal may use
# A daemon that serves when its file is there; what it then does is its second argument.
DAEMON = """
import os, pathlib, signal, sys, time
ready, does = pathlib.Path(sys.argv[1]), sys.argv[2]
assert pathlib.Path(os.environ["DAEMON_CONF"]).read_text() == "written before it starts"
print("daemon begins", flush=True)
if does == "ends-early":
    sys.exit("no reason to live")
if does == "leaves":
    pathlib.Path(sys.argv[3]).touch()
    if os.fork() == 0:  # a grandchild in a session of its own, as some launchers make
        os.setsid()
        if os.fork() == 0:
            signal.pause()
        os._exit(0)
    os.wait()
if does == "holds":
    held = bytearray(64 << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
if does != "never-serves":
    ready.touch()
while does == "burns":
    pass
while True:
    signal.pause()
"""


def beside(tmp_path: Path, build: Path, does: str, **ready: Any) -> dict[str, str]:
    """The surroundings in which `shm` needs a daemon that does so."""
    need("netns")
    folder = tmp_path / "adapters" / "shm"
    folder.mkdir(parents=True)
    library = adapter_library("shm", build)
    sidecar = json.loads((library.parent / "adapter.json").read_text())
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON)
    sidecar["daemons"] = [
        {
            "name": "fake",
            "command": [sys.executable, str(script), "{runtime}/serves", does, str(tmp_path / "left-behind")],
            "package": "none",
            "files": {"etc/fake.conf": "written before it starts"},
            "ready": {"file": "{runtime}/serves", **ready},
            "environment": {"DAEMON_CONF": "{runtime}/etc/fake.conf"},
            "leaves": [str(tmp_path / "left-*")],
        }
    ]
    (folder / "adapter.json").write_text(json.dumps(sidecar))
    (folder / library.name).symlink_to(library)
    return programs(build) | {"LAGOMETER_ADAPTER_PATH": str(tmp_path / "adapters")}


def carried_out(
    tmp_path: Path, environment: dict[str, str], **keys: Any
) -> tuple[dict[str, Any], pl.DataFrame]:
    """The journal's line and the rows of a campaign of one trial."""
    out = tmp_path / "out"
    study = write_study(tmp_path, machine_floor="off", **keys)
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    code, output, errors = lagometer(tmp_path, *arguments, environment=environment)
    assert code in (0, 3), (output, errors)
    (entry,) = journal(out)
    return entry, pl.read_parquet(out / "cells.parquet")


def test_what_a_daemon_burns_is_in_the_figures(build: Path, tmp_path: Path) -> None:
    environment = beside(tmp_path, build, "burns")
    entry, rows = carried_out(tmp_path, environment)
    (daemon,) = entry["daemons"]
    burnt_ns = rows["daemon_cpu_ns"][0]
    # It never pauses, so it had whatever the machine left it of the 300 ms of the measure phase, and no more.
    assert WAITING_NS_MAX < burnt_ns == daemon["cpu_ns"] <= 306_000_000
    workers_ns = sum(worker["cpu_ns"] for worker in entry["counters"].values())
    delivered = rows.filter(pl.col("edge") != "end-to-end")["n"].sum()
    assert rows["cpu_per_message_ns"][0] == pytest.approx((workers_ns + burnt_ns) / delivered)
    assert rows["daemon_cpu_ns"].n_unique() == 1, "the same on each row"
    assert daemon["processes"] == 1
    assert daemon["ready_s"] > 0


def test_a_daemon_that_waits_costs_nothing(build: Path, tmp_path: Path) -> None:
    entry, rows = carried_out(tmp_path, beside(tmp_path, build, "waits"))
    assert entry["valid"], entry["reasons"]
    assert rows["daemon_cpu_ns"][0] < WAITING_NS_MAX


def test_the_memory_of_a_daemon_is_counted(build: Path, tmp_path: Path) -> None:
    _, rows = carried_out(tmp_path, beside(tmp_path, build, "holds"))
    held_bytes, all_bytes = rows["daemon_pss_bytes"][0], rows["memory_pss_bytes"][0]
    assert 64 << 20 < held_bytes < 128 << 20
    assert all_bytes > held_bytes
    _, shown, errors = lagometer(tmp_path, "show", str(tmp_path / "out"))
    assert f"{held_bytes / 2**20:.1f} MiB" in shown, (shown, errors)


def test_without_daemons_the_memory_is_that_of_the_workers(build: Path, tmp_path: Path) -> None:
    need("netns")
    _, rows = carried_out(tmp_path, programs(build))
    assert rows["daemon_cpu_ns"].null_count() == rows["daemon_pss_bytes"].null_count() == rows.height
    assert rows["memory_pss_bytes"][0] > 0


def test_workers_start_when_it_serves(build: Path, tmp_path: Path) -> None:
    environment = beside(tmp_path, build, "waits")
    study, out = write_study(tmp_path, machine_floor="off"), tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    with running(tmp_path, *arguments, environment=environment) as run:
        run.end()
        notices = [each["notice"] for each in run.events() if each["event"] == "supervisor"]
    assert notices.index("companion-started") < notices.index("started")
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    (told,) = [each for cell in settings.values() for each in cell if each["object"] == "daemon"]
    assert {"file": "etc/fake.conf", "text": "written before it starts"} in told["paste"]


def test_one_that_never_serves_fails_the_trial(build: Path, tmp_path: Path) -> None:
    entry, rows = carried_out(tmp_path, beside(tmp_path, build, "never-serves", timeout_s=0.5))
    (reason,) = entry["reasons"]
    assert reason == "daemon-not-ready: fake was not ready within 0.5 s: daemon begins"
    assert not rows["valid"].any()
    assert (
        "--- daemon fake ---\ndaemon begins"
        in (tmp_path / "out" / entry["path"]).with_suffix(".log").read_text()
    )


def test_one_that_ends_before_it_serves_fails_the_trial(build: Path, tmp_path: Path) -> None:
    entry, _ = carried_out(tmp_path, beside(tmp_path, build, "ends-early"))
    (reason,) = entry["reasons"]
    assert reason == "daemon-died: fake exited with code 1 in phase create: no reason to live"


@pytest.mark.parametrize("phase", ["measure", "drain"])
def test_one_that_dies_fails_the_trial(build: Path, tmp_path: Path, phase: str) -> None:
    environment = beside(tmp_path, build, "waits")
    study = write_study(
        tmp_path, duration="60s" if phase == "measure" else "300ms", drain="20s", machine_floor="off"
    )
    out = tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    with running(tmp_path, *arguments, environment=environment) as run:
        assert wait_until(lambda: run.reached(phase, 0), TIMEOUT_S)
        os.kill(daemon_of(run), signal.SIGKILL)
        assert run.end()[0] == 3
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    (entry,) = journal(out)
    assert entry["reasons"][0].startswith(f"daemon-died: fake was killed by SIGKILL in phase {phase}: "), (
        entry
    )


def daemon_of(run: Any) -> int:
    """The daemon among the processes of a campaign."""
    (found,) = [pid for pid in run.processes() if b"serves" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(found)


@pytest.mark.parametrize("network", ["private", "host"])
def test_it_leaves_nothing(build: Path, tmp_path: Path, network: str) -> None:
    environment = beside(tmp_path, build, "leaves")
    (tmp_path / "left-before").touch()
    matrix = {"adapter": "shm", "workload": "pipeline-3", "rate": "10Hz", "network": network}
    entry, _ = carried_out(tmp_path, environment, matrix=matrix)  # which sees that no process is left
    assert entry["daemons"][0]["processes"] == 2
    assert sorted(path.name for path in tmp_path.glob("left-*")) == ["left-before"]


@pytest.mark.parametrize("network", ["private", "host"])
@pytest.mark.parametrize("does", ["leaves", "never-serves"])
def test_an_interruption_leaves_nothing(build: Path, tmp_path: Path, network: str, does: str) -> None:
    environment = beside(tmp_path, build, does)
    matrix = {"adapter": "shm", "workload": "pipeline-3", "rate": "10Hz", "network": network}
    study, out = write_study(tmp_path, duration="60s", matrix=matrix, machine_floor="off"), tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    phase = "measure" if does == "leaves" else "create"
    with running(tmp_path, *arguments, environment=environment) as run:
        assert wait_until(lambda: run.reached(phase, 0) and len(run.processes("python")) > 1, TIMEOUT_S)
        run.process.send_signal(signal.SIGINT)
        assert run.end()[0] == 130
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    assert not list(tmp_path.glob("left-*"))
