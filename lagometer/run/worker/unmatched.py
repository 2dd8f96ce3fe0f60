# SPDX-License-Identifier: Apache-2.0
"""What each side of unmatched endpoints counted, against how many it expects. Sums up the failures of a trial
with many unmatched workers: one reason, not one for each worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lagometer.run.worker.conversation import Conversation
from lagometer.run.worker.messages import Failed
from lagometer.run.worker.plan import Plan, Reader
from lagometer.units import duration_text

CODE = "endpoints-missing"
WORKERS_MIN = 3  # fewer are listed one by one, with everything that they miss
# Discovery was still making progress if a worker was matched in this last part of the wait.
PROGRESS_SHARE = 0.25
COUNTS_MAX = 8  # in one reason

Readers = Mapping[tuple[str, str], Reader]  # by their node, and their place in it


def counted(failed: Failed, plans: Sequence[Plan]) -> str:
    """Returns, of a worker that was not matched, how many publishers its readers heard, and how many readers
    its publishers count, each against how many there should be; empty if that is not known.

    Only publishers with too few readers are named. Not every worker says what its publishers count.
    """
    readers = _readers(plans)
    expected = {
        writer.stream: writer.subscribers for plan in plans for node in plan.nodes for writer in node.writers
    }
    counts = []
    for entry in failed.missing:
        if (heard := _heard(entry, readers)) is not None:
            where = f"{entry.get('node')} on {entry.get('topic')}"
            counts.append(f"{where} heard {heard[0]} of {heard[1]} publishers")
    for entry in failed.counted:
        if (wanted := expected.get(entry.stream, 0)) > entry.readers:
            counts.append(
                f"the publisher of {entry.node} on {entry.topic} counts {entry.readers} of {wanted} readers"
                + (" (or can't tell)" if entry.readers == 0 else "")
            )
    more = f", and {len(counts) - COUNTS_MAX} more" if len(counts) > COUNTS_MAX else ""
    return ", ".join(counts[:COUNTS_MAX]) + more


def summed_up(
    reasons: Sequence[str], plans: Sequence[Plan], conversations: Sequence[Conversation]
) -> tuple[str, ...]:
    """Returns the reasons of a trial. For many unmatched workers: how many readers miss something, the first
    of them, how many publishers they heard, and the progress of discovery."""
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
    readers = _readers(plans)
    first = f"{missing[0].get('node')} on {missing[0].get('topic')}" if missing else unmatched[0].name
    counts = [count for entry in missing if (count := _heard(entry, readers)) is not None]
    heard, wanted = sum(count[0] for count in counts), sum(count[1] for count in counts)
    heard_of_all = f"; they heard {heard} of {wanted} publishers" if counts else ""
    how_far = _how_far(conversations, unmatched, heard)
    how_many = f"{len(missing)} of {len(readers)} readers unmatched"
    summary = f"{CODE}: {how_many}, first: {first}{heard_of_all}; {how_far}"
    return (summary, *(reason for reason in reasons if not reason.startswith(f"{CODE}:")))


def _how_far(conversations: Sequence[Conversation], unmatched: Sequence[Conversation], heard: int) -> str:
    """Returns how many workers were matched, whether discovery was still making progress, and what to do.

    heard: the publishers that the unmatched readers heard.
    """
    matched_ns = [talk.came_ns["matched"] for talk in conversations if talk.matched is not None]
    waiting = sum(talk.matched is None and talk.failed is None for talk in conversations)
    so_many = f"{len(matched_ns)} of {len(conversations)} workers were matched"
    so_many += f" and {waiting} still waited when the trial ended" if waiting else ""
    if not matched_ns and not heard:
        return f"{so_many}, and none heard anybody: compare domain, network and QoS, and see the trial's log"
    if not matched_ns:
        return f"{so_many}, yet some hear others: use a longer `discovery_timeout`"
    begin_ns = max((talk.came_ns.get("ready", 0) for talk in conversations), default=0)
    end_ns = min(talk.came_ns["failed"] for talk in unmatched)
    since_ns = max(0, end_ns - max(matched_ns))
    last = f"{so_many}, the last one {duration_text(since_ns)} before the end"
    if since_ns <= PROGRESS_SHARE * max(0, end_ns - begin_ns):
        return f"{last}, so discovery was still making progress: use a longer `discovery_timeout`"
    hint = "more time will hardly help; use fewer processes, or see the trial's log"
    return f"{last}: discovery had stopped, so {hint}"


def _readers(plans: Sequence[Plan]) -> Readers:
    return {
        (node.name, str(place)): reader
        for plan in plans
        for node in plan.nodes
        for place, reader in enumerate(node.readers)
    }


def _heard(entry: object, readers: Readers) -> tuple[int, int] | None:
    """How many publishers a reader of `missing` heard, and how many it expects; None if that is not known."""
    if not isinstance(entry, dict) or not isinstance(missed := entry.get("streams"), list):
        return None
    reader = readers.get((str(entry.get("node")), str(entry.get("reader"))))
    if reader is None:
        return None
    return sum(stream not in missed for stream in reader.streams), len(reader.streams)
