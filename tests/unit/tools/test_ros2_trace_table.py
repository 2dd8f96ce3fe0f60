# SPDX-License-Identifier: Apache-2.0
"""tools/ros2_trace_table.py: ROS 2's trace functions as its headers declare them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.ros2_trace_table import (
    HEADER,
    TABLE,
    every_function,
    forms_of,
    functions_of,
    render,
    stub,
    written,
)

DECLARATIONS = """
#  define _DECLARE_TRACEPOINT_ARGS(event_name, ...) \\
  TRACETOOLS_PUBLIC void ros_trace_ ## event_name(__VA_ARGS__); \\
  TRACETOOLS_PUBLIC bool ros_trace_enabled_ ## event_name();

/// `rmw_publish`
_DECLARE_TRACEPOINT(
  rmw_publish,
  const void * rmw_publisher_handle,
  int64_t timestamp)

DECLARE_TRACEPOINT(
  rclcpp_executor_get_next_ready)
"""


def test_a_header_says_names_and_arguments() -> None:
    assert functions_of(DECLARATIONS) == {
        "rmw_publish": ["const void * rmw_publisher_handle", "int64_t timestamp"],
        "rclcpp_executor_get_next_ready": [],
    }
    assert forms_of(DECLARATIONS) == ["", "enabled_"]


@pytest.mark.parametrize(
    "declared",
    [
        "DECLARE_TRACEPOINT(event, double seconds)",
        "DECLARE_TRACEPOINT(event, " + ", ".join(f"int64_t a{at}" for at in range(7)) + ")",
        "",
    ],
)
def test_what_can_not_be_passed_on_as_it_came_is_refused(declared: str) -> None:
    with pytest.raises(ValueError):
        functions_of(declared)


def test_the_probe_has_what_the_table_says() -> None:
    table = json.loads(TABLE.read_text())
    assert render(table) == HEADER.read_text(), "run tools/ros2_trace_table.py"
    assert written(table) == TABLE.read_text()


def test_the_distributions_differ_where_their_releases_do() -> None:
    table = json.loads(TABLE.read_text())["distributions"]
    publish = {name: len(each["functions"]["rmw_publish"]) for name, each in table.items()}
    assert publish == {"humble": 1, "iron": 1, "jazzy": 3, "kilted": 3, "rolling": 3}
    assert "rmw_take_request" in table["kilted"]["functions"]
    assert "rmw_take_request" not in table["jazzy"]["functions"]
    assert [name for name, each in table.items() if each["forms"] == [""]] == ["humble"]


def test_only_rmw_publish_takes_other_arguments_in_another_distribution() -> None:
    """So the probe has one function of each name."""
    distributions = json.loads(TABLE.read_text())["distributions"].values()
    every = every_function({"distributions": {str(at): each for at, each in enumerate(distributions)}})
    differing = {
        name
        for each in distributions
        for name, arguments in each["functions"].items()
        if len(arguments) != len(every[name])
    }
    assert differing == {"rmw_publish"}


def test_a_stub_has_each_function_once() -> None:
    source = stub(json.loads(TABLE.read_text()), "humble")
    assert source.count("void ros_trace_rmw_publish(const void * message)") == 1
    assert "ros_trace_do_" not in source


def test_the_table_names_its_sources() -> None:
    text = Path(TABLE).read_text()
    assert all(version in text for version in ("4.1.2", "6.3.3", "8.2.5", "8.6.0", "8.10.1"))
