# SPDX-License-Identifier: Apache-2.0
"""Standard input, output and error that are closed, or that nobody reads any more: neither is our error.

Whoever calls us may close them (`>&-`) or go away in the middle (`| head -1`, a terminal that is closed).
Results and exit codes are the same.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TextIO

DESCRIPTORS = (0, 1, 2)


def ensure_standard_descriptors() -> None:
    """Opens /dev/null for each of descriptors 0 to 2 that is closed: no file may get such a number."""
    for descriptor in DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            _point_at_nothing(descriptor)


def ensure_standard_streams() -> None:
    """Does the same, and gives Python the streams that it leaves out (None) where a descriptor was closed."""
    ensure_standard_descriptors()
    for descriptor, name in zip(DESCRIPTORS, ("stdin", "stdout", "stderr"), strict=True):
        if getattr(sys, name) is None:
            mode = "r" if descriptor == 0 else "w"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


class Unfailing:
    """A text stream for progress: once it can't be written, what is written to it is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Writes and says how much: all, in any case."""
        self._attempt(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Passes on what was written."""
        self._attempt(lambda stream: stream.flush())

    def isatty(self) -> bool:
        """Whether it is a terminal that can still be written."""
        return self._stream is not None and self._stream.isatty()

    def _attempt(self, action: Callable[[TextIO], object]) -> None:
        if self._stream is None:
            return
        try:
            action(self._stream)
        except (OSError, ValueError):  # a closed pipe or terminal, a full disk, a closed file
            stream, self._stream = self._stream, None
            # What it still holds is written at the process's end, and would make that an error.
            with contextlib.suppress(OSError, ValueError):
                abandon(stream)


def flush_or_abandon(stream: TextIO) -> None:
    """Passes on what the stream holds, or drops it where nobody takes it."""
    try:
        stream.flush()
    except OSError:
        abandon(stream)


def abandon(stream: TextIO) -> None:
    """Nothing more can be written to this stream: what follows, and what it still holds, goes nowhere."""
    _point_at_nothing(stream.fileno())


def _point_at_nothing(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
