# SPDX-License-Identifier: Apache-2.0
"""What was asked for is held against what is in force, by whatever name and in whatever unit."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.summary.findings.evidence import cells_of
from lagometer.summary.findings.settings import settings

PLAIN = {"default": 1, "reported": None, "only_with": {}}


def said(
    asked: object,
    in_force: dict[str, object],
    declared: dict[str, Any] | None = None,
    adapter: str = "fastdds",
    objects: list[dict[str, Any]] | None = None,
    **factors: Any,
) -> list[tuple[str, str]]:
    study = {
        "options": {"fastdds": {"segment": asked}, "other": {"segment": 5}},
        "variants": {
            "big": {"options": {"fastdds": {"segment": "16MB"}}},
            "file": {"environment": {"XML_FILE": "/a.xml"}},
        },
    }
    told = {name: {"value": value, "default": 1} for name, value in in_force.items()}
    entries = objects or [{"adapter": "fastdds", "object": "context", "settings": told}]
    cell = {"id": "x", "factors": {"adapter": adapter, **factors}}
    manifest = {
        "study": study,
        "cells": [cell],
        "settings": {"x": entries},
        "options": {"fastdds": {"segment": {**PLAIN, **(declared or {})}}},
    }
    (found,) = cells_of(manifest, {}, [], [])
    return [(each.kind, each.number) for each in settings(found)]


@pytest.mark.parametrize(
    ("asked", "in_force"),
    [(512, 512), ("512KB", 524_288), (True, "true"), ("shm", "shm"), (0.5, 0.5)],
)
def test_the_same_value_is_no_finding(asked: object, in_force: object) -> None:
    assert said(asked, {"segment": in_force}) == []


@pytest.mark.parametrize(
    ("asked", "in_force"), [(512, 1024), ("512KB", 512), ("shm", "udp"), (True, False), ("big", 3)]
)
def test_another_value_is_told_with_both(asked: object, in_force: object) -> None:
    number = f"fastdds: segment {asked} asked for, {in_force} in force"
    assert said(asked, {"segment": in_force}) == [("setting-not-in-force", number)]


def test_another_spelling_of_a_value_is_the_same_value() -> None:
    declared = {"also": {"shared-memory": "shm"}, "reported": [{"setting": "kind", "values": {"shm": "SHM"}}]}
    assert said("shared-memory", {"kind": "SHM"}, declared) == []
    number = "fastdds: segment shared-memory asked for, kind UDP in force"
    assert said("shared-memory", {"kind": "UDP"}, declared) == [("setting-not-in-force", number)]


def test_a_variant_stands_over_the_study_and_other_adapters_are_left_alone() -> None:
    assert said(512, {"segment": 16 << 20}, variant="big") == []
    number = "fastdds: segment 16MB asked for, 512 in force"
    assert said(512, {"segment": 512}, variant="big") == [("setting-not-in-force", number)]


def test_what_nothing_reports_is_not_confirmed() -> None:
    number = "fastdds: segment 512 asked for, not confirmed: no object reports segment"
    assert said(512, {}) == [("setting-not-confirmed", number)]
    number = "fastdds: segment 512 asked for, not confirmed: no object reports it"
    assert said(512, {"segment": 512}, {"reported": []}) == [("setting-not-confirmed", number)]


def test_what_is_left_out_of_a_report_is_the_vendors_own() -> None:
    assert said(1, {}) == []  # the option's default
    assert said(2, {}, {"reported": [{"setting": "segment", "vendors": 2}]}) == []


def test_a_campaign_without_a_report_or_from_before_declarations_says_nothing() -> None:
    assert said(512, {}, objects=[{"adapter": "fastdds", "object": "context"}]) != []
    study = {"options": {"fastdds": {"segment": 5}}}
    cell = {"id": "x", "factors": {"adapter": "fastdds"}}
    (found,) = cells_of({"study": study, "cells": [cell]}, {}, [], [])
    assert list(settings(found)) == []


def test_a_setting_may_have_another_name_unit_and_words() -> None:
    by_unit = {"reported": [{"setting": "segment_ns", "times": 1_000_000}]}
    assert said(3, {"segment_ns": 3_000_000}, by_unit) == []
    number = "fastdds: segment 3 asked for, segment_ns 3 in force"
    assert said(3, {"segment_ns": 3}, by_unit) == [("setting-not-in-force", number)]
    in_words = {"default": "any", "reported": [{"setting": "way", "values": {"any": None, "udp": "UDPv4"}}]}
    assert said("udp", {"way": "UDPv4"}, in_words) == []
    assert said("any", {}, in_words) == []
    assert said("any", {"way": "SHM"}, in_words)[0][0] == "setting-not-in-force"
    assert said("udp", {}, in_words)[0][0] == "setting-not-confirmed"
    assert said("tcp", {"way": "TCPv4"}, in_words)[0][0] == "setting-not-confirmed"


def test_of_several_settings_one_tells_and_none_may_contradict() -> None:
    two = {"reported": [{"setting": "receive"}, {"setting": "send"}]}
    assert said(5, {"receive": 5}, two) == []
    number = "fastdds: segment 5 asked for, send 4 in force"
    assert said(5, {"receive": 5, "send": 4}, two) == [("setting-not-in-force", number)]


def test_each_endpoint_must_agree_where_the_context_says_nothing() -> None:
    objects = [
        {"adapter": "fastdds", "object": f"writer {name}", "settings": {"segment": {"value": value}}}
        for name, value in (("a", 5), ("b", 6))
    ]
    number = "fastdds: segment 5 asked for, 6 in force"
    assert said(5, {}, objects=objects) == [("setting-not-in-force", number)]
    context = {"adapter": "fastdds", "object": "context", "settings": {"segment": {"value": 5}}}
    assert said(5, {}, objects=[*objects, context]) == []
    of_another = {"adapter": "udp", "object": "context", "settings": {"segment": {"value": 5}}}
    assert said(5, {}, objects=[of_another])[0][0] == "setting-not-confirmed"


def test_an_option_that_has_no_effect_is_not_looked_for() -> None:
    only = {"only_with": {"history": ["keep_all"]}}
    assert said(5, {"segment": 16}, only) == []
    assert said(5, {"segment": 16}, only, history="keep_all")[0][0] == "setting-not-in-force"


def test_the_adapter_of_a_topic_is_looked_at_too() -> None:
    assert said(5, {"segment": 6}, adapter="shm") == []
    assert said(5, {"segment": 6}, adapter="shm,fastdds+udp")[0][0] == "setting-not-in-force"


def test_a_variable_of_a_variant_is_looked_for_too() -> None:
    number = "environment variable XML_FILE /a.xml asked for, not confirmed: no object reports XML_FILE"
    assert said(1, {}, variant="file") == [("setting-not-confirmed", number)]
    assert said(1, {"XML_FILE": "/a.xml"}, variant="file") == []
    number = "environment variable XML_FILE /a.xml asked for, /b.xml in force"
    assert said(1, {"XML_FILE": "/b.xml"}, variant="file") == [("setting-not-in-force", number)]
