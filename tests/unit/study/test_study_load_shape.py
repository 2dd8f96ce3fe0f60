# SPDX-License-Identifier: Apache-2.0
"""Distributions of work and contents of payloads, from the study's text to the workers' plans."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.errors import BadInput
from lagometer.run.worker.layout import worker_plans
from lagometer.run.worker.plan import Plan
from lagometer.study import Adapter, Study, expand, study_from_mapping
from lagometer.study.load_shape import canonical_content, canonical_spread
from lagometer.units import UnitError


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    return write_adapters(tmp_path / "adapters")


def study_of(**factors: Any) -> Study:
    matrix = {"adapter": "shm", "workload": "pipeline-3", **factors}
    return study_from_mapping({"name": "s", "matrix": matrix}, "test")


def plans(study: Study, adapters: dict[str, Adapter], trial: int = 0) -> list[Plan]:
    expansion = expand(study, adapters, (0, 1))
    assert not expansion.excluded
    return worker_plans(study, expansion.cells[0], trial, adapters)


def work_of(study: Study, adapters: dict[str, Adapter], trial: int = 0) -> list[Any]:
    """Of the source, the relay and the sink."""
    return [plan.model_dump()["nodes"][0]["rules"][0].get("work") for plan in plans(study, adapters, trial)]


def test_only_relays_draw_their_work(adapters: dict[str, Adapter]) -> None:
    assert work_of(study_of(work="busy-1ms"), adapters) == [None, None, None]
    source, relay, sink = work_of(study_of(work="busy-1ms", work_spread="normal-0.2ms"), adapters)
    assert source is sink is None
    assert (relay.pop("seed") > 0, relay) == (True, {"kind": "normal", "spread_ns": 200_000})
    lognormal = study_of(work="busy-1ms", work_spread="lognormal-0.50")
    relay = work_of(lognormal, adapters)[1]
    assert (relay["kind"], relay["sigma"]) == ("lognormal", 0.5)
    assert relay == work_of(lognormal, adapters)[1]
    assert relay["seed"] != work_of(lognormal, adapters, trial=1)[1]["seed"]
    assert expand(lognormal, adapters, (0, 1)).cells[0].id == "shm/pipeline-3/busy-1ms/work-lognormal-0.5"


@pytest.mark.parametrize("factors", [{}, {"work": "none"}, {"work": "busy-1ms", "workload": "pipeline-2"}])
def test_without_work_nothing_is_spread(factors: dict[str, str], adapters: dict[str, Adapter]) -> None:
    (excluded,) = expand(study_of(work_spread="normal-1us", **factors), adapters, (0, 1)).excluded
    assert "no work that normal-1us could spread" in excluded.reason


@pytest.mark.parametrize(
    "text", ["", "normal", "normal-0ns", "normal-2m", "lognormal-0", "lognormal-11", "gamma-1"]
)
def test_what_is_no_spread_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        canonical_spread(text)


@pytest.mark.parametrize("text", ["", "ones", "recorded-", "recorded-a b"])
def test_what_is_no_content_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        canonical_content(text)


def test_contents_reach_the_workers(adapters: dict[str, Adapter], tmp_path: Path) -> None:
    def content(value: str) -> Any:
        return json.loads(plans(study_of(content=value), adapters)[0].line()).get("content")

    assert content("any") is None
    assert content("zeros") == {"kind": "zeros"}
    assert content("random") == {"kind": "random", "seed": 1}
    file = tmp_path / "scan.bin"
    file.write_bytes(b"points")
    assert content(f"recorded-{file}") == {
        "kind": "recorded",
        "path": str(file),
        "crc32": zlib.crc32(b"points"),
    }
    study = study_of(content=f"recorded-{file}")
    assert expand(study, adapters, (0, 1)).cells[0].id == "shm/pipeline-3/content-recorded-scan"
    (said,) = study.as_json()["contents"].values()  # type: ignore[attr-defined]
    assert said["size_bytes"] == 6


def test_a_content_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name, word in (("absent", "neither in"), (f"{tmp_path}/empty", "has 0 B")):
        with pytest.raises(BadInput, match=word):
            study_of(content=f"recorded-{name}")
