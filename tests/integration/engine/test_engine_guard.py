# SPDX-License-Identifier: Apache-2.0
"""Measuring neither allocates, locks nor writes: the guard build aborts if it does, and is seen to."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from needs import FLOORS, MIDDLEWARE, adapter_library, need
from plan_parts import MILLISECOND_NS, pipeline, plan
from worker_support import Said, run_private

from lagometer.store.records import KINDS_OF_STAMPS

ADAPTERS = (*FLOORS, *MIDDLEWARE)
CALLED = {"malloc": "malloc", "mutex": "pthread_mutex_lock", "write": "write"}


def guarded_run(
    guard_build: Path, adapter: str, fault: str | None = None, layer_stamps: bool = False
) -> Said:
    need("netns")
    need(adapter)
    library = adapter_library(adapter)  # of the build that measures: an adapter knows nothing of guards
    abilities = json.loads((library.parent / "adapter.json").read_text())["abilities"]
    dispatch = abilities["dispatch"][0]
    qos = {"reliability": abilities["reliability"][-1], "history": "keep_last", "depth": 16}
    nodes = pipeline(dispatch, period_ns=2 * MILLISECOND_NS, qos=qos)
    environment = {"LAGOMETER_FAULT": fault} if fault else {}
    ordered = plan(library, "/dev/shm/lagometer", nodes) | {"layer_stamps": layer_stamps}
    (said,) = run_private(guard_build, [ordered], environment=environment)
    return said


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_measuring_keeps_within_its_bounds(guard_build: Path, adapter: str) -> None:
    said = guarded_run(guard_build, adapter)
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    assert said.names[-1] == "bye"


def test_stamping_layers_keeps_within_its_bounds(guard_build: Path) -> None:
    said = guarded_run(guard_build, "fastdds", layer_stamps=True)
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    assert said.names[-1] == "bye"
    lanes = {lane.kind: lane for lane in said.lanes}
    for kind in KINDS_OF_STAMPS:
        assert len(lanes[kind].records) > 0
        assert (lanes[kind].records["layer"] != 0).all()


@pytest.mark.parametrize(
    "schedule",
    [
        {"kind": "poisson", "seed": 1, "late": "shift"},
        {"kind": "burst", "messages": 3, "late": "skip"},
        {"kind": "ramp", "end_period_ns": MILLISECOND_NS, "begin_ns": 0, "duration_ns": 100 * MILLISECOND_NS},
        {"kind": "recorded", "intervals_ns": [MILLISECOND_NS, 3 * MILLISECOND_NS]},
    ],
    ids=lambda schedule: schedule["kind"],
)
def test_load_is_made_within_the_same_bounds(guard_build: Path, schedule: dict[str, object]) -> None:
    need("netns")
    nodes = json.loads(json.dumps(pipeline("waitset", period_ns=2 * MILLISECOND_NS)))
    nodes[0]["rules"][0]["schedule"] = schedule
    nodes[1]["rules"][0] |= {"work_ns": 100_000, "work": {"kind": "lognormal", "sigma": 0.5, "seed": 1}}
    content = {"content": {"kind": "random", "seed": 1}}
    given = {**plan(adapter_library("null"), "/dev/shm/lagometer", nodes), **content}
    (said,) = run_private(guard_build, [given])
    assert said.code == 0, said.errors[-2000:] or said.events[-1]
    assert said.names[-1] == "bye"


@pytest.mark.by_turn
@pytest.mark.parametrize("fault", CALLED)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_fault_in_the_stamping_path_aborts(guard_build: Path, adapter: str, fault: str) -> None:
    said = guarded_run(guard_build, adapter, fault)
    assert said.code == -signal.SIGABRT, (said.code, said.names, said.errors[-2000:])
    assert f"lagometer guard: {CALLED[fault]} between warm-up and drain" in said.errors
    assert said.names[-1] == "matched", "it was not measuring yet, or not any more"


def test_the_ordinary_build_knows_no_faults(build: Path) -> None:
    assert guarded_run(build, "null", "malloc").code == 0
