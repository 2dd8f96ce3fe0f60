# SPDX-License-Identifier: Apache-2.0
"""For client libraries that pass messages to a callback: a message waits here until it is taken.

An adapter may use this file in addition to adapter.py.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from lagometer.worker_python.adapter import TAKE_MAX, EndpointConfiguration

Message = TypeVar("Message")

DEPTH_DEFAULT = 256  # if the study sets no history
SLEEP_S_MAX = 3_600.0


class Arrivals(Generic[Message]):
    """The messages that one reader has received, in the order of arrival. If there is no room, the oldest is
    dropped.

    [`note`: one thread at a time, the library's. `take`: one thread, it may be another.]
    """

    def __init__(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        """on_data: notifies a listener, on the library's thread."""
        history, depth = endpoint.qos.history, endpoint.qos.depth
        usual = DEPTH_DEFAULT if history is None and depth is None else depth or 1
        self.depth = None if history == "keep_all" else usual  # None: unlimited
        self.overwritten = 0
        self.wake: Callable[[], None] | None = None
        self._listener = on_data if endpoint.dispatch == "listener" else None
        self._waiting: deque[Message] = deque(maxlen=self.depth)

    def note(self, message: Message) -> None:
        """Keeps a message and notifies whoever waits for it."""
        if self.depth is not None and len(self._waiting) == self.depth:
            self.overwritten += 1
        self._waiting.append(message)
        if self._listener is not None:
            self._listener()
        elif self.wake is not None:
            self.wake()

    def take(self) -> list[Message]:
        """Returns the oldest messages, at most TAKE_MAX; fewer: there is no more."""
        taken: list[Message] = []
        with contextlib.suppress(IndexError):
            while len(taken) < TAKE_MAX:
                taken.append(self._waiting.popleft())
        return taken

    def __bool__(self) -> bool:
        return bool(self._waiting)


class ArrivalsWaitset:
    """A lock that arrivals release, as in Python's own events."""

    def __init__(self, arrivals: Sequence[Arrivals[Message]]) -> None:
        self._arrivals = arrivals
        self._lock = threading.Lock()
        self._lock.acquire()
        for queue in arrivals:
            queue.wake = self.trigger

    def wait(self, until_ns: int | None) -> bool:
        """Returns immediately if there is untaken data."""
        if not any(self._arrivals):
            remaining_s = SLEEP_S_MAX if until_ns is None else (until_ns - time.monotonic_ns()) / 1e9
            if remaining_s > 0:
                self._lock.acquire(timeout=min(remaining_s, SLEEP_S_MAX))
        return any(self._arrivals)

    def trigger(self) -> None:
        """Ends the current or the next wait."""
        with contextlib.suppress(RuntimeError):  # already released
            self._lock.release()

    def close(self) -> None:
        """Arrivals no longer wake anybody."""
        for queue in self._arrivals:
            queue.wake = None
