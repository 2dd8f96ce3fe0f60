# SPDX-License-Identifier: Apache-2.0
"""Schedules and the policy for late messages, from the study's text to the workers' plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.worker.layout import worker_plans
from lagometer.study import Adapter, Cell, Study, expand, study_from_mapping
from lagometer.study.schedule import canonical_schedule
from lagometer.units import UnitError

CPUS = (0, 1)


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    return write_adapters(tmp_path / "adapters")


def study_of(matrix: dict[str, Any], **keys: Any) -> Study:
    return study_from_mapping({"name": "s", "matrix": {"adapter": "shm", **matrix}, **keys}, "test")


def only_cell(study: Study, adapters: dict[str, Adapter]) -> Cell:
    expansion = expand(study, adapters, CPUS)
    assert not expansion.excluded
    (cell,) = expansion.cells
    return cell


def schedules(study: Study, adapters: dict[str, Adapter], trial: int = 0) -> list[dict[str, Any]]:
    """The schedule of every timer of the study's one cell, as the workers read it."""
    cell = only_cell(study, adapters)
    rules = [
        rule.model_dump()
        for plan in worker_plans(study, cell, trial, adapters)
        for node in plan.nodes
        for rule in node.rules
    ]
    return [rule.get("schedule", {}) for rule in rules if rule["trigger"] == "timer"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("periodic", "periodic"),
        ("burst-10", "burst-10"),
        ("ramp-1000Hz", "ramp-1kHz"),
        ("ramp-0.5kHz", "ramp-500Hz"),
    ],
)
def test_a_schedule_has_one_spelling(text: str, canonical: str) -> None:
    assert canonical_schedule(text) == canonical


@pytest.mark.parametrize(
    "text", ["", "burst", "burst-1", "burst-x", "ramp-", "ramp-2MHz", "recorded-", "poisson-3"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        canonical_schedule(text)


def test_each_schedule_reaches_the_source(adapters: dict[str, Adapter]) -> None:
    def plan(**factors: str) -> dict[str, Any]:
        (found,) = schedules(study_of({"workload": "pipeline-3", "rate": "200Hz", **factors}), adapters)
        return found

    assert plan() == plan(schedule="periodic") == plan(late="burst") == {}
    assert plan(late="skip") == {"kind": "periodic", "late": "skip"}
    assert plan(schedule="burst-4", late="shift") == {"kind": "burst", "late": "shift", "messages": 4}
    assert plan(schedule="ramp-1kHz") == {
        "kind": "ramp",
        "late": "burst",
        "end_period_ns": 1_000_000,
        "begin_ns": 300_000_000,
        "duration_ns": 2_000_000_000,
    }


def test_poisson_differs_by_trial_stream_and_seed_and_by_nothing_else(adapters: dict[str, Adapter]) -> None:
    def seeds(trial: int = 0, seed: int = 1, payload: str = "64B") -> list[int]:
        matrix = {"workload": "fanin-2", "schedule": "poisson", "payload": payload}
        return [each["seed"] for each in schedules(study_of(matrix, seed=seed), adapters, trial)]

    assert seeds() == seeds(payload="1KB")
    assert len({*seeds(), *seeds(trial=1), *seeds(seed=2)}) == 6


def test_the_room_for_records_fits_the_end_of_a_ramp(adapters: dict[str, Adapter]) -> None:
    study = study_of({"workload": "pipeline-2", "rate": "100Hz", "schedule": "ramp-2kHz"})
    source = worker_plans(study, only_cell(study, adapters), 0, adapters)[0].nodes[0]
    assert source.writers[0].capacity > 2_000 * 2.5


def test_a_recording_sets_the_rate(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    file = tmp_path / "lidar scan.ns"
    file.write_text("# from a drive\n1000000\n\n3000000 # a pause\n")
    study = study_of({"workload": "pipeline-2", "schedule": f"recorded-{file}"})
    cell = only_cell(study, adapters)
    assert cell.id == "shm/pipeline-2/recorded-lidar-scan"
    assert cell.graph.rules[0].period_ns == 2_000_000
    (schedule,) = schedules(study, adapters)
    assert schedule == {"kind": "recorded", "late": "burst", "intervals_ns": [1_000_000, 3_000_000]}
    (said,) = study.as_json()["recordings"].values()  # type: ignore[attr-defined]
    assert (said["intervals"], said["mean_ns"], len(said["sha256"])) == (2, 2e6, 64)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "0 intervals"),
        ("1e6\n", "line 1"),
        ("5\n-1\n", "line 2"),
        ("10\n", "mean below"),
        ("é", "as text"),
    ],
)
def test_a_recording_that_is_none_is_named(content: str, word: str, tmp_path: Path) -> None:
    file = tmp_path / "times.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=word):
        study_of({"workload": "pipeline-2", "schedule": f"recorded-{file}"})


def test_a_recording_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="neither in"):
        study_of({"workload": "pipeline-2", "schedule": "recorded-absent.ns"})


def test_two_recordings_of_one_name_are_told(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.ns").write_text("5000\n" if folder == "a" else "6000\n")
    both = [f"recorded-{tmp_path}/{folder}/x.ns" for folder in ("a", "b")]
    with pytest.raises(BadInput, match=r"listed twice|have the name 'x'"):
        study_of({"workload": "pipeline-2", "schedule": both})


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ({"workload": "pingpong", "schedule": "poisson"}, "has no schedule"),
        ({"workload": "pingpong", "late": "skip"}, "could be late"),
        ({"workload": "pipeline-2", "rate": "1Hz", "schedule": "burst-10"}, "publishes nothing"),
    ],
)
def test_schedules_that_cannot_be_are_excluded(
    matrix: dict[str, Any], reason: str, adapters: dict[str, Adapter]
) -> None:
    expansion = expand(study_of(matrix), adapters, CPUS)
    assert not expansion.cells
    assert reason in expansion.excluded[0].reason


def test_a_recording_excludes_a_rate(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    (tmp_path / "x.ns").write_text("5000000\n")
    matrix = {"workload": "pipeline-2", "rate": "100Hz", "schedule": f"recorded-{tmp_path}/x.ns"}
    assert "sets the rate itself" in expand(study_of(matrix), adapters, CPUS).excluded[0].reason


JITTER = """
nodes:
  source: {trigger: timer, publishes: x, jitter: 2ms}
  sink: {trigger: any, subscribes: x}
"""


def excluded(study: Study, adapters: dict[str, Adapter]) -> dict[str, str]:
    return {each.cell: each.reason for each in expand(study, adapters, CPUS).excluded}


def test_jitter_leaves_no_other_schedule(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    """A timer with jitter has recorded intervals: any schedule would have run as periodic with jitter."""
    (tmp_path / "late.yaml").write_text(JITTER)
    (tmp_path / "drive.txt").write_text("4000000\n")
    recorded = f"recorded-{tmp_path / 'drive.txt'}"
    names = ["periodic", "poisson", "burst-10", "ramp-200Hz", recorded]
    study = study_of({"workload": str(tmp_path / "late.yaml"), "schedule": names})
    (cell,) = expand(study, adapters, CPUS).cells
    assert cell.id == "shm/late/periodic"
    assert excluded(study, adapters) == {
        f"shm/late/{name}": f"source has a jitter, which is for periodic timers, not for {name}"
        for name in ("poisson", "burst-10", "ramp-200Hz", "recorded-drive")
    }
    own = JITTER.replace("jitter", "rate: 10Hz, jitter") + "  other: {trigger: timer, publishes: y}\n"
    (tmp_path / "own.yaml").write_text(own.replace("subscribes: x", "subscribes: [x, y]"))
    study = study_of({"workload": str(tmp_path / "own.yaml"), "schedule": "poisson"})
    assert not excluded(study, adapters), "its timer follows no schedule of the study"


@pytest.mark.parametrize(
    ("source", "sink", "reason"),
    [
        ("offset: 2299ms", "", ""),
        ("offset: 2300ms", "", "a publishes nothing: it first fires at 2300ms, and measuring ends at 2300ms"),
        ("start: 1s, offset: 1299ms", "", ""),
        (
            "start: 1s, offset: 2s",
            "",
            "a publishes nothing: it first fires at 3s, and measuring ends at 2300ms",
        ),
        ("restart: 2s", "", ""),
        (
            "restart: 2s, offset: 1s",
            "",
            "a-again publishes nothing: it first fires at 3s, and measuring ends at 2300ms",
        ),
        ("offset: 0", "start: 20s", ""),
        ("offset: 0", "restart: 20s", ""),
    ],
)
def test_a_timer_that_never_fires_is_excluded(
    adapters: dict[str, Adapter], tmp_path: Path, source: str, sink: str, reason: str
) -> None:
    """As a source that is too slow. A node without a timer may join whenever it likes."""
    nodes = [f"a: {{trigger: timer, publishes: x, {source}}}", f"b: {{trigger: any, subscribes: x, {sink}}}"]
    (tmp_path / "w.yaml").write_text(f"nodes: {{{', '.join(nodes)}}}\n")
    study = study_of({"workload": str(tmp_path / "w.yaml")}, warmup="300ms", duration="2s")
    assert excluded(study, adapters) == ({"shm/w": reason} if reason else {})
