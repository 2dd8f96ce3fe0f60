# SPDX-License-Identifier: Apache-2.0
"""Time stamps between two agents: over a real socket, with answers that are lost, late, and nobody's."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lagometer.agent.exchange import AWAITED_MAX, ClockExchange, peers_of
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
        for _, sent, received, answered, returned in found:
            assert before_ns <= sent <= received <= answered <= returned <= time.monotonic_ns()


def test_what_is_no_answer_of_ours_is_left_out() -> None:
    with two() as (selector, one, other), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"lag!", b"lag!" + bytes(24), b"nonsense" * 8, b"lag!" + b"\xff" * 24):
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
        HostExchanges("robot", "base", "", "base", exchanges_of([[30, 31, 32, 33], [10, 11, 12, 13]]), 2e-4),
        HostExchanges("base", "robot", "base", "", exchanges_of([[20, 21, 22, 23]]), 2e-4),
    ]
    frame = exchanges_frame(pairs)
    assert frame is not None
    assert frame.select("host", "sent_ns").rows() == [("robot", 10), ("base", 20), ("robot", 30)]
    assert exchanges_frame([]) is None
    shifted = pairs[1].stamps.shifted(5, 1)
    assert (shifted.sent[0], shifted.received[0], shifted.answered[0], shifted.returned[0]) == (
        15,
        20,
        21,
        18,
    )
