# SPDX-License-Identifier: Apache-2.0
"""A trial whose middleware has another value in force than its cell asks for fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_adapters import SPECIAL, write_adapters

from lagometer.run.asked import asked_noted
from lagometer.run.worker.messages import Ready
from lagometer.run.worker.outcome import TrialOutcome, WorkerOutcome
from lagometer.study import expand, study_from_mapping

SEGMENT = {"type": "integer", "default": 1, "description": "", "reported": [{"setting": "segment"}]}


def reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_force: dict[str, Any], earlier: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Of a trial of the variant `big`, in which two workers report this."""
    own = {
        **SPECIAL["cyclonedds"],
        "options": {**SPECIAL["cyclonedds"].get("options", {}), "segment": SEGMENT},
    }
    monkeypatch.setitem(SPECIAL, "cyclonedds", own)
    adapters = write_adapters(tmp_path)
    mapping = {
        "name": "x",
        "options": {"cyclonedds": {"segment": 5}},
        "variants": {"big": {"cyclonedds": {"segment": "16MB"}, "env": {"FILE": "/a.xml"}}},
        "matrix": {"adapter": "cyclonedds", "workload": "pipeline-2", "variant": "big"},
    }
    (cell,) = expand(study_from_mapping(mapping, "test"), adapters, cpus=(0, 1)).cells
    settings = {name: {"value": value} for name, value in in_force.items()}
    told = [{"adapter": "cyclonedds", "object": "context", "effective": {"settings": settings}}]
    workers = tuple(
        WorkerOutcome(index, name, Ready(event="ready", settings=told), None, None, "")
        for index, name in enumerate(("source", "sink"))
    )
    outcome = TrialOutcome(workers, 0, 0, 0, 0, "", 0.0, 0.0, {}, reasons=earlier)
    return asked_noted(cell, adapters, outcome).reasons


def test_the_value_of_the_variant_in_force_is_no_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reasons(tmp_path, monkeypatch, {"segment": 16 << 20, "FILE": "/a.xml"}) == ()


def test_another_value_is_one_reason_and_earlier_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = reasons(tmp_path, monkeypatch, {"segment": 512, "FILE": "/b.xml"}, earlier=("timed-out: x",))
    assert found == (
        "timed-out: x",
        "not-in-force: cyclonedds: segment 16777216 asked for, 512 in force",
        "not-in-force: environment variable FILE /a.xml asked for, /b.xml in force",
    )


def test_what_nothing_reports_does_not_fail_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reasons(tmp_path, monkeypatch, {}) == ()
