# SPDX-License-Identifier: Apache-2.0
"""Where a message's way begins and ends for a ROS 2 node: at its publish call, and at its callback.

A middleware's own view runs from `write` to `take`. If ROS 2 stamps these messages, a node's view is known:
from `rclcpp_publish` to `callback_start`. An edge uses one view for all its messages, so that its figures
mean one thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from lagometer.stats.trial.calls import Call, Process
from lagometer.store import probes

WRITE, PUBLISH = "write", "rclcpp_publish"
TAKE, CALLBACK = "take", "callback_start"
PUBLISHED, CALLED_BACK = "publish", "callback"  # in ROS 1 and Zenoh


@dataclass(frozen=True)
class View:
    """Where the latency of an edge's messages begins and ends. writes: by sequence; takes: likewise."""

    begins: str
    ends: str
    writes: Mapping[int, Call]
    takes: Mapping[int, Call]

    def renamed(self, write: str, take: str) -> View:
        """The same for middleware that has other names for these two."""
        begins, ends = {WRITE: write}.get(self.begins, self.begins), {TAKE: take}.get(self.ends, self.ends)
        return replace(self, begins=begins, ends=ends)


def stamps_callback(topic: str) -> bool:
    """Whether rclcpp stamps the callback that gets a message of a DDS topic. It does not if a client of a
    service gets a reply, nor in actions."""
    return not topic.startswith("rr/") and "/_action/" not in topic


def view_of(
    samples: pl.DataFrame,
    sender: Process,
    receiver: Process,
    writing: int = probes.API_WRITE,
    taking: int = probes.API_TAKE,
    *,
    to_callback: bool = True,
) -> tuple[pl.DataFrame, View]:
    """The samples of an edge, from `write` to `take`, in its nodes' view if every message has one. writing,
    taking: the kinds of the calls that wrote and took. to_callback: the callback may be stamped."""
    once = samples.filter(pl.col("outcome") != "duplicate")
    published, taken = _column(once, "published_ns"), _column(once, "taken_ns")
    writes = _calls(writing, published, sender)
    takes = _calls(taking, taken, receiver)
    publishings = {sequence: _publishing(writing, call, sender) for sequence, call in writes.items()}
    callbacks = {sequence: _callback(taking, call, receiver) for sequence, call in takes.items()}
    begins = _whole(publishings, published)
    ends = _whole(callbacks, taken)
    if not to_callback or len(set(taken.values())) < len(taken):  # the latter: one call took several
        ends = {}
    adjusted = samples
    if begins:
        adjusted = _replaced(adjusted, "publish_ns", begins)
    if ends:
        adjusted = _replaced(adjusted, "taken_ns", ends)
    return adjusted, View(PUBLISH if begins else WRITE, CALLBACK if ends else TAKE, writes, takes)


def _column(samples: pl.DataFrame, name: str) -> dict[int, int]:
    return dict(samples.select("sequence", name).drop_nulls().iter_rows())


def _calls(kind: int, ends_ns: Mapping[int, int], process: Process) -> dict[int, Call]:
    """For each moment, the only call of a kind that returned then."""
    calls = {sequence: process.last(kind, None, at_ns - 1, at_ns) for sequence, at_ns in ends_ns.items()}
    counts = Counter(ends_ns.values())
    return {sequence: call for sequence, call in calls.items() if call and counts[ends_ns[sequence]] == 1}


def _publishing(writing: int, write: Call, sender: Process) -> int | None:
    """When rclcpp was asked to publish what one call wrote."""
    before = sender.last(writing, write.thread, -1, write.begin_ns)
    after_ns = before.end_ns if before is not None else -1
    stamp = sender.last(probes.RCLCPP_PUBLISH, write.thread, after_ns, write.begin_ns)
    return stamp.begin_ns if stamp is not None and stamp.begin_ns > after_ns else None


def _callback(taking: int, take: Call, receiver: Process) -> int | None:
    """When the callback started that received what one call took. It starts before the thread takes again,
    before a callback ends, since that one took by itself, and before an executor turns to something else."""
    until_ns = receiver.last_ns
    for kind in (taking, probes.CALLBACK_END, probes.EXECUTOR_EXECUTE):
        following = receiver.following(kind, take.thread, take.end_ns, until_ns)
        until_ns = following.begin_ns if following is not None else until_ns
    stamp = receiver.following(probes.CALLBACK_START, take.thread, take.end_ns, until_ns)
    return stamp.begin_ns if stamp is not None else None


def _whole(times_ns: Mapping[int, int | None], wanted: Mapping[int, int]) -> dict[int, int]:
    """The results if they cover all messages; nothing if any is missing."""
    known = {sequence: at_ns for sequence, at_ns in times_ns.items() if at_ns is not None}
    return known if len(known) == len(wanted) else {}


def _replaced(samples: pl.DataFrame, name: str, replacements: Mapping[int, int]) -> pl.DataFrame:
    times = pl.DataFrame({"sequence": list(replacements), "found_ns": list(replacements.values())}).cast(
        {"sequence": samples.schema["sequence"], "found_ns": samples.schema[name]}
    )
    is_first = pl.col("outcome") != "duplicate" if name == "taken_ns" else pl.lit(True)
    joined = samples.join(times, on="sequence", how="left", maintain_order="left")
    chosen = pl.when(is_first & pl.col("found_ns").is_not_null()).then("found_ns").otherwise(name)
    return joined.with_columns(chosen.alias(name)).drop("found_ns")
