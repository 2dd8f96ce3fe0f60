# SPDX-License-Identifier: Apache-2.0
"""SCHED_FIFO and affinity: refused where they would starve the machine, else read back from every thread."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from needs import FLOORS, IN_PYTHON, MIDDLEWARE, adapter_library, need, require
from plan_parts import MILLISECOND_NS, pingpong, pipeline, plan
from worker_support import run_private

from lagometer.study.sidecar import Sidecar

pytestmark = pytest.mark.alone

FIFO = {"policy": "fifo", "priority": 5, "cpus": [], "lock_memory": True}


def test_spinning_fifo_threads_on_every_cpu_are_refused(build: Path) -> None:
    need("netns")
    nodes = pingpong("poll", 10)
    for index in range(2, os.cpu_count() or 2):
        nodes.append({**nodes[1], "name": f"more-{index}", "index": index, "writers": [], "rules": []})
    fifo = plan(adapter_library("shm", build), "/dev/shm/lagometer", nodes)
    fifo["scheduling"] = FIFO
    (said,) = run_private(build, [fifo])
    failed = said.event("failed")
    assert (said.code, failed["phase"], failed["reason"]) == (1, "create", "scheduling-refused")
    assert f"{os.cpu_count()} busy-polling threads" in failed["message"]


@pytest.mark.by_turn
@pytest.mark.parametrize("adapter", (*FLOORS, *MIDDLEWARE, *IN_PYTHON))
def test_the_adapters_threads_inherit_what_was_asked_for(build: Path, adapter: str) -> None:
    need("netns")
    need(adapter)
    library = adapter_library(adapter, build)
    sidecar = Sidecar.model_validate_json((library.parent / "adapter.json").read_bytes())
    dispatch = "listener" if "listener" in sidecar.abilities.dispatch else "waitset"
    qos = {"reliability": sidecar.abilities.reliability[-1]}
    nodes = pipeline(dispatch, period_ns=5 * MILLISECOND_NS, qos=qos)
    fifo = plan(library, "/dev/shm/lagometer", nodes)
    fifo["scheduling"] = {**FIFO, "cpus": [0]}
    (said,) = run_private(build, [fifo])
    assert said.code == 0, said.events[-1:]
    refused = [text for text in said.event("ready")["warnings"] if "SCHED_FIFO" in text]
    threads = said.event("done")["threads"]
    assert len(threads) >= 2
    for thread in threads:
        assert thread["cpus"] == [0], thread
        expected = ("other", 0) if refused else ("fifo", 5)
        assert (thread["policy"], thread["priority"]) == expected, thread
        assert thread["timer_slack_ns"] in (0, 1, -1), thread
    if not refused:
        return
    assert "CAP_SYS_NICE" in refused[0]
    require("realtime", False, f"{refused[0]} for {adapter}")
