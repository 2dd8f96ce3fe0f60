# SPDX-License-Identifier: Apache-2.0
"""Keeps records: "The records block" of docs/PROTOCOL.md, in a memfd that survives a kill.

A record is packed into memory that was allocated before the start, and counted when it is complete.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from lagometer.worker_python.plan_bounds import RECORDS_BYTES_MAX

MAGIC = 0x3143_4552_4F47_414C  # "LAGOREC1"
VERSION = 6
KIND_SENT, KIND_RECEIVED, KIND_CAUSES = 1, 2, 3
FLAG_FULL = 1
CPU_UNKNOWN = 0xFFFF
HEADER = struct.Struct("<QIIQII32x")
LANE = struct.Struct("<IIIIQQQII16x")
SENT = struct.Struct("<QqqqQIIIHHII")
RECEIVED = struct.Struct("<QqqqqIIIHHQ")
CAUSE = struct.Struct("<QII")
RECORDS = {KIND_SENT: SENT, KIND_RECEIVED: RECEIVED, KIND_CAUSES: CAUSE}
ALIGNMENT = 64
WORD = 8
COUNT_OFFSET, FLAGS_OFFSET = 32, 40  # within an entry of the table


class NoRoom(Exception):
    """There is no memory for the records. The message names the bytes and what to do."""


@dataclass(frozen=True)
class LaneSpecification:
    """endpoint: a writer's stream, or a reader's index within its node; capacity: in records."""

    kind: int
    node: int
    endpoint: int
    capacity: int


class Lane:
    """One endpoint's records. Used by one thread at a time."""

    def __init__(self, memory: mmap.mmap, words: memoryview, entry: int, offset: int, capacity: int) -> None:
        self._memory = memory
        self._words = words
        self._entry = entry
        self._count_word = (entry + COUNT_OFFSET) // WORD
        self._offset = offset
        self.capacity = capacity
        self.count = 0

    def add(self, record: struct.Struct, *values: int) -> None:
        """Writes a record and counts it. Flags a full lane, so the trial can't count as complete."""
        count = self.count
        if count == self.capacity:
            struct.pack_into("<I", self._memory, self._entry + FLAGS_OFFSET, FLAG_FULL)
            return
        record.pack_into(self._memory, self._offset + count * record.size, *values)
        self.count = count + 1
        self._words[self._count_word] = count + 1  # one store: a reader of the count finds complete records

    @property
    def room(self) -> int:
        """The number of records that still fit."""
        return self.capacity - self.count

    @property
    def full(self) -> bool:
        """Whether a record had no room."""
        (flags,) = struct.unpack_from("<I", self._memory, self._entry + FLAGS_OFFSET)
        return bool(flags & FLAG_FULL)


class Recorder:
    """All lanes of a worker. `host`: its host's index in the trial. Raises NoRoom."""

    def __init__(
        self, worker: int, host: int, lanes: Sequence[LaneSpecification], descriptor: int | None
    ) -> None:
        self._worker, self._host = worker, host
        self._specifications = tuple(lanes)
        table_end = HEADER.size + len(lanes) * LANE.size
        offsets, size = [], table_end
        for lane in lanes:
            offsets.append(size)
            size += _aligned(lane.capacity * RECORDS[lane.kind].size)
        if size > RECORDS_BYTES_MAX:
            raise _no_room(size, f"a worker may have {RECORDS_BYTES_MAX}")
        self._memory = _mapped(size, descriptor)
        words = memoryview(self._memory)[: size // WORD * WORD].cast("Q")
        self.lanes = []
        for index, (lane, offset) in enumerate(zip(lanes, offsets, strict=True)):
            entry = HEADER.size + index * LANE.size
            LANE.pack_into(self._memory, entry, *_entry(lane, offset, lane.capacity, 0, 0))
            self.lanes.append(Lane(self._memory, words, entry, offset, lane.capacity))
        # Last: a block without a header is recognisably incomplete.
        HEADER.pack_into(self._memory, 0, MAGIC, VERSION, len(lanes), size, worker, host)

    def count(self) -> int:
        """Returns the number of records so far in all lanes."""
        return sum(lane.count for lane in self.lanes)

    def packed(self) -> bytes:
        """Returns the block with its lanes next to each other, as written to standard output."""
        offset = HEADER.size + len(self.lanes) * LANE.size
        table, contents = [], []
        for lane, specification in zip(self.lanes, self._specifications, strict=True):
            size = lane.count * RECORDS[specification.kind].size
            flags = FLAG_FULL if lane.full else 0
            table.append(LANE.pack(*_entry(specification, offset, lane.count, lane.count, flags)))
            first = lane._offset
            contents.append(self._memory[first : first + size].ljust(_aligned(size), b"\0"))
            offset += _aligned(size)
        header = HEADER.pack(MAGIC, VERSION, len(self.lanes), offset, self._worker, self._host)
        return b"".join((header, *table, *contents))


def _entry(
    lane: LaneSpecification, offset: int, capacity: int, count: int, flags: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    record_bytes = RECORDS[lane.kind].size
    return (lane.kind, lane.node, lane.endpoint, record_bytes, offset, capacity, count, flags, 0)


def _mapped(size: int, descriptor: int | None) -> mmap.mmap:
    try:
        if descriptor is None:
            descriptor = os.memfd_create("lagometer-records", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        raise _no_room(size, str(error)) from error


def _no_room(size: int, why: str) -> NoRoom:
    return NoRoom(
        f"no room for {size} bytes of records ({why}); shorten the measure phase, lower the rate or free "
        "memory"
    )


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
