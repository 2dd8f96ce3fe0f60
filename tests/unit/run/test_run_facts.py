# SPDX-License-Identifier: Apache-2.0
"""What is known of a trial from its workers: builds for tests, and the order in which they started."""

from __future__ import annotations

from pathlib import Path

from needs import ROOT
from study_adapters import write_adapters

from lagometer.run.facts import builds_for_tests, edge_specs, start_order
from lagometer.run.worker.messages import AdapterInUse, Ready
from lagometer.run.worker.outcome import WorkerOutcome
from lagometer.study import expand, study_from_mapping
from lagometer.study.adapters import NOT_FOR_MEASURING

FOR_TESTS = f"1.10.2 (opt-level 1{NOT_FOR_MEASURING}"


def worker(index: int, *adapters: AdapterInUse) -> WorkerOutcome:
    return WorkerOutcome(index, str(index), Ready(event="ready", adapters=list(adapters)), None, None, "")


def test_an_adapter_that_is_built_for_tests_is_warned_of_once() -> None:
    oxide = AdapterInUse(name="oxide", library_version=FOR_TESTS)
    other = AdapterInUse(name="other", library_version="1.10.2")
    old = AdapterInUse(name="old")
    lost = WorkerOutcome(3, "3", None, None, None, "")
    warned = builds_for_tests([worker(0, oxide, other), worker(1, oxide), worker(2, old), lost])
    assert warned == [f"build: oxide {FOR_TESTS}; to measure: tools/setup --rust"]


def test_the_build_script_writes_what_is_looked_for() -> None:
    script = (ROOT / "adapters" / "rust" / "build_script.rs").read_text(encoding="utf-8")
    assert f'" (opt-level {{}}{NOT_FOR_MEASURING}"' in script


def test_subscribers_are_in_the_order_in_which_they_had_started(tmp_path: Path) -> None:
    mapping = {"name": "x", "matrix": {"adapter": "shm", "workload": "fanout-3"}}
    (cell,) = expand(study_from_mapping(mapping, "test"), write_adapters(tmp_path), cpus=(0, 1)).cells
    created_ns = {0: 40, 1: 90, 2: 70}  # the last sink never had
    workers = [
        WorkerOutcome(index, str(index), None, None, None, "", {"process": 1, "participant": time_ns})
        for index, time_ns in created_ns.items()
    ]
    workers.append(WorkerOutcome(3, "3", None, None, None, "", {"process": 1}))
    order = start_order(cell, workers)
    assert order == ["source", "sink-2", "sink-1", "sink-3"]
    specs = {spec.receiver: spec.receiver_start for spec in edge_specs(cell, order=order)}
    assert specs == {"sink-1": 2, "sink-2": 1, "sink-3": 3}
    assert start_order(cell, ()) == ["source", "sink-1", "sink-2", "sink-3"]
