# SPDX-License-Identifier: Apache-2.0
"""The scheduler's file: read back as written, and refused where it is damaged."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagometer.store import scheduler as sched
from lagometer.store.errors import RecordsError
from lagometer.store.scheduler import HEADER_BYTES, RECORD_BYTES, decode, encode

EVENTS = [
    {"time_ns": 150, "kind": sched.EXCHANGE, "cpu": 1, "thread": 7, "other": 8, "seen_as": 3},
    {"time_ns": 120, "kind": sched.WAKING, "thread": 8, "other": 7, "target_cpu": 1},
]
BLOCK = encode(EVENTS, 100, 200, {7: "hog", 8: "node:sink"}, lost=4, overflow=5)


def test_a_file_is_read_as_it_was_written() -> None:
    log = decode(BLOCK)
    assert log.records["time_ns"].tolist() == [120, 150]  # in the order of time
    assert log.names == {7: "hog", 8: "node:sink"}
    assert log.seen_as == {7: 3}
    assert (log.begin_ns, log.end_ns, log.lost, log.overflow) == (100, 200, 4, 5)


def test_times_move_to_another_clock() -> None:
    log = decode(BLOCK).moved(-50)
    assert log.records["time_ns"].tolist() == [70, 100]
    assert (log.begin_ns, log.end_ns) == (50, 150)


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        (0, struct.pack("<Q", 1), "magic"),
        (8, struct.pack("<I", 2), "version 2"),
        (12, struct.pack("<I", 24), "24 bytes"),
        (16, struct.pack("<Q", 1 << 60), "claimed"),
        (40, struct.pack("<q", 300), "not a valid time range"),
        (HEADER_BYTES, struct.pack("<q", 0), "has no time"),
        (HEADER_BYTES + 8, b"\x63", "kind 99"),
        (HEADER_BYTES + 9, b"\x63", "state"),
        (HEADER_BYTES + 12, struct.pack("<i", -1), "negative"),
    ],
)
def test_damage_is_refused(where: int, value: bytes, says: str) -> None:
    with pytest.raises(RecordsError, match=says):
        decode(BLOCK[:where] + value + BLOCK[where + len(value) :])


@given(st.integers(0, len(BLOCK) - 1))
def test_a_file_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(RecordsError):
        decode(BLOCK[:length])


@given(st.lists(st.tuples(st.integers(0, len(BLOCK) - 1), st.integers(0, 255)), min_size=1, max_size=20))
def test_whatever_is_in_it_nothing_else_goes_wrong(changes: list[tuple[int, int]]) -> None:
    spoilt = bytearray(BLOCK)
    for place, value in changes:
        spoilt[place] = value
    with contextlib.suppress(RecordsError):
        decode(bytes(spoilt))


def test_records_have_the_size_that_the_protocol_says() -> None:
    assert (sched.HEADER_DTYPE.itemsize, sched.RECORD_DTYPE.itemsize) == (HEADER_BYTES, RECORD_BYTES)
