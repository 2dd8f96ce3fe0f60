# SPDX-License-Identifier: Apache-2.0
"""What all threads of a worker need to know about the phases, and an interruptible sleep."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from lagometer.worker_python.adapter import told

NS_PER_S = 1_000_000_000
SLEEP_NS_MAX = 3_600 * NS_PER_S  # a lock's time-out has a limit; a longer sleep is simply restarted

now_ns: Callable[[], int] = time.monotonic_ns  # CLOCK_MONOTONIC, the only clock
# Keeps the interpreter's lock; otherwise another thread could run between two stamps.
current_cpu: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu


class Stage:
    """Written by the main thread, read by all. start_ns is 0 until the conductor sends `go`; stop_ns: when
    sources stop. failure: the first failure on another thread."""

    def __init__(self) -> None:
        self.start_ns = 0
        self.stop_ns: int | None = None
        self.stopped = False
        self.failure = ""
        self.probing = threading.RLock()  # held while a probe is sent, before the start

    def fail(self, operation: str, error: BaseException) -> None:
        """Keeps the first failure for the main thread, which ends the trial."""
        if not self.failure:
            self.failure = f"{operation}: {told(error)}"

    def thread_died(self, ended: threading.ExceptHookArgs) -> None:
        """For `threading.excepthook`: otherwise the death of an adapter's thread would go unnoticed. A thread
        that ends by `sys.exit` ends as it meant to."""
        if issubclass(ended.exc_type, SystemExit):
            return
        if ended.exc_value is not None and not self.stopped:
            name = ended.thread.name if ended.thread is not None else "without a name"
            self.fail(f"the adapter's thread {name} died", ended.exc_value)
        threading.__excepthook__(ended)


class Parker:
    """Sleeps until an absolute time on the only clock, or until another thread wakes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait_until(self, until_ns: int | None) -> None:
        """Sleeps; None: until woken."""
        remaining_ns = SLEEP_NS_MAX if until_ns is None else min(until_ns - now_ns(), SLEEP_NS_MAX)
        if remaining_ns > 0:
            self._lock.acquire(timeout=remaining_ns / NS_PER_S)

    def wake(self) -> None:
        """Ends the current or the next sleep. Called by one thread only."""
        if self._lock.locked():
            self._lock.release()
