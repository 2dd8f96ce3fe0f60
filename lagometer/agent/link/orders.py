# SPDX-License-Identifier: Apache-2.0
"""What a link is to be like, and where it is emulated."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from typing import Any

NAME = "link"  # of what runs it, among the companions of a trial
LOOPBACK = "lo"
READY = "link is ready"
DIFFERS = "link-differs"
FAILED = "link-failed"
START = "start_descriptor"
FRAME_HEADER_BYTES = 14  # of Ethernet, as devices of Linux count a frame


@dataclass(frozen=True)
class LinkStep:
    """What a link is like from a time of the measure phase on. outage: all frames are lost."""

    at_ns: int
    rate_bps: int
    delay_ns: int
    jitter_ns: int
    loss: float
    outage: bool = False


@dataclass(frozen=True)
class LinkProfile:
    """One way of a link; both ways are alike. 0 is: not limited, or none.

    rate_bps: of frames with frame_overhead_bytes for each; queue_bytes: what waits for the rate, the rest
    is dropped; jitter_ns: the standard deviation of the delay, by `distribution` (normal, uniform,
    exponential); loss, reorder, duplicate: shares of frames, from 0 to 1; burst: how many frames are lost
    in a row, on average; steps: what it is like in the measure phase, in the order of time; trace:
    the file of a recorded capacity, whose mean is rate_bps, empty for none.
    """

    name: str
    mtu_bytes: int = 1500
    rate_bps: int = 0
    frame_overhead_bytes: int = 0
    queue_bytes: int = 0
    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: str = "normal"
    loss: float = 0.0
    burst: float = 1.0
    reorder: float = 0.0
    duplicate: float = 0.0
    steps: tuple[LinkStep, ...] = ()
    trace: str = ""

    @property
    def timed(self) -> bool:
        """Whether it changes with time."""
        return bool(self.steps or self.trace)

    @property
    def simple(self) -> bool:
        """Whether a shaper and a filter of the kernel can do it: each frame leaves in time, or is lost by
        chance, always."""
        return not (
            self.timed or self.delay_ns or self.jitter_ns or self.reorder or self.duplicate or self.burst > 1
        )

    @property
    def frame_bytes(self) -> int:
        """The longest frame."""
        return self.mtu_bytes + FRAME_HEADER_BYTES


@dataclass(frozen=True)
class LinkOrders:
    """device: that all frames leave by; address: of this host on it; peers: addresses of all hosts with the
    link, this one included, in an order that all agree on; program: the path of `lagometer-link`."""

    profile: LinkProfile
    device: str
    address: str
    peers: tuple[str, ...]
    program: str
    seed: int = 1

    def as_json(self) -> dict[str, Any]:
        """Returns it as `parsed` reads it."""
        return asdict(self)

    @property
    def next(self) -> str:
        """The host to which this one's way out is measured."""
        return self.peers[(self.peers.index(self.address) + 1) % len(self.peers)]


def parsed(values: dict[str, Any]) -> LinkOrders:
    """Reads what `as_json` gives."""
    profile = values["profile"]
    steps = tuple(LinkStep(**step) for step in profile["steps"])
    return LinkOrders(
        **{**values, "profile": LinkProfile(**{**profile, "steps": steps}), "peers": tuple(values["peers"])}
    )


def start_of(output: bytes) -> int | None:
    """Returns the descriptor, of the process that runs a link, by which the link hears when the measure phase
    begins; None if what it wrote names none: it does not change with time."""
    for line in output.splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            if (descriptor := json.loads(line).get(START)) is not None:
                return int(descriptor)
    return None


def own_code(last_line: str) -> str | None:
    """Returns the code of the reason that the last line of what runs a link is; None if it is not one."""
    code = last_line.partition(": ")[0]
    return code if code in (DIFFERS, FAILED) else None
