# SPDX-License-Identifier: Apache-2.0
"""Sets of options as a factor: which cells they make, what reaches the workers, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.plan import TEXT_CHARACTERS_MAX
from lagometer.study import Adapter, Cell, Expansion, Study, expand, load_study, study_from_mapping
from lagometer.study.adapters import discover_adapters
from lagometer.study.sidecar import Sidecar
from lagometer.units import format_bytes

CPUS = (0, 1)
SIZES: dict[str, Any] = {
    "small": {"cyclonedds": {"max_message_size": 2048}},
    "large": {"cyclonedds": {"max_message_size": "64KB"}, "env": {"CYCLONEDDS_URI": "<x/>"}},
}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


def study(matrix: dict[str, Any], **top: Any) -> Study:
    matrix = {"adapter": "cyclonedds", "workload": "pipeline-2", **matrix}
    return study_from_mapping({"name": "test", "matrix": matrix, **top}, source="test")


def cells_of(expansion: Expansion) -> dict[str, Cell]:
    return {cell.id: cell for cell in expansion.cells}


def said_of(matrix: dict[str, Any], adapters: dict[str, Adapter], **top: Any) -> str:
    """What is wrong with this study."""
    with pytest.raises(BadInput) as caught:
        expand(study(matrix, **top), adapters, CPUS)
    return str(caught.value)


def test_a_variant_is_a_factor_whose_options_reach_the_workers(adapters: dict[str, Adapter]) -> None:
    given = study(
        {"variant": ["none", "small", "large"]},
        variants=SIZES,
        options={"cyclonedds": {"transport": "udp", "max_message_size": 4096}},
    )
    cells = cells_of(expand(given, adapters, CPUS))
    assert list(cells) == [f"cyclonedds/pipeline-2/{name}" for name in ("none", "small", "large")]
    sizes, environments = [], []
    for cell in cells.values():
        assert cell.columns()["variant"] == cell.factors.variant
        for plan in worker_plans(given, cell, 0, adapters):
            (adapter,) = plan.adapters
            assert adapter.options["transport"] == "udp", "what the variant leaves alone stays"
            sizes.append(adapter.options["max_message_size"])
            environments.append(adapter.environment.get("CYCLONEDDS_URI"))
    assert sizes == [4096] * 2 + [2048] * 2 + [65536] * 2
    assert environments == [None] * 4 + ["<x/>"] * 2
    assert given.as_json()["variants"] == {
        "small": {"options": SIZES["small"], "environment": {}},
        "large": {
            "options": {"cyclonedds": {"max_message_size": "64KB"}},
            "environment": SIZES["large"]["env"],
        },
    }


def test_a_single_option_is_written_into_the_matrix(adapters: dict[str, Adapter]) -> None:
    given = study({"cyclonedds.max_message_size": ["2KB", 4096], "cyclonedds.transport": ["udp", "shm"]})
    cells = cells_of(expand(given, adapters, CPUS))
    assert list(cells) == [
        f"cyclonedds/pipeline-2/max_message_size={size}+transport={transport}"
        for size in ("2KB", "4096")
        for transport in ("udp", "shm")
    ]
    assert next(dict(cell.options["cyclonedds"]) for cell in cells.values()) == {
        "max_message_size": 2048,
        "transport": "udp",
    }
    both = study({"variant": ["none", "small"], "cyclonedds.transport": "udp"}, variants=SIZES)
    assert [cell.factors.variant for cell in expand(both, adapters, CPUS).cells] == [
        "none+transport=udp",
        "small+transport=udp",
    ]


ROBOT = """
topics:
  image:  {type: Image, payload: 900KB, reliability: best_effort, depth: 1}
  points: {type: PointCloud2, payload: {lognormal: {median: 600KB, sigma: 0.2}}}
  pose:   {payload: 713B, reliability: reliable}
nodes:
  camera: {trigger: timer, rate: 30Hz, publishes: [image]}
  lidar:  {trigger: timer, rate: 10Hz, publishes: [points]}
  ekf:    {trigger: timer, rate: 50Hz, subscribes: [points], publishes: [pose]}
  planner: {trigger: any, subscribes: [image, pose], work: busy-2ms}
groups: {sensing: [camera, lidar], driving: [ekf, planner]}
chains: {lidar-to-plan: [points, pose]}
"""


def test_transports_of_a_robot_are_compared_in_other_words_too(
    adapters: dict[str, Adapter], tmp_path: Path
) -> None:
    """A transport may be spelled as the report and the sidecars name it: shared-memory is Fast DDS's shm."""
    path = ROOT / "adapters" / "fastdds" / "adapter.json"
    own = replace(adapters["fastdds"], sidecar=Sidecar.model_validate_json(path.read_bytes()))
    (tmp_path / "robot.yaml").write_text(ROBOT)
    given = study_from_mapping(
        {
            "name": "transports",
            "trials": 6,
            "variants": {
                "shm": {"fastdds": {"transport": "shared-memory"}},
                "udp": {"fastdds": {"transport": "udp"}},
            },
            "matrix": {
                "adapter": "fastdds",
                "workload": [str(tmp_path / "robot.yaml")],
                "variant": ["shm", "udp"],
            },
        },
        source="test",
    )
    cells = cells_of(expand(given, {**adapters, "fastdds": own}, CPUS))
    options = {name: cell.options["fastdds"] for name, cell in cells.items()}
    assert options == {"fastdds/robot/shm": {"transport": "shm"}, "fastdds/robot/udp": {"transport": "udp"}}
    alone = study({"cyclonedds.transport": ["shared-memory"]})
    (cell,) = expand(alone, adapters, CPUS).cells
    assert cell.factors.variant == "transport=shared-memory"
    assert cell.options["cyclonedds"] == {"transport": "shm"}


@pytest.mark.parametrize("variants", [["small", "large"], ["small"], ["none", "small"]])
def test_what_a_variant_does_not_concern_is_measured_once(
    adapters: dict[str, Adapter], variants: list[str]
) -> None:
    sets = {name: {"cyclonedds": SIZES[name]["cyclonedds"]} for name in ("small", "large")}
    expansion = expand(
        study({"adapter": ["cyclonedds", "shm"], "variant": variants}, variants=sets), adapters, CPUS
    )
    assert [cell for cell in cells_of(expansion) if cell.startswith("shm")] == ["shm/pipeline-2/none"]
    needless = {each.cell: each.reason for each in expansion.excluded}
    assert needless == {
        f"shm/pipeline-2/{name}": f"variant '{name}' sets nothing for shm: measured once, as 'none'"
        for name in variants
        if name != "none"
    }
    assert not cells_of(expansion)["shm/pipeline-2/none"].environment


def with_speed(adapters: dict[str, Adapter]) -> dict[str, Adapter]:
    """The adapters; fastdds has an option, too."""
    fastdds = adapters["fastdds"]
    text = (fastdds.directory / "adapter.json").read_text()
    option = {"type": "string", "choices": ["high", "low"], "description": "how fast"}
    sidecar = Sidecar.model_validate_json(json.dumps({**json.loads(text), "options": {"speed": option}}))
    return {**adapters, "fastdds": replace(fastdds, sidecar=sidecar)}


BY_OPTION: dict[str, Any] = {
    "adapter": ["cyclonedds", "fastdds"],
    "fastdds.speed": ["high", "low"],
    "cyclonedds.transport": ["udp", "shm"],
}


def test_options_of_two_adapters_make_no_copies(adapters: dict[str, Adapter]) -> None:
    """For each adapter, half of the combinations set the same as the other half."""
    expansion = expand(study(BY_OPTION), with_speed(adapters), CPUS)
    assert list(cells_of(expansion)) == [
        "cyclonedds/pipeline-2/speed=high+transport=udp",
        "cyclonedds/pipeline-2/speed=high+transport=shm",
        "fastdds/pipeline-2/speed=high+transport=udp",
        "fastdds/pipeline-2/speed=low+transport=udp",
    ]
    reasons = {each.cell: each.reason for each in expansion.excluded}
    assert len(reasons) == 4
    assert reasons["cyclonedds/pipeline-2/speed=low+transport=shm"] == (
        "variant 'speed=low+transport=shm' sets the same for cyclonedds as 'speed=high+transport=shm': "
        "measured once, as 'speed=high+transport=shm'"
    )


def test_a_copy_is_measured_if_the_study_leaves_the_first_one_out(adapters: dict[str, Adapter]) -> None:
    given = study(BY_OPTION, exclude=["cyclonedds/*speed=high*", "fastdds/*"])
    assert list(cells_of(expand(given, with_speed(adapters), CPUS))) == [
        "cyclonedds/pipeline-2/speed=low+transport=udp",
        "cyclonedds/pipeline-2/speed=low+transport=shm",
    ]


NAMED: dict[str, Any] = {
    "as-the-study": {"cyclonedds": {"max_message_size": "4KB"}},
    "other": {"cyclonedds": {"max_message_size": 2048}},
    "copy": {"cyclonedds": {"max_message_size": "2KB"}},
    "beside": {"cyclonedds": {"max_message_size": 2048}, "env": {"A": "b"}},
    "idle": {"fastdds": {"speed": "low"}},
}


@pytest.mark.parametrize(
    ("variants", "measured"),
    [
        (["none", "as-the-study", "other"], ["none", "other"]),
        (["as-the-study", "none"], ["as-the-study"]),
        (["idle", "as-the-study"], ["none"]),
        (["as-the-study", "idle"], ["as-the-study"]),
        (["other", "copy"], ["other"]),
        (["other", "beside"], ["other", "beside"]),
    ],
)
def test_variants_with_the_same_settings_are_measured_once(
    adapters: dict[str, Adapter], variants: list[str], measured: list[str]
) -> None:
    given = study({"variant": variants}, variants=NAMED, options={"cyclonedds": {"max_message_size": 4096}})
    expansion = expand(given, with_speed(adapters), CPUS)
    assert list(cells_of(expansion)) == [f"cyclonedds/pipeline-2/{name}" for name in measured]
    for each in expansion.excluded:
        assert each.reason.endswith(f": measured once, as '{measured[0]}'")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["64KB", 65536, "0.0625MB"], "'65536' is listed twice (as '64KB')"),
        (["64KB", "64KB"], "'64KB' is listed twice (list"),
        (["a b", "a_b"], "'a_b' has the name 'max_message_size=a_b' in ids"),
    ],
)
def test_a_value_of_an_option_is_listed_once(
    adapters: dict[str, Adapter], values: list[Any], said: str
) -> None:
    text = said_of({"cyclonedds.max_message_size": values}, adapters)
    assert f"test: matrix.cyclonedds.max_message_size: {said}" in text


def test_words_that_an_adapter_reads_alike_are_one_value(adapters: dict[str, Adapter]) -> None:
    text = said_of({"cyclonedds.transport": ["shm", "udp", "shared-memory"]}, adapters)
    assert text == (
        "test: matrix.cyclonedds.transport: 'shared-memory' is listed twice (as 'shm') (list each value once)"
    )


def test_a_variable_too_long_for_a_plan_is_refused(adapters: dict[str, Adapter]) -> None:
    """A worker's plan has no longer texts; a trial could not even begin."""
    most = {"long": {"env": {"CYCLONEDDS_URI": "x" * TEXT_CHARACTERS_MAX}}}
    given = study({"variant": "long"}, variants=most)
    (cell,) = expand(given, adapters, CPUS).cells
    assert worker_plans(given, cell, 0, adapters)
    most["long"]["env"]["CYCLONEDDS_URI"] += "x"
    text = said_of({"variant": "long"}, adapters, variants=most)
    assert "test: variants.long.env.CYCLONEDDS_URI: has 4097 characters, more than 4096 (write a long" in text


def test_ids_of_studies_without_variants_are_as_before(adapters: dict[str, Adapter]) -> None:
    (cell,) = expand(study({}), adapters, CPUS).cells
    assert cell.id == "cyclonedds/pipeline-2"
    assert cell.columns()["variant"] is None


@pytest.mark.parametrize(("name", "profiles"), [("quick", [""]), ("rack", ["default/", "matched/"])])
def test_ids_of_the_studies_that_came_before_variants_stay(name: str, profiles: list[str]) -> None:
    """Campaigns of any age are compared by the ids of their cells."""
    given = load_study(ROOT / "studies" / f"{name}.yaml")
    found = expand(given, discover_adapters({}), CPUS)
    ids = {cell.id for cell in found.cells} | {excluded.cell for excluded in found.excluded}
    assert ids == {
        f"{adapter}/pipeline-2/{format_bytes(int(str(size)))}/400Hz/best_effort/{profile}process-per-node"
        for adapter in given.matrix["adapter"]
        for size in given.matrix["payload"]
        for profile in profiles
    }


def test_what_is_wrong_is_said_with_its_place(adapters: dict[str, Adapter]) -> None:
    assert "unknown variant 'smal' (did you mean 'small'" in said_of(
        {"variant": "smal"}, adapters, variants=SIZES
    )
    assert "write it under `variants:`" in said_of({"variant": "small"}, adapters)
    assert "no cell has a variant" in said_of({}, adapters, variants=SIZES)
    wrong = {"small": {"cyclonedds": {"max_mesage_size": 2048}}}
    text = said_of({"variant": "small"}, adapters, variants=wrong)
    assert "cyclonedds has no option 'max_mesage_size' (did you mean 'max_message_size'" in text
    assert "variants.small.cyclonedds.max_mesage_size" in text
    assert "'none' is the study without" in said_of({}, adapters, variants={"none": SIZES["small"]})
    assert "sets nothing" in said_of({}, adapters, variants={"small": "x"})
    assert "not the name of a variable" in said_of({}, adapters, variants={"a": {"env": {"9": "x"}}})
    assert "test: matrix.cyclonedds.max_message_size: '10' is not" in said_of(
        {"cyclonedds.max_message_size": 10}, adapters
    )
    assert "unknown adapter" in said_of({"cyclonddd.max_message_size": 10}, adapters)
