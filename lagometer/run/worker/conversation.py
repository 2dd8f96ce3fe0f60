# SPDX-License-Identifier: Apache-2.0
"""One worker's side of a trial: takes bytes, returns messages, and checks order, checksum and bounds.

This module touches no descriptor, so tests can cover every split of the bytes and every kind of garbage.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable

from lagometer.run.worker.messages import (
    Bye,
    Done,
    Failed,
    Hello,
    Incompatible,
    Matched,
    ProtocolError,
    Ready,
    Records,
    parse,
    quoted,
)
from lagometer.run.worker.plan import PROTOCOL_VERSION

LINE_BYTES_MAX = 16 << 20
STDERR_TAIL_BYTES = 64 << 10


class Conversation:
    """What one worker has sent so far."""

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.hello: Hello | None = None
        self.ready: Ready | None = None
        self.incompatible: list[Incompatible] = []
        self.matched: Matched | None = None
        self.done: Done | None = None
        self.records: bytearray | None = None
        self.failed: Failed | None = None
        self.bye = False
        self.came_ns: dict[str, int] = {}  # when each event first came, on our clock
        self._line = bytearray()
        self._announced: Records | None = None
        self._block = bytearray()
        self._checksum = 0
        self._stderr = bytearray()

    @property
    def stderr(self) -> str:
        """The end of what the worker wrote on its standard error."""
        return self._stderr.decode(errors="replace")

    @property
    def records_pending_bytes(self) -> int:
        """The number of bytes of the announced block that are still missing."""
        return self._announced.bytes - len(self._block) if self._announced is not None else 0

    def feed_stderr(self, data: bytes) -> None:
        """Keeps the end of the worker's output for people."""
        self._stderr += data
        if len(self._stderr) > STDERR_TAIL_BYTES:
            del self._stderr[:-STDERR_TAIL_BYTES]

    def feed(self, data: bytes) -> list[str]:
        """Takes bytes of the standard output; returns the names of the events that they complete.

        Raises `ProtocolError` for anything that the protocol does not allow; the conversation is then over.
        """
        events: list[str] = []
        rest = memoryview(data)
        while rest:
            in_block = self._announced is not None
            rest = self._feed_block(rest) if in_block else self._feed_line(rest, events)
            if self._announced is not None and self.records_pending_bytes == 0:
                self._finish_block()
                events.append("records")
        return events

    def _feed_line(self, rest: memoryview, events: list[str]) -> memoryview:
        """Takes up to one line. Reports a `records` line only when its block is complete."""
        raw = bytes(rest)
        end = raw.find(b"\n")
        self._line += raw if end < 0 else raw[:end]
        if len(self._line) > LINE_BYTES_MAX:
            raise ProtocolError(
                f"a line of more than {LINE_BYTES_MAX} bytes: {quoted(bytes(self._line[:400]))}"
            )
        if end < 0:
            return rest[len(rest) :]
        line = bytes(self._line)
        self._line.clear()
        event = self._take(line)
        if event != "records":
            events.append(event)
        return rest[end + 1 :]

    def _feed_block(self, rest: memoryview) -> memoryview:
        count = min(len(rest), self.records_pending_bytes)
        self._block += rest[:count]
        self._checksum = zlib.crc32(rest[:count], self._checksum)
        return rest[count:]

    def _finish_block(self) -> None:
        assert self._announced is not None
        if f"{self._checksum:08x}" != self._announced.crc32:
            raise ProtocolError(
                f"{self._announced.bytes} bytes of records with the checksum {self._checksum:08x} "
                f"where {self._announced.crc32} was announced"
            )
        self.records, self._block, self._announced = self._block, bytearray(), None

    def _take(self, line: bytes) -> str:
        """Stores one message. An event out of turn is a protocol error."""
        message = parse(line)
        expected = self._expected()
        if message.event not in expected:
            raise ProtocolError(f"{message.event} where {' or '.join(expected)} was expected: {quoted(line)}")
        self.came_ns.setdefault(message.event, time.monotonic_ns())
        if isinstance(message, Hello):
            self._check_hello(message)
            self.hello = message
        elif isinstance(message, Ready):
            self.ready = message
        elif isinstance(message, Incompatible):
            self.incompatible.append(message)
        elif isinstance(message, Matched):
            self.matched = message
        elif isinstance(message, Done):
            self.done = message
        elif isinstance(message, Records):
            self._announced = message
        elif isinstance(message, Failed):
            self.failed = message
        else:
            assert isinstance(message, Bye)
            self.bye = True
        return message.event

    def _check_hello(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL_VERSION:
            raise ProtocolError(
                f"protocol {hello.protocol} instead of {PROTOCOL_VERSION}: rebuild the worker"
            )
        if hello.worker != self.index:
            raise ProtocolError(f"it says that it is worker {hello.worker} and it is {self.index}")

    def _expected(self) -> tuple[str, ...]:
        if self.failed is not None or self.bye:
            return ("nothing",)
        if self.hello is None:
            return ("hello", "failed")
        if self.ready is None:
            return ("ready", "failed")
        if self.matched is None:
            return ("matched", "incompatible", "failed")
        if self.done is None:
            return ("done", "incompatible", "failed")
        if self.records is None:
            return ("records", "failed")
        return ("bye", "failed")


def failure_code(failed: Failed, conversations: Iterable[Conversation]) -> str:
    """Returns the code of a worker's failure. If readers were not matched and the middleware reported
    incompatible quality of service on the same topics, that is the code."""
    topics = {str(reader.get("topic")) for reader in failed.missing if isinstance(reader, dict)}
    reported_ends = [
        end for conversation in conversations for end in conversation.incompatible if end.topic in topics
    ]
    if failed.reason != "endpoints-missing" or not reported_ends:
        return failed.reason
    ends = dict.fromkeys(f"{end.side} {end.node} on {end.topic}" for end in reported_ends)
    return f"incompatible-qos: {_policies(reported_ends)}the middleware says so of {', '.join(ends)}"


def _policies(reported_ends: Iterable[Incompatible]) -> str:
    """Returns each incompatible policy, with the offered and requested values that the sides reported."""
    sides = {"writer": "offered", "reader": "requested"}
    by_policy: dict[str, dict[str, None]] = {}
    for side, word in sides.items():
        for end in reported_ends:
            if end.side == side and end.policy:
                by_policy.setdefault(end.policy, {})[f"{word} {end.value}"] = None
    return "".join(f"{policy}: {', '.join(values)}; " for policy, values in by_policy.items())


def creation_ns(conversations: Iterable[Conversation], started_ns: int) -> int:
    """Returns how long the slowest worker took until its endpoints were created.

    Objects that take long to create may take as long to destroy: a hundred Fast DDS participants, many
    seconds.
    """
    return max(
        (conversation.came_ns.get("ready", started_ns) - started_ns for conversation in conversations),
        default=0,
    )
