# SPDX-License-Identifier: Apache-2.0
"""Time stamps between two agents: over a real socket, with answers that are lost, late, and nobody's."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lagometer.agent.exchange import AWAITED_MAX, ClockExchange, Stamps, peers_of
from lagometer.agent.kernel_stamps import UNKNOWN, Beside, KernelStamps, stamp_of
from lagometer.store.exchanges import HostExchanges, exchanges_frame, exchanges_of

HERE = "127.0.0.1"


@contextmanager
def two() -> Iterator[tuple[selectors.DefaultSelector, ClockExchange, ClockExchange]]:
    with selectors.DefaultSelector() as selector:
        one, other = ClockExchange(HERE, selector), ClockExchange(HERE, selector)
        try:
            yield selector, one, other
        finally:
            one.close()
            other.close()


def serve(selector: selectors.DefaultSelector, until: ClockExchange) -> None:
    deadline_s = time.monotonic() + 10
    while until.waits and time.monotonic() < deadline_s:
        for key, _ in selector.select(1):
            key.data()


def test_an_exchange_has_its_stamps_in_order() -> None:
    with two() as (selector, one, other):
        before_ns = time.monotonic_ns()
        for _ in range(3):
            one.ask([("base", HERE, other.port)])
            serve(selector, one)
        found = one.taken()
        assert [each[0] for each in found] == ["base"] * 3 and not one.taken() and not other.taken()
        for each in found:
            assert before_ns <= each[1] and each[4] <= time.monotonic_ns()
            in_order(each)


def in_order(stamps: Stamps) -> None:
    """Both ends have one clock here; the kernel received nothing before it was sent or after it was taken."""
    _, sent, received, answered, returned, there, back = stamps
    assert sent <= received - max(there, 0) <= received <= answered
    assert answered <= returned - max(back, 0) <= returned
    assert there >= UNKNOWN and back >= UNKNOWN


def asked_once(selector: selectors.DefaultSelector, one: ClockExchange, other: ClockExchange) -> Stamps:
    one.ask([("base", HERE, other.port)])
    serve(selector, one)
    (found,) = one.taken()
    in_order(found)
    return found


def test_the_kernel_says_how_long_a_datagram_had_lain() -> None:
    """Sooner or later: it begins to stamp a moment after it was asked to."""
    with two() as (selector, one, other):
        deadline_s = time.monotonic() + 10
        while time.monotonic() < deadline_s:
            _, _, _, _, _, there, back = asked_once(selector, one, other)
            if there != UNKNOWN and back != UNKNOWN:
                return
        raise AssertionError("the kernel stamped nothing")


def test_a_kernel_that_stamps_nothing_leaves_the_agents_own_stamps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lagometer.agent.exchange.wish_for_stamps", lambda _: False)
    with two() as (selector, one, other):
        for _ in range(3):
            assert asked_once(selector, one, other)[5:] == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("step_ns", [5_000_000, -5_000_000])
def test_a_clock_that_is_set_meanwhile_leaves_the_agents_own_stamps(step_ns: int) -> None:
    """Of the host where it is set: what the other's kernel says is good."""
    set_by_ns = [0]
    kernel = KernelStamps(real=lambda: time.time_ns() + set_by_ns[0])
    with selectors.DefaultSelector() as selector:
        one, other = ClockExchange(HERE, selector, kernel), ClockExchange(HERE, selector)
        try:
            for _ in range(10):
                one.ask([("base", HERE, other.port)])
                set_by_ns[0] += step_ns
                serve(selector, one)
                (found,) = one.taken()
                in_order(found)
                assert found[6] == UNKNOWN
        finally:
            one.close()
            other.close()


def test_a_clock_that_was_set_before_a_question_harms_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks looked at the clocks since; who is asked did not, and says nothing of how long it had lain."""
    set_by_ns = [0]
    monkeypatch.setattr("lagometer.agent.exchange.stamp_of", lambda beside: _moved(beside, set_by_ns[0]))
    kernels = [KernelStamps(real=lambda: time.time_ns() + set_by_ns[0]) for _ in range(2)]
    with selectors.DefaultSelector() as selector:
        one, other = (ClockExchange(HERE, selector, kernel) for kernel in kernels)
        try:
            deadline_s, back = time.monotonic() + 10, UNKNOWN
            while back == UNKNOWN and time.monotonic() < deadline_s:
                set_by_ns[0] += 5_000_000
                *_, there, back = asked_once(selector, one, other)
                assert there == UNKNOWN
            assert back != UNKNOWN
        finally:
            one.close()
            other.close()


def _moved(beside: Beside, by_ns: int) -> int | None:
    stamp_ns = stamp_of(beside)
    return None if stamp_ns is None else stamp_ns + by_ns


def test_what_is_no_answer_of_ours_is_left_out() -> None:
    with two() as (selector, one, other), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"lag!", b"lag!" + bytes(32), b"nonsense" * 8, b"lag!" + b"\xff" * 32):
            stranger.sendto(data, (HERE, one.port))
        one.ask([("base", HERE, other.port)])
        serve(selector, one)
        assert len(one.taken()) == 1


def test_questions_without_answers_are_forgotten_in_time() -> None:
    with two() as (_, one, _other):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind((HERE, 0))
            for _ in range(AWAITED_MAX + 5):
                one.ask([("base", HERE, silent.getsockname()[1])])
        assert one.waits and not one.taken()


def test_an_address_that_is_not_ours_is_named() -> None:
    with (
        selectors.DefaultSelector() as selector,
        pytest.raises(OSError, match=r"address 192\.0\.2\.1 of this host"),
    ):
        ClockExchange("192.0.2.1", selector)


@pytest.mark.parametrize("given", [[["base", HERE]], [["base", HERE, "port"]], 7])
def test_peers_that_are_none_are_refused(given: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        peers_of(given)


def test_exchanges_are_stored_in_the_order_of_asking() -> None:
    pairs = [
        HostExchanges(
            "robot", "base", "", "base", exchanges_of([[30, 31, 32, 33, 4, -1], [10, 11, 12, 13, 0, 7]]), 2e-4
        ),
        HostExchanges("base", "robot", "base", "", exchanges_of([[20, 21, 22, 23]]), 2e-4),
    ]
    frame = exchanges_frame(pairs)
    assert frame is not None
    assert frame.select("host", "sent_ns").rows() == [("robot", 10), ("base", 20), ("robot", 30)]
    assert frame.select("received_lain_ns", "returned_lain_ns").rows() == [(0, 7), (None, None), (4, None)]
    assert exchanges_frame([]) is None
    shifted = pairs[1].stamps.shifted(5, 1)
    assert (shifted.sent[0], shifted.received[0], shifted.answered[0], shifted.returned[0]) == (
        15,
        20,
        21,
        18,
    )
