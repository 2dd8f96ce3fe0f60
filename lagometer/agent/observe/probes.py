# SPDX-License-Identifier: Apache-2.0
"""What the probe in a worker's process wrote: the part of its file that is in use."""

from __future__ import annotations

import contextlib
import os
import struct

HEADER = struct.Struct("<QIIII")  # magic, version, bytes of a chunk, chunks, chunks in use
HEADER_BYTES = 4096


class ProbeFile:
    """The file of one worker's probe, kept open: the worker may end before it is read."""

    def __init__(self, pid: int, directory: str, name: str) -> None:
        """Opens the file, which is in the worker's own mounts."""
        self._descriptor = -1
        with contextlib.suppress(OSError):
            self._descriptor = os.open(f"/proc/{pid}/root{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes | None:
        """Returns the header and the chunks in use; None if there is no such file.

        The probe may keep writing: each chunk says how many of its records are complete.
        """
        if self._descriptor < 0:
            return None
        head = os.pread(self._descriptor, HEADER_BYTES, 0)
        if len(head) < HEADER_BYTES:
            return None
        _, _, chunk_bytes, chunks, in_use = HEADER.unpack_from(head)
        remaining, parts = chunk_bytes * min(chunks, in_use), [head]
        while remaining > 0 and (part := os.pread(self._descriptor, remaining, sum(map(len, parts)))):
            parts.append(part)
            remaining -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Closes the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
