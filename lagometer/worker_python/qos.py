# SPDX-License-Identifier: Apache-2.0
"""Reads the quality of service in a worker's plan."""

from __future__ import annotations

from lagometer.worker_python import plan_bounds
from lagometer.worker_python.adapter import Qos
from lagometer.worker_python.fields import Fields


def read_qos(part: Fields) -> Qos:
    """Reads the part `qos` of an endpoint. Raises PlanError."""
    reliability = part.word("reliability", "best_effort", "reliable") if part.has("reliability") else None
    history = part.word("history", "keep_last", "keep_all") if part.has("history") else None
    depth = part.integer("depth", plan_bounds.Qos.DEPTH) if part.has("depth") else None
    durability = part.word("durability", "volatile", "transient_local") if part.has("durability") else None
    others = _other_policies(part)
    part.finish()
    return Qos(reliability, history, depth, durability, others)


def _other_policies(part: Fields) -> tuple[str, ...]:
    """Returns the names of requested policies that no adapter in Python supports."""
    policies = []
    if part.has("deadline_ns"):
        part.integer("deadline_ns", plan_bounds.Qos.DEADLINE_NS)
        policies.append("deadline")
    if part.has("lifespan_ns"):
        part.integer("lifespan_ns", plan_bounds.Qos.LIFESPAN_NS)
        policies.append("lifespan")
    if part.has("liveliness"):
        liveliness = part.part("liveliness")
        liveliness.word("kind", "automatic", "manual")
        liveliness.integer("lease_ns", plan_bounds.Liveliness.LEASE_NS)
        liveliness.finish()
        policies.append("liveliness")
    if part.has("partition"):
        part.text("partition", plan_bounds.Qos.PARTITION_CHARACTERS)
        policies.append("partition")
    if part.has("instances"):
        part.integer("instances", plan_bounds.Qos.INSTANCES)
        policies.append("instances")
    return tuple(policies)
