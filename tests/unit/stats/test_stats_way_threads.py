# SPDX-License-Identifier: Apache-2.0
"""Messages that go through several threads of a middleware which the probe does not know."""

from __future__ import annotations

from typing import Any

import pytest

from lagometer.store import probes
from tests.fixtures.ways import NODE, SENDER, Calls, adapters_stamps, call, layers, spans

ENVELOPE = {"kind": probes.BY_ENVELOPE, "stream": 0, "sequence": 0}
IO = 9  # a thread of the middleware
NODES = {1: "node:source", 4: "node:sink"}


def moved(kind: int, begin: int, end: int, connection: int, at: int = 0) -> Any:
    """A call that moves the whole message over a stream socket."""
    more = {"object": at, "result": 68, "is_stream": 1, "descriptor": 4, "connection": connection}
    return call(kind, begin, end, **more), [ENVELOPE]


def by_io_threads(receives: int = 7) -> tuple[Calls, Calls]:
    """As ZeroMQ does: a thread on each side moves the bytes, and eventfds wake who waits."""
    sent: Calls = {
        NODE: [(call(probes.NOTIFY, 10, 14, object=1, descriptor=3), [])],
        IO: [
            (call(probes.WAIT, -90, 20), []),
            (call(probes.DRAINED, 21, 22, object=1, descriptor=3), []),
            moved(probes.SEND, 30, 60, 7),
        ],
    }
    received: Calls = {
        IO: [
            (call(probes.WAIT, -80, 70), []),
            moved(probes.RECEIVE, 72, 75, receives),
            (call(probes.NOTIFY, 80, 85, object=2, descriptor=5), []),
        ],
        4: [
            (call(probes.WAIT, -70, 90), []),
            (call(probes.DRAINED, 92, 93, object=2, descriptor=5), []),
        ],
    }
    return sent, received


@pytest.mark.parametrize("receives", [7, 8], ids=["one connection", "by a broker"])
def test_threads_that_wake_each_other_by_eventfds_hand_over(receives: int) -> None:
    found = layers(*by_io_threads(receives), 100, own={"woken_ns": 95}, names=NODES)
    assert spans(found) == [
        ("send_path", 0, 10),
        ("send_hand_over", 10, 20),
        ("send_path", 20, 30),
        ("transport", 30, 70),
        ("receive", 70, 75),
        ("receiving_thread", 75, 80),
        ("wake", 80, 90),
        ("notify", 90, 95),
        ("take", 95, 100),
    ]


def test_what_adapters_stamped_is_a_layer_within_another() -> None:
    """As of RustDDS, which the adapter serialises for, and whose calls the probe does not know."""
    stamps = adapters_stamps(("sender", "serialise", 3, 6), ("receiver", "deserialise", 96, 98))
    found = spans(layers(*by_io_threads(), 100, stamps, own={"woken_ns": 95}, names=NODES))
    assert found[:3] == [("send_path", 0, 3), ("serialise", 3, 6), ("send_path", 6, 10)]
    assert found[-3:] == [("take", 95, 96), ("deserialise", 96, 98), ("take", 98, 100)]


def test_a_node_that_polls_has_the_message_when_it_looks() -> None:
    """Nobody wakes it, and nothing shows when it calls a middleware that the probe does not know."""
    sent, received = by_io_threads()
    del received[4]
    found = spans(layers(sent, received, 100, names=NODES, polled=True))
    assert found[-2:] == [("receive", 70, 75), ("until_polled", 75, 100)]
    stamps = adapters_stamps(("receiver", "deserialise", 96, 98))
    found = spans(layers(sent, received, 100, stamps, names=NODES, polled=True))
    assert found[-3:] == [("until_polled", 75, 96), ("deserialise", 96, 98), ("take", 98, 100)]
    assert spans(layers(sent, received, 100, names=NODES))[-1] == ("unattributed", 75, 100)


def test_an_eventfd_that_another_thread_reads_hands_nothing_over() -> None:
    sent, received = by_io_threads()
    sent[SENDER] = [sent[IO].pop(1)]
    received[SENDER] = [received[4].pop(1)]
    found = spans(layers(sent, received, 100, own={"woken_ns": 95}, names=NODES))
    assert found[0] == ("unattributed", 0, 30)
    assert found[-2:] == [("unattributed", 75, 95), ("take", 95, 100)]


@pytest.mark.parametrize("woken", [90, None], ids=["waitset", "listener"])
def test_our_own_stamps_say_when_the_middleware_called_back(woken: int | None) -> None:
    """As of Zenoh, whose thread calls a function of the adapter."""
    sent, received = by_io_threads()
    received = {IO: received[IO][:2]}
    own: dict[str, int] = {"signalled_ns": 80} | ({"woken_ns": woken} if woken is not None else {})
    names = NODES if woken is not None else {1: "node:source"}
    if woken is not None:
        received[4] = [(call(probes.WAIT, -70, 90), [])]
    found = spans(layers(sent, received, 100, own=own, names=names))
    waking = [("wake", 80, 90), ("take", 90, 100)] if woken is not None else [("take", 80, 100)]
    assert found[4:] == [("receive", 70, 75), ("receiving_thread", 75, 80), *waking]


def test_what_was_deserialised_before_the_middleware_called_back_is_a_layer_there() -> None:
    """As of roscpp and hiroz, whose threads deserialise before they call a listener."""
    sent, received = by_io_threads()
    stamps = adapters_stamps(("receiver", "deserialise", 76, 79))
    received = {IO: received[IO][:2]}
    own, names = {"signalled_ns": 80}, {1: "node:source"}
    found = spans(layers(sent, received, 100, stamps, own=own, names=names))
    assert found[4:] == [
        ("receive", 70, 75),
        ("receiving_thread", 75, 76),
        ("deserialise", 76, 79),
        ("receiving_thread", 79, 80),
        ("take", 80, 100),
    ]


def test_a_node_whose_thread_makes_no_call_still_takes_from_when_it_woke() -> None:
    """As of iceoryx, which waits on semaphores: nothing shows the number of the thread."""
    found = layers(
        {}, {IO: [(call(probes.WAIT, -80, 5), [])]}, 100, own={"woken_ns": 95}, names={IO: "other"}
    )
    assert spans(found) == [("unattributed", 0, 95), ("take", 95, 100)]
    assert found.frame["end_thread"].to_list() == [0, 0]
