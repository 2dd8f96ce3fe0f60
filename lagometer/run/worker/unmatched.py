# SPDX-License-Identifier: Apache-2.0
"""Sums up the failures of a trial with many unmatched workers: one reason, not one for each worker."""

from __future__ import annotations

from collections.abc import Sequence

from lagometer.run.worker.conversation import Conversation
from lagometer.run.worker.plan import Plan

CODE = "endpoints-missing"
WORKERS_MIN = 3  # fewer are listed one by one, with everything that they miss


def summed_up(
    reasons: Sequence[str], plans: Sequence[Plan], conversations: Sequence[Conversation]
) -> tuple[str, ...]:
    """Returns the reasons of a trial. For many unmatched workers: how many readers miss something, the first
    of them, and the progress of discovery."""
    unmatched = [
        conversation
        for conversation in conversations
        if conversation.failed is not None and conversation.failed.reason == CODE
    ]
    if len(unmatched) < WORKERS_MIN:
        return tuple(reasons)
    missing = [
        entry
        for conversation in unmatched
        if conversation.failed is not None
        for entry in conversation.failed.missing
        if isinstance(entry, dict)
    ]
    readers = sum(len(node.readers) for plan in plans for node in plan.nodes)
    first = f"{missing[0].get('node')} on {missing[0].get('topic')}" if missing else unmatched[0].name
    matched = sum(conversation.matched is not None for conversation in conversations)
    how_far = f"{matched} of {len(conversations)} workers were matched"
    if matched:
        how_far += ", so discovery was still making progress: use a longer `discovery_timeout`"
    summary = f"{CODE}: {len(missing)} of {readers} readers unmatched, first: {first}; {how_far}"
    return (summary, *(reason for reason in reasons if not reason.startswith(f"{CODE}:")))
