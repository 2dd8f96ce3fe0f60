# SPDX-License-Identifier: Apache-2.0
"""What the conductor and an agent write to each other: JSON lines, each followed by a block of bytes if its
key `bytes` says so (docs/PROTOCOL.md, "Agents").

This module touches no descriptor, so tests can cover every split of the bytes and every kind of garbage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PROTOCOL_VERSION = 1
LINE_BYTES_MAX = 64 << 20
BLOCK_BYTES_MAX = 1 << 34
QUOTED_BYTES = 200
LEASE_S = 10.0  # an agent that hears nothing from its conductor for this long ends everything

Frame = tuple[dict[str, Any], bytes]


class FrameError(Exception):
    """The other side wrote something that is not a frame. The message quotes it."""


def framed(message: Mapping[str, Any], block: bytes | memoryview | None = None) -> bytes:
    """Returns a message in its written form, with its block."""
    if block is None:
        return json.dumps(message).encode() + b"\n"
    return json.dumps({**message, "bytes": len(block)}).encode() + b"\n" + block


class Frames:
    """Takes bytes as they come and returns the frames that they complete."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._message: dict[str, Any] | None = None  # its block is still to come
        self._missing = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Returns the frames that these bytes complete. Raises `FrameError`; nothing can be read after
        that."""
        self._unread += data
        frames: list[Frame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if self._message is None:
            end = self._unread.find(b"\n")
            if end < 0:
                if len(self._unread) > LINE_BYTES_MAX:
                    raise FrameError(f"a line of more than {LINE_BYTES_MAX} bytes: {self._quoted()}")
                return None
            self._message = self._parsed(bytes(self._unread[:end]))
            del self._unread[: end + 1]
            self._missing = self._message.get("bytes", 0)
            if type(self._missing) is not int or not 0 <= self._missing <= BLOCK_BYTES_MAX:
                raise FrameError(f"a block of {self._missing!r} bytes")
        if len(self._unread) < self._missing:
            return None
        message, self._message = self._message, None
        block = bytes(memoryview(self._unread)[: self._missing])
        del self._unread[: self._missing]
        return message, block

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise FrameError(f"no JSON object: {line[:QUOTED_BYTES]!r}")
        return message

    def _quoted(self) -> str:
        return repr(bytes(self._unread[:QUOTED_BYTES]))
