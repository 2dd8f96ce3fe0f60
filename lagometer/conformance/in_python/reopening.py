# SPDX-License-Identifier: Apache-2.0
"""Opens and closes contexts repeatedly during traffic, and compares resources before and after."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lagometer.conformance.in_python.content import KIND_DATA, written
from lagometer.conformance.progress import told
from lagometer.worker_python.adapter import AdapterError, Context, EndpointConfiguration, Qos, Waitset, Writer
from lagometer.worker_python.adapter import told as told_of

SETTLED = 10  # rounds after which a library has everything that it keeps until the process ends
LONGEST_S = 20.0
ENDING_S = 15.0  # a pool keeps idle threads for a while: Tokio's, 10 s
PAYLOAD_BYTES = 64
MESSAGES = 20  # sent before and after the subscriber closes
PAUSE_S = 0.001
SHARED_MEMORY = Path("/dev/shm")  # nobody else has files there where the suite runs


def held_now() -> dict[str, int]:
    """The number of descriptors, threads and shared-memory files, and the bytes printed."""
    gc.collect()  # unreferenced objects are not leaks; Python frees them at a time of its choice
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "threads": len(os.listdir("/proc/self/task")),  # noqa: PTH208
        "files": sum(1 for path in SHARED_MEMORY.rglob("*") if not path.is_dir()),
        "printed_bytes": os.fstat(1).st_size,
    }


def reopen_again_and_again(
    opened: Callable[[str], Context], dispatch: str, rounds: int, qos: Qos
) -> dict[str, Any]:
    """`opened` makes a context with a given name. Raises AdapterError if no message arrives."""
    late, before = 0, held_now()
    for number in range(SETTLED + rounds):
        if number == SETTLED:
            before = held_now()
        elif SETTLED < number <= 2 * SETTLED:  # a thread pool's size varies; a leak grows with every opening
            before["threads"] = max(before["threads"], held_now()["threads"])
        told.step(number, SETTLED + rounds)
        late += _Round(opened, dispatch, qos).carry_out()
    return {"before": before, "after": _held_in_the_end(before["threads"]), "late_callbacks": late}


def _held_in_the_end(threads: int) -> dict[str, int]:
    """A thread may end a while after it was released; a leaked one never ends."""
    deadline_s = time.monotonic() + ENDING_S
    while (resources := held_now())["threads"] > threads and time.monotonic() < deadline_s:
        told.step()
        time.sleep(PAUSE_S)
    return resources


class _Round:
    """A publisher in one context and a subscriber in another, which closes while the publisher continues."""

    def __init__(self, opened: Callable[[str], Context], dispatch: str, qos: Qos) -> None:
        self._calls = self._late = self._published = 0
        self._gone = self._stop = False
        self._failure = ""
        self._sends, self._hears = opened("sends"), opened("hears")
        self._writer: Writer = self._sends.create_writer(
            EndpointConfiguration("again", "bytes", PAYLOAD_BYTES, qos)
        )
        self._reader = self._hears.create_reader(
            EndpointConfiguration("again", "bytes", PAYLOAD_BYTES, qos, dispatch), self._on_data
        )
        self._reader.enable()
        self._waitset: Waitset | None = None
        if dispatch == "waitset":
            self._waitset = self._hears.create_waitset([self._reader])
        self._listens = dispatch == "listener"

    def carry_out(self) -> int:
        """Returns the number of late callbacks."""
        deadline_s = time.monotonic() + LONGEST_S
        taken = 0
        while not taken or (self._listens and not self._calls):
            self._writer.matched_readers()
            self._send(0)
            time.sleep(PAUSE_S)
            with told.calling("take"):
                taken += len(self._reader.take())
            if time.monotonic() > deadline_s:
                raise AdapterError(f"nothing came within {LONGEST_S:.0f} s")
        self._close_amid_traffic()
        self._sends.close()
        return self._late

    def _close_amid_traffic(self) -> None:
        traffic = threading.Thread(target=self._flood, daemon=True)
        traffic.start()
        self._wait_for(MESSAGES)
        if self._waitset is not None:
            self._waitset.close()
        self._hears.close()
        self._gone = True
        self._wait_for(self._published + MESSAGES)
        self._stop = True
        traffic.join()
        if self._failure:
            raise AdapterError(f"sending while the subscriber goes: {self._failure}")

    def _on_data(self) -> None:
        self._calls += 1
        self._late += self._gone

    def _send(self, sequence: int) -> None:
        with told.calling("commit"):
            self._writer.borrow(PAYLOAD_BYTES)[:] = written(KIND_DATA, 0, sequence, PAYLOAD_BYTES)
            self._writer.commit()

    def _flood(self) -> None:
        try:
            while not self._stop:
                self._published += 1
                self._send(self._published)
        except Exception as error:
            self._failure = told_of(error)
            self._stop = True

    def _wait_for(self, count: int) -> None:
        while self._published < count and not self._stop:
            time.sleep(PAUSE_S)
