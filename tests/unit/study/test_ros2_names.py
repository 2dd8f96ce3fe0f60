# SPDX-License-Identifier: Apache-2.0
"""What ROS does not allow in a name is escaped, so that no two names become one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def adapter() -> ModuleType:
    """The adapter's module; it needs no rclpy to be looked at."""
    path = ROOT / "adapters" / "ros2-py" / "ros2_py.py"
    found = importlib.util.spec_from_file_location("ros2_py", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "keep", "said"),
    [
        ("lagometer/t0", "/", "lagometer/t0"),
        ("relay-1", "_", "relay_x2D1"),
        ("a/b", "_", "a_x2Fb"),
        ("é", "/", "_xC3_xA9"),  # byte by byte, as in C++
    ],
)
def test_names_are_escaped_as_in_cpp(adapter: ModuleType, name: str, keep: str, said: str) -> None:
    assert adapter._graph_name(name, keep) == said
