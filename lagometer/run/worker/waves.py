# SPDX-License-Identifier: Apache-2.0
"""In which order workers get their plans, and therefore create their endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from lagometer.run.worker.plan import Plan


def waves(plans: Sequence[Plan]) -> list[list[int]]:
    """Returns the indices of the workers that begin before the common start. Those that begin together are in
    one list: all at once; or the workers with subscribers, one after another, before those that only
    publish."""
    on_time = [index for index, plan in enumerate(plans) if plan.start_ns == 0]
    subscribers = [index for index in on_time if any(node.readers for node in plans[index].nodes)]
    publishers = [index for index in on_time if index not in subscribers]
    start = plans[0].start
    # In waves of eight, 64 processes are matched no sooner than all at once: in 4.3 s instead of 4.1 s with
    # Cyclone DDS, in 11.2 s instead of 10.9 s with Fast DDS (two CPUs, two trials each). So no start is
    # staggered.
    one_by_one = [[index] for index in subscribers]
    ordered = {"subscriber-first": [*one_by_one, publishers], "publisher-first": [publishers]}
    return [wave for wave in ordered.get(start, [on_time]) if wave]


def late_waves(plans: Sequence[Plan]) -> list[tuple[int, list[int]]]:
    """Returns the workers that join later, by how long after the common start: subscribers that find
    publishers already at work, one after another, and nodes that join at their own time, together."""
    on_time = {index for wave in waves(plans) for index in wave}
    at_once: list[tuple[int, list[int]]] = []
    own_time: dict[int, list[int]] = {}
    for index, plan in enumerate(plans):
        if index in on_time:
            continue
        if plan.start_ns == 0:
            at_once.append((0, [index]))
        else:
            own_time.setdefault(plan.start_ns, []).append(index)
    return [*at_once, *sorted(own_time.items())]


def replaced(plans: Sequence[Plan], wave: Sequence[int]) -> list[int]:
    """Returns the workers whose services the workers of a later wave serve from then on.

    Two servers of one service at once would share its requests, and some middleware refuses the second. So
    the new one is admitted when the old one has gone.
    """
    return [
        earlier
        for earlier, plan in enumerate(plans)
        if any(plan.start_ns < plans[late].start_ns and _served(plan) & _served(plans[late]) for late in wave)
    ]


def _served(plan: Plan) -> set[str]:
    return {writer.topic for node in plan.nodes for writer in node.writers if writer.answers is not None}
