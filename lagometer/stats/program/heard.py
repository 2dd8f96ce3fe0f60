# SPDX-License-Identifier: Apache-2.0
"""What an additional subscriber received from a running system: age, period, jitter, rate and loss."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lagometer.stats.program.realtime import Times
from lagometer.stats.trial.quantile import quantile

PERMILLE = {"p50": 500, "p95": 950, "p99": 990}
LITTLE_ENDIAN, BIG_ENDIAN = b"\x00\x01", b"\x00\x00"  # plain CDR; in XCDR2 the first byte differs
ENCAPSULATION_BYTES = 4
NS_PER_S = 1_000_000_000
INVALID_NS = 3_294_967_295  # Fast DDS's invalid time (-1 s, 2^32 - 1 ns) as one number
STAMPED = frozenset(  # ROS 2 types whose first field is a std_msgs/Header
    [
        *(
            f"sensor_msgs/{name}"
            for name in (
                *(
                    "BatteryState",
                    "CameraInfo",
                    "CompressedImage",
                    "FluidPressure",
                    "Illuminance",
                    "Image",
                    "Imu",
                ),
                *(
                    "JointState",
                    "Joy",
                    "LaserScan",
                    "MagneticField",
                    "MultiDOFJointState",
                    "MultiEchoLaserScan",
                ),
                *("NavSatFix", "PointCloud", "PointCloud2", "Range", "RelativeHumidity", "Temperature"),
                "TimeReference",
            )
        ),
        *(f"nav_msgs/{name}" for name in ("Odometry", "Path", "OccupancyGrid", "GridCells")),
        *(
            f"geometry_msgs/{name}Stamped"
            for name in (
                *(
                    "Accel",
                    "AccelWithCovariance",
                    "Inertia",
                    "Point",
                    "Polygon",
                    "Pose",
                    "PoseWithCovariance",
                ),
                *("Quaternion", "Transform", "Twist", "TwistWithCovariance", "Vector3", "Wrench"),
            )
        ),
        "std_msgs/Header",
    ]
)


@dataclass(frozen=True)
class Heard:
    """One message: its writer and the number the writer gave it; when it was sent, as the middleware reports,
    and taken here, both on CLOCK_REALTIME; head: its first bytes. A writer may leave out when it sent a
    message: then the middleware reports no time after 1970."""

    writer: str
    sequence: int
    source_ns: int
    received_ns: int
    payload_bytes: int
    head: bytes

    @property
    def is_timed(self) -> bool:
        """Whether it says when it was sent."""
        return self.source_ns > 0 and self.source_ns != INVALID_NS


@dataclass(frozen=True)
class Spread:
    """Quantiles; None if fewer than ten messages lie beyond one. count: how many numbers."""

    count: int
    min_ns: int | None = None
    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    max_ns: int | None = None
    sd_ns: float | None = None


@dataclass(frozen=True)
class Figures:
    """Figures over all received messages.

    age: from the source time stamp until the message was taken here. untimed: messages without that stamp;
    they have no age. header_age: from `header.stamp`; None if the type has none. period: between two messages
    of one writer; its standard deviation is the jitter. lost: numbers missing between a writer's first and
    last.
    """

    messages: int
    writers: int
    lost: int
    rate_hz: float | None
    payload_bytes_min: int | None
    payload_bytes_max: int | None
    age: Spread
    period: Spread
    header_age: Spread | None = None
    by_writer: Mapping[str, int] = field(default_factory=dict)
    untimed: int = 0


def figures_of(heard: Sequence[Heard], stamped: bool) -> Figures:
    """stamped: messages begin with a std_msgs/Header."""
    writers: dict[str, list[Heard]] = {}
    for message in heard:
        writers.setdefault(message.writer, []).append(message)
    periods_ns = [
        np.diff(_times([message.received_ns for message in messages])) for messages in writers.values()
    ]
    rates_hz = [
        NS_PER_S / float(np.mean(gaps_ns)) for gaps_ns in periods_ns if len(gaps_ns) and np.mean(gaps_ns) > 0
    ]
    sizes = [message.payload_bytes for message in heard]
    stamps = [(message.received_ns, stamp_ns(message.head)) for message in heard] if stamped else []
    header_ages = [received_ns - sent_ns for received_ns, sent_ns in stamps if sent_ns is not None]
    timed = [message for message in heard if message.is_timed]
    return Figures(
        messages=len(heard),
        writers=len(writers),
        lost=sum(_missing([message.sequence for message in messages]) for messages in writers.values()),
        rate_hz=sum(rates_hz) if rates_hz else None,
        payload_bytes_min=min(sizes, default=None),
        payload_bytes_max=max(sizes, default=None),
        age=spread(_times([message.received_ns - message.source_ns for message in timed])),
        period=spread(np.concatenate([_times([]), *periods_ns])),
        header_age=spread(_times(header_ages)) if stamped else None,
        by_writer={writer: len(messages) for writer, messages in writers.items()},
        untimed=len(heard) - len(timed),
    )


def is_stamped(type_name: str) -> bool:
    """Whether a DDS type is a ROS 2 type that begins with a header: `sensor_msgs::msg::dds_::Image_`."""
    parts = type_name.split("::")
    return (
        len(parts) == 4 and parts[1:3] == ["msg", "dds_"] and f"{parts[0]}/{parts[3].rstrip('_')}" in STAMPED
    )


def stamp_ns(head: bytes) -> int | None:
    """The time in a std_msgs/Header at the start of a serialised message; None if there can be none."""
    order = {LITTLE_ENDIAN: "<", BIG_ENDIAN: ">"}.get(head[:2])
    if order is None or len(head) < ENCAPSULATION_BYTES + 8:
        return None
    seconds, nanoseconds = struct.unpack_from(f"{order}iI", head, ENCAPSULATION_BYTES)
    return seconds * NS_PER_S + nanoseconds if seconds > 0 and nanoseconds < NS_PER_S else None


def spread(numbers_ns: Times) -> Spread:
    """Quantiles and standard deviation (n - 1)."""
    ordered = np.sort(numbers_ns)
    if not len(ordered):
        return Spread(0)
    quantiles = {f"{name}_ns": quantile(ordered, permille) for name, permille in PERMILLE.items()}
    sd_ns = float(np.std(ordered, ddof=1)) if len(ordered) > 1 else None
    return Spread(len(ordered), int(ordered[0]), max_ns=int(ordered[-1]), sd_ns=sd_ns, **quantiles)


def _missing(sequences: Sequence[int]) -> int:
    return max(sequences) - min(sequences) + 1 - len(set(sequences))


def _times(numbers: Sequence[int]) -> Times:
    return np.array(numbers, dtype=np.int64)
