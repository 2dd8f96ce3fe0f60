# SPDX-License-Identifier: Apache-2.0
"""A subscriber of a check: how it receives messages, and the account of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lagometer.conformance.in_python.content import KIND_PROBE, opened
from lagometer.worker_python.adapter import Context, EndpointConfiguration, Reader, Waitset
from lagometer.worker_python.adapter import told as told_of

GLANCE_NS = 100_000_000
PAUSE_S = 0.000_2
NS_PER_S = 1_000_000_000


@dataclass
class Heard:
    """What arrived from one publisher."""

    probes: int = 0
    count: int = 0
    last_bytes: int = 0
    sequences: list[int] = field(default_factory=list)


class Inbox:
    """One subscriber; work_ns: how long it works on each message."""

    def __init__(self, context: Context, endpoint: EndpointConfiguration, work_ns: int) -> None:
        self.dispatch = endpoint.dispatch
        self._context = context
        self._work_s = work_ns / NS_PER_S
        self._heard: dict[int, Heard] = {}
        self._damaged = self._callbacks = 0
        self._damage = self._failure = ""
        self._flowing = threading.Event()
        self._flowing.set()
        self._ended = False
        self._one_at_a_time = threading.Lock()  # no two threads call a reader at the same time
        self._taking = threading.Lock()
        self._account = threading.Lock()
        self._waitset: Waitset | None = None
        self._thread: threading.Thread | None = None
        self._reader: Reader = context.create_reader(endpoint, self._on_data)

    def enable(self) -> None:
        """Starts receiving and taking messages."""
        self._reader.enable()
        if self.dispatch == "waitset":
            self._waitset = self._context.create_waitset([self._reader])
            self._thread = threading.Thread(target=self._wait_and_take, daemon=True)
            self._thread.start()
        elif self.dispatch == "listener":
            self._guarded(self._take_when_flowing)  # messages from before callbacks were enabled

    def stall(self) -> None:
        """Once this returns, nothing is taken."""
        self._flowing.clear()
        with self._taking:
            pass

    def resume(self) -> None:
        """Continues where `stall` stopped."""
        self._flowing.set()

    def end(self) -> None:
        """Stops taking; joins its thread and closes its waitset."""
        self._ended = True
        self._flowing.set()
        if self._waitset is not None:
            self._waitset.trigger()
            if self._thread is not None:
                self._thread.join()
            self._waitset.close()

    def poll(self) -> int:
        """Takes all waiting messages of a polled subscriber; returns their number."""
        if self._failure:
            return 0
        with self._taking:
            return self._guarded(self._take_all)

    def describe(self) -> dict[str, Any]:
        """The reader's effective settings."""
        with self._one_at_a_time:
            return self._reader.describe()

    def account(self, with_sequences: bool) -> dict[str, Any]:
        """What arrived, by publisher, and what was wrong."""
        with self._account:
            streams: list[dict[str, Any]] = []
            for stream, heard in sorted(self._heard.items()):
                counts = {"probes": heard.probes, "count": heard.count, "last_bytes": heard.last_bytes}
                streams.append({"stream": stream, **counts})
                if with_sequences:
                    streams[-1]["sequences"] = list(heard.sequences)
            faults = {"damaged": self._damaged, "damage": self._damage, "failure": self._failure}
            return {"streams": streams, **faults, "callbacks": self._callbacks}

    def _on_data(self) -> None:
        self._callbacks += 1
        if self.dispatch == "listener":
            self._guarded(self._take_when_flowing)

    def _wait_and_take(self) -> None:
        while not self._ended and not self._failure:
            if self._guarded(self._wait):
                self._guarded(self._take_when_flowing)

    def _wait(self) -> int:
        assert self._waitset is not None
        return int(self._waitset.wait(time.monotonic_ns() + GLANCE_NS))

    def _guarded(self, call: Callable[[], int]) -> int:
        try:
            return call()
        except Exception as error:
            with self._account:
                self._failure = self._failure or f"taking failed: {told_of(error)}"
            return 0

    def _take_when_flowing(self) -> int:
        """As `_take_all`; waits while the subscriber is stalled."""
        total = 0
        while not self._ended:
            self._flowing.wait()
            with self._taking:
                total += self._take_all()
                if self._flowing.is_set():
                    break
        return total

    def _take_all(self) -> int:
        total = 0
        while not self._ended and self._flowing.is_set():
            with self._one_at_a_time:
                payloads = self._reader.take()
            if not payloads:
                break
            for payload in payloads:
                self._note(payload)
            total += len(payloads)
            if self._work_s:
                time.sleep(self._work_s * len(payloads))
        return total

    def _note(self, payload: Any) -> None:
        message = opened(payload)
        with self._account:
            if message.damage:
                self._damaged += 1
                self._damage = self._damage or message.damage
                return
            heard = self._heard.setdefault(message.stream, Heard())
            if message.kind == KIND_PROBE:
                heard.probes += 1
                return
            heard.count += 1
            heard.last_bytes = message.bytes
            heard.sequences.append(message.sequence)


class Poller:
    """One thread that polls all polled subscribers in turn."""

    def __init__(self) -> None:
        self._inboxes: list[Inbox] = []
        self._lock = threading.Lock()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, inbox: Inbox) -> None:
        """Polls it from now on."""
        with self._lock:
            self._inboxes.append(inbox)

    def end(self) -> None:
        """When this returns, its thread has ended."""
        self._ended = True
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            with self._lock:
                taken = sum(inbox.poll() for inbox in self._inboxes)
            time.sleep(0 if taken else PAUSE_S)
