# SPDX-License-Identifier: Apache-2.0
"""A writer and a reader as the worker uses them: the adapter's object, its counts and its records."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lagometer.worker_python.adapter import Reader, ReplyWriter, Writer, accepted
from lagometer.worker_python.plan import ContentPlan, EndpointPlan, Plan
from lagometer.worker_python.plan_bounds import CONTENT_FILE_BYTES_MAX, IN_FLIGHT_MAX_NS
from lagometer.worker_python.records import CAUSE, RECEIVED, SENT, Lane
from lagometer.worker_python.schedule import Random
from lagometer.worker_python.stage import Stage, current_cpu, now_ns

ENVELOPE = struct.Struct("<HBBIQ")
ENVELOPE_MAGIC, ENVELOPE_VERSION = 0x4C67, 1
KIND_DATA, KIND_PROBE = 0, 1
# Content of a payload that is smaller than an envelope: the kind, and the low bits of the sequence. For a
# probe, the low bits of when it was sent, in units of 1,024 ns.
SMALL = struct.Struct("<I")
SMALL_BITS, SMALL_TIME_SHIFT = 31, 10
SMALL_SPAN = 1 << SMALL_BITS
CACHE_LINE = 64
STATUS_SENT, STATUS_REJECTED, STATUS_FAILED = 0, 1, 2
FLAG_CORRUPTED = 1
CALLBACK_NS_MAX = 2**32 - 1
MADE_BYTES = 1 << 20  # more than a compressor's window

Cause = tuple[int, int]  # stream, sequence
MARKS = tuple(bytes([value]) for value in range(256))


class ContentError(Exception):
    """A content file can't be read, or is not the study's file."""


@dataclass(frozen=True)
class Arrival:
    """How a message came to this thread; 0 if that could not be observed."""

    signalled_ns: int = 0
    woken_ns: int = 0
    cpu_signalled: int = 0xFFFF


def load_content(plan: ContentPlan) -> bytes:
    """Returns what payloads are filled from; empty: the buffer keeps its content. Raises ContentError."""
    if plan.kind == "zeros":
        return bytes(MADE_BYTES)
    if plan.kind == "random":
        generator = Random(plan.seed)
        return b"".join(generator.bits().to_bytes(8, "little") for _ in range(MADE_BYTES // 8))
    if plan.kind == "any":
        return b""
    try:
        with Path(plan.path).open("rb") as file:
            content = file.read(CONTENT_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ContentError(f"content: {plan.path} can't be read: {error.strerror}") from error
    if not 0 < len(content) <= CONTENT_FILE_BYTES_MAX:
        raise ContentError(f"content: {plan.path} is empty or larger than 64 MiB")
    if zlib.crc32(content) != plan.crc32:
        raise ContentError(f"content: {plan.path} is not the file that the study was made with")
    return content


class Output:
    """One publisher. Used by one thread at a time."""

    def __init__(self, endpoint: EndpointPlan, plan: Plan, stage: Stage, content: bytes) -> None:
        self.plan = endpoint
        self.writer: Writer
        self.sent_lane: Lane
        self.causes_lane: Lane
        self._touch = plan.touch_write
        self._content = content
        self._stage = stage
        self._next_sequence = 0
        self.last_sequence = -1
        self.sent = self.rejected = 0
        self.readers: int | None = 0  # as the client library counted them last; None: it can't tell
        self.shares_writer = False  # a server's replies to several clients share one writer
        self.replies: ReplyWriter | None = None

    def attach(self, writer: Writer) -> None:
        """Called once, before record_into."""
        self.writer = writer

    def answer_by(self, replies: ReplyWriter, shared: bool) -> None:
        """Replaces `attach` for a server's replies; shared: another output uses the same writer."""
        self.writer, self.replies, self.shares_writer = replies, replies, shared

    def answers(self, stream: int) -> bool:
        """Whether it sends the replies to requests on this stream."""
        return self.plan.answers is not None and self.plan.answers[1] == stream

    def record_into(self, sent: Lane, causes: Lane) -> None:
        """Called once, before the first message."""
        self.sent_lane, self.causes_lane = sent, causes

    def publish(
        self,
        intended_ns: int,
        begun_ns: int,
        causes: Sequence[Cause],
        echo: int | None = None,
        request: Any = None,
    ) -> None:
        """Fills, stamps, sends and records one message. intended_ns 0: there was no schedule; begun_ns: when
        the callback that sends it began; echo: the sequence to use; request: the request that a reply
        answers."""
        sequence = self._next_sequence if echo is None else echo
        self._next_sequence += 1
        self.last_sequence = sequence  # before the message leaves: the reply may come on another thread
        publish_ns = published_ns = 0
        cpu_publish = cpu_published = 0xFFFF
        status = STATUS_FAILED
        try:
            if self.replies is not None:
                self.replies.answer(request)
            self._fill(sequence)
            cpu_publish = current_cpu()
            publish_ns = now_ns()
            try:
                answer = self.writer.commit()
                status = STATUS_SENT if answer else STATUS_REJECTED
            finally:
                published_ns = now_ns()
                cpu_published = current_cpu()
            if status == STATUS_REJECTED:
                accepted(answer)
        except Exception as error:
            self._stage.fail("sending", error)
        if status == STATUS_SENT:
            self.sent += 1
        else:
            self.rejected += 1
        first = causes[0] if causes else (0, 0)
        first_cause = self.causes_lane.count if len(causes) > 1 else 0
        publish_ns = publish_ns or now_ns()
        self.sent_lane.add(
            SENT,
            sequence,
            intended_ns,
            publish_ns,
            published_ns,
            first[1],
            first[0],
            len(causes),
            status,
            cpu_publish,
            cpu_published,
            first_cause,
            min(max(publish_ns - begun_ns, 1), CALLBACK_NS_MAX),
        )
        if len(causes) > 1:
            for stream, number in causes:
                self.causes_lane.add(CAUSE, number, stream, 0)

    def skip(self, count: int) -> None:
        """Skips the numbers of messages that were due and are not sent: the gap in the sequence shows how
        many."""
        self._next_sequence += count

    def meets_another(self) -> bool:
        """Whether the client library counts more readers than at the last call."""
        previous, self.readers = self.readers, self.writer.matched_readers()
        return (previous or 0) < (self.readers or 0)

    def send_probe(self, request: Any = None) -> None:
        """Sends a message that says "I am here", outside the measured phases. Its sequence is when it was
        sent. request: the request that a reply answers."""
        sent_ns = now_ns()
        size = self.plan.payload_bytes
        if self.plan.type != "fixed":
            size = min(size, ENVELOPE.size)
        try:
            if self.replies is not None:
                self.replies.answer(request)
            buffer = self.writer.borrow(size)
            self._write_envelope(buffer, KIND_PROBE, sent_ns)
            accepted(self.writer.commit())
        except Exception as error:
            self._stage.fail("sending a probe", error)

    def _fill(self, sequence: int) -> None:
        sizes = self.plan.sizes_bytes
        size = sizes[sequence % len(sizes)] if sizes else self.plan.payload_bytes
        buffer = self.writer.borrow(size)
        if self._content:
            self._fill_content(buffer, sequence)
        if self._touch:
            marks = len(range(CACHE_LINE, size, CACHE_LINE))
            buffer[CACHE_LINE::CACHE_LINE] = MARKS[sequence & 0xFF] * marks
        self._write_envelope(buffer, KIND_DATA, sequence)

    def _write_envelope(self, buffer: bytearray | memoryview, kind: int, sequence: int) -> None:
        if len(buffer) < ENVELOPE.size:
            number = sequence >> SMALL_TIME_SHIFT if kind == KIND_PROBE else sequence
            SMALL.pack_into(buffer, 0, number % SMALL_SPAN | kind << SMALL_BITS)
            return
        ENVELOPE.pack_into(buffer, 0, ENVELOPE_MAGIC, ENVELOPE_VERSION, kind, self.plan.stream, sequence)

    def _fill_content(self, buffer: bytearray | memoryview, sequence: int) -> None:
        """Each message continues where the last one ended."""
        content, remaining = self._content, len(buffer)
        length, offset = len(content), 0
        begin = (sequence % length) * (remaining % length) % length
        while remaining > 0:
            count = min(remaining, length - begin)
            buffer[offset : offset + count] = content[begin : begin + count]
            offset, remaining, begin = offset + count, remaining - count, (begin + count) % length


class Input:
    """One subscriber. Used by one thread at a time, except `missing`."""

    def __init__(self, endpoint: EndpointPlan, index: int, plan: Plan) -> None:
        self.plan = endpoint
        self.index = index
        self.reader: Reader
        self.lane: Lane
        self.received = self.corrupted = 0
        self.attached = self.enabled = False
        self._read = plan.touch_read
        # Marks come from the sender: they can only be checked if it writes them.
        self._check = plan.touch_read and plan.touch_write
        self._may_be_small = endpoint.sizes_vary or endpoint.payload_bytes < ENVELOPE.size
        self._small_expected = 0
        # Streams that are not matched yet, with when the first probe was sent and taken; None until it
        # arrives.
        self._awaited: dict[int, tuple[int, int] | None] = dict.fromkeys(endpoint.streams)

    def attach(self, reader: Reader) -> None:
        """Called once, before record_into."""
        self.reader = reader
        self.attached = True

    def record_into(self, lane: Lane) -> None:
        """Called once, before the first message."""
        self.lane = lane

    def open(self, payload: Any) -> tuple[int, int, int] | None:
        """Returns kind, stream and sequence of a message; None if it is not ours (then it counts as
        corrupted)."""
        head = bytes(payload[: ENVELOPE.size])
        opened = None
        if len(head) == ENVELOPE.size:
            magic, version, kind, stream, sequence = ENVELOPE.unpack(head)
            if magic == ENVELOPE_MAGIC and version == ENVELOPE_VERSION:
                opened = kind, stream, sequence
        elif self._may_be_small and len(head) >= SMALL.size and len(self.plan.streams) == 1:
            opened = self._open_small(head)
        self.corrupted += opened is None
        return opened

    def _open_small(self, head: bytes) -> tuple[int, int, int] | None:
        """The stream is the only one, the sequence the nearest to the last. None if that is ambiguous."""
        (bits,) = SMALL.unpack_from(head)
        low, stream, expected = bits % SMALL_SPAN, self.plan.streams[0], self._small_expected
        if bits >> SMALL_BITS:
            return KIND_PROBE, stream, low << SMALL_TIME_SHIFT
        ahead = (low - expected) % SMALL_SPAN
        near = ahead < SMALL_SPAN // 2 or expected + ahead < SMALL_SPAN
        sequence = expected + ahead - (0 if near else SMALL_SPAN)
        if abs(sequence - expected) > SMALL_SPAN // 4:
            return None
        self._small_expected = max(expected, sequence + 1)
        return KIND_DATA, stream, sequence

    def note_probe(self, stream: int, sent_ns: int, taken_ns: int) -> None:
        """sent_ns: on the sender's clock, taken_ns: on ours.

        A probe matches a stream if it was sent after another one was heard. A reliable reader that lost early
        messages holds up all later ones until the lost ones are sent again. If both clocks are one, the two
        times are compared. Otherwise the condition holds if both its sending and its arrival follow those of
        the first heard probe by the largest plausible time in flight.
        """
        if stream not in self._awaited:
            return
        first_sent_ns, first_taken_ns = self._awaited[stream] or (sent_ns, taken_ns)
        self._awaited[stream] = first_sent_ns, first_taken_ns
        if self.plan.shares_clock and not self._may_be_small:
            if sent_ns > first_taken_ns:
                del self._awaited[stream]
            return
        sent_later_ns = sent_ns - first_sent_ns
        if self._may_be_small:  # the shorter way shows which of the two was sent first
            round_ns = SMALL_SPAN << SMALL_TIME_SHIFT
            sent_later_ns = (sent_later_ns + round_ns // 2) % round_ns - round_ns // 2
        if min(sent_later_ns, taken_ns - first_taken_ns) >= IN_FLIGHT_MAX_NS:
            del self._awaited[stream]

    def read_payload(self, payload: Any, sequence: int) -> bool:
        """Reads the payload according to the plan's touch; False if it is not what the sender wrote."""
        self.received += 1
        size, most = len(payload), self.plan.payload_bytes
        whole = size <= most if self.plan.sizes_vary else size == most
        if self._read:
            sum(payload[::CACHE_LINE])
            marked = self._check and size >= 2 * CACHE_LINE
            whole = whole and (
                not marked or payload[(size - 1) // CACHE_LINE * CACHE_LINE] == sequence & 0xFF
            )
        self.corrupted += not whole
        return whole

    def record(
        self,
        arrival: Arrival,
        message: tuple[int, int, int],
        taken: tuple[int, int],
        handled_ns: int,
        whole: bool,
    ) -> None:
        """message: sequence, stream, bytes; taken: when, and on which CPU."""
        sequence, stream, size = message
        self.lane.add(
            RECEIVED,
            sequence,
            arrival.signalled_ns,
            arrival.woken_ns,
            taken[0],
            handled_ns,
            stream,
            size,
            0 if whole else FLAG_CORRUPTED,
            arrival.cpu_signalled,
            taken[1],
            0,
        )

    def missing(self) -> list[int]:
        """Streams that are not matched yet."""
        return [stream for stream in self.plan.streams if stream in self._awaited]
