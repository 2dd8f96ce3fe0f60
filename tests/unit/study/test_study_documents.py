# SPDX-License-Identifier: Apache-2.0
"""What is written beside the code is what the code does: the JSON Schema and docs/WORKLOADS.md."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from lagometer.study import load_study, study_from_mapping
from lagometer.study.capacity import CAPACITY
from lagometer.study.devices import DEVICES
from lagometer.study.factors import FACTORS
from lagometer.study.link_changes import CHANGES, OF_A_PROFILE, change_keys
from lagometer.study.links import LINK_KEYS
from lagometer.study.schema import KEY_NAMES, TOP_LEVEL_KEYS
from lagometer.study.schema_json import SCHEMA_PATH, schema_text, study_schema
from lagometer.study.workload import built_in_workload, find_workload
from lagometer.study.workload_file import TOP_LEVEL_KEYS as TOP_LEVEL_OF_A_WORKLOAD
from lagometer.study.workload_rules import NODE_KEYS, TRIGGERS
from lagometer.study.workload_topics import TOPIC_KEYS

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "WORKLOADS.md").read_text(encoding="utf-8")
STUDIES = sorted((REPOSITORY / "studies").glob("*.yaml"))


def first_cells(heading: str) -> list[list[str]]:
    """The rows of the table below a heading."""
    section = re.split(r"\n###? ", PAGE.split(f"## {heading}\n")[1])[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_schema_is_up_to_date() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text(), (
        "run python -m lagometer.study.schema_json"
    )
    jsonschema.Draft202012Validator.check_schema(study_schema())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_studies_that_ship_are_valid_by_both(path: Path) -> None:
    assert load_study(path).name == path.stem
    jsonschema.validate(YAML(typ="safe", pure=True).load(path.read_text()), study_schema())


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "x"},
        {"name": "x", "matrix": {"adapter": "shm"}},
        {"name": "x", "matrix": {"adapter": "shm", "workload": "pingpong", "reliability": "sure"}},
        {"name": "x", "matrix": {"adapter": "shm", "workload": "pingpong", "depth": 0}},
        {"name": "x", "surprise": 1, "matrix": {"adapter": "shm", "workload": "pingpong"}},
    ],
)
def test_what_the_schema_refuses_is_bad_input(wrong: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, study_schema())
    with pytest.raises(Exception, match="test"):
        study_from_mapping(wrong, source="test")


def test_the_page_lists_every_factor_in_order_with_its_default() -> None:
    rows = first_cells("Factors")
    assert [row[0] for row in rows] == [f"`{factor.name}`" for factor in FACTORS]
    defaults = ["" if factor.default is None else factor.write(factor.default) for factor in FACTORS]
    assert [row[1] for row in rows] == defaults


def test_the_page_names_every_word_of_a_factor() -> None:
    for factor, row in zip(FACTORS, first_cells("Factors"), strict=True):
        words = factor.schema.get("enum", [])
        assert isinstance(words, list)
        for word in words:
            assert f"`{word}`" in row[2]


def test_the_page_lists_every_key_with_its_default() -> None:
    rows = first_cells("Top-level keys")
    assert [row[0] for row in rows] == [f"`{name}`" for name in KEY_NAMES]
    assert [row[1] for row in rows[: len(TOP_LEVEL_KEYS)]] == [key.default or "" for key in TOP_LEVEL_KEYS]


def test_the_page_lists_every_key_of_a_link() -> None:
    rows = [row[0] for row in first_cells("Links")]
    of_a_link = [f"`{name}`" for name in LINK_KEYS if name != "description"]
    assert rows == [*of_a_link, f"`{CHANGES}`", f"`{CAPACITY}`", "`description`, `sources`"]
    keys = {name for row in first_cells("Changes of a link") for name in re.findall(r"`([a-z]+)`", row[0])}
    assert keys == set(change_keys(dict.fromkeys(OF_A_PROFILE, str)))


def test_the_page_lists_every_device_as_the_code_has_it() -> None:
    rows = [row[:3] for row in first_cells("Devices")]
    listed = [[f"`{d.name}`", str(d.cpus), f"{d.speed_mips:g} MIPS"] for d in DEVICES.values()]
    assert rows == [*listed, ["`{cpus: 2, speed: 1600MIPS}`", "2", "1600 MIPS"]]


def test_the_page_names_every_key_of_a_workload_file() -> None:
    named = set(re.findall(r"`([a-z]+)`", PAGE.split("## Workload files")[1]))
    assert {*NODE_KEYS, *TRIGGERS, *TOPIC_KEYS, *TOP_LEVEL_OF_A_WORKLOAD[2:]} <= named


def test_the_workloads_that_the_page_lists_exist() -> None:
    for row in first_cells("Built-in workloads"):
        assert built_in_workload(row[0].strip("`").replace("-N", "-3"))


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    study, variants, secured, hosts, behind_ssh, emulated, devices, links, parts, scales, *of_workloads = (
        examples
    )
    workload, feedback, services, actions, servers, topics, placements = of_workloads
    (tmp_path / "study.yaml").write_text(study)
    assert load_study(tmp_path / "study.yaml").trials == 3
    (tmp_path / "variants.yaml").write_text(f"name: variants\n{variants}")
    (tmp_path / "secured.yaml").write_text(secured)
    sides = find_workload("secured.yaml", tmp_path).topics
    assert [(side.domain, side.security) for side in sides.values()] == [(5, "none"), (10, None)]
    (tmp_path / "hosts.yaml").write_text(f"name: hosts\n{hosts}")
    assert load_study(tmp_path / "hosts.yaml").hosts["base"].runs == ("sink",)
    (tmp_path / "ssh.yaml").write_text(f"name: ssh\n{behind_ssh}")
    assert load_study(tmp_path / "ssh.yaml").hosts["base"].launcher == "ssh"
    (tmp_path / "emulated.yaml").write_text(f"name: emulated\n{emulated}")
    assert all(host.is_emulated for host in load_study(tmp_path / "emulated.yaml").hosts.values())
    (tmp_path / "devices.yaml").write_text(f"name: devices\n{devices}")
    assert load_study(tmp_path / "devices.yaml").hosts["robot"].device == DEVICES["pi-3"]
    (tmp_path / "links.yaml").write_text(f"name: links\n{links}")
    assert list(load_study(tmp_path / "links.yaml").links) == ["radio", "wifi"]
    (tmp_path / "parts.yaml").write_text(parts)
    assert list(load_study(tmp_path / "parts.yaml").parts) == ["small", "large"]
    (tmp_path / "scales.yaml").write_text(f"name: scales\n{scales}")
    assert load_study(tmp_path / "scales.yaml", "quick").matrix["payload"] == (100, 100 * 1024)
    chosen = load_study(tmp_path / "variants.yaml")
    assert set(chosen.matrix["variant"]) == {"none", *chosen.variants}
    (tmp_path / "workload.yaml").write_text(workload)
    assert find_workload("workload.yaml", tmp_path).name == "diamond"
    (tmp_path / "feedback.yaml").write_text(feedback)
    assert find_workload("feedback.yaml", tmp_path).sink_edges() == {"localizer→planner"}
    (tmp_path / "services.yaml").write_text(services)
    asked = find_workload("services.yaml", tmp_path)
    assert [chain.name for chain in asked.chains] == ["plan.driver", "plan.operator"]
    (tmp_path / "actions.yaml").write_text(actions)
    assert len(find_workload("actions.yaml", tmp_path).edges()) == 5
    (tmp_path / "servers.yaml").write_text(f"services:\n  plan: {{}}\n{servers}")
    restarts = find_workload("servers.yaml", tmp_path)
    assert [chain.name for chain in restarts.chains] == ["plan", "plan-again"]
    (tmp_path / "topics.yaml").write_text(topics + placements)
    robot = find_workload("topics.yaml", tmp_path)
    assert (list(robot.topics), len(robot.groups), len(robot.chains)) == (["image", "points", "pose"], 2, 1)
    assert list(robot.placements) == ["coarse", "split"]
