# SPDX-License-Identifier: Apache-2.0
"""Which qualities of service match, by the table of DDS 1.4, section 2.2.3."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagometer.cli.main import main
from lagometer.conformance.qos_observed import asked_for
from lagometer.conformance.qos_rules import PROFILES, Qos, judged, parse_qos
from lagometer.units import UnitError


def misfits(offered: str, requested: str) -> list[str]:
    policies = judged(parse_qos(offered), parse_qos(requested))
    return [policy.name for policy in policies if not policy.compatible]


@pytest.mark.parametrize(
    ("offered", "requested", "expected"),
    [
        ("reliable", "best_effort", []),
        ("best_effort", "reliable", ["reliability"]),
        # What ROS users meet: a sensor's publisher, and a subscriber with the default profile.
        ("sensor_data", "default", ["reliability"]),
        ("default", "sensor_data", []),
        ("default", "default,transient_local", ["durability"]),
        ("rosout", "default", []),
        ("persistent", "transient_local", []),
        ("transient_local", "transient", ["durability"]),
        ("deadline=100ms", "deadline=100ms", []),
        ("deadline=50ms", "deadline=100ms", []),
        ("deadline=200ms", "deadline=100ms", ["deadline"]),
        ("reliable", "deadline=100ms", ["deadline"]),
        ("deadline=100ms", "reliable", []),
        ("latency_budget=10ms", "latency_budget=5ms", ["latency budget"]),
        ("latency_budget=10ms", "best_effort", ["latency budget"]),
        ("shared", "exclusive", ["ownership"]),
        ("exclusive", "shared", ["ownership"]),
        ("automatic", "manual_by_topic", ["liveliness"]),
        ("manual_by_topic", "automatic", []),
        ("lease=2s", "lease=1s", ["liveliness lease"]),
        ("by_reception_timestamp", "by_source_timestamp", ["destination order"]),
        ("presentation=topic", "presentation=instance", []),
        ("presentation=topic", "presentation=group", ["presentation"]),
        ("partition=a", "best_effort", ["partition"]),
        ("partition=a+b", "partition=b", []),
        ("partition=camera*", "partition=camera_front", []),
        ("partition=camera_front", "partition=camera*", []),
        ("partition=camera*", "partition=cam*", ["partition"]),
        ("partition=camera*", "partition=camera*", ["partition"]),
        # Each side's own affair:
        ("keep_all", "keep_last,depth=1", []),
        ("lifespan=1s", "reliable", []),
        ("best_effort,volatile", "reliable,transient_local", ["durability", "reliability"]),
    ],
)
def test_pairs_of_the_standard(offered: str, requested: str, expected: list[str]) -> None:
    assert misfits(offered, requested) == expected


def test_by_default_a_publisher_is_reliable_and_a_subscriber_is_not() -> None:
    assert [
        (each.offered, each.requested) for each in judged(Qos(), Qos()) if each.name == "reliability"
    ] == [("reliable", "best_effort")]
    assert all(policy.compatible for policy in judged(Qos(), Qos()))


@given(st.sampled_from(sorted(PROFILES)))
def test_a_profile_matches_itself(name: str) -> None:
    assert misfits(name, name) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("relaible", "did you mean 'reliable'"),
        ("reliable,best_effort", "there is a reliability already"),
        ("deadline=soon", "soon"),
        ("depth=0", "not a number from 1 up"),
        ("reliable,sensor_data", "is not a policy"),
        ("presentation=all", "presentation=all"),
        ("", "is not a policy"),
        ("reliability=reliable", "is not a policy"),
    ],
)
def test_what_is_no_policy_is_named(text: str, said: str) -> None:
    with pytest.raises(UnitError, match=said):
        parse_qos(text)


def test_only_what_endpoints_can_be_asked_for_is_tried() -> None:
    asked = asked_for(parse_qos("deadline=1ms,partition=a+b"), "reliable")
    assert asked == {
        "reliability": "reliable",
        "durability": "volatile",
        "deadline_ns": 1_000_000,
        "partition": "a;b",
    }
    with pytest.raises(ValueError, match="ownership is judged by the rules alone"):
        asked_for(parse_qos("exclusive"), "reliable")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.out, said.err


def test_the_command_says_what_does_not_match_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = told(capsys, "qos", "check", "sensor_data", "reliable")
    assert code == 11
    assert "they don't match" in said
    assert "offer at least what is requested: best_effort < reliable" in said
    code, said, _ = told(capsys, "qos", "check", "default", "sensor_data", "--json")
    assert code == 0
    assert json.loads(said)["match"] is True
    code, _, errors = told(capsys, "qos", "check", "defualt", "reliable")
    assert code == 2
    assert "did you mean 'default'" in errors
