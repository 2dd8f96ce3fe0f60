# SPDX-License-Identifier: Apache-2.0
"""The way of a message: which layers it goes through, that they add up, and what stays unattributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.cell.layers import edge_layers
from lagometer.store import probes
from tests.fixtures.ways import (
    CONDITION,
    NODE,
    RECEIVER,
    SENDER,
    Calls,
    adapters_stamps,
    call,
    data,
    dds_receiver,
    dds_sender,
    fragment,
    layers,
    spans,
)


def test_a_message_of_dds_goes_through_every_layer() -> None:
    assert spans(layers(dds_sender(), dds_receiver(), 200)) == [
        ("benchmark", 0, 10),
        ("send_path", 10, 30),
        ("transport", 30, 80),
        ("receiving_thread", 80, 100),
        ("wake", 100, 150),
        ("notify", 150, 160),
        ("benchmark", 160, 170),
        ("take", 170, 190),
        ("benchmark", 190, 200),
    ]


def stamp(kind: int, at: int) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """A call of ROS 2's tracer; it takes 1 ns."""
    return call(kind, at, at + 1), []


def ros2_sender() -> Calls:
    sent = dds_sender()
    stamps = ((probes.RCLCPP_PUBLISH, 2), (probes.RCL_PUBLISH, 4), (probes.RMW_PUBLISH, 7))
    sent[NODE] += [stamp(kind, at) for kind, at in stamps]
    return sent


def ros2_receiver() -> Calls:
    received = dds_receiver()
    stamps = (
        (probes.EXECUTOR_EXECUTE, 166),
        *((probes.RMW_TAKE, 191), (probes.RCL_TAKE, 193), (probes.RCLCPP_TAKE, 196)),
        *((probes.CALLBACK_START, 198), (probes.CALLBACK_END, 300)),
    )
    received[NODE] += [stamp(kind, at) for kind, at in stamps]
    return received


def test_a_message_of_ros2_goes_through_its_layers_too() -> None:
    assert spans(layers(ros2_sender(), ros2_receiver(), 200)) == [
        ("benchmark", 0, 2),
        ("rclcpp_publish", 2, 4),
        ("rcl_publish", 4, 7),
        ("rmw_publish", 7, 10),
        ("send_path", 10, 30),
        ("transport", 30, 80),
        ("receiving_thread", 80, 100),
        ("wake", 100, 150),
        ("notify", 150, 160),
        ("executor", 160, 166),
        ("begin_take", 166, 170),
        ("take", 170, 190),
        ("rmw_take", 190, 191),
        ("rcl_take", 191, 193),
        ("rclcpp_take", 193, 196),
        ("callback", 196, 198),
        ("benchmark", 198, 200),
    ]


def without(received: Calls, *kinds: int) -> Calls:
    return {
        thread: [each for each in calls if each[0]["call"] not in kinds] for thread, calls in received.items()
    }


@pytest.mark.parametrize("waits_at_middleware", [True, False])
def test_an_executor_without_stamps_of_its_own_has_what_comes_before_the_take(
    waits_at_middleware: bool,
) -> None:
    """As of Jazzy the static one, which waits at the middleware, and the one of events, which doesn't."""
    received = without(ros2_receiver(), probes.EXECUTOR_EXECUTE)
    if not waits_at_middleware:
        received = without(received, probes.API_WAIT)
    found = spans(layers(ros2_sender(), received, 200))
    waking = [("wake", 100, 150), ("executor_begin_take", 150, 170)]
    if waits_at_middleware:
        waking = [("wake", 100, 150), ("notify", 150, 160), ("executor_begin_take", 160, 170)]
    begin = found.index(waking[0])
    assert found[begin : begin + len(waking) + 1] == [*waking, ("take", 170, 190)]
    assert "unattributed" not in {layer for layer, _, _ in found}


def test_within_a_process_the_writing_thread_wakes_the_one_that_takes() -> None:
    """As Cyclone DDS does, and Fast DDS: no socket carries the message."""
    calls: Calls = {
        SENDER: [
            (call(probes.NOTIFY, 30, 40, object=CONDITION), []),
            (call(probes.API_WRITE, 10, 70), []),
        ],
        NODE: [
            (call(probes.BLOCK, -400, 60, object=CONDITION), []),
            (call(probes.API_WAIT, -450, 80), []),
            (call(probes.API_TAKE, 90, 110), []),
        ],
    }
    woken = [("notify", 60, 80), ("benchmark", 80, 90), ("take", 90, 110), ("benchmark", 110, 200)]
    assert spans(layers(calls, None, 200)) == [
        ("benchmark", 0, 10),
        ("send_path", 10, 30),
        ("wake", 30, 60),
        *woken,
    ]
    del calls[SENDER][0]  # it was not the writing thread that woke it
    assert spans(layers(calls, None, 200))[1:3] == [("send_path", 10, 70), ("unattributed", 70, 80)]


def unseen(received: Calls, names: Mapping[int, str] | None = None) -> list[tuple[str, int, int]]:
    """What follows a write of which no system call is seen."""
    return spans(layers({NODE: [(call(probes.API_WRITE, 10, 70), [])]}, received, 200, names=names))[1:]


def test_what_no_system_call_brought_has_one_layer_until_a_thread_notifies() -> None:
    """As by Fast DDS's shared memory."""
    received = dds_receiver()
    del received[RECEIVER][0]  # the socket's
    rest = [("notify", 150, 160), ("benchmark", 160, 170), ("take", 170, 190), ("benchmark", 190, 200)]
    assert unseen(received) == [("unseen_transport", 10, 100), ("wake", 100, 150), *rest]
    del received[RECEIVER]  # nobody was seen to notify
    assert unseen(received)[0] == ("unattributed", 10, 160)


def test_a_listener_takes_on_the_thread_that_has_it_and_a_node_that_polls_does_not() -> None:
    received: Calls = {RECEIVER: [(call(probes.API_TAKE, 170, 190), [])]}
    rest = [("take", 170, 190), ("benchmark", 190, 200)]
    assert unseen(received) == [("unseen_transport", 10, 170), *rest]
    assert unseen(received, names={3: "node:sink"}) == [("unattributed", 10, 170), *rest]


def test_until_a_node_polls_a_message_lies_in_the_middleware() -> None:
    received = without(dds_receiver(), probes.BLOCK, probes.API_WAIT)
    rest = [("take", 170, 190), ("benchmark", 190, 200)]
    found = spans(layers(dds_sender(), received, 200, polled=True))
    assert found[2:] == [("transport", 30, 80), ("until_polled", 80, 170), *rest]
    assert spans(layers(dds_sender(), received, 200))[3:] == [("unattributed", 80, 170), *rest]


def test_what_a_callback_takes_waits_until_the_callback_does() -> None:
    """A timer of ROS 2 that polls its subscription; what it does before is no beginning of the take."""
    timer = [stamp(probes.EXECUTOR_EXECUTE, 166), stamp(probes.CALLBACK_START, 167)]
    received = without(dds_receiver(), probes.API_TAKE)
    take = [(call(probes.API_TAKE, 185, 190), []), stamp(probes.RMW_TAKE, 191), stamp(probes.RCL_TAKE, 193)]
    received[NODE] += [*timer, *take, stamp(probes.RCLCPP_TAKE, 196), stamp(probes.CALLBACK_END, 300)]
    found = spans(layers(ros2_sender(), received, 196))
    assert found[5:] == [
        ("transport", 30, 80),
        ("until_polled", 80, 185),
        ("take", 185, 190),
        ("rmw_take", 190, 191),
        ("rcl_take", 191, 193),
        ("rclcpp_take", 193, 196),
    ]


def test_a_node_that_polls_and_receives_itself_waits_for_nobody() -> None:
    received: Calls = {
        RECEIVER: [
            (call(probes.RECEIVE, -500, 80), [data()]),
            (call(probes.API_TAKE, 170, 190), []),
        ]
    }
    found = spans(layers(dds_sender(), received, 200, polled=True))
    assert found[3] == ("receiving_thread", 80, 170)


def test_an_executor_that_polls_has_its_stamps() -> None:
    found = spans(layers(ros2_sender(), ros2_receiver(), 200, polled=True))
    assert found == spans(layers(ros2_sender(), ros2_receiver(), 200))


def test_within_a_thread_what_it_did_before_it_took_is_nobodys() -> None:
    calls: Calls = {
        NODE: [
            (call(probes.API_WRITE, 10, 70), []),
            (call(probes.API_WAIT, 85, 90), []),
            (call(probes.API_TAKE, 100, 110), []),
        ]
    }
    assert spans(layers(calls, None, 110)) == [
        ("benchmark", 0, 10),
        ("send_path", 10, 70),
        ("unattributed", 70, 90),
        ("benchmark", 90, 100),
        ("take", 100, 110),
    ]


def test_a_node_of_ros2_that_waits_and_takes_itself_has_no_executor() -> None:
    """As with rclcpp::WaitSet: what follows `rclcpp_take` is its own, but not on an executor's thread."""
    executors = (probes.EXECUTOR_EXECUTE, probes.CALLBACK_START, probes.CALLBACK_END)
    found = spans(layers(ros2_sender(), without(ros2_receiver(), *executors), 200))
    assert found[-7:] == [
        ("notify", 150, 160),
        ("wait_begin_take", 160, 170),
        ("take", 170, 190),
        ("rmw_take", 190, 191),
        ("rcl_take", 191, 193),
        ("rclcpp_take", 193, 196),
        ("benchmark", 196, 200),
    ]
    lost = spans(layers(ros2_sender(), without(ros2_receiver(), *executors[1:]), 200))
    assert lost[-1] == ("unattributed", 196, 200)


def test_what_ros2_did_not_stamp_is_nobodys() -> None:
    """In Python there is no rclcpp; an rmw may have no stamps."""
    sent, received = dds_sender(), dds_receiver()
    sent[NODE].append(stamp(probes.RCL_PUBLISH, 4))
    received[NODE] += [stamp(probes.RMW_TAKE, 191), stamp(probes.RCL_TAKE, 193)]
    found = spans(layers(sent, received, 200))
    assert found[:2] == [("unattributed", 0, 10), ("send_path", 10, 30)]
    assert found[-5:] == [
        ("wait_begin_take", 160, 170),
        ("take", 170, 190),
        ("rmw_take", 190, 191),
        ("rcl_take", 191, 193),
        ("unattributed", 193, 200),
    ]


def test_without_calls_of_the_middleware_the_stamps_of_ros2_tell() -> None:
    """As over Zenoh."""
    sent, received = ros2_sender(), ros2_receiver()
    sent[NODE] = [each for each in sent[NODE] if each[0]["call"] != probes.API_WRITE]
    others = (probes.API_WAIT, probes.API_TAKE)
    received[NODE] = [each for each in received[NODE] if each[0]["call"] not in others]
    assert spans(layers(sent, received, 200)) == [
        ("benchmark", 0, 2),
        ("rclcpp_publish", 2, 4),
        ("rcl_publish", 4, 7),
        ("send_path", 7, 30),
        ("transport", 30, 80),
        ("receiving_thread", 80, 100),
        ("wake", 100, 150),
        ("notify", 150, 166),
        ("whole_take", 166, 191),
        ("rcl_take", 191, 193),
        ("rclcpp_take", 193, 196),
        ("callback", 196, 198),
        ("benchmark", 198, 200),
    ]


def test_without_an_executor_either_the_take_begins_when_the_node_wakes() -> None:
    """As over Zenoh with rclcpp::WaitSet, or with an executor that does not stamp when it executes."""
    sent, received = ros2_sender(), ros2_receiver()
    sent[NODE] = [each for each in sent[NODE] if each[0]["call"] != probes.API_WRITE]
    others = (probes.API_WAIT, probes.API_TAKE, probes.EXECUTOR_EXECUTE)
    received[NODE] = [each for each in received[NODE] if each[0]["call"] not in others]
    assert spans(layers(sent, received, 200))[5:9] == [
        ("receiving_thread", 80, 100),
        ("wake", 100, 150),
        ("whole_take", 150, 191),
        ("rcl_take", 191, 193),
    ]
    never_woken = without(received, probes.BLOCK)
    assert spans(layers(sent, never_woken, 200))[5:7] == [("unattributed", 80, 191), ("rcl_take", 191, 193)]


def test_a_stamp_that_is_missing_leaves_a_gap() -> None:
    sent, received = ros2_sender(), ros2_receiver()
    sent[NODE] = [each for each in sent[NODE] if each[0]["call"] != probes.RCL_PUBLISH]
    received[NODE] = [each for each in received[NODE] if each[0]["call"] != probes.RCL_TAKE]
    found = spans(layers(sent, received, 200))
    assert found[:3] == [("benchmark", 0, 2), ("unattributed", 2, 7), ("rmw_publish", 7, 10)]
    assert found[-4:] == [
        ("rmw_take", 190, 191),
        ("unattributed", 191, 196),
        ("callback", 196, 198),
        ("benchmark", 198, 200),
    ]


def test_stamps_of_the_message_before_are_not_taken_for_this_ones() -> None:
    sent = dds_sender()
    sent[NODE] += [
        stamp(kind, -50) for kind in (probes.RCLCPP_PUBLISH, probes.RCL_PUBLISH, probes.RMW_PUBLISH)
    ]
    assert spans(layers(sent, dds_receiver(), 200))[:2] == [("benchmark", 0, 10), ("send_path", 10, 30)]


def test_what_adapters_stamped_is_a_layer_within_another() -> None:
    stamps = adapters_stamps(("sender", "serialise", 15, 20), ("receiver", "deserialise", 175, 185))
    found = spans(layers(dds_sender(), dds_receiver(), 200, stamps))
    assert found[1:4] == [("send_path", 10, 15), ("serialise", 15, 20), ("send_path", 20, 30)]
    assert found[-4:-1] == [("take", 170, 175), ("deserialise", 175, 185), ("take", 185, 190)]


def test_another_thread_that_sends_is_a_hand_over() -> None:
    sent: Calls = {
        NODE: [(call(probes.NOTIFY, 20, 25, object=5), []), (call(probes.API_WRITE, 10, 30), [])],
        SENDER: [(call(probes.BLOCK, -90, 40, object=5), []), (call(probes.SEND, 50, 60), [data()])],
    }
    found = spans(layers(sent, dds_receiver(), 200))
    assert found[1:5] == [
        ("send_path", 10, 20),
        ("send_hand_over", 20, 40),
        ("send_path", 40, 50),
        ("transport", 50, 80),
    ]


def test_a_hand_over_that_nobody_saw_is_unattributed() -> None:
    sent: Calls = {
        NODE: [(call(probes.API_WRITE, 10, 30), [])],
        SENDER: [(call(probes.SEND, 50, 60), [data()])],
    }
    received = dds_receiver()
    del received[RECEIVER][1]  # the notification
    found = spans(layers(sent, received, 200))
    assert found[:3] == [("benchmark", 0, 10), ("unattributed", 10, 50), ("transport", 50, 80)]
    assert ("unattributed", 80, 160) in found


def test_transport_ends_where_the_last_fragment_is_received() -> None:
    sent: Calls = {
        NODE: [
            (call(probes.SEND, 20, 30), [fragment(1, 2, 3)]),
            (call(probes.SEND, 40, 50), [fragment(3, 1, 3)]),
        ]
    }
    received: Calls = {
        RECEIVER: [
            (call(probes.RECEIVE, 25, 35), [fragment(1, 2, 3)]),
            (call(probes.RECEIVE, 36, 60), [fragment(3, 1, 3)]),
            (call(probes.API_TAKE, 80, 90), []),
        ]
    }
    assert spans(layers(sent, received, 100)) == [
        ("send_path", 0, 20),
        ("send", 20, 40),
        ("transport", 40, 60),
        ("receiving_thread", 60, 80),
        ("take", 80, 90),
        ("benchmark", 90, 100),
    ]


def test_what_was_lost_and_sent_again_counts_as_sending() -> None:
    sent: Calls = {
        NODE: [(call(probes.SEND, 20, 30), [data()])],
        SENDER: [(call(probes.SEND, 500, 510), [data()])],
    }
    received: Calls = {RECEIVER: [(call(probes.RECEIVE, 100, 520), [data()])]}
    assert spans(layers(sent, received, 600))[:3] == [
        ("send_path", 0, 20),
        ("send", 20, 500),
        ("transport", 500, 520),
    ]


def test_a_fragment_that_is_missing_leaves_the_rest_unattributed() -> None:
    sent: Calls = {NODE: [(call(probes.SEND, 20, 30), [fragment(1, 2, 3)])]}
    received: Calls = {RECEIVER: [(call(probes.RECEIVE, 25, 35), [fragment(1, 2, 3)])]}
    assert spans(layers(sent, received, 100)) == [("send_path", 0, 20), ("unattributed", 20, 100)]


@pytest.mark.parametrize("name", ["node:sink", "other"])
def test_without_an_interface_only_the_nodes_own_thread_takes(name: str) -> None:
    envelope = {"kind": probes.BY_ENVELOPE, "stream": 0, "sequence": 0}
    sent: Calls = {NODE: [(call(probes.SEND, 5, 40), [envelope])]}
    received: Calls = {
        9: [(call(probes.WAIT, -50, 30), []), (call(probes.RECEIVE, 32, 36), [envelope])],
    }
    found = spans(layers(sent, received, 50, names={9: name}))
    assert found[:3] == [("send_path", 0, 5), ("transport", 5, 30), ("receive", 30, 36)]
    assert found[3:] == [("take" if name == "node:sink" else "unattributed", 36, 50)]


def test_over_a_stream_bytes_are_counted() -> None:
    """The second message begins at byte 68; two calls receive it, the first of which ends the one before."""

    def moved(kind: int, begin: int, end: int, at: int, count: int) -> dict[str, Any]:
        return call(kind, begin, end, object=at, result=count, is_stream=1, descriptor=4, connection=9)

    def own(sequence: int) -> list[Mapping[str, Any]]:
        return [{"kind": probes.BY_ENVELOPE, "stream": 0, "sequence": sequence}]

    sent: Calls = {
        NODE: [
            (moved(probes.SEND, -300, -290, 0, 68), own(7)),
            (moved(probes.SEND, 5, 20, 68, 68), own(0)),
        ]
    }
    received: Calls = {
        9: [
            (moved(probes.RECEIVE, -280, 30, 0, 100), own(7)),
            (moved(probes.RECEIVE, 31, 45, 100, 36), []),
        ]
    }
    assert spans(layers(sent, received, 50, names={9: "node:sink"})) == [
        ("send_path", 0, 5),
        ("transport", 5, 31),
        ("receive", 31, 45),
        ("take", 45, 50),
    ]


def test_a_worker_without_a_probe_is_named() -> None:
    found = layers(dds_sender(), dds_receiver(), 200)
    assert list(found.counts.warnings()) == []
    assert replace(found.counts, unprobed=1, overflow=2).as_json()["unprobed"] == 1
    assert len(list(replace(found.counts, unprobed=1, overflow=2).warnings())) == 2


KINDS = (1, 2, 3, 4, 5, 6, 16, 17, 18, *range(64, 76))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_was_seen_the_layers_add_up_to_the_latency(draw: st.DataObject) -> None:
    def some() -> Calls:
        found: Calls = {}
        for thread in (NODE, SENDER, RECEIVER):
            times = draw.draw(st.lists(st.integers(-100, 1100), min_size=0, max_size=8))
            found[thread] = []
            for begin in times:
                kind = draw.draw(st.sampled_from(KINDS))
                keys = [data()] if kind in (1, 2) else []
                end = begin + draw.draw(st.integers(0, 300))
                found[thread].append((call(kind, begin, end, object=draw.draw(st.integers(0, 1))), keys))
        return found

    taken = draw.draw(st.integers(1, 1000))
    found = spans(layers(some(), some(), taken))
    assert found[0][1] == 0 and found[-1][2] == taken
    for (_, begin, end), (_, following, _) in zip(found, [*found[1:], ("", taken, 0)], strict=True):
        assert begin < end == following


def test_shares_of_a_message_add_up_and_a_layer_that_it_skips_takes_no_time() -> None:
    rows = [
        *(("e", sequence, "transport", 0, 60, 1, 1) for sequence in range(30)),
        *(("e", sequence, "unattributed", 60, 80, 1, 1) for sequence in range(30)),
        *(("e", sequence, "take", 80, 100, 1, 1) for sequence in range(10)),
    ]
    schema = ("edge", "sequence", "layer", "begin_ns", "end_ns", "begin_thread", "end_thread")
    found = edge_layers([pl.DataFrame(rows, schema=schema, orient="row")])
    assert found is not None
    assert [layer.name for layer in found.layers] == ["transport", "take", "unattributed"]
    assert sum(layer.share for layer in found.layers) == pytest.approx(1)
    assert {layer.name: layer.p50_ns for layer in found.layers} == {
        "transport": 60,
        "take": 0,
        "unattributed": 20,
    }
    assert found.unattributed_p50_share == pytest.approx(0.25)
    assert edge_layers([]) is None


def test_of_few_messages_no_median_is_known() -> None:
    rows = [("e", sequence, "take", 0, 90, 1, 1) for sequence in range(10)]
    schema = ("edge", "sequence", "layer", "begin_ns", "end_ns", "begin_thread", "end_thread")
    found = edge_layers([pl.DataFrame(rows, schema=schema, orient="row")])
    assert found is not None
    assert (found.messages, found.latency_p50_ns) == (10, None)
    assert [(layer.p50_ns, layer.p99_ns, layer.share) for layer in found.layers] == [(None, None, 1.0)]
