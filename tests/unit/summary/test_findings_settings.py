# SPDX-License-Identifier: Apache-2.0
"""What was asked for and what is in force are held against each other, and units are no difference."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.summary.findings.evidence import cells_of
from lagometer.summary.findings.settings import settings


def said(asked: object, in_force: object, **more: Any) -> list[str]:
    study = {
        "options": {"fastdds": {"segment": asked}, "other": {"segment": 5}},
        "variants": {"big": {"options": {"fastdds": {"segment": "16MB"}}}},
    }
    entry = {"settings": {"segment": {"value": in_force, "default": 1}}}
    cell = {"id": "x", "factors": {"adapter": "fastdds", **more}}
    (found,) = cells_of({"study": study, "cells": [cell], "settings": {"x": [entry]}}, {}, [], [])
    return [each.number for each in settings(found)]


@pytest.mark.parametrize(
    ("asked", "in_force"),
    [(512, 512), ("512KB", 524_288), (True, "true"), ("shm", "shm"), (0.5, 0.5), (512, None)],
)
def test_the_same_value_is_no_finding(asked: object, in_force: object) -> None:
    assert said(asked, in_force) == []


@pytest.mark.parametrize(
    ("asked", "in_force"), [(512, 1024), ("512KB", 512), ("shm", "udp"), (True, False), ("big", 3)]
)
def test_another_value_is_told_with_both(asked: object, in_force: object) -> None:
    assert said(asked, in_force) == [f"fastdds: segment {asked} asked for, {in_force} in force"]


def test_a_variant_stands_over_the_study_and_other_adapters_are_left_alone() -> None:
    assert said(512, 16 << 20, variant="big") == []
    assert said(512, 512, variant="big") == ["fastdds: segment 16MB asked for, 512 in force"]
