# SPDX-License-Identifier: Apache-2.0
"""An adapter that wraps another can do what that one can, and knows where its library is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.study.adapter import Adapter
from lagometer.study.adapters import load_adapter
from lagometer.study.stacking import stand

FAULTY = Path(__file__).parents[3] / "adapters" / "faulty" / "adapter.json"


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    """The usual ones, and the sidecar of faulty as it ships."""
    found = write_adapters(tmp_path)
    folder = tmp_path / "faulty"
    folder.mkdir()
    (folder / "adapter.json").write_text(FAULTY.read_text(encoding="utf-8"))
    (folder / "liblagometer_faulty.so").touch()
    return {**found, "faulty": load_adapter(folder)}


def test_it_has_the_abilities_of_the_one_beneath(adapters: dict[str, Adapter]) -> None:
    options: dict[str, dict[str, Any]] = {"faulty": {"over": "udp", "drop": 0.5}, "udp": {"size": 3}}
    stood = stand(adapters, options)["faulty"]
    assert stood.sidecar.abilities == adapters["udp"].sidecar.abilities
    assert stood.sidecar.limits == adapters["udp"].sidecar.limits
    assert stood.sidecar.options == adapters["faulty"].sidecar.options
    assert stood.fixed_options == {"library": str(adapters["udp"].library), "inner": {"size": 3}}
    assert stand(adapters, {"faulty": {"over": "null"}})["faulty"].sidecar.scope == "process"


def test_it_passes_on_no_payload_type_that_it_does_not_know(adapters: dict[str, Adapter]) -> None:
    stood = stand(adapters, {"faulty": {"over": "cyclonedds"}})
    assert "Image" in stood["cyclonedds"].sidecar.abilities.types
    assert stood["faulty"].sidecar.abilities.types == ("bytes", "fixed")


def test_it_offers_no_executor_of_the_one_beneath(adapters: dict[str, Adapter]) -> None:
    stood = stand(adapters, {"faulty": {"over": "ros2"}})
    assert stood["ros2"].sidecar.abilities.executor
    assert not stood["faulty"].sidecar.abilities.executor


def test_the_two_understand_each_other_and_whom_the_one_beneath_does(adapters: dict[str, Adapter]) -> None:
    stood = stand(adapters, {"faulty": {"over": "cyclonedds"}})
    assert set(stood["faulty"].sidecar.interoperates_with) == {"cyclonedds", "fastdds", "ros2"}
    assert "faulty" in stood["cyclonedds"].sidecar.interoperates_with
    assert "faulty" in stood["fastdds"].sidecar.interoperates_with
    assert "faulty" not in stood["udp"].sidecar.interoperates_with


def test_it_is_missing_where_the_one_beneath_is(adapters: dict[str, Adapter]) -> None:
    adapters["fastdds"] = replace(adapters["fastdds"], missing="not built: no headers")
    assert stand(adapters, {"faulty": {"over": "fastdds"}})["faulty"].missing == "not built: no headers"
    assert stand(adapters, {})["faulty"].missing is None


@pytest.mark.parametrize("over", ["cyclone", "faulty", "nothing-like-it"])
def test_it_stands_on_adapters_alone(adapters: dict[str, Adapter], over: str) -> None:
    with pytest.raises(BadInput, match=r"options\.faulty\.over.*not an adapter to wrap"):
        stand(adapters, {"faulty": {"over": over}})


def test_without_the_usual_one_it_stays_as_it_is(adapters: dict[str, Adapter]) -> None:
    del adapters["shm"]
    assert stand(adapters, {})["faulty"] == adapters["faulty"]


def test_its_sidecar_describes_each_option() -> None:
    options = json.loads(FAULTY.read_text(encoding="utf-8"))["options"]
    readme = FAULTY.with_name("README.md").read_text(encoding="utf-8")
    for name in options:
        assert f"`{name.removesuffix('_at')}" in readme, name
