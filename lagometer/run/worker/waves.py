# SPDX-License-Identifier: Apache-2.0
"""In which order workers get their plans, and therefore create their endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from lagometer.run.worker.plan import Plan


def waves(plans: Sequence[Plan]) -> list[list[int]]:
    """Returns the indices of the workers that begin before the common start. Those that begin together are in
    one list: all at once, or the workers with subscribers before those that only publish."""
    on_time = [index for index, plan in enumerate(plans) if plan.start_ns == 0]
    subscribers = [index for index in on_time if any(node.readers for node in plans[index].nodes)]
    publishers = [index for index in on_time if index not in subscribers]
    start = plans[0].start
    ordered = {"subscriber-first": [subscribers, publishers], "publisher-first": [publishers]}
    return [wave for wave in ordered.get(start, [on_time]) if wave]


def late_waves(plans: Sequence[Plan]) -> list[tuple[int, list[int]]]:
    """Returns the workers that join later, by how long after the common start: subscribers that find
    publishers already at work, and nodes that join at their own time."""
    on_time = {index for wave in waves(plans) for index in wave}
    late: dict[int, list[int]] = {}
    for index, plan in enumerate(plans):
        if index not in on_time:
            late.setdefault(plan.start_ns, []).append(index)
    return sorted(late.items())
