# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM as a descriptor to wait on and a state to query, never as an exception at a random
point."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType, TracebackType

from lagometer.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Catches the first signal, to be handled between two steps. A second signal ends the process
    immediately.

    Ending immediately is safe: the workers' namespaces end with this process, and files are replaced
    atomically.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._reader, self._writer = -1, -1
        self._before: dict[int, object] = {}
        self._wakeup_before = -1

    def __enter__(self) -> Interruption:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._reader)
        os.close(self._writer)

    def descriptor(self) -> int:
        """Returns the descriptor that becomes readable when a signal has arrived."""
        return self._reader

    def check(self) -> None:
        """Raises `Interrupted` if a signal has arrived."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 64)
        if self.signal_number is not None:
            name = signal.Signals(self.signal_number).name
            raise Interrupted(f"interrupted by {name}", hint="finished trials are kept; --resume continues")

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signal_number = number
        for caught in self._before:
            signal.signal(caught, signal.SIG_DFL)
