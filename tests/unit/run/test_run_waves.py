# SPDX-License-Identifier: Apache-2.0
"""In which order workers start, and what a subscriber misses at first."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trial import SmallTrial
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.waves import late_waves, waves
from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.study import expand, study_from_mapping

T = 1_100_000


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("matched", ([[0, 1, 2]], [])),
        ("subscriber-first", ([[1], [2], [0]], [])),
        ("publisher-first", ([[0]], [(0, [1]), (0, [2])])),
    ],
)
def test_those_that_only_publish_start_before_or_after_the_others_which_start_in_turn(
    tmp_path: Path, start: str, expected: tuple[list[list[int]], list[tuple[int, list[int]]]]
) -> None:
    adapters = write_adapters(tmp_path)
    mapping = {"name": "x", "matrix": {"adapter": "shm", "workload": "pipeline-3", "start": start}}
    study = study_from_mapping(mapping, "test")
    plans = worker_plans(study, expand(study, adapters, cpus=(0, 1)).cells[0], 0, adapters)
    assert (waves(plans), late_waves(plans)) == expected
    assert all(plan.start == start for plan in plans)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (
            {"workload": "pipeline-2", "placement": "single-process", "adapter": "null"},
            "no process only publishes",
        ),
        ({"workload": "pingpong"}, "waits for each answer"),
    ],
)
def test_where_no_order_can_be_the_cell_is_excluded(
    tmp_path: Path, matrix: dict[str, str], said: str
) -> None:
    mapping = {"name": "x", "matrix": {"adapter": "shm", "start": "subscriber-first", **matrix}}
    (found,) = expand(study_from_mapping(mapping, "test"), write_adapters(tmp_path), cpus=(0, 1)).excluded
    assert said in found.reason


def test_initial_loss_is_what_was_sent_before_the_first_that_came() -> None:
    trial = SmallTrial()
    edge, other = trial.edge(0, "source", "sink"), trial.edge(0, "source", "late")
    for sequence in range(6):
        trial.send(0, sequence, T + 100 * sequence)
        if sequence in (2, 4, 5):
            trial.take(edge, sequence, T + 100 * sequence + 10)
    facts = trial.facts({0}, {"sink", "late"})
    rows = {row["edge"]: row for row in summarise(samples(trial.lanes(), facts), facts).iter_rows(named=True)}
    assert rows[edge.name]["initial_lost"] == 2
    assert rows[other.name]["initial_lost"] is None
    assert rows["end-to-end"]["initial_lost"] is None


def test_the_startup_is_that_of_the_last_worker_and_the_first_message() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    trial.send(0, 0, T)
    trial.take(edge, 0, T + 10)
    startup = {"process": 5, "participant": 70, "matched": 900}
    facts = trial.facts({0}, {"sink"}, workers_started_ns=100_000, startup_ns=startup)
    row = summarise(samples(trial.lanes(), facts), facts).row(0, named=True)
    names = ("process", "participant", "matched", "first_message")
    assert [row[f"startup_{name}_ns"] for name in names] == [5, 70, 900, T + 10 - 100_000]
    unknown = trial.facts({0}, {"sink"})
    row = summarise(samples(trial.lanes(), unknown), unknown).row(0, named=True)
    assert [row[f"startup_{name}_ns"] for name in names] == [None] * 4


JOINING = """
nodes:
  source: {trigger: timer, publishes: [x]}
  sink: {trigger: any, subscribes: [x, y]}
  late: {trigger: any, subscribes: [x], start: 1s}
  second: {trigger: timer, offset: 2ms, publishes: [y], start: 300ms}
"""


def test_a_node_that_joins_late_gets_its_plan_then_and_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "joining.yaml"
    path.write_text(JOINING)
    adapters = write_adapters(tmp_path)
    mapping = {"name": "x", "matrix": {"adapter": "cyclonedds", "workload": str(path)}}
    study = study_from_mapping(mapping, "test")
    plans = worker_plans(study, expand(study, adapters, cpus=(0, 1)).cells[0], 0, adapters)
    assert waves(plans) == [[0, 1]]
    assert late_waves(plans) == [(300_000_000, [3]), (1_000_000_000, [2])]
    together = [plan.model_copy(update={"start_ns": 1_000_000_000}) for plan in plans[2:]]
    assert late_waves([*plans[:2], *together]) == [(1_000_000_000, [2, 3])]
    sink = plans[1].nodes[0]
    assert [reader.streams for reader in sink.readers] == [[0], []], "nobody waits for the second source"
    assert plans[3].nodes[0].rules[0].model_dump()["offset_ns"] == 302_000_000
    alone = {**mapping["matrix"], "placement": "single-process"}
    excluded = expand(
        study_from_mapping({"name": "x", "matrix": alone}, "test"), adapters, cpus=(0, 1)
    ).excluded
    assert "join or leave at different times" in excluded[0].reason


def test_a_node_that_leaves_has_shorter_phases(tmp_path: Path) -> None:
    path = tmp_path / "leaving.yaml"
    path.write_text(JOINING.replace("start: 1s", "start: 100ms, stop: 1s"))
    adapters = write_adapters(tmp_path)
    mapping = {"name": "x", "warmup": "300ms", "matrix": {"adapter": "cyclonedds", "workload": str(path)}}
    study = study_from_mapping(mapping, "test")
    plans = worker_plans(study, expand(study, adapters, cpus=(0, 1)).cells[0], 0, adapters)
    leaving, staying = plans[2].phases, plans[0].phases
    assert (leaving.warmup_ns, leaving.measure_ns, leaving.drain_ns) == (300_000_000, 700_000_000, 0)
    assert (staying.measure_ns, staying.drain_ns) == (2_000_000_000, 200_000_000)
    path.write_text(JOINING.replace("start: 1s", "start: 1s, stop: 500ms"))
    with pytest.raises(BadInput, match="leaves before it joins"):
        study_from_mapping(mapping, "test")
