# SPDX-License-Identifier: Apache-2.0
"""The file of a probe: what was written is read, and what contradicts the layout is refused."""

from __future__ import annotations

import random

import pytest

from lagometer.store import probes
from lagometer.store.errors import RecordsError
from lagometer.store.probes import decode, encode

WRITER = bytes(range(16))


def call(begin_ns: int, end_ns: int, kind: int = probes.SEND, **more: int) -> dict[str, int]:
    return {"begin_ns": begin_ns, "end_ns": end_ns, "call": kind, **more}


def block() -> bytes:
    key = {"kind": probes.DATA, "writer": WRITER, "number": 7, "stream": 1, "sequence": 3}
    return encode(
        {
            11: [(call(10, 40), [key]), (call(50, 60, probes.NOTIFY, object=99), [])],
            12: [(call(20, 30, probes.RECEIVE), [key, {"kind": probes.HEARTBEAT, "writer": WRITER}])],
        },
        {11: "node:source", 12: "recv"},
        overflow=5,
    )


def test_calls_come_in_the_order_of_their_return_with_their_threads_and_keys() -> None:
    log = decode(block())
    assert log.calls["end_ns"].tolist() == [30, 40, 60]
    assert log.threads.tolist() == [12, 11, 11]
    assert log.names == {11: "node:source", 12: "recv"}
    assert log.owners.tolist() == [0, 0, 1]
    assert log.keys["kind"].tolist() == [probes.DATA, probes.HEARTBEAT, probes.DATA]
    assert bytes(log.keys["writer"][0]) == WRITER
    assert log.overflow == 5


def test_a_file_without_calls_is_empty() -> None:
    log = decode(encode({}))
    assert len(log.calls) == len(log.keys) == 0


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: raw[:100], "bytes, but the header alone"),
        (lambda raw: b"\0" * 8 + raw[8:], "magic"),
        (lambda raw: raw[:-64], "not whole chunks"),
        # The first chunk claims more records than it has room for, or the call more keys than follow.
        (lambda raw: raw[:4100] + b"\xff\xff" + raw[4102:], "claims"),
        (lambda raw: raw[: 4160 + 22] + b"\x05" + raw[4160 + 23 :], "keys of no call"),
        (lambda raw: raw[: 4160 + 8] + b"\0" * 8 + raw[4160 + 16 :], "ends before it begins"),
    ],
)
def test_what_contradicts_the_layout_is_refused(damage: object, said: str) -> None:
    assert callable(damage)
    with pytest.raises(RecordsError, match=said):
        decode(damage(block()))


def test_damaged_bytes_are_read_or_refused_and_nothing_else() -> None:
    draw = random.Random(3)
    whole = block()
    for _ in range(300):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(draw.randrange(8)):
            if damaged:
                damaged[draw.randrange(min(len(damaged), 5000))] = draw.randrange(256)
        try:
            decode(bytes(damaged))
        except RecordsError:
            continue
