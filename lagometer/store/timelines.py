# SPDX-License-Identifier: Apache-2.0
"""The file of single calls and scheduler states while chosen messages were under way (docs/FORMAT.md,
"timelines")."""

from __future__ import annotations

import polars as pl

from lagometer.store import probes

CALL, STATE = "call", "state"
ASLEEP, WAITING, RUNNING = "asleep", "waiting", "running"
# What programs do for messages, and what waits for it; declarations of topics and nodes are left out.
CALLS = {
    probes.SEND: "send",
    probes.RECEIVE: "receive",
    probes.WAIT: "poll",
    probes.BLOCK: "block",
    probes.NOTIFY: "notify",
    probes.DRAINED: "drain",
    probes.API_WRITE: "middleware_write",
    probes.API_TAKE: "middleware_take",
    probes.API_WAIT: "middleware_wait",
    probes.RCLCPP_PUBLISH: "rclcpp_publish",
    probes.RCL_PUBLISH: "rcl_publish",
    probes.RMW_PUBLISH: "rmw_publish",
    probes.RMW_TAKE: "rmw_take",
    probes.RCL_TAKE: "rcl_take",
    probes.RCLCPP_TAKE: "rclcpp_take",
    probes.CALLBACK_START: "callback_start",
    probes.CALLBACK_END: "callback_end",
    probes.EXECUTOR_EXECUTE: "executor_execute",
    probes.RCLCPP_INTRA_PUBLISH: "rclcpp_intra_publish",
    probes.ROS1_RECEIVED: "ros1_received",
}

INSTEAD = pl.Struct(
    {
        "name": pl.String(),
        "thread": pl.Int64(),
        "cpu": pl.UInt16(),
        "begin_ns": pl.Int64(),
        "end_ns": pl.Int64(),
    }
)
TIMELINES_SCHEMA: dict[str, pl.DataType] = {
    "edge": pl.Categorical(),
    "sequence": pl.UInt64(),
    "publish_ns": pl.Int64(),
    "taken_ns": pl.Int64(),
    "left_out": pl.UInt32(),
    "worker": pl.Categorical(),
    "thread": pl.UInt32(),
    "kind": pl.Categorical(),
    "name": pl.Categorical(),
    "begin_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "cpu": pl.Int32(),
    "bytes": pl.Int64(),
    "instead": pl.List(INSTEAD),
    "woken_by": pl.Struct({"name": pl.String(), "thread": pl.Int64(), "interrupt": pl.Boolean()}),
}
