# SPDX-License-Identifier: Apache-2.0
"""Files of /proc, read whole: they have no size that could be asked for."""

from __future__ import annotations

import os

READ_BYTES = 1 << 17


def read_whole(path: str) -> bytes:
    """Returns all that a file says. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(descriptor, READ_BYTES):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)
