# SPDX-License-Identifier: Apache-2.0
"""Standard input, output and error that are closed, or that nobody reads: neither is our error.

The caller may close them (`>&-`) or go away during the output (`| head -1`, a closed terminal). Results and
exit codes stay the same.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TextIO

DESCRIPTORS = (0, 1, 2)


def ensure_standard_descriptors() -> None:
    """Opens /dev/null for each closed descriptor from 0 to 2, so that no file gets such a number."""
    for descriptor in DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            _point_at_nothing(descriptor)


def ensure_standard_streams() -> None:
    """Does the same, and replaces the streams that Python sets to None for a closed descriptor."""
    ensure_standard_descriptors()
    for descriptor, name in zip(DESCRIPTORS, ("stdin", "stdout", "stderr"), strict=True):
        if getattr(sys, name) is None:
            mode = "r" if descriptor == 0 else "w"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


class Unfailing:
    """A text stream for progress: once writing fails, it drops further output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Writes, and always returns the full length."""
        self._attempt(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
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
            # Python would write the buffered rest when the process ends, and report that as an error.
            with contextlib.suppress(OSError, ValueError):
                abandon(stream)


def flush_or_abandon(stream: TextIO) -> None:
    """Flushes the stream, or drops its content if nobody reads it."""
    try:
        stream.flush()
    except OSError:
        abandon(stream)


def abandon(stream: TextIO) -> None:
    """Redirects this stream to nowhere: further output, and what it has buffered, is dropped."""
    _point_at_nothing(stream.fileno())


def _point_at_nothing(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
