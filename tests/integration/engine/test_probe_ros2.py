# SPDX-License-Identifier: Apache-2.0
"""The probe in front of ROS 2's trace functions: libraries of each distribution in place of ROS 2's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from needs import need

from lagometer.store import probes
from lagometer.store.probes import ProbeLog, decode, read_used, ros2_of
from tests.fixtures.ros2_stub import ONE_ARGUMENT, VERSIONS, WITHOUT_QUESTIONS, Ros2Stub

MESSAGES = 3
ONE_MESSAGE = [
    probes.RCLCPP_PUBLISH,
    probes.RCL_PUBLISH,
    probes.RMW_PUBLISH,
    probes.EXECUTOR_EXECUTE,
    probes.RMW_TAKE,
    probes.RCL_TAKE,
    probes.RCLCPP_TAKE,
    probes.CALLBACK_START,
    probes.CALLBACK_END,
]


def carried_out(build: Path, folder: Path, stub: Ros2Stub, **environment: str) -> tuple[ProbeLog, list[int]]:
    """What the probe wrote, and what the program says that the library was told."""
    given = {
        **os.environ,
        **environment,
        "LD_PRELOAD": str(build / "probes" / "liblagometer_probe.so"),
        "LAGOMETER_PROBE_FILE": str(folder / "probe"),
        "LAGOMETER_PROBE_BYTES": str(1 << 20),
    }
    command = [*stub.command, str(MESSAGES)]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return decode(read_used(folder / "probe")), [int(each) for each in done.stdout.split()]


@pytest.fixture
def built(build: Path, tmp_path: Path) -> Path:
    """A folder for what is compiled."""
    need("c++")
    return tmp_path


def stamped(log: ProbeLog) -> list[int]:
    """The kinds of ROS 2's calls, in their order."""
    kinds = log.calls["call"][np.argsort(log.calls["begin_ns"], kind="stable")]
    return [int(each) for each in kinds if each >= probes.RCLCPP_PUBLISH]


@pytest.mark.parametrize("distribution", VERSIONS)
@pytest.mark.parametrize("traced", [False, True])
def test_each_distribution_is_known_and_stamped(
    build: Path, built: Path, distribution: str, traced: bool
) -> None:
    """Whether or not a tracer of ROS 2's own listens: stock Humble's functions are empty."""
    version = VERSIONS[distribution]
    stub = Ros2Stub.build(built, distribution, version=version)
    log, told = carried_out(build, built, stub, **({"STUB_ENABLED": "1"} if traced else {}))
    found = ros2_of(log)
    assert found is not None
    assert (found.distribution, found.version, found.refused) == (distribution, version, None)
    assert found.nodes == ("/numbers",)
    assert stamped(log) == ONE_MESSAGE * MESSAGES
    publish = log.calls[log.calls["call"] == probes.RMW_PUBLISH]
    take = log.calls[log.calls["call"] == probes.RMW_TAKE]
    of_rcl = log.calls[log.calls["call"] == probes.RCL_PUBLISH]
    assert (publish["connection"] == of_rcl["connection"]).all()  # the message
    assert (take["result"] > 10**18).all()
    if distribution in ONE_ARGUMENT:
        assert not publish["object"].any() and not publish["result"].any()
    else:
        assert (publish["object"] == of_rcl["object"]).all()  # here the same handle
        assert (publish["result"] == take["result"]).all()
    # The library was told all that it would have been without the probe, and nothing else.
    asked = 0 if distribution not in WITHOUT_QUESTIONS and not traced else MESSAGES
    assert told[:4] == [MESSAGES, asked, MESSAGES, 1]
    assert told[4:] == ([] if distribution in ONE_ARGUMENT else [1])


@pytest.mark.parametrize(
    ("distribution", "version", "reason"),
    [
        (
            "jazzy",
            "4.1.2",
            "tracetools 4.1.2 is that of humble, but its functions are those of iron or jazzy",
        ),
        ("humble", "8.2.5", "tracetools 8.2.5 is that of jazzy, but its functions are those of humble"),
        ("kilted", "8.2.5", "tracetools 8.2.5 is that of jazzy, but its functions are those of kilted"),
        ("rolling", "9.0.0", "tracetools 9.0.0 is not known"),
        (
            "jazzy",
            None,
            "its tracetools may be that of iron or jazzy, which give rmw_publish other arguments",
        ),
    ],
)
def test_another_distribution_is_refused_and_told_on_all_the_same(
    build: Path, built: Path, distribution: str, version: str | None, reason: str
) -> None:
    stub = Ros2Stub.build(built, distribution, version=version)
    log, told = carried_out(build, built, stub, STUB_ENABLED="1")
    found = ros2_of(log)
    assert found is not None and found.distribution is None
    assert found.refused is not None and found.refused.startswith(reason)
    assert stamped(log) == []
    assert told[:4] == [MESSAGES, MESSAGES, MESSAGES, 1]


@pytest.mark.parametrize("distribution", ["humble", "kilted", "rolling"])
def test_functions_that_one_distribution_alone_has_need_no_version(
    build: Path, built: Path, distribution: str
) -> None:
    log, _ = carried_out(build, built, Ros2Stub.build(built, distribution, version=None))
    found = ros2_of(log)
    assert found is not None
    assert (found.distribution, found.version) == (distribution, None)
    assert stamped(log) == ONE_MESSAGE * MESSAGES


def test_a_library_that_a_program_has_loaded_for_itself_is_found(build: Path, built: Path) -> None:
    """As Python loads rclpy."""
    stub = Ros2Stub.build(built, "jazzy", version="8.2.5", as_library=True)
    log, told = carried_out(build, built, stub)
    found = ros2_of(log)
    assert found is not None and found.distribution == "jazzy"
    assert stamped(log) == ONE_MESSAGE * MESSAGES
    assert told == [MESSAGES, 0, MESSAGES, 1, 1]


def test_a_child_says_what_its_parent_found(build: Path, built: Path) -> None:
    stub = Ros2Stub.build(built, "kilted", version="8.6.0")
    folder = built / "probes"
    folder.mkdir()
    given = {
        **os.environ,
        "LD_PRELOAD": str(build / "probes" / "liblagometer_probe.so"),
        "LAGOMETER_PROBE_FOLDER": str(folder),
        "LAGOMETER_PROBE_BYTES": str(1 << 20),
    }
    subprocess.run([stub.program, str(MESSAGES), "fork"], env=given, check=True, timeout=60)
    logs = [decode(read_used(path)) for path in folder.iterdir()]
    assert len(logs) == 2
    for log in logs:
        found = ros2_of(log)
        assert found is not None and (found.distribution, found.version) == ("kilted", "8.6.0")
        assert stamped(log) == ONE_MESSAGE * MESSAGES


def test_a_program_without_ros2_says_nothing_of_it(build: Path, built: Path) -> None:
    assert ros2_of(decode(probes.encode({1: []}))) is None
