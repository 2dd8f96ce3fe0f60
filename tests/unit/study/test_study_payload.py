# SPDX-License-Identifier: Apache-2.0
"""The sizes of payload types: the same in the control plane, the header, and the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import ROOT

from lagometer.study.payload import (
    ENVELOPE_BYTES,
    IMU_BYTES,
    OF_ROS,
    POINT_BYTES,
    SMALLEST_BYTES,
    TEXT_ENVELOPE_BYTES,
    PayloadType,
    has_size,
    payload_reasons,
    sizes_in_words,
    smallest_bytes,
)

KINDS: tuple[PayloadType, ...] = get_args(PayloadType)
ADAPTERS = sorted((ROOT / "adapters").glob("*/adapter.json"))


def test_the_header_says_the_same() -> None:
    header = (ROOT / "engine" / "include" / "lagometer" / "adapter.h").read_text(encoding="utf-8")
    found = {name: int(value) for name, value in re.findall(r"#define LAGOMETER_(\w+_BYTES) (\d+)u", header)}
    assert found == {
        "ENVELOPE_BYTES": ENVELOPE_BYTES,
        "TEXT_ENVELOPE_BYTES": TEXT_ENVELOPE_BYTES,
        "POINT_BYTES": POINT_BYTES,
        "IMU_BYTES": IMU_BYTES,
    }


def test_an_imu_is_what_its_idl_has() -> None:
    """orientation 4, angular velocity 3, linear acceleration 3, and a covariance of 9 for each; frame_id."""
    assert 8 * (4 + 3 + 3 + 3 * 9) + 2 * ENVELOPE_BYTES == IMU_BYTES == 328


@given(st.sampled_from(KINDS), st.integers(0, 1 << 30))
def test_a_size_that_a_type_has_not_is_a_reason(kind: PayloadType, size_bytes: int) -> None:
    found = list(payload_reasons(kind, size_bytes, "any", ["t0"]))
    assert found == ([] if has_size(kind, size_bytes) else [f"the type {kind} {sizes_in_words(kind)}"])
    assert not has_size(kind, size_bytes) or size_bytes >= smallest_bytes(kind) >= SMALLEST_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_size_exists_and_nothing_below(kind: PayloadType) -> None:
    assert has_size(kind, smallest_bytes(kind))
    assert not any(has_size(kind, size_bytes) for size_bytes in range(smallest_bytes(kind)))


def test_a_string_holds_no_bytes_of_a_file() -> None:
    assert "recorded-scan may contain any bytes" in "".join(
        payload_reasons("string", 64, "recorded-scan", [])
    )
    for kind in ("bytes", "Image"):
        assert not list(payload_reasons(kind, 64, "recorded-scan", []))
    for content in ("any", "zeros", "random"):
        assert not list(payload_reasons("string", 64, content, []))


@pytest.mark.parametrize("topic", ["camera-left", "a.b", "2d"])
def test_a_name_that_ros_2_would_refuse_is_a_reason(topic: str) -> None:
    for kind in OF_ROS:
        (said,) = payload_reasons(kind, smallest_bytes(kind), "any", ["good_1", topic])
        assert said.startswith(f"ROS 2 has no topic '{topic}'")
    assert not list(payload_reasons("bytes", 64, "any", [topic]))


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.parent.name)
def test_an_adapter_has_the_messages_of_ros_2_only_if_it_speaks_dds_or_is_ros_2(path: Path) -> None:
    sidecar = json.loads(path.read_text(encoding="utf-8"))
    types = set(sidecar["abilities"]["types"])
    speak_them = (
        "cyclonedds",
        "cyclonedds11",
        "dust_dds",
        "fastdds",
        "hiroz",
        "ros2",
        "ros2_rust",
        "rustdds",
    )
    of_ros = set(OF_ROS) if sidecar["name"] in speak_them else set()
    assert types & set(OF_ROS) == of_ros
