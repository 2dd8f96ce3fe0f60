# SPDX-License-Identifier: Apache-2.0
"""Values of options that need a library: without it a cell is excluded and says what it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from needs import ROOT
from study_adapters import write_adapters

from lagometer.study import Adapter, Expansion, expand, study_from_mapping
from lagometer.study.sidecar import Option, OptionLibrary

RMW = Option(
    type="string",
    default="default",
    description="the layer",
    library=OptionLibrary(file="lib/lib{value}.so", prefixes="PREFIXES_OF_A_TEST"),
)


def expansion(adapters: dict[str, Adapter]) -> Expansion:
    ros2 = adapters["ros2"]
    sidecar = ros2.sidecar.model_copy(update={"options": {"rmw": RMW}})
    given = {**adapters, "ros2": replace(ros2, sidecar=sidecar)}
    matrix = {"adapter": "ros2", "workload": "pipeline-2", "ros2.rmw": ["default", "rmw_here", "rmw_absent"]}
    return expand(study_from_mapping({"name": "x", "matrix": matrix}, "test"), given, cpus=(0, 1))


def test_a_value_whose_library_is_absent_excludes_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "second" / "lib").mkdir(parents=True)
    (tmp_path / "second" / "lib" / "librmw_here.so").touch()
    monkeypatch.setenv("PREFIXES_OF_A_TEST", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    found = expansion(write_adapters(tmp_path))
    assert [cell.factors.variant for cell in found.cells] == ["rmw=default", "rmw=rmw_here"]
    assert [each.reason for each in found.excluded] == [
        "needs rmw_absent: lib/librmw_absent.so is in no prefix of PREFIXES_OF_A_TEST"
    ]


def test_nobody_looks_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFIXES_OF_A_TEST", raising=False)
    assert len(expansion(write_adapters(tmp_path)).cells) == 3


@pytest.mark.parametrize("name", ["ros2", "ros2-py"])
def test_the_adapters_of_ros_2_look_for_their_middleware_layer(name: str) -> None:
    option = json.loads((ROOT / "adapters" / name / "adapter.json").read_text())["options"]["rmw"]
    assert option["library"] == {"file": "lib/lib{value}.so", "prefixes": "AMENT_PREFIX_PATH"}
