# SPDX-License-Identifier: Apache-2.0
"""Reads files of /proc as a whole: they don't report a size."""

from __future__ import annotations

import os

READ_BYTES = 1 << 17


def read_whole(path: str) -> bytes:
    """Returns the contents of a file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(descriptor, READ_BYTES):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)
