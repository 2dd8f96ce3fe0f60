# SPDX-License-Identifier: Apache-2.0
"""One dispatch thread for each node, or for all nodes of a process: what it comes to, what it can't be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.run.worker.layout import worker_plans
from lagometer.study import Expansion, expand, study_from_mapping
from lagometer.study.adapter import Adapter

TWO_DOMAINS = """
topics: {points: {domain: 3}}
nodes:
  camera: {trigger: timer, rate: 30Hz, publishes: [image]}
  lidar: {trigger: timer, rate: 10Hz, publishes: [points]}
  one: {trigger: any, subscribes: [image]}
  other: {trigger: any, subscribes: [points]}
"""
TOGETHER = {"placement": "single-process", "threads": "per-process"}


def able(adapters: dict[str, Adapter], name: str, **abilities: Any) -> dict[str, Adapter]:
    """The adapters, of which one has further abilities."""
    sidecar = adapters[name].sidecar
    more = sidecar.model_copy(update={"abilities": sidecar.abilities.model_copy(update=abilities)})
    return {**adapters, name: replace(adapters[name], sidecar=more)}


def expansion(tmp_path: Path, matrix: dict[str, Any], **abilities: Any) -> Expansion:
    (tmp_path / "two.yaml").write_text(TWO_DOMAINS)
    workload = str(matrix.get("workload", "pipeline-3")).replace("two", str(tmp_path / "two.yaml"))
    adapters = able(write_adapters(tmp_path), str(matrix["adapter"]), **abilities)
    study = study_from_mapping({"name": "x", "matrix": {**matrix, "workload": workload}}, "test")
    return expand(study, adapters, cpus=(0, 1))


def test_plans_of_processes_with_several_nodes_say_so(tmp_path: Path) -> None:
    groups = "groups: {seeing: [camera, lidar]}\n"
    (tmp_path / "robot.yaml").write_text(TWO_DOMAINS + groups)
    matrix = {"adapter": "cyclonedds", "workload": str(tmp_path / "robot.yaml"), "placement": "groups"}
    adapters = write_adapters(tmp_path)
    study = study_from_mapping({"name": "x", "matrix": {**matrix, "threads": "per-process"}}, "test")
    (cell,) = expand(study, adapters, cpus=(0, 1)).cells
    assert cell.id == "cyclonedds/robot/groups/threads-per-process"
    plans = worker_plans(study, cell, 0, adapters)
    assert [plan.threads for plan in plans] == ["per-process", "per-node", "per-node"]
    assert ["threads" in plan.model_dump() for plan in plans] == [True, False, False]


@pytest.mark.parametrize(
    ("matrix", "abilities", "said"),
    [
        ({}, {}, ""),
        ({"placement": "process-per-node"}, {}, "a thread per process is one per node"),
        ({"dispatch": "poll"}, {}, ""),
        ({"dispatch": "poll", "scheduling": "fifo", "workload": "pipeline-5"}, {}, ""),
        (
            {"dispatch": "listener"},
            {},
            "cyclonedds calls back on its own threads, so one thread can't serve all nodes of a process: use",
        ),
        ({"dispatch": "listener"}, {"executor": True}, ""),
        (
            {"dispatch": "listener", "participants": "per-node"},
            {"executor": True},
            "one executor can't serve the 3 participants of a process: use waitset or poll",
        ),
        (
            {"dispatch": "listener", "workload": "two"},
            {"executor": True},
            "one executor can't serve the 2 participants of a process: use waitset or poll",
        ),
        (
            {"workload": "two"},
            {},
            "one waitset of cyclonedds can't wait in the 2 domains of the 4 nodes of a process: use poll",
        ),
        ({"workload": "two"}, {"waitset_contexts": True}, ""),
        (
            {"participants": "per-node"},
            {},
            "one waitset of cyclonedds can't wait for the participants of 2 nodes: use poll",
        ),
        ({"participants": "per-node"}, {"waitset_contexts": True}, ""),
        ({"participants": "per-node", "threads": "per-node"}, {}, ""),
        ({"participants": "per-node", "dispatch": "poll"}, {}, ""),
    ],
)
def test_what_one_thread_cannot_serve_is_excluded_with_its_reason(
    tmp_path: Path, matrix: dict[str, Any], abilities: dict[str, Any], said: str
) -> None:
    found = expansion(tmp_path, {"adapter": "cyclonedds", **TOGETHER, **matrix}, **abilities)
    reasons = [each.reason for each in found.excluded]
    assert bool(reasons) == bool(said)
    assert all(said in reason for reason in reasons)


def test_one_waitset_is_for_one_adapter(tmp_path: Path) -> None:
    text = TWO_DOMAINS.replace("{domain: 3}", "{adapter: shm}")
    (tmp_path / "robot.yaml").write_text(text)
    matrix = {"adapter": "udp", "workload": str(tmp_path / "robot.yaml"), **TOGETHER}
    for dispatch, said in (("waitset", "can't wait for readers of shm and udp: use poll"), ("poll", "")):
        study = study_from_mapping({"name": "x", "matrix": {**matrix, "dispatch": dispatch}}, "test")
        found = expand(study, write_adapters(tmp_path), cpus=(0, 1))
        assert [said in each.reason for each in found.excluded] == [True] * bool(said)
