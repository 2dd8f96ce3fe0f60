# SPDX-License-Identifier: Apache-2.0
"""What a process of a check is doing, read from its shared memory: works even if it hangs or is dead.

The layout is that of engine/conformance/progress.hpp; the Python processes write it, too.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lagometer.units import duration_text

SLOTS = 63
SLOT_BYTES = 64
SHARED_BYTES = SLOT_BYTES * (1 + SLOTS)
_HEADER = struct.Struct("<QQQ40x")
_SLOT = struct.Struct("<qII48s")
NAME_BYTES_MAX = 47
WAITS = ("waitset_wait",)  # a thread that waits for messages is always in it, and rarely hangs in it


@dataclass(frozen=True)
class Call:
    """A thread's last call into the adapter. begin_ns: of the monotonic clock."""

    name: str
    begin_ns: int
    under_way: bool


@dataclass(frozen=True)
class Progress:
    """steps: grows with every action; done, total: of the current order, 0 if it has no unit."""

    steps: int = 0
    done: int = 0
    total: int = 0
    calls: tuple[Call, ...] = ()

    def last_call(self) -> Call | None:
        """The call that has been running longest; if none is running, the last one that began."""
        under_way = [call for call in self.calls if call.under_way]
        busy = [call for call in under_way if call.name not in WAITS] or under_way
        if busy:
            return min(busy, key=lambda call: call.begin_ns)
        return max(self.calls, key=lambda call: call.begin_ns, default=None)

    def told(self, now_ns: int | None = None) -> str:
        """The process's position, in words: "at 3 of 110; last call: commit, under way for 1.20 s"."""
        position = f"at {self.done} of {self.total}; " if self.total else ""
        call = self.last_call()
        if call is None:
            return f"{position}last call: none into the adapter"
        now = time.monotonic_ns() if now_ns is None else now_ns
        lasting = (
            f"under way for {duration_text(now - call.begin_ns)}" if call.under_way else "which returned"
        )
        return f"{position}last call: {call.name}, {lasting}"


def read_progress(descriptor: int) -> Progress:
    """The progress that the process has reported; empty if it has not started to report."""
    memory = os.pread(descriptor, SHARED_BYTES, 0)
    if len(memory) < SHARED_BYTES:
        return Progress()
    steps, done, total = _HEADER.unpack_from(memory)
    calls = []
    for offset in range(SLOT_BYTES, SHARED_BYTES, SLOT_BYTES):
        begin_ns, under_way, _, name = _SLOT.unpack_from(memory, offset)
        if begin_ns:
            calls.append(Call(name.split(b"\0")[0].decode(errors="replace"), begin_ns, bool(under_way)))
    return Progress(steps, done, total, tuple(calls))


class Told:
    """The writing side, for a process in Python: one slot for each thread that calls an adapter."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._places = iter(range(SLOT_BYTES, SHARED_BYTES, SLOT_BYTES))
        self._own = threading.local()
        self._steps = 0

    def share(self, descriptor: int) -> None:
        """From now on, writes to the memory of this descriptor."""
        os.ftruncate(descriptor, SHARED_BYTES)
        self._memory = mmap.mmap(descriptor, SHARED_BYTES)

    def step(self, done: int = 0, total: int = 0) -> None:
        """Records progress in the current order; without arguments, the start of another one."""
        self._steps += 1
        if self._memory is not None:
            _HEADER.pack_into(self._memory, 0, self._steps, done, total)

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Marks a call into the adapter on this thread."""
        offset = self._place()
        if offset is None or self._memory is None:
            yield
            return
        text = name.encode()[:NAME_BYTES_MAX]
        begin_ns = time.monotonic_ns()
        _SLOT.pack_into(self._memory, offset, begin_ns, 1, 0, text)
        try:
            yield
        finally:
            _SLOT.pack_into(self._memory, offset, begin_ns, 0, 0, text)

    def _place(self) -> int | None:
        if not hasattr(self._own, "place"):
            self._own.place = next(self._places, None)
        place: int | None = self._own.place
        return place


told = Told()
"""What this process tells of itself; in memory of its own until it shares some."""
