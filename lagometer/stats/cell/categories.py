# SPDX-License-Identifier: Apache-2.0
"""Sorts layers by owner, in the categories of two papers (docs/methodology/layers.md, "Categories").

Kronauer et al. 2021, "Latency Analysis of ROS2 Multi-Node Systems", figure 6: how much of a chain's latency
belongs to ROS 2 and how much to DDS, summed over hops. Maruyama et al. 2016, "Exploring the Performance of
ROS2", figures 11 and 12: the two conversions, DDS, and others. Both papers put stamps into ROS 2; this module
sorts layers found without a patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lagometer.stats.trial.scheduling import BRIDGE, COMPUTATION, IDLE, QUEUE
from lagometer.stats.trial.way import UNATTRIBUTED

COMMON, RMW, DDS = "common", "rmw", "dds"
NOTIFICATION, BENCHMARKING = "notification", "benchmarking"
CATEGORIES = (COMMON, RMW, DDS, NOTIFICATION, BENCHMARKING, UNATTRIBUTED)
CATEGORY_OF: Mapping[str, str] = {
    "benchmark": BENCHMARKING,
    BRIDGE: BENCHMARKING,  # every bridge with layers is a node of ours
    QUEUE: BENCHMARKING,
    COMPUTATION: BENCHMARKING,
    IDLE: BENCHMARKING,
    "rclcpp_publish": COMMON,
    "rcl_publish": COMMON,
    "rmw_publish": RMW,
    "serialise": RMW,
    "send_path": DDS,
    "send_hand_over": DDS,
    "send": DDS,
    "transport": DDS,
    "unseen_transport": DDS,
    "receive": DDS,
    "receiving_thread": DDS,
    "receive_hand_over": DDS,
    "wake": NOTIFICATION,
    "notify": NOTIFICATION,
    "until_polled": NOTIFICATION,
    "executor": NOTIFICATION,
    "begin_take": COMMON,
    "executor_begin_take": NOTIFICATION,  # most of it belongs to the executor
    "wait_begin_take": NOTIFICATION,
    "take": DDS,
    "whole_take": UNATTRIBUTED,  # rclcpp, rcl, rmw and the middleware together
    "deserialise": RMW,
    "rmw_take": RMW,
    "rcl_take": COMMON,
    "rclcpp_take": COMMON,
    "callback": COMMON,
    UNATTRIBUTED: UNATTRIBUTED,
}
CONVERSION_OUT, CONVERSION_IN, OTHERS = "conversion_out", "conversion_in", "others"
BREAKDOWN = (CONVERSION_OUT, DDS, CONVERSION_IN, OTHERS, UNATTRIBUTED)
_CONVERSIONS = {"serialise": CONVERSION_OUT, "deserialise": CONVERSION_IN}
OF_ROS2 = ("rmw_publish", "rmw_take")  # an instrumented ROS 2 has both
NO_ROS2 = "no stamps of ROS 2 beside the middleware's calls"
NO_DDS = "no time in DDS"


@dataclass(frozen=True)
class Overhead:
    """ROS 2's overhead over DDS (Kronauer et al.): everything except DDS and benchmarking, divided by DDS.
    Unattributed time may belong to either, so the true overhead lies between `least` (all of it is DDS) and
    `most` (none of it is). Both are None for the reason in `absent`."""

    least: float | None = None
    most: float | None = None
    absent: str | None = None


def categories(layers_ns: Mapping[str, float]) -> dict[str, float]:
    """The time in each category, in nanoseconds, from the time in each layer: for one message, or means over
    many. Categories without a layer are left out, except `unattributed`, which also counts every unknown
    layer. The categories add up to the latency."""
    sums_ns = dict.fromkeys(CATEGORIES, 0.0)
    for layer, spent_ns in layers_ns.items():
        sums_ns[CATEGORY_OF.get(layer, UNATTRIBUTED)] += spent_ns
    return {name: sum_ns for name, sum_ns in sums_ns.items() if sum_ns or name == UNATTRIBUTED}


def breakdown(layers_ns: Mapping[str, float]) -> dict[str, float]:
    """The same in the categories of Maruyama et al. A conversion that was not stamped is left out. Its time
    is then in `dds`, because the middleware's own call does the conversion."""
    sums_ns = dict.fromkeys(BREAKDOWN, 0.0)
    for layer, spent_ns in layers_ns.items():
        category = CATEGORY_OF.get(layer, UNATTRIBUTED)
        name = _CONVERSIONS.get(layer, category if category in BREAKDOWN else OTHERS)
        sums_ns[name] += spent_ns
    return {name: sum_ns for name, sum_ns in sums_ns.items() if sum_ns or name == UNATTRIBUTED}


def overhead(layers_ns: Mapping[str, float]) -> Overhead:
    """What ROS 2 adds, divided by what DDS takes."""
    if not all(layers_ns.get(layer) for layer in OF_ROS2):
        return Overhead(absent=NO_ROS2)
    by_category = categories(layers_ns)
    dds_ns, unattributed_ns = by_category.get(DDS, 0.0), by_category[UNATTRIBUTED]
    if not dds_ns:
        return Overhead(absent=NO_DDS)
    ros2_ns = sum(by_category.get(name, 0.0) for name in (COMMON, RMW, NOTIFICATION))
    return Overhead(ros2_ns / (dds_ns + unattributed_ns), (ros2_ns + unattributed_ns) / dds_ns)
