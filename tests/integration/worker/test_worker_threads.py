# SPDX-License-Identifier: Apache-2.0
"""A thread for each node or one for all: whether a busy node holds up the others of its process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from both_workers import CONVERSATION, Kind
from plan_parts import MILLISECOND_NS, Mapping, any_message, node, pingpong, pipeline, reader, timer, writer
from worker_support import Said

from lagometer.store.records import KIND_RECEIVED, KIND_SENT

BUSY_NS = 15 * MILLISECOND_NS  # more than a thread of Python keeps the interpreter's lock
PERIOD_NS = 40 * MILLISECOND_NS
MESSAGES = 5
LONG_DRAIN_NS = 2_000 * MILLISECOND_NS
DISPATCHES = pytest.mark.parametrize("dispatch", ["waitset", "poll"])


def busy_and_other(dispatch: str) -> list[Mapping]:
    """A source that sends to two at the same time, of which the first is busy with each message."""
    return [
        node(
            "source",
            0,
            [],
            [writer("a", 0), writer("b", 1)],
            [timer(PERIOD_NS, writers=(0, 1))],
            dispatch,
        ),
        node("busy", 1, [reader("a", [0])], [], [any_message() | {"work_ns": BUSY_NS}], dispatch),
        node("other", 2, [reader("b", [1])], [], [any_message()], dispatch),
    ]


def carried_out(kind: Kind, folder: Path, nodes: list[Mapping], threads: str, **phases: int) -> Said:
    given = kind.plan(folder, nodes, **{"drain_ns": LONG_DRAIN_NS, **phases}) | {"threads": threads}
    said = kind.run(given)
    assert (said.code, said.names) == (0, CONVERSATION), (said.events[-1:], said.errors[-500:])
    return said


def names_of_threads(said: Said) -> set[str]:
    return {
        each["name"] for each in said.event("ready")["scheduling"]["threads"] if "node" in each["name"]
    } | {each["name"] for each in said.event("done")["threads"] if "node" in each["name"]}


@DISPATCHES
def test_one_thread_for_all_makes_the_others_wait_for_a_busy_node(
    kind: Kind, folder: Path, dispatch: str
) -> None:
    """The node that is not busy is as late as the other works, each time."""
    said = carried_out(kind, folder, busy_and_other(dispatch), "per-process")
    sent, busy, other = (said.lane(*lane) for lane in ((1, 0, 1), (2, 1, 0), (2, 2, 0)))
    assert len(sent) == len(busy) == len(other) == MESSAGES
    assert (other["taken_ns"] - sent["publish_ns"] >= BUSY_NS).all()
    before = np.less_equal.outer(busy["handled_ns"], other["taken_ns"])
    behind = np.less_equal.outer(other["handled_ns"], busy["taken_ns"]).T
    assert (before | behind).all(), "callbacks overlap"
    assert names_of_threads(said) == {"nodes"}


@DISPATCHES
def test_with_a_thread_for_each_node_nobody_waits(kind: Kind, folder: Path, dispatch: str) -> None:
    said = carried_out(kind, folder, busy_and_other(dispatch), "per-node")
    sent, other = said.lane(KIND_SENT, 0, 1), said.lane(KIND_RECEIVED, 2, 0)
    assert len(sent) == len(other) == MESSAGES
    assert (other["taken_ns"] - sent["publish_ns"]).min() < BUSY_NS
    assert names_of_threads(said) == {"node:source", "node:busy", "node:other"}


@DISPATCHES
def test_one_thread_carries_a_pipeline_and_a_round_trip(kind: Kind, folder: Path, dispatch: str) -> None:
    said = carried_out(kind, folder, pipeline(dispatch, period_ns=PERIOD_NS), "per-process")
    relayed, received = said.lane(KIND_SENT, 1, 1), said.lane(KIND_RECEIVED, 2, 0)
    assert relayed["cause_sequence"].tolist() == received["sequence"].tolist() == list(range(MESSAGES))
    said = carried_out(kind, folder, pingpong(dispatch, 20), "per-process", measure_ns=1_000 * MILLISECOND_NS)
    assert said.lane(KIND_RECEIVED, 0, 0)["sequence"].tolist() == list(range(20))


def test_timers_of_all_nodes_are_kept_by_one_thread(kind: Kind, folder: Path) -> None:
    """A timer that has to wait for another node's work is late, and says so."""
    nodes = [
        node("slow", 0, [], [writer("a", 0)], [timer(PERIOD_NS) | {"work_ns": BUSY_NS}], "waitset"),
        node("late", 1, [], [writer("b", 1)], [timer(PERIOD_NS)], "waitset"),
    ]
    said = carried_out(kind, folder, nodes, "per-process")
    slow, late = said.lane(KIND_SENT, 0, 0), said.lane(KIND_SENT, 1, 1)
    assert len(slow) == len(late) == MESSAGES
    assert (np.diff(late["intended_ns"]) == PERIOD_NS).all()
    assert late["publish_ns"][0] - late["intended_ns"][0] >= BUSY_NS
    before = np.less_equal.outer(late["publish_ns"], slow["publish_ns"] - BUSY_NS)
    behind = np.greater_equal.outer(late["publish_ns"], slow["publish_ns"])
    assert (before | behind).all(), "one sends while the other works"


def test_one_thread_cannot_take_the_place_of_a_librarys(kind: Kind, folder: Path) -> None:
    given = kind.plan(folder, busy_and_other("listener")) | {"threads": "per-process"}
    failed = kind.run(given).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert failed["message"].endswith(
        " calls back on its own threads, so one thread can't serve all nodes (threads per-process); use "
        "waitset or poll"
    )


def test_one_waitset_of_two_contexts_is_refused(kind: Kind, folder: Path) -> None:
    if kind.name == "C++":  # sockets can wait for several contexts at once
        alone = kind.build / "tests" / "adapters" / "liblagometer_waiting_1_0.so"
        kind = replace(kind, library=alone, environment={})
    given = kind.plan(folder, busy_and_other("waitset")) | {"threads": "per-process"}
    given["contexts"].append({"adapter": 0, "domain": 0, "name": "other"})
    given["nodes"][2]["readers"][0]["context"] = 1
    failed = kind.run(given).event("failed")
    assert (failed["phase"], failed["reason"]) == ("create", "adapter-failed")
    assert failed["message"].startswith("one thread for all nodes (threads per-process): a waitset of ")
    assert failed["message"].endswith("use poll, or a thread for each node (threads per-node)")
