# SPDX-License-Identifier: Apache-2.0
"""Parts: studies within a study, and what a campaign makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.adaptive import Stopping
from lagometer.run.order import least_ns
from lagometer.run.results.trial_store import Finished
from lagometer.run.search.searching import rateless
from lagometer.run.worker.layout import worker_plans
from lagometer.study import Study, expand, load_study

SIZES = """
name: sizes
trials: 6
duration: 2s
matrix: {adapter: [shm, fastdds], workload: pipeline-2, reliability: reliable}
parts:
  small: {matrix: {payload: [64B, 1KB], rate: 100Hz}}
  large: {duration: 10s, trials: 3, matrix: {payload: 4MB, rate: 10Hz, adapter: shm}}
scales:
  quick: {trials: 1, parts: {large: {duration: 3s, trials: 1, matrix: {payload: 1MB}}}}
"""


def study_of(tmp_path: Path, text: str = SIZES, scale: str | None = None) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return load_study(path, scale)


def test_each_part_has_its_own_cells_phases_and_trials(tmp_path: Path) -> None:
    study, adapters = study_of(tmp_path), write_adapters(tmp_path)
    cells = expand(study, adapters, cpus=(0, 1)).cells
    assert [cell.id for cell in cells] == [
        "small/shm/pipeline-2/64B/100Hz/reliable",
        "small/shm/pipeline-2/1KB/100Hz/reliable",
        "small/fastdds/pipeline-2/64B/100Hz/reliable",
        "small/fastdds/pipeline-2/1KB/100Hz/reliable",
        "large/shm/pipeline-2/4MB/10Hz/reliable",
    ]
    small, large = study.of(cells[0]), study.of(cells[4])
    assert (small.duration_ns, small.trials) == (2_000_000_000, 6)
    assert (large.duration_ns, large.trials) == (10_000_000_000, 3)
    assert cells[4].columns()["part"] == "large"
    (plan, _) = worker_plans(large, cells[4], 0, adapters)
    assert plan.phases.measure_ns == 10_000_000_000
    assert least_ns(study, cells) > 4 * 6 * 2_000_000_000 + 3 * 10_000_000_000
    assert study.as_json()["parts"]["large"]["duration_ns"] == 10_000_000_000  # type: ignore[index]
    assert study.matrix["payload"] == (64, 1024, 4 << 20)


def test_a_cell_stops_after_the_trials_of_its_part(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    cells = expand(study, write_adapters(tmp_path), cpus=(0, 1)).cells
    stopping = Stopping(study, cells)
    assert stopping.remaining() == 4 * 6 + 3
    for _ in range(3):
        assert stopping.stopped(cells[4].id) is None
        stopping.add(cells[4].id, Finished(True, (), 0.1, 0.1), None)
        stopping.add(cells[0].id, Finished(True, (), 0.1, 0.1), None)
    assert stopping.stopped(cells[4].id) == "trials"
    assert stopping.stopped(cells[0].id) is None
    assert stopping.remaining() == 4 * 6 - 3


def test_a_scale_replaces_keys_of_a_part(tmp_path: Path) -> None:
    quick = study_of(tmp_path, scale="quick")
    large = quick.parts["large"]
    assert (large.duration_ns, large.matrix["payload"], large.matrix["rate"]) == (
        3_000_000_000,
        (1 << 20,),
        (10.0,),
    )
    assert (large.trials, quick.parts["small"].trials, quick.scale) == (1, 1, "quick")


def test_exclude_of_the_study_sees_all_cells_and_that_of_a_part_its_own(tmp_path: Path) -> None:
    text = SIZES + 'exclude: ["*/1KB/*"]\n'
    text = text.replace("small: {", 'small: {exclude: ["*fastdds*"], ')
    found = expand(study_of(tmp_path, text), write_adapters(tmp_path), cpus=(0, 1))
    assert [cell.id.split("/")[0:2] for cell in found.cells] == [["small", "shm"], ["large", "shm"]]
    assert {each.reason for each in found.excluded} == {
        "left out by the study: */1KB/*",
        "left out by the study: *fastdds*",
    }
    with pytest.raises(BadInput, match="'nothing\\*' matches no cell"):
        expand(study_of(tmp_path, SIZES + 'exclude: ["nothing*"]\n'), write_adapters(tmp_path), cpus=(0, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SIZES.replace("large: {", "large: {seed: 3, "), "parts.large: a part can't set 'seed'"),
        (SIZES.replace("rate: 10Hz", "rat: 10Hz"), "study.yaml:8: matrix: unknown factor 'rat'"),
        (SIZES.replace("large: {duration: 10s", "large: {duration: x"), "study.yaml:8: duration"),
        ("name: x\nmatrix: {adapter: shm, workload: pingpong}\nparts: 3\n", "parts: has no parts under it"),
        ("name: x\nmatrix: {adapter: shm, workload: pingpong}\nparts: {a: 1}\n", "parts.a: sets nothing"),
        ("name: x\nmatrix: {adapter: shm, workload: pingpong, part: a}\n", "write `parts:` at the top level"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        study_of(tmp_path, text)
    assert said in str(caught.value)


def test_a_search_takes_no_study_with_parts(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="this study has parts"):
        rateless(study_of(tmp_path))


VARIANTS = """
name: settings
variants: {big: {cyclonedds: {max_message_size: 2048}}}
matrix: {workload: pipeline-2}
parts:
  plain: {matrix: {adapter: shm}}
  settings: {matrix: {adapter: cyclonedds, variant: [none, big]}}
"""


def test_a_variant_may_be_for_one_part_alone(tmp_path: Path) -> None:
    study = study_of(tmp_path, VARIANTS)
    assert [cell.id for cell in expand(study, write_adapters(tmp_path), cpus=(0, 1)).cells] == [
        "plain/shm/pipeline-2",
        "settings/cyclonedds/pipeline-2/none",
        "settings/cyclonedds/pipeline-2/big",
    ]
    with pytest.raises(BadInput, match="no cell has a variant"):
        study_of(tmp_path, VARIANTS.replace(", variant: [none, big]", ""))
