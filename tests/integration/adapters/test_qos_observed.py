# SPDX-License-Identifier: Apache-2.0
"""What DDS does with pairs of qualities of service is what its rules say."""

from __future__ import annotations

from itertools import product

import pytest
from needs import need

from lagometer.conformance.bench import Subject
from lagometer.conformance.qos_observed import observed
from lagometer.conformance.qos_rules import judged, parse_qos
from lagometer.study.adapters import discover_adapters

SIDES = ["best_effort", "reliable", "best_effort,transient_local", "reliable,transient_local"]
PAIRS = [
    *product(SIDES, SIDES),
    ("reliable", "reliable,deadline=100ms"),
    ("reliable,deadline=50ms", "reliable"),
]


@pytest.mark.parametrize("adapter", ["cyclonedds", "fastdds"])
def test_pairs_match_as_the_rules_say(adapter: str) -> None:
    need("netns")
    need(adapter)
    pairs = [(parse_qos(offered), parse_qos(requested)) for offered, requested in PAIRS]
    found = observed(Subject(discover_adapters()[adapter], {}, "private"), pairs)
    assert [each.reason for each in found if each.matched is None] == []
    rules = [all(policy.compatible for policy in judged(*pair)) for pair in pairs]
    assert [each.matched for each in found] == rules
    assert not all(rules)


def test_what_an_adapter_does_not_set_up_is_not_judged() -> None:
    need("netns")
    subject = Subject(discover_adapters()["udp"], {}, "private")
    pair = (parse_qos("best_effort,partition=a"), parse_qos("best_effort,partition=a"))
    (found,) = observed(subject, [pair])
    assert found.matched is None
    assert "only reliability, history and durability can be set" in found.reason
