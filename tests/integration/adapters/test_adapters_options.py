# SPDX-License-Identifier: Apache-2.0
"""What a study may set of an adapter: shown where it is in force."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from campaign_support import lagometer, write_study
from needs import DDS, adapter_library, need
from plan_parts import MILLISECOND_NS, Mapping, pipeline, plan
from worker_support import Said, run_private

DIRECTORY = "/dev/shm/lagometer"


def carried_out(build: Path, adapter: str, options: Mapping) -> Said:
    """One worker with a source, a relay and a sink of its own, and these options."""
    need("netns")
    need(adapter)
    nodes = pipeline("waitset", qos={"reliability": "best_effort", "history": "keep_last", "depth": 16})
    given = plan(adapter_library(adapter, build), DIRECTORY, nodes, measure_ns=MILLISECOND_NS)
    given["adapters"][0]["options"] = options
    return run_private(build, [given])[0]


def test_the_heartbeat_period_of_fast_dds_is_shown_ready_to_paste(build: Path) -> None:
    ready = carried_out(build, "fastdds", {"heartbeat_period_ms": 1_500}).event("ready")
    text = json.dumps(ready["settings"])
    assert '"heartbeat_period_ns": {"default": 3000000000, "value": 1500000000}' in json.dumps(
        ready["settings"], sort_keys=True
    )
    assert (
        "<times><heartbeatPeriod><sec>1</sec><nanosec>500000000</nanosec></heartbeatPeriod></times>" in text
    )


def test_an_early_heartbeat_saves_the_sample_that_fills_the_history(build: Path, tmp_path: Path) -> None:
    """Fast DDS to Cyclone DDS, in fragments: with the vendor's period a third of such trials lose one."""
    need("netns")
    for name in DDS:
        need(name)
    matrix = {
        "adapter": ["fastdds+cyclonedds"],
        "workload": ["pingpong"],
        "payload": ["64KB"],
        "profile": ["matched"],
        "reliability": ["reliable"],
        "dispatch": ["listener"],
    }
    study = write_study(
        tmp_path,
        matrix=matrix,
        options={"fastdds": {"heartbeat_period_ms": 2}},
        trials=10,
        duration="100ms",
        warmup="100ms",
    )
    programs = {
        "LAGOMETER_WORKER": str(build / "engine" / "lagometer-worker"),
        "LAGOMETER_SUPERVISOR": str(build / "engine" / "lagometer-supervisor"),
        "LAGOMETER_ADAPTER_PATH": str(build / "adapters"),
    }
    out = tmp_path / "out"
    run = ("run", str(study), "--out", str(out), "--json", "--no-report")
    _, output, errors = lagometer(tmp_path, *run, seconds=300, environment=programs)
    assert json.loads(output)["valid"] == 10, (output, errors)
    rows = pl.read_parquet(out / "cells.parquet")
    assert (rows["n"] > 0).all()
    assert (rows["resent"].fill_null(0) == 0).all()
