# SPDX-License-Identifier: Apache-2.0
"""Whose a library is: as sidecars name it, and never guessed."""

from __future__ import annotations

import json

import pytest
from needs import ROOT
from pydantic import ValidationError

from lagometer.study.libraries import grouping
from lagometer.study.sidecar import Libraries, Sidecar

SIDECARS = {
    path.parent.name: Sidecar.model_validate_json(path.read_bytes())
    for path in sorted((ROOT / "adapters").glob("*/adapter.json"))
}


@pytest.mark.parametrize(
    ("adapter", "path", "group"),
    [
        ("cyclonedds", "/usr/lib/x86_64-linux-gnu/libddsc.so.0.10.2", "middleware"),
        ("cyclonedds", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "other"),
        ("cyclonedds", "/x/adapters/cyclonedds/liblagometer_cyclonedds.so", "lagometer"),
        ("cyclonedds", "/x/engine/lagometer-worker", "lagometer"),
        ("cyclonedds", "/usr/lib/x86_64-linux-gnu/libc.so.6", "runtime"),
        ("cyclonedds", "/usr/lib/x86_64-linux-gnu/libm-2.31.so", "runtime"),
        ("cyclonedds", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "runtime"),
        ("cyclonedds", "/usr/lib/x86_64-linux-gnu/libmymath.so.1", "other"),
        ("shm", "/usr/lib/x86_64-linux-gnu/libddsc.so.0.10.2", "other"),
        ("zenoh", "/x/adapters/zenoh/liblagometer_zenoh.so", "middleware"),
        ("ros2", "/opt/ros/jazzy/lib/librclcpp.so", "abstraction"),
        ("ros2", "/opt/ros/jazzy/lib/librmw_fastrtps_cpp.so", "abstraction"),
        ("ros2", "/opt/ros/jazzy/lib/libstd_msgs__rosidl_typesupport_cpp.so", "abstraction"),
        ("ros2", "/opt/ros/jazzy/lib/libfastrtps.so.2.14.1", "middleware"),
        ("ros2", "/opt/ros/jazzy/lib/libtracetools.so", "abstraction"),
        ("ros2", "/opt/ros/rolling/lib/libtracetools_provider.so", "tracer"),
        ("ros2", "/usr/lib/x86_64-linux-gnu/liblttng-ust-common.so.1.0.0", "tracer"),
        ("ros2", "/usr/lib/x86_64-linux-gnu/liburcu-cds.so.8.1.0", "tracer"),
        ("ros2-py", "/opt/ros/jazzy/lib/python3.12/rclpy/_rclpy_pybind11.cpython-312.so", "abstraction"),
        ("zenoh-py", "/venv/lib/python3.11/site-packages/zenoh/zenoh.abi3.so", "middleware"),
        ("zenoh-py", "/usr/bin/python3.11", "runtime"),
    ],
)
def test_a_library_has_its_group(adapter: str, path: str, group: str) -> None:
    assert grouping([SIDECARS[adapter]])(path) == group


def test_an_adapter_that_wraps_another_has_the_patterns_of_both() -> None:
    group_of = grouping([SIDECARS["faulty"], SIDECARS["cyclonedds"]])
    assert group_of("/usr/lib/libddsc.so.0") == "middleware"


def test_each_middleware_names_its_libraries() -> None:
    bare = {"null", "shm", "uds", "tcp", "udp", "faulty"}
    unnamed = {name for name, sidecar in SIDECARS.items() if not sidecar.libraries.middleware}
    assert unnamed == bare


def test_a_pattern_that_takes_in_all_is_refused() -> None:
    for wrong in ("*", "li*", "/usr/lib/libddsc.so"):
        with pytest.raises(ValidationError):
            Libraries.model_validate_json(json.dumps({"middleware": [wrong]}))
