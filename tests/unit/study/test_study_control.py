# SPDX-License-Identifier: Apache-2.0
"""The key `control`: a name in it that the study does not have is refused where it is written."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.order import control_cell
from lagometer.study import Adapter, Cell, Excluded, Study, expand, load_study
from lagometer.study.schema_json import study_schema

STUDY = """
name: x
matrix: {{adapter: cyclonedds, workload: pipeline-2, variant: [none, large]{more}}}
variants: {{large: {{cyclonedds: {{max_message_size: 64KB}}}}}}
hosts: {{robot: {{}}, base: {{runs: [sink]}}}}
control: {{adapter: {adapter}, workload: pingpong{control}}}
"""


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Adapter]:
    return write_adapters(tmp_path_factory.mktemp("adapters"))


def study_of(folder: Path, control: str, more: str = "", adapter: str = "cyclonedds") -> Study:
    path = folder / "study.yaml"
    path.write_text(STUDY.format(control=control, more=more, adapter=adapter))
    return load_study(path)


@pytest.mark.parametrize(
    ("control", "said"),
    [
        (", variant: larg", "control.variant: unknown variant 'larg' (did you mean 'large'?)"),
        (", hosts: mars", "control.hosts: unknown host 'mars' (did you mean 'base'?)"),
        (", placement: moon", "control.placement: unknown value 'moon'; known are: process-per-node"),
        (", link: slow", "control.link: unknown link 'slow'"),
        (", part: a", "control.part: a control is no part's (leave it out"),
        (
            ", cyclonedds.transport: udp",
            "control: unknown factor 'cyclonedds.transport' (write the option in",
        ),
    ],
)
def test_a_name_that_the_study_does_not_have_is_refused(tmp_path: Path, control: str, said: str) -> None:
    """A cell without the variant, or on another host, would have run under its name."""
    with pytest.raises(BadInput) as caught:
        study_of(tmp_path, control)
    assert f"study.yaml:6: {said}" in str(caught.value)
    assert len(caught.value.problems) == 1


def test_an_unknown_adapter_is_named_where_the_control_is(
    tmp_path: Path, adapters: dict[str, Adapter]
) -> None:
    """By everything that expands the study: a campaign must not have begun."""
    with pytest.raises(BadInput) as caught:
        expand(study_of(tmp_path, "", adapter="fastddd"), adapters)
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert said == "study.yaml:6: control.adapter: unknown adapter 'fastddd' (did you mean 'fastdds'?)"


@pytest.mark.parametrize("more", ["", ", cyclonedds.transport: [udp, shm]"])
def test_a_control_may_have_a_variant_that_the_study_names(
    tmp_path: Path, adapters: dict[str, Adapter], more: str
) -> None:
    """Also if the cells have it only together with single options."""
    _, control = control_cell(study_of(tmp_path, ", variant: large", more), adapters)
    assert isinstance(control, Cell)
    assert control.id == "cyclonedds/pingpong/large"
    assert control.options["cyclonedds"] == {"max_message_size": 65536}


def test_the_control_of_a_study_with_parts_may_have_a_variant_of_one(
    tmp_path: Path, adapters: dict[str, Adapter]
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "name: x\nmatrix: {adapter: cyclonedds, workload: pipeline-2}\n"
        "parts: {a: {matrix: {payload: 1KB}}, b: {matrix: {cyclonedds.transport: [udp, shm]}}}\n"
        "control: {adapter: cyclonedds, workload: pingpong, variant: transport=shm}\n"
    )
    _, control = control_cell(load_study(path), adapters)
    assert isinstance(control, Cell) and control.options["cyclonedds"] == {"transport": "shm"}
    path.write_text(path.read_text().replace("transport=shm", "transport=tcp"))
    with pytest.raises(BadInput) as caught:
        load_study(path)
    assert "study.yaml:4: control.variant: unknown variant 'transport=tcp'" in str(caught.value)
    assert "in the part" not in str(caught.value), "it is the campaign's"


def test_what_hinders_the_plain_cell_is_the_reason(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    """Of a variant that sets nothing for the control's adapter, the plain cell would be measured."""
    _, control = control_cell(study_of(tmp_path, ", variant: large", adapter="null"), adapters)
    assert isinstance(control, Excluded)
    assert control.cell == "null/pingpong/none" and "within one process" in control.reason


def test_the_schema_has_no_part_in_a_control() -> None:
    study = {"name": "x", "matrix": {"adapter": "shm", "workload": "pingpong"}}
    control = {"adapter": "udp", "workload": "pingpong", "part": "a"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**study, "control": control}, study_schema())
