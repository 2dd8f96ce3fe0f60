# SPDX-License-Identifier: Apache-2.0
"""What a worker says: every split of its bytes, every kind of nonsense."""

from __future__ import annotations

import itertools
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagometer.run.worker.conversation import STDERR_TAIL_BYTES, Conversation, creation_ns
from lagometer.run.worker.messages import ProtocolError

BLOCK = bytes(range(256)) * 3
HELLO = {"event": "hello", "protocol": 1, "worker": 0, "pid": 7, "version": "0.1.0"}
READY = {
    "event": "ready",
    "adapters": [{"name": "null", "version": 1, "library_version": None}],
    "settings": [],
}
MATCHED = {"event": "matched", "elapsed_ns": 5}
DONE = {
    "event": "done",
    "at_ns": 1,
    "measure_begin_ns": 2,
    "measure_end_ns": 3,
    "drain_end_ns": 4,
    "cpu_ns": 5,
}
RECORDS = {"event": "records", "bytes": len(BLOCK), "crc32": f"{zlib.crc32(BLOCK):08x}"}
BYE = {"event": "bye"}


def line(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


WHOLE = b"".join(map(line, (HELLO, READY, MATCHED, DONE, RECORDS))) + BLOCK + line(BYE)


@given(st.lists(st.integers(min_value=0, max_value=len(WHOLE)), max_size=30))
def test_every_split_of_the_bytes_says_the_same(cuts: list[int]) -> None:
    conversation = Conversation(0, "source")
    events: list[str] = []
    places = [0, *sorted(cuts), len(WHOLE)]
    for begin, end in itertools.pairwise(places):
        events += conversation.feed(WHOLE[begin:end])
    assert events == ["hello", "ready", "matched", "done", "records", "bye"]
    assert conversation.records == BLOCK
    assert conversation.bye
    assert conversation.done is not None
    assert conversation.done.cpu_ns == 5


def test_an_empty_block_is_whole_at_once() -> None:
    conversation = Conversation(0, "source")
    empty = {"event": "records", "bytes": 0, "crc32": "00000000"}
    events = conversation.feed(b"".join(map(line, (HELLO, READY, MATCHED, DONE, empty, BYE))))
    assert events[-2:] == ["records", "bye"]
    assert conversation.records == b""


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"Hello from the middleware\n", "'Hello from the middleware'"),
        (b"\xff\xfe\n", "not JSON"),
        (b"\n", "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b"[1]\n", "[1]"),
        (b'{"event":"greetings"}\n', "greetings"),
        (b'{"event":"hello"}\n', "protocol"),
        (line(READY), "ready where hello"),
        (line({**HELLO, "protocol": 2}), "protocol 2 instead of 1"),
        (line({**HELLO, "worker": 3}), "worker 3"),
        (line(HELLO) + line(HELLO), "hello where ready"),
        (line(BYE), "bye where"),
    ],
)
def test_what_the_protocol_does_not_know_is_quoted(said: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        Conversation(0, "source").feed(said)
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_damaged_block_is_not_taken() -> None:
    conversation = Conversation(0, "source")
    damaged = WHOLE.replace(BLOCK, BLOCK[:-1] + b"x")
    with pytest.raises(ProtocolError, match="checksum"):
        conversation.feed(damaged)
    assert conversation.records is None


def test_an_endless_line_is_refused() -> None:
    conversation = Conversation(0, "source")
    with pytest.raises(ProtocolError, match="a line of more than"):
        for _ in range(100):
            conversation.feed(b"x" * (1 << 20))


def test_failed_ends_the_conversation() -> None:
    conversation = Conversation(0, "source")
    failed = {
        "event": "failed",
        "phase": "create",
        "reason": "adapter-failed",
        "message": "no",
        "missing": [],
    }
    assert conversation.feed(line(failed)) == ["failed"]
    with pytest.raises(ProtocolError, match="nothing was expected"):
        conversation.feed(line(HELLO))


def test_what_took_long_to_create_may_take_as_long_to_destroy() -> None:
    quick, slow, dead = Conversation(0, "a"), Conversation(1, "b"), Conversation(2, "c")
    quick.came_ns["ready"], slow.came_ns["ready"] = 1_500, 9_000
    assert creation_ns([quick, slow, dead], 1_000) == 8_000
    assert creation_ns([dead], 1_000) == creation_ns([], 1_000) == 0


def test_only_the_end_of_stderr_is_kept() -> None:
    conversation = Conversation(0, "source")
    for _ in range(40):
        conversation.feed_stderr(b"a" * 4096)
    conversation.feed_stderr(b"the last words")
    assert len(conversation.stderr) == STDERR_TAIL_BYTES
    assert conversation.stderr.endswith("the last words")
