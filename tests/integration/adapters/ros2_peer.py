# SPDX-License-Identifier: Apache-2.0
"""A DDS participant that knows four messages of ROS 2 from their IDL, and nothing of lagometer's adapters.

    python ros2_peer.py TYPE RESULT TOPIC BACK COMMAND...

starts COMMAND (a worker) with its own standard input and output, reads TYPE on the topic rt/TOPIC, looks at
every field of what comes as a subscriber of ROS 2 would find it, and publishes it again, recreated from the
fields, on rt/BACK. When the worker has ended, what was seen is in the file RESULT; the worker's exit code is
its own.
"""

# No `from __future__ import annotations`: the package reads the classes' annotations as types.
import json
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, float64, int32, sequence, uint8, uint32
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

# --- The messages, as their IDL has them. ---


@dataclass
@final
class Time_(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):  # noqa: N801
    sec: int32
    nanosec: uint32


@dataclass
@final
class Header_(IdlStruct, typename="std_msgs::msg::dds_::Header_"):  # noqa: N801
    stamp: Time_
    frame_id: str


@dataclass
@final
class String_(IdlStruct, typename="std_msgs::msg::dds_::String_"):  # noqa: N801
    data: str


@dataclass
@final
class Image_(IdlStruct, typename="sensor_msgs::msg::dds_::Image_"):  # noqa: N801
    header: Header_
    height: uint32
    width: uint32
    encoding: str
    is_bigendian: uint8
    step: uint32
    data: sequence[uint8]


@dataclass
@final
class Quaternion_(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):  # noqa: N801
    x: float64
    y: float64
    z: float64
    w: float64


@dataclass
@final
class Vector3_(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):  # noqa: N801
    x: float64
    y: float64
    z: float64


@dataclass
@final
class Imu_(IdlStruct, typename="sensor_msgs::msg::dds_::Imu_"):  # noqa: N801
    header: Header_
    orientation: Quaternion_
    orientation_covariance: array[float64, 9]
    angular_velocity: Vector3_
    angular_velocity_covariance: array[float64, 9]
    linear_acceleration: Vector3_
    linear_acceleration_covariance: array[float64, 9]


@dataclass
@final
class PointField_(IdlStruct, typename="sensor_msgs::msg::dds_::PointField_"):  # noqa: N801
    name: str
    offset: uint32
    datatype: uint8
    count: uint32


@dataclass
@final
class PointCloud2_(IdlStruct, typename="sensor_msgs::msg::dds_::PointCloud2_"):  # noqa: N801
    header: Header_
    height: uint32
    width: uint32
    fields: sequence[PointField_]
    is_bigendian: bool
    point_step: uint32
    row_step: uint32
    data: sequence[uint8]
    is_dense: bool


# --- What must be in them. ---

ENVELOPE = struct.Struct("<HBBIQ")  # magic, version, kind, stream, sequence: docs/PROTOCOL.md
MAGIC = 0x4C67
LINE = 64
FLOAT32 = 7


def text_mark(sequence_number: int) -> int:
    return ord("0") + (sequence_number & 0x3F)


def wrong_lines(octets: bytes, first: int, mark: int) -> Iterator[str]:
    """The first byte of each line of 64 from `first` on is the message's mark."""
    if any(byte != mark for byte in octets[first::LINE]):
        yield f"marks {octets[first::LINE][:4]!r}, not {mark}"


def wrong_header(header: Header_) -> Iterator[str]:
    if header != Header_(Time_(0, 0), "lagometer"):
        yield f"header {header}"


def string_envelope(message: String_) -> bytes:
    return bytes.fromhex(message.data[:32])


def look_at_string(message: String_, number: int) -> Iterator[str]:
    if not message.data.isascii() or not message.data.isprintable():
        yield "text that is not printable ASCII"
    yield from wrong_lines(message.data.encode(), LINE, text_mark(number))


def data_envelope(message: Image_ | PointCloud2_) -> bytes:
    return bytes(message.data[:16])


def look_at_image(message: Image_, number: int) -> Iterator[str]:
    yield from wrong_header(message.header)
    if (message.encoding, message.is_bigendian) != ("mono8", 0):
        yield f"encoding {message.encoding}, is_bigendian {message.is_bigendian}"
    if message.step != message.width or message.step * message.height != len(message.data):
        yield f"{message.height} rows of {message.step}, {message.width} wide, in {len(message.data)} octets"
    yield from wrong_lines(bytes(message.data), LINE, number & 0xFF)


def imu_envelope(message: Imu_) -> bytes:
    return bytes.fromhex(message.header.frame_id)


def look_at_imu(message: Imu_, number: int) -> Iterator[str]:
    if message.header.stamp != Time_(0, 0) or len(message.header.frame_id) != 32:
        yield f"header {message.header}"
    numbers = [
        *(message.orientation.x, message.orientation.y, message.orientation.z, message.orientation.w),
        *message.orientation_covariance,
        *(message.angular_velocity.x, message.angular_velocity.y, message.angular_velocity.z),
        *message.angular_velocity_covariance,
        *(message.linear_acceleration.x, message.linear_acceleration.y, message.linear_acceleration.z),
        *message.linear_acceleration_covariance,
    ]
    found = struct.pack("<37d", *numbers)
    yield from wrong_lines(found, 0, text_mark(number))
    at_rest = bytearray(struct.pack("<37d", 0.0, 0.0, 0.0, 1.0, *[0.0] * 33))
    at_rest[::LINE] = found[::LINE]
    if found != at_rest:
        yield f"numbers {numbers}"


def look_at_points(message: PointCloud2_, number: int) -> Iterator[str]:
    yield from wrong_header(message.header)
    fields = [
        PointField_(name, 4 * place, FLOAT32, 1) for place, name in enumerate(("x", "y", "z", "intensity"))
    ]
    if list(message.fields) != fields:
        yield f"fields {message.fields}"
    if message.is_bigendian or message.is_dense or message.height != 1 or message.point_step != 16:
        yield f"layout {message.is_bigendian, message.is_dense, message.height, message.point_step}"
    if not message.width * message.point_step == message.row_step == len(message.data):
        yield f"{message.width} points, rows of {message.row_step}, {len(message.data)} octets"
    yield from wrong_lines(bytes(message.data), LINE, number & 0xFF)


Look = Callable[[Any, int], Iterator[str]]
KINDS: dict[str, tuple[type[Any], Callable[[Any], bytes], Look]] = {
    "string": (String_, string_envelope, look_at_string),
    "Image": (Image_, data_envelope, look_at_image),
    "Imu": (Imu_, imu_envelope, look_at_imu),
    "PointCloud2": (PointCloud2_, data_envelope, look_at_points),
}


class Seen:
    """What came, and what of it was not as it must be."""

    def __init__(self, kind: str) -> None:
        self.type, self._envelope, self._look = KINDS[kind]
        self.sequences: list[int] = []
        self.probes = 0
        self.wrong: list[str] = []

    def note(self, message: Any) -> None:
        magic, version, kind, _, number = ENVELOPE.unpack(self._envelope(message))
        if (magic, version) != (MAGIC, 1):
            self.wrong.append(f"envelope {self._envelope(message).hex()}")
            return
        self.wrong += [f"message {number}: {each}" for each in self._look(message, number)]
        if kind == 1:
            self.probes += 1
        else:
            self.sequences.append(number)

    def as_json(self) -> str:
        seen = {"sequences": self.sequences, "probes": self.probes, "wrong": self.wrong[:20]}
        return json.dumps(seen)


def main(kind: str, result: str, topic: str, back: str, *command: str) -> int:
    seen = Seen(kind)
    qos = Qos(
        Policy.DataRepresentation(use_cdrv0_representation=True),
        Policy.Reliability.Reliable(max_blocking_time=duration(seconds=1)),
        Policy.History.KeepLast(64),
    )
    participant = DomainParticipant(0)
    reader = DataReader(participant, Topic(participant, f"rt/{topic}", seen.type), qos)
    writer = DataWriter(participant, Topic(participant, f"rt/{back}", seen.type), qos)
    # Whatever descriptors are meant for a worker are handed on.
    worker = subprocess.Popen(command, close_fds=False)
    try:
        while worker.poll() is None:
            came = [each for each in reader.take(16) if type(each) is not InvalidSample]
            for message in came:
                seen.note(message)
                writer.write(message)
            if not came:
                time.sleep(0.001)
    finally:
        if worker.poll() is None:
            worker.kill()
        code = worker.wait()
        Path(result).write_text(seen.as_json())
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
