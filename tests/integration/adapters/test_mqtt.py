# SPDX-License-Identifier: Apache-2.0
"""MQTT with a real broker: qualities of service, what is in force at both ends, a broker that dies."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from campaign_support import ENDED_S, journal, lagometer, run_cells, running, wait_until, write_study
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, pipeline, plan
from worker_support import run_private

DISPATCHES = ["listener", "waitset"]
KERNEL_BUFFER_BYTES = 2 * 212_992  # what one without rights gets at least of the 4 MiB asked for


@pytest.fixture(autouse=True)
def _needs() -> None:
    need("netns")
    need("mqtt")


def programs(build: Path) -> dict[str, str]:
    return {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }


def settings_of(said: dict[str, Any], name: str) -> dict[str, Any]:
    """The effective settings of the first object whose name begins so."""
    return next(each["effective"] for each in said["settings"] if each["object"].startswith(name))


@pytest.mark.parametrize("profile", ["default", "matched"])
@pytest.mark.parametrize("nodelay", [None, True, False])
def test_what_is_in_force_is_read_from_the_sockets(build: Path, profile: str, nodelay: bool | None) -> None:
    given = plan(
        adapter_library("mqtt", build), "/dev/shm/lagometer", pipeline("waitset"), measure_ns=MILLISECOND_NS
    )
    given["adapters"][0]["profile"] = profile
    given["adapters"][0]["options"] = {} if nodelay is None else {"tcp_nodelay": nodelay}
    (said,) = run_private(build, [given])
    ready = said.event("ready")
    expected = profile == "matched" if nodelay is None else nodelay
    for name in ("writer", "reader"):
        assert settings_of(ready, name)["settings"]["tcp_nodelay"]["value"] is expected
    send_bytes = settings_of(ready, "writer")["settings"]["send_buffer_bytes"]["value"]
    assert profile == "default" or send_bytes >= KERNEL_BUFFER_BYTES
    assert settings_of(ready, "reader")["settings"]["run_by"]["value"] == "the node's thread"
    assert settings_of(ready, "context")["transport"]["between_processes"] == ["tcp"]


@pytest.mark.parametrize("quality", [1, 2])
def test_both_reliable_qualities_deliver_all_by_way_of_the_broker(
    build: Path, tmp_path: Path, quality: int
) -> None:
    matrix = {"adapter": "mqtt", "workload": "pipeline-3", "rate": "10Hz", "reliability": "reliable"}
    options = {"mqtt": {"reliable_qos": quality, "tcp_nodelay": True}}
    study = write_study(
        tmp_path, matrix={**matrix, "dispatch": DISPATCHES}, options=options, machine_floor="off"
    )
    out = tmp_path / "out"
    run = ("run", str(study), "--out", str(out), "--json", "--no-report")
    _, output, errors = lagometer(tmp_path, *run, environment=programs(build))
    assert json.loads(output)["valid"] == len(DISPATCHES), (output, errors)
    rows = pl.read_parquet(out / "cells.parquet")
    assert (rows["n"] == rows["sent"]).all() and (rows["n"] > 0).all()
    assert rows.filter(pl.col("edge") != "end-to-end")["transport"].unique().to_list() == ["tcp"]
    assert (rows["daemon_cpu_ns"] > 0).all()
    assert (rows["daemon_pss_bytes"] > 0).all()
    assert (rows["memory_pss_bytes"] > rows["daemon_pss_bytes"]).all()
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    for cell in settings.values():
        qualities = {each["settings"]["qos"]["value"] for each in cell if "qos" in each["settings"]}
        assert qualities == {quality}
        (broker,) = [each for each in cell if each["object"] == "daemon"]
        assert "set_tcp_nodelay true" in json.dumps(broker["paste"])


@pytest.mark.parametrize("dispatch", DISPATCHES)
def test_several_nodes_of_a_process_hear_one_topic(build: Path, tmp_path: Path, dispatch: str) -> None:
    matrix = {
        "adapter": ["mqtt"],
        "workload": ["fanout-3"],
        "rate": ["50Hz"],
        "dispatch": [dispatch],
        "placement": ["single-process"],
        "reliability": ["reliable"],
    }
    edges = run_cells(build, tmp_path, matrix).filter(pl.col("edge") != "end-to-end")
    assert len(edges) == 3
    assert (edges["n"] == edges["sent"]).all()


def test_what_mqtt_has_not_is_excluded(build: Path, tmp_path: Path) -> None:
    matrix = {"adapter": "mqtt", "workload": "pingpong", "history": "keep_all"}
    study = write_study(tmp_path, matrix={**matrix, "domain": 3, "durability": "transient_local"})
    _, output, errors = lagometer(tmp_path, "plan", str(study), "--json", environment=programs(build))
    (excluded,) = json.loads(output)["excluded"]
    for reason in ("history 'keep_all'", "no domains", "durability 'transient_local'"):
        assert reason in excluded["reason"], (excluded, errors)


def test_a_broker_that_dies_fails_the_trial(build: Path, tmp_path: Path) -> None:
    matrix = {"adapter": "mqtt", "workload": "pipeline-3", "rate": "10Hz"}
    study = write_study(tmp_path, duration="60s", matrix=matrix, machine_floor="off")
    out = tmp_path / "out"
    arguments = ("run", str(study), "--out", str(out), "--json", "--no-report")
    with running(tmp_path, *arguments, environment=programs(build)) as run:
        assert wait_until(lambda: run.reached("measure", 0))
        (broker,) = run.processes("mosquitto")
        os.kill(broker, signal.SIGKILL)
        assert run.end()[0] == 3
        assert wait_until(run.nothing_left, ENDED_S), run.processes()
    (entry,) = journal(out)
    codes = {reason.partition(":")[0] for reason in entry["reasons"]}
    # Which of the two is heard first is chance; either says that it was the broker.
    assert codes & {"daemon-died", "adapter-failed"}, entry["reasons"]
    assert "broker" in entry["reasons"][0] or "mosquitto" in entry["reasons"][0]
