# SPDX-License-Identifier: Apache-2.0
"""The calls and scheduler states that are kept of a trial: of which messages, on which threads, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from lagometer.stats.trial import timelines as kept
from lagometer.stats.trial.edges import samples as samples_of
from lagometer.stats.trial.scheduling import Scheduled
from lagometer.stats.trial.timelines import Recorded, Timelines, timelines_of
from lagometer.store import probes
from lagometer.store import scheduler as sched
from lagometer.store.format import LAYERS_SCHEMA
from lagometer.store.records import Lane
from lagometer.store.timelines import TIMELINES_SCHEMA
from tests.fixtures.small_trial import MEASURE_BEGIN_NS, SmallTrial

EDGE = "source→sink"
LATENCIES_NS = [200, 900, 100, 800, 700, 300]
PERIOD_NS = 10_000
SENDER, RECEIVER, OTHER = 5, 9, 77  # numbers in records
ON_MACHINE = {SENDER: 105, RECEIVER: 109, OTHER: 177}
HOG = 13


def published(number: int) -> int:
    return MEASURE_BEGIN_NS + PERIOD_NS * number


def call(
    kind: int, begin: int, end: int, **more: int
) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    return {"call": kind, "begin_ns": begin, "end_ns": end, **more}, []


def logs(extra: int = 0) -> dict[int, probes.ProbeLog]:
    """Of each message: it is sent, the sink waits for it, and a thread that does something else works."""
    sent, received, beside = [], [], []
    for number, latency_ns in enumerate(LATENCIES_NS):
        at_ns = published(number)
        sent.append(call(probes.SEND, at_ns + 20, at_ns + 60, result=64))
        received.append(call(probes.WAIT, at_ns - 3_000, at_ns + 80))
        received += [call(probes.DRAINED, at_ns + 81, at_ns + 82)] * extra
        received.append(call(probes.RECEIVE, at_ns + 85, at_ns + 90, result=-1))
        received.append(call(probes.DECLARE_READER, at_ns + 91, at_ns + 92))
        received.append(call(probes.SEND, at_ns + latency_ns + 1, at_ns + latency_ns + 5))
        beside.append(call(probes.SEND, at_ns + 10, at_ns + 90))
    names = {SENDER: "node:source", RECEIVER: "recvUC", OTHER: "other"}
    return {
        0: probes.decode(probes.encode({SENDER: sent}, names)),
        1: probes.decode(probes.encode({RECEIVER: received, OTHER: beside}, names)),
    }


def scheduled() -> Scheduled:
    """The receiving thread is woken 40 ns after each publish, waits 30 ns while others run, and runs."""
    events: list[dict[str, int]] = []
    receiver = ON_MACHINE[RECEIVER]
    sender = ON_MACHINE[SENDER]
    for number in range(len(LATENCIES_NS)):
        at_ns = published(number)
        waking = {"kind": sched.WAKING, "thread": receiver, "other": sender, "state": sched.BY_THREAD}
        events.append({"time_ns": at_ns + 40, **waking, "target_cpu": 1})
        for after, leaving, coming in ((60, HOG, 0), (70, 0, receiver), (4_000, receiver, HOG)):
            state = sched.ASLEEP if leaving == receiver else sched.RUNNABLE
            exchange = {"kind": sched.EXCHANGE, "cpu": 1, "thread": leaving, "other": coming, "state": state}
            events.append({"time_ns": at_ns + after, **exchange})
    names = {sender: "node:source", receiver: "recvUC", HOG: "hog"}
    log = sched.decode(sched.encode(events, published(-1), published(20), names))
    return Scheduled(log, {0: {SENDER: sender}, 1: {RECEIVER: receiver, OTHER: ON_MACHINE[OTHER]}})


def kept_of(extra: int = 0, *, recorded: Recorded | None = None) -> Timelines:
    built = SmallTrial()
    edge = built.edge(0, "source", "sink")
    rows = []
    for number, latency_ns in enumerate(LATENCIES_NS):
        at_ns = published(number)
        built.send(0, number, at_ns)
        built.take(edge, number, at_ns + latency_ns)
        rows += [
            (EDGE, number, "send_path", at_ns, at_ns + 20, SENDER, SENDER),
            (EDGE, number, "transport", at_ns + 20, at_ns + latency_ns, SENDER, RECEIVER),
        ]
    lanes = [
        lane if lane.kind == 1 else Lane(lane.kind, lane.node, lane.endpoint, lane.records, worker=1)
        for lane in built.lanes()
    ]
    facts = built.facts({0}, {"sink"})
    layers = pl.DataFrame(rows, schema=LAYERS_SCHEMA, orient="row")
    recorded = recorded or Recorded(["left", "right"], logs(extra), [scheduled()])
    return timelines_of(layers, samples_of(lanes, facts), lanes, facts, recorded)


def of_message(found: Timelines, sequence: int, kind: str) -> list[dict[str, Any]]:
    rows = found.frame.filter((pl.col("sequence") == sequence) & (pl.col("kind") == kind)).to_dicts()
    at_ns = published(sequence)
    for row in rows:
        row["at"] = row["begin_ns"] - at_ns, row["end_ns"] - at_ns
    return rows


def test_of_each_trial_the_slowest_messages_and_the_median_one_are_kept() -> None:
    found = kept_of()
    assert dict(found.frame.schema) == TIMELINES_SCHEMA
    messages = (
        found.frame.select("edge", "sequence", "publish_ns", "taken_ns").unique().sort("sequence").rows()
    )
    expected = [
        number for number, latency_ns in enumerate(LATENCIES_NS) if latency_ns in (900, 800, 700, 300)
    ]
    assert messages == [
        ("end-to-end", number, published(number), published(number) + LATENCIES_NS[number])
        for number in expected
    ]
    assert found.counts.messages == 4 and found.counts.left_out == 0
    assert found.counts.calls + found.counts.states == found.frame.height


def test_calls_are_those_of_the_messages_threads_while_it_was_under_way() -> None:
    calls = of_message(kept_of(), 1, "call")
    assert [(row["worker"], row["thread"], row["name"], row["at"], row["bytes"]) for row in calls] == [
        ("right", RECEIVER, "poll", (-3_000, 80), None),
        ("left", SENDER, "send", (20, 60), 64),
        ("right", RECEIVER, "receive", (85, 90), None),
    ]


def test_states_say_who_woke_the_thread_and_who_ran_instead() -> None:
    states = of_message(kept_of(), 1, "state")
    assert [(row["thread"], row["name"], row["at"], row["cpu"]) for row in states] == [
        (RECEIVER, "asleep", (0, 40), None),
        (RECEIVER, "waiting", (40, 70), 1),
        (RECEIVER, "running", (70, 900), 1),
    ]
    asleep, waiting, running = states
    sender = {"name": "node:source", "thread": ON_MACHINE[SENDER], "interrupt": False}
    assert [row["woken_by"] for row in states] == [sender, None, None]
    ran = [(each["name"], each["begin_ns"], each["end_ns"], each["cpu"]) for each in waiting["instead"]]
    at_ns = published(1)
    assert ran == [("hog", at_ns + 40, at_ns + 60, 1), ("idle", at_ns + 60, at_ns + 70, 1)]
    assert asleep["instead"] == running["instead"] == []


def test_a_thread_that_is_still_asleep_at_the_end_was_woken_by_nobody_yet() -> None:
    states = of_message(kept_of(), 4, "state")
    assert states[0]["woken_by"] is not None
    beside = scheduled()
    cut = Scheduled(beside.log.moved(700), beside.threads)  # it is woken as the message is taken, and later
    found = kept_of(recorded=Recorded(["left", "right"], logs(), [cut]))
    (asleep,) = of_message(found, 5, "state")
    assert (asleep["name"], asleep["at"], asleep["woken_by"]) == ("asleep", (0, 300), None)


def test_the_longest_are_kept_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "CALLS_MAX", 3)
    found = kept_of(extra=20)
    calls = of_message(found, 1, "call")
    assert [row["name"] for row in calls] == ["poll", "send", "receive"]
    assert {row["left_out"] for row in calls} == {20}
    assert found.counts.left_out == 80


def test_without_a_record_of_anything_there_are_no_rows() -> None:
    found = kept_of(recorded=Recorded(["left", "right"], {}, []))
    assert found.frame.is_empty() and dict(found.frame.schema) == TIMELINES_SCHEMA
    assert found.counts.messages == 4
