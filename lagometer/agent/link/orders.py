# SPDX-License-Identifier: Apache-2.0
"""What a link should be like, and where it is emulated."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from typing import Any

NAME = "link"  # of the process that runs it, among the companions of a trial
LOOPBACK = "lo"
READY = "link is ready"
DIFFERS = "link-differs"
FAILED = "link-failed"
START = "start_descriptor"
FRAME_HEADER_BYTES = 14  # of Ethernet, as Linux devices count a frame


@dataclass(frozen=True)
class LinkStep:
    """What a link is like from a given time in the measure phase. outage: all frames are lost."""

    at_ns: int
    rate_bps: int
    delay_ns: int
    jitter_ns: int
    loss: float
    outage: bool = False


@dataclass(frozen=True)
class LinkProfile:
    """One direction of a link; both directions are alike. 0 means unlimited, or none.

    rate_bps: for frames with frame_overhead_bytes each; queue_bytes: what may wait for the rate, the rest is
    dropped; jitter_ns: the standard deviation of the delay, with a `distribution` (normal, uniform,
    exponential); loss, reorder, duplicate: shares of frames, from 0 to 1; burst: how many frames are lost in
    a row, on average; steps: changes in the measure phase, in the order of time; trace: the file of a
    recorded capacity with the mean rate_bps, empty for none.
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
        """Whether a shaper and a filter of the kernel are enough: each frame leaves on time or is lost at
        random, throughout."""
        return not (
            self.timed or self.delay_ns or self.jitter_ns or self.reorder or self.duplicate or self.burst > 1
        )

    @property
    def frame_bytes(self) -> int:
        """The longest frame."""
        return self.mtu_bytes + FRAME_HEADER_BYTES


@dataclass(frozen=True)
class LinkOrders:
    """device: all frames leave through it; address: of this host on it; peers: addresses of all hosts with
    the link, including this one, in an order that all agree on; program: the path of `lagometer-link`."""

    profile: LinkProfile
    device: str
    address: str
    peers: tuple[str, ...]
    program: str
    seed: int = 1

    def as_json(self) -> dict[str, Any]:
        """Returns it in the form that `parsed` reads."""
        return asdict(self)

    @property
    def next(self) -> str:
        """The host that this one sends to; the way to it is measured."""
        return self.peers[(self.peers.index(self.address) + 1) % len(self.peers)]


def parsed(values: dict[str, Any]) -> LinkOrders:
    """Reads the output of `as_json`."""
    profile = values["profile"]
    steps = tuple(LinkStep(**step) for step in profile["steps"])
    return LinkOrders(
        **{**values, "profile": LinkProfile(**{**profile, "steps": steps}), "peers": tuple(values["peers"])}
    )


def start_of(output: bytes) -> int | None:
    """Returns the descriptor, in the process that runs a link, on which the link learns when the measure
    phase begins. None if its output names none: then the link does not change with time."""
    for line in output.splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            if (descriptor := json.loads(line).get(START)) is not None:
                return int(descriptor)
    return None


def own_code(last_line: str) -> str | None:
    """Returns the code of the reason in the last line of the process that runs a link; None if the line is
    not a reason."""
    code = last_line.partition(": ")[0]
    return code if code in (DIFFERS, FAILED) else None
