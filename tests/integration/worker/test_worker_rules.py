# SPDX-License-Identifier: Apache-2.0
"""What nodes do: rules, causes, schedules, work, late senders, what of a payload is checked and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_workers import CONVERSATION, KINDS, Kind
from plan_parts import (
    MILLISECOND_NS,
    Mapping,
    any_message,
    closed_loop,
    node,
    pingpong,
    pipeline,
    reader,
    timer,
    writer,
)
from worker_support import Said

from lagometer.store.records import KIND_CAUSES, KIND_RECEIVED, KIND_SENT
from lagometer.worker_python.schedule import Work, WorkPlan

LONG_DRAIN_NS = 1_000 * MILLISECOND_NS
PERIOD_NS = 20 * MILLISECOND_NS
MANY = 80  # readers of one timer


def carried_out(kind: Kind, folder: Path, nodes: list[Mapping], **phases: int) -> Said:
    said = kind.run(kind.plan(folder, nodes, **{"drain_ns": LONG_DRAIN_NS, **phases}))
    assert (said.code, said.names) == (0, CONVERSATION), (said.events[-1:], said.errors[-500:])
    return said


def pairs(causes: Any) -> list[tuple[int, int]]:
    return list(zip(causes["stream"].tolist(), causes["sequence"].tolist(), strict=True))


def test_all_readers_together_trigger_and_are_the_causes(kind: Kind, folder: Path) -> None:
    both = {**any_message(writers=(0,)), "readers": [0, 1], "trigger": "all"}
    nodes = [
        node("left", 0, [], [writer("a", 0)], [timer(PERIOD_NS)], "waitset"),
        node("right", 1, [], [writer("b", 1)], [timer(PERIOD_NS)], "waitset"),
        node("both", 2, [reader("a", [0]), reader("b", [1])], [writer("c", 2)], [both], "waitset"),
    ]
    said = carried_out(kind, folder, nodes)
    sent, causes = said.lane(KIND_SENT, 2, 2), said.lane(KIND_CAUSES, 2, 2)
    # Where one side was late, the other's newest message is the cause.
    assert 0 < len(sent) <= 9 and (sent["cause_count"] == 2).all()
    assert causes["stream"].tolist() == [0, 1] * len(sent)
    assert sent["first_cause"].tolist() == list(range(0, 2 * len(sent), 2))
    for stream in (0, 1):
        sequences = [sequence for of, sequence in pairs(causes) if of == stream]
        assert sequences == sorted(set(sequences)), "each is a cause once"
    assert (sent["cause_stream"] == 0).all()
    assert sent["cause_sequence"].tolist() == causes["sequence"][::2].tolist()


def test_a_timer_is_caused_by_the_newest_of_each_reader_however_many(kind: Kind, folder: Path) -> None:
    """The senders are done before the timer fires for the first time, so all its causes are there."""
    numbers = range(MANY)
    writers = [writer(f"t{number}", number, capacity=10) for number in numbers]
    readers = [reader(f"t{number}", [number], capacity=10) for number in numbers]
    once = {**timer(3_600_000 * MILLISECOND_NS, writers=tuple(numbers))}
    fuse = {**timer(3_600_000 * MILLISECOND_NS, readers=tuple(numbers)), "offset_ns": 1_500 * MILLISECOND_NS}
    nodes = [
        node("source", 0, [], writers, [once], "waitset"),
        node("fusion", 1, readers, [writer("fused", MANY, capacity=10)], [fuse], "waitset"),
    ]
    said = carried_out(kind, folder, nodes, measure_ns=2_000 * MILLISECOND_NS)
    (fused,) = said.lane(KIND_SENT, 1, MANY)
    assert fused["cause_count"] == MANY
    assert pairs(said.lane(KIND_CAUSES, 1, MANY)) == [(number, 0) for number in numbers]


def test_what_a_rule_uses_is_a_further_cause_and_triggers_nothing(kind: Kind, folder: Path) -> None:
    """The pose comes ten times as often as the points; each match rests on one of either."""
    match = any_message(writers=(0,), uses=[1])
    nodes = [
        node("lidar", 0, [], [writer("points", 0)], [timer(PERIOD_NS)], "waitset"),
        node("odometry", 1, [], [writer("pose", 1)], [timer(PERIOD_NS // 10)], "waitset"),
        node(
            "matcher",
            2,
            [reader("points", [0]), reader("pose", [1])],
            [writer("match", 2)],
            [match],
            "waitset",
        ),
    ]
    said = carried_out(kind, folder, nodes)
    sent = said.lane(KIND_SENT, 2, 2)
    assert sent["cause_sequence"].tolist() == list(range(9)), "one for each of the points"
    assert (sent["cause_stream"] == 0).all()
    later = sent[1:]
    assert (later["cause_count"] == 2).all()
    causes = pairs(said.lane(KIND_CAUSES, 2, 2))
    assert [stream for stream, _ in causes] == [0, 1] * (len(causes) // 2)
    used = [sequence for stream, sequence in causes if stream == 1]
    assert used == sorted(used) and used[-1] > 9


def test_each_message_says_when_its_callback_began(kind: Kind, folder: Path) -> None:
    """A relay's begins when it takes, a timer's when it fires: both before they work."""
    work_ns = 2 * MILLISECOND_NS
    nodes = pipeline("waitset", period_ns=PERIOD_NS)
    for each in nodes[:2]:
        each["rules"][0]["work_ns"] = work_ns
    said = carried_out(kind, folder, nodes)
    timed, relayed = said.lane(KIND_SENT, 0, 0), said.lane(KIND_SENT, 1, 1)
    begun = timed["publish_ns"] - timed["callback_ns"].astype(np.int64)
    assert (timed["callback_ns"] >= work_ns).all()
    assert (begun >= timed["intended_ns"]).all()
    begun = relayed["publish_ns"] - relayed["callback_ns"].astype(np.int64)
    assert begun.tolist() == said.lane(KIND_RECEIVED, 1, 0)["taken_ns"].tolist()


def test_recorded_work_is_done_in_its_order(kind: Kind, folder: Path) -> None:
    times_ns = [MILLISECOND_NS, 4 * MILLISECOND_NS]
    nodes = pipeline("waitset", period_ns=PERIOD_NS)
    nodes[1]["rules"][0]["work"] = {"kind": "recorded", "times_ns": times_ns}
    received = carried_out(kind, folder, nodes).lane(KIND_RECEIVED, 1, 0)
    worked = (received["handled_ns"] - received["taken_ns"]).tolist()
    assert len(worked) == 9
    assert all(has >= times_ns[place % 2] for place, has in enumerate(worked))


SIZES = [[4096, 200, 16], [15, 4, 4096]]


@pytest.mark.parametrize("sizes", SIZES)
def test_payloads_of_many_sizes_arrive_whole(kind: Kind, folder: Path, sizes: list[int]) -> None:
    """Also those that are too small for an envelope."""
    nodes = [
        node(
            "source",
            0,
            [],
            [writer("t", 0, payload_bytes=4096, sizes_bytes=sizes)],
            [timer(PERIOD_NS)],
            "waitset",
        ),
        node(
            "sink", 1, [reader("t", [0], payload_bytes=4096, sizes_vary=True)], [], [any_message()], "waitset"
        ),
    ]
    said = carried_out(kind, folder, nodes)
    received = said.lane(KIND_RECEIVED, 1, 0)
    assert received["sequence"].tolist() == list(range(9))
    assert received["payload_bytes"].tolist() == [sizes[number % 3] for number in range(9)]
    assert (received["flags"] == 0).all()


@pytest.mark.parametrize("payload_bytes", [4, 10, 15])
def test_a_payload_smaller_than_an_envelope_is_matched_and_numbered(
    kind: Kind, folder: Path, payload_bytes: int
) -> None:
    said = carried_out(kind, folder, pipeline("waitset", period_ns=PERIOD_NS, payload_bytes=payload_bytes))
    sent, received = said.lane(KIND_SENT, 0, 0), said.lane(KIND_RECEIVED, 2, 0)
    assert received["sequence"].tolist() == sent["sequence"].tolist() == list(range(9))
    assert (received["stream"] == 1).all() and (received["payload_bytes"] == payload_bytes).all()


def test_a_small_payload_of_an_unknown_publisher_is_counted(kind: Kind, folder: Path) -> None:
    """A reader that waits for nobody can't know whose message it is. The verdict fails such a trial."""
    nodes = [
        node("source", 0, [], [writer("t", 0, payload_bytes=4)], [timer(PERIOD_NS)], "waitset"),
        node("sink", 1, [reader("t", [], payload_bytes=4)], [], [any_message()], "waitset"),
    ]
    read = carried_out(kind, folder, nodes).event("done")["readers"][0]
    assert read["received"] == 0 and read["corrupted"] > 0


def test_a_round_trip_of_small_payloads_keeps_its_numbers(kind: Kind, folder: Path) -> None:
    said = carried_out(
        kind, folder, pingpong("waitset", 20, payload_bytes=4), measure_ns=1_000 * MILLISECOND_NS
    )
    assert said.lane(KIND_RECEIVED, 0, 0)["sequence"].tolist() == list(range(20))


def test_a_timer_without_a_message_yet_is_a_root(kind: Kind, folder: Path) -> None:
    rule = timer(PERIOD_NS, readers=(0,))
    nodes = [node("lonely", 0, [reader("t", [])], [writer("u", 0)], [rule], "waitset")]
    sent = carried_out(kind, folder, nodes).lane(KIND_SENT, 0, 0)
    assert len(sent) == 9 and (sent["cause_count"] == 0).all()


def test_a_closed_loop_ends_after_its_messages(kind: Kind, folder: Path) -> None:
    said = carried_out(kind, folder, pingpong("waitset", 20), measure_ns=1_000 * MILLISECOND_NS)
    ping, pong = said.lane(KIND_SENT, 0, 0), said.lane(KIND_SENT, 1, 1)
    assert ping["sequence"].tolist() == pong["sequence"].tolist() == list(range(20))
    assert pong["cause_sequence"].tolist() == list(range(20))
    assert said.event("done")["writers"][0]["resent_after_timeout"] == 0


def test_a_closed_loop_without_an_answer_sends_again(kind: Kind, folder: Path) -> None:
    rule = closed_loop(4, timeout_ns=PERIOD_NS)
    nodes = [
        node("ping", 0, [reader("nothing", [])], [writer("t", 0)], [rule], "poll"),
        node("sink", 1, [reader("t", [0])], [], [any_message()], "poll"),
    ]
    said = carried_out(kind, folder, nodes, measure_ns=500 * MILLISECOND_NS)
    sent = said.lane(KIND_SENT, 0, 0)
    assert sent["sequence"].tolist() == [0, 1, 2, 3]
    # Of the callbacks: a busy machine may stamp the message itself any time after its callback has begun.
    begun = sent["publish_ns"] - sent["callback_ns"].astype(np.int64)
    assert (np.diff(begun) >= PERIOD_NS).all()
    (written,) = said.event("done")["writers"]
    assert (written["sent"], written["resent_after_timeout"]) == (4, 3)
    assert "due" not in written, "a loop has no schedule"


SCHEDULES: dict[str, Mapping] = {
    "periodic": {"kind": "periodic"},
    "poisson": {"kind": "poisson", "seed": 4711},
    "burst": {"kind": "burst", "messages": 3},
    "ramp": {
        "kind": "ramp",
        "end_period_ns": MILLISECOND_NS,
        "begin_ns": 10 * MILLISECOND_NS,
        "duration_ns": 100 * MILLISECOND_NS,
    },
    "recorded": {"kind": "recorded", "intervals_ns": [1_000_000, 0, 12_345_678]},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_both_keep_the_same_schedule(build: Path, folder: Path, name: str) -> None:
    """To the nanosecond, and both count as many messages that were due."""
    rule = {**timer(10 * MILLISECOND_NS), "offset_ns": 777, "schedule": SCHEDULES[name]}
    nodes = [node("source", 0, [], [writer("t", 0, subscribers=0)], [rule], "waitset")]
    found = []
    for make in KINDS.values():
        said = carried_out(make(build), folder, nodes)
        done, sent = said.event("done"), said.lane(KIND_SENT, 0, 0)
        assert sent["sequence"].tolist() == list(range(len(sent)))
        found.append(((sent["intended_ns"] - done["at_ns"]).tolist(), done["writers"][0]["due"]))
    assert len(found[0][0]) > 5 and found[0][0][0] >= 777
    assert found[0] == found[1]


@pytest.mark.parametrize("late", ["burst", "skip", "shift"])
def test_a_source_that_is_always_late_does_as_its_policy_says(kind: Kind, folder: Path, late: str) -> None:
    """It works for two and a half of its periods before each message, whatever the machine does."""
    work_ns, measure_ns = 50 * MILLISECOND_NS, 400 * MILLISECOND_NS
    rule = {**timer(PERIOD_NS), "work_ns": work_ns, "schedule": {"kind": "periodic", "late": late}}
    nodes = [node("source", 0, [], [writer("t", 0, subscribers=0)], [rule], "waitset")]
    said = carried_out(kind, folder, nodes, warmup_ns=0, measure_ns=measure_ns)
    done, sent = said.event("done"), said.lane(KIND_SENT, 0, 0)
    (written,) = done["writers"]
    sequences = sent["sequence"].tolist()
    due = measure_ns // PERIOD_NS
    assert written["due"] == due
    assert (sent["intended_ns"] == done["at_ns"] + PERIOD_NS * sent["sequence"].astype(np.int64)).all()
    assert (np.diff(sent["publish_ns"]) >= work_ns).all()
    assert sent["publish_ns"][0] >= done["at_ns"] + work_ns
    if late == "burst":
        assert sequences == list(range(due)) and (written["skipped"], written["shift_ns"]) == (0, 0)
    elif late == "skip":
        assert 0 < len(sequences) < due and sequences[-1] < due
        assert (written["skipped"], written["shift_ns"]) == (due - len(sequences), 0)
    else:
        assert sequences == list(range(len(sequences))) and len(sequences) < due
        assert written["skipped"] == 0
        assert written["shift_ns"] >= (work_ns - PERIOD_NS) * sequences[-1]


def test_a_node_works_before_it_answers(kind: Kind, folder: Path) -> None:
    work_ns = 2 * MILLISECOND_NS
    nodes = pipeline("waitset", period_ns=PERIOD_NS)
    nodes[1]["rules"][0]["work_ns"] = work_ns
    said = carried_out(kind, folder, nodes)
    received, relayed = said.lane(KIND_RECEIVED, 1, 0), said.lane(KIND_SENT, 1, 1)
    assert len(received) == len(relayed) == 9
    assert (received["handled_ns"] - received["taken_ns"] >= work_ns).all()
    assert (relayed["publish_ns"] >= received["handled_ns"]).all()


def test_drawn_work_is_the_same_in_both(build: Path, folder: Path) -> None:
    """Each draws the same times, which no node is faster than."""
    work: list[Mapping] = [
        {"kind": "lognormal", "sigma": 1.0, "seed": 7},
        {"kind": "normal", "spread_ns": 2 * MILLISECOND_NS, "seed": 7},
    ]
    for each in work:
        longest = []
        for make in KINDS.values():
            nodes = pipeline("waitset", period_ns=PERIOD_NS)
            nodes[1]["rules"][0] |= {"work_ns": 2 * MILLISECOND_NS, "work": each}
            received = carried_out(make(build), folder, nodes).lane(KIND_RECEIVED, 1, 0)
            longest.append((received["handled_ns"] - received["taken_ns"]).tolist())
        drawn_ns = _drawn_ns(each, len(longest[0]))
        for worked_ns in longest:
            assert all(has >= wants for has, wants in zip(worked_ns, drawn_ns, strict=True))


def _drawn_ns(work: Mapping, count: int) -> list[int]:
    drawn = Work(WorkPlan(**work), 2 * MILLISECOND_NS)
    return [drawn.next_ns() for _ in range(count)]


@pytest.mark.parametrize("touch", ["header", "write", "read", "write+read"])
def test_every_touch_lets_messages_through(kind: Kind, folder: Path, touch: str) -> None:
    given = kind.plan(
        folder, pipeline("waitset", period_ns=PERIOD_NS, payload_bytes=1_000), drain_ns=LONG_DRAIN_NS
    )
    given["touch"] = touch
    said = kind.run(given)
    received = said.lane(KIND_RECEIVED, 2, 0)
    assert len(received) == 9 and (received["flags"] == 0).all()
    assert (received["payload_bytes"] == 1_000).all() and (received["stream"] == 1).all()


def test_what_was_damaged_on_the_way_is_counted_and_marked(kind: Kind, folder: Path) -> None:
    """A reader of another size: what comes is not what was sent to it, and goes no further."""
    nodes = pipeline("waitset", period_ns=PERIOD_NS)
    nodes[1]["readers"][0]["payload_bytes"] = 128
    said = carried_out(kind, folder, nodes)
    received = said.lane(KIND_RECEIVED, 1, 0)
    assert len(received) == 9 and (received["flags"] == 1).all()
    assert (received["payload_bytes"] == 64).all()
    assert len(said.lane(KIND_SENT, 1, 1)) == 0
    read = said.event("done")["readers"][0]
    assert (read["received"], read["corrupted"]) == (9, 9)


def test_a_full_lane_is_flagged_and_what_follows_is_counted(kind: Kind, folder: Path) -> None:
    nodes = pipeline("waitset", period_ns=PERIOD_NS)
    nodes[0]["writers"][0]["capacity"] = nodes[2]["readers"][0]["capacity"] = 4
    said = carried_out(kind, folder, nodes)
    (source, relay), (_, sink) = said.event("done")["writers"], said.event("done")["readers"]
    assert (source["recorder_full"], source["sent"]) == (True, 9)
    assert (sink["recorder_full"], sink["received"]) == (True, 9)
    assert relay["recorder_full"] is False
    assert said.lane(KIND_SENT, 0, 0)["sequence"].tolist() == [0, 1, 2, 3]
    full = {(lane.kind, lane.node, lane.endpoint): lane.full for lane in said.lanes}
    assert [place for place, is_full in full.items() if is_full] == [(KIND_SENT, 0, 0), (KIND_RECEIVED, 2, 0)]


def test_both_hand_over_the_same_lanes(build: Path, folder: Path) -> None:
    """In the order of the nodes: each writer's messages and causes, then the readers."""
    found = []
    for make in KINDS.values():
        said = carried_out(make(build), folder, pipeline("waitset", period_ns=PERIOD_NS))
        found.append([(each.kind, each.node, each.endpoint, len(each.records)) for each in said.lanes])
    assert (
        found[0]
        == found[1]
        == [
            (KIND_SENT, 0, 0, 9),
            (KIND_CAUSES, 0, 0, 0),
            (KIND_SENT, 1, 1, 9),
            (KIND_CAUSES, 1, 1, 0),
            (KIND_RECEIVED, 1, 0, 9),
            (KIND_RECEIVED, 2, 0, 9),
        ]
    )
