# SPDX-License-Identifier: Apache-2.0
"""Categories of two papers: they add up to the latency, and say what can't be told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.cell.categories import (
    CATEGORY_OF,
    NO_DDS,
    NO_ROS2,
    breakdown,
    categories,
    overhead,
)
from lagometer.stats.trial.way import LAYERS

# One hop of ROS 2, in nanoseconds.
HOP = {
    "benchmark": 3.0,
    "rclcpp_publish": 20.0,
    "rcl_publish": 10.0,
    "rmw_publish": 30.0,
    "send_path": 100.0,
    "transport": 400.0,
    "receiving_thread": 90.0,
    "wake": 150.0,
    "notify": 25.0,
    "executor": 75.0,
    "begin_take": 40.0,
    "take": 60.0,
    "rmw_take": 5.0,
    "rcl_take": 6.0,
    "rclcpp_take": 7.0,
    "callback": 9.0,
    "unattributed": 50.0,
}
RAW = {
    "benchmark": 5.0,
    "serialise": 20.0,
    "send_path": 80.0,
    "transport": 300.0,
    "receiving_thread": 60.0,
    "wake": 100.0,
    "notify": 10.0,
    "take": 40.0,
    "deserialise": 15.0,
}


def test_every_layer_has_a_category() -> None:
    in_nodes = {"bridge", "callback_queue", "computation", "idle"}
    assert set(LAYERS) | in_nodes == set(CATEGORY_OF)


def test_the_categories_of_ros2() -> None:
    assert categories(HOP) == {
        "common": 20 + 10 + 40 + 6 + 7 + 9,
        "rmw": 35,
        "dds": 650,
        "notification": 250,
        "benchmarking": 3,
        "unattributed": 50,
    }


def test_raw_dds_has_conversions_but_nothing_that_is_common() -> None:
    assert categories(RAW) == {
        "rmw": 35,
        "dds": 480,
        "notification": 110,
        "benchmarking": 5,
        "unattributed": 0,
    }


def test_the_overhead_of_ros2_lies_between_two_bounds() -> None:
    found = overhead(HOP)
    own = 92 + 35 + 250
    assert found.least == pytest.approx(own / 700)
    assert found.most == pytest.approx((own + 50) / 650)
    known = overhead({**HOP, "unattributed": 0.0})
    assert known.least == known.most == pytest.approx(own / 650)


def test_without_stamps_of_ros2_its_overhead_is_not_told() -> None:
    assert (overhead(RAW).least, overhead(RAW).most, overhead(RAW).absent) == (None, None, NO_ROS2)
    assert overhead({"rmw_publish": 1.0, "rmw_take": 1.0}).absent == NO_DDS


def test_the_breakdown_of_maruyama() -> None:
    assert breakdown(RAW) == {
        "conversion_out": 20,
        "dds": 480,
        "conversion_in": 15,
        "others": 115,
        "unattributed": 0,
    }


def test_a_conversion_that_nobody_stamped_is_left_out() -> None:
    found = breakdown(HOP)
    assert set(found) == {"dds", "others", "unattributed"}
    assert found["dds"] == 650


def test_a_layer_that_is_not_known_is_unattributed() -> None:
    assert categories({"vendor-7": 4.0, "take": 6.0}) == {"dds": 6.0, "unattributed": 4.0}


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*CATEGORY_OF, "vendor-1"]), st.integers(0, 10**9)))
def test_both_add_up_to_the_latency(spent: dict[str, int]) -> None:
    layers = {name: float(each) for name, each in spent.items()}
    latency_ns = sum(layers.values())
    assert sum(categories(layers).values()) == latency_ns
    assert sum(breakdown(layers).values()) == latency_ns
    assert "unattributed" in categories(layers) and "unattributed" in breakdown(layers)
