# SPDX-License-Identifier: Apache-2.0
"""In which order workers get their plans, and so create their endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from lagometer.run.worker.plan import Plan


def waves(plans: Sequence[Plan]) -> list[list[int]]:
    """Returns the indices of the workers that start together, one list after another: all at once, or those
    that subscribe to something before those that only publish, or after them."""
    start = plans[0].start
    if start == "matched":
        return [list(range(len(plans)))]
    subscribers = [index for index, plan in enumerate(plans) if any(node.readers for node in plan.nodes)]
    publishers = [index for index in range(len(plans)) if index not in subscribers]
    ordered = [subscribers, publishers] if start == "subscriber-first" else [publishers, subscribers]
    return [each for each in ordered if each]
