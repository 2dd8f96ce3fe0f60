# SPDX-License-Identifier: Apache-2.0
"""Frames between the conductor and an agent: however their bytes come, and whatever comes in their place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagometer.agent.commands import Command, Companion, Leaves
from lagometer.agent.daemons import Ready, Wanted
from lagometer.agent.frames import Frame, FrameError, Frames, framed
from lagometer.agent.load import Wanted as WantedLoad
from lagometer.agent.orders import Orders, parsed

VALUES = st.one_of(st.integers(), st.text(), st.booleans(), st.none())
MESSAGES = st.dictionaries(st.text().filter(lambda name: name != "bytes"), VALUES, max_size=4)
BLOCKS = st.one_of(st.none(), st.binary(max_size=50))


def taken(pieces: list[bytes]) -> list[Frame]:
    frames = Frames()
    return [frame for piece in pieces for frame in frames.feed(piece)]


@given(st.lists(st.tuples(MESSAGES, BLOCKS), max_size=5), st.data())
def test_frames_come_whole_however_the_bytes_are_cut(
    written: list[tuple[dict[str, Any], bytes | None]], data: st.DataObject
) -> None:
    stream = b"".join(framed(message, block) for message, block in written)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    found = taken(pieces)
    assert [block for _, block in found] == [block or b"" for _, block in written]
    for (message, _), (wanted, block) in zip(found, written, strict=True):
        assert message == (wanted if block is None else {**wanted, "bytes": len(block)})


def test_every_single_cut() -> None:
    stream = framed({"event": "output", "worker": 1}, b"one\ntwo\n") + framed({"event": "loaded"})
    for cut in range(len(stream) + 1):
        assert len(taken([stream[:cut], stream[cut:]])) == 2


@pytest.mark.parametrize(
    "line", [b"Segmentation fault\n", b"[1]\n", b"{\n", b"\xff\xfe\n", b"\n", b'{"a":NaN', b'{"bytes":-1}\n']
)
def test_what_is_no_frame_is_refused_and_quoted(line: bytes) -> None:
    frames = Frames()
    if not line.endswith(b"\n"):
        assert frames.feed(line) == []
        return
    with pytest.raises(FrameError) as raised:
        frames.feed(line)
    assert repr(line.strip()) in str(raised.value) or "-1" in str(raised.value)


@pytest.mark.parametrize("size", ["1", 1.0, True, None, 1 << 60])
def test_a_block_of_no_sensible_size_is_refused(size: object) -> None:
    with pytest.raises(FrameError, match="a block of"):
        Frames().feed(json.dumps({"bytes": size}).encode() + b"\n")


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_raise_nothing_else(noise: bytes) -> None:
    frames = Frames()
    try:
        frames.feed(noise)
    except FrameError:
        return


def test_orders_come_back_as_they_were_written() -> None:
    load = WantedLoad("cpu-2", "cpu", 2, 10, ("taskset", "-c", "0"), True, "lagometer-1-0")
    companion = Companion(("broker", "-p", "1"), {"A": "b"}, daemon=True)
    daemon = Wanted("broker", companion, Ready(file="/x"), {"PORT": "1"}, {"conf": "text"}, ("/tmp/x",))
    orders = Orders(
        "host",
        "/dev/shm/lagometer-1-0",
        (Command(("worker",), {"LD_PRELOAD": "x.so"}),),
        (daemon,),
        load,
        Leaves("/dev/shm/lagometer-1-0", ("a*",), ("b*",)),
    )
    assert parsed(json.loads(json.dumps(orders.as_json()))) == orders
    bare = Orders("private", "/dev/shm/lagometer", ())
    assert parsed(json.loads(json.dumps(bare.as_json()))) == bare
