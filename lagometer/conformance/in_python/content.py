# SPDX-License-Identifier: Apache-2.0
"""The content of a check's message: the envelope, then bytes derived from its stream, its sequence and their
position, so that a receiver can verify each without the sender. From 24 bytes on, the payload's length comes
first, which distinguishes a truncated message from a short one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

ENVELOPE = struct.Struct("<HBBIQ")  # docs/PROTOCOL.md
MAGIC, VERSION = 0x4C67, 1
KIND_DATA, KIND_PROBE = 0, 1
BLOCK_BYTES = 8
LENGTH_BLOCK = ENVELOPE.size // BLOCK_BYTES


@dataclass(frozen=True)
class Opened:
    """A decoded message. damage: what is wrong with it, empty if it is what its sender wrote."""

    kind: int = KIND_DATA
    stream: int = 0
    sequence: int = 0
    bytes: int = 0
    damage: str = ""


def written(kind: int, stream: int, sequence: int, size: int) -> bytes:
    """The whole payload of a message; size in bytes, at least the envelope's."""
    indices = np.arange(-(-size // BLOCK_BYTES), dtype=np.uint64)
    blocks = _mixed(indices ^ np.uint64(((stream << 44) ^ (sequence << 24)) & (1 << 64) - 1))
    if size >= (LENGTH_BLOCK + 1) * BLOCK_BYTES:
        blocks[LENGTH_BLOCK] = size
    blocks[:LENGTH_BLOCK] = np.frombuffer(
        ENVELOPE.pack(MAGIC, VERSION, kind, stream, sequence), dtype=np.uint64
    )
    return blocks.astype("<u8", copy=False).tobytes()[:size]


def opened(payload: Any) -> Opened:
    """Compares every byte that a client library delivered with what its sender must have written."""
    received = bytes(payload)
    description = f"a message of {len(received)} bytes"
    if len(received) < ENVELOPE.size:
        return Opened(bytes=len(received), damage=f"{description} has no whole envelope")
    magic, version, kind, stream, sequence = ENVELOPE.unpack_from(received)
    if (magic, version) != (MAGIC, VERSION):
        return Opened(bytes=len(received), damage=f"{description} does not begin with an envelope")
    expected = written(kind, stream, sequence, len(received))
    damage = ""
    if received != expected:
        position = next(
            at for at, (one, other) in enumerate(zip(received, expected, strict=True)) if one != other
        )
        damage = f"{description} (stream {stream}, sequence {sequence}) differs from byte {position} on"
    return Opened(kind, stream, sequence, len(received), damage)


def _mixed(value: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The finaliser of splitmix64: every bit of its argument reaches every bit of the result."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
