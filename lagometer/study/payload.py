# SPDX-License-Identifier: Apache-2.0
"""The payload types: the sizes that each has, and what a cell with it can't have.

docs/WORKLOADS.md, "Payload types", defines which part of a message is the payload. An adapter's sidecar lists
its types.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal

from lagometer import units
from lagometer.study.schedule import RECORDED

PayloadType = Literal["bytes", "fixed", "string", "Image", "Imu", "PointCloud2"]

ENVELOPE_BYTES = 16
SMALLEST_BYTES = 4  # of `bytes` and `string`: the low digits of a sequence, without a stream
TEXT_ENVELOPE_BYTES = 32  # the envelope in hexadecimal digits, where a message can hold only text
# The sizes of the type `fixed`; each adapter compiles these in.
FIXED_PAYLOADS_BYTES = (64, 1024, 65_536, 1_048_576)
IMU_BYTES = TEXT_ENVELOPE_BYTES + 37 * 8  # frame_id, and the numbers
POINT_BYTES = 16  # x, y, z and intensity of a PointCloud2
OF_ROS: tuple[PayloadType, ...] = ("string", "Image", "Imu", "PointCloud2")

_ROS_TOPIC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # one part of a name, by the rules of rmw


def smallest_bytes(kind: PayloadType) -> int:
    """The smallest payload of a type."""
    smallest = {"bytes": SMALLEST_BYTES, "string": SMALLEST_BYTES, "Imu": IMU_BYTES}
    return {**smallest, "fixed": min(FIXED_PAYLOADS_BYTES)}.get(kind, ENVELOPE_BYTES)


def holds_envelope(kind: PayloadType, size_bytes: int) -> bool:
    """Whether a payload can identify its sender; below that size the topic must have a single publisher."""
    return size_bytes >= (TEXT_ENVELOPE_BYTES if kind == "string" else ENVELOPE_BYTES)


def has_size(kind: PayloadType, size_bytes: int) -> bool:
    """Whether a type has payloads of this size."""
    if kind == "fixed":
        return size_bytes in FIXED_PAYLOADS_BYTES
    if kind == "Imu":
        return size_bytes == IMU_BYTES
    step = POINT_BYTES if kind == "PointCloud2" else 1
    return size_bytes >= smallest_bytes(kind) and size_bytes % step == 0


def at_least(kind: PayloadType, size_bytes: int) -> int:
    """The smallest size of a type that holds so many bytes; the largest size of a type of fixed sizes."""
    if kind == "fixed":
        return next((size for size in FIXED_PAYLOADS_BYTES if size >= size_bytes), FIXED_PAYLOADS_BYTES[-1])
    if kind == "Imu":
        return IMU_BYTES
    step = POINT_BYTES if kind == "PointCloud2" else 1
    return -(-max(size_bytes, smallest_bytes(kind)) // step) * step


def sizes_in_words(kind: PayloadType) -> str:
    """The sizes of a type, as the end of a sentence that begins with `the type … `."""
    if kind == "fixed":
        return f"exists with {', '.join(units.format_bytes(size) for size in FIXED_PAYLOADS_BYTES)}"
    if kind == "Imu":
        return f"has {IMU_BYTES}B: {TEXT_ENVELOPE_BYTES} of frame_id, the rest its 37 numbers"
    if kind == "PointCloud2":
        return f"has points of {POINT_BYTES}B, and the payload is a multiple of that"
    if kind in ("bytes", "string"):
        return f"has {SMALLEST_BYTES}B or more"
    return f"has {smallest_bytes(kind)}B or more, the envelope"


def payload_reasons(
    kind: PayloadType, size_bytes: int, content: str, topics: Collection[str]
) -> Iterator[str]:
    """Why messages of this type can't have this size or content, or use these topics."""
    if not has_size(kind, size_bytes):
        yield f"the type {kind} {sizes_in_words(kind)}"
    if kind == "string" and content.startswith(RECORDED):
        yield f"the type string holds only text, but {content} may contain any bytes"
    if kind in OF_ROS:
        invalid = sorted(topic for topic in topics if not _ROS_TOPIC.fullmatch(topic))
        if invalid:
            yield (
                f"ROS 2 has no topic '{invalid[0]}', which the type {kind} would need: its names have "
                "letters, digits and underscores, and do not begin with a digit"
            )
