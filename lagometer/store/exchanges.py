# SPDX-License-Identifier: Apache-2.0
"""Time stamps that a trial's hosts exchanged; they show the offset between the hosts' clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.store.format import EXCHANGES_SCHEMA

Times = npt.NDArray[np.int64]
CHRONY, PTP = "chrony", "ptp"
UNKNOWN = -1  # how long something waited in the kernel, if the kernel's stamp is unknown
_NONE: Times = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Exchanges:
    """Questions from one host to another, with one entry per answered question.

    sent, returned: on the asking side's clock. received, answered: on the other's. received_lain,
    returned_lain: how long question and answer waited in the kernel before `received` and `returned`, in ns,
    or UNKNOWN; UNKNOWN for all if left out.
    """

    sent: Times
    received: Times
    answered: Times
    returned: Times
    received_lain: Times = field(default_factory=_NONE.copy)
    returned_lain: Times = field(default_factory=_NONE.copy)

    def __post_init__(self) -> None:
        for name in ("received_lain", "returned_lain"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(len(self.sent), UNKNOWN, np.int64))

    def __len__(self) -> int:
        return len(self.sent)

    def shifted(self, asking_ns: int, answering_ns: int) -> Exchanges:
        """Returns the exchanges with these amounts subtracted from the asking and answering sides' clocks."""
        return Exchanges(
            self.sent - asking_ns,
            self.received - answering_ns,
            self.answered - answering_ns,
            self.returned - asking_ns,
            self.received_lain,
            self.returned_lain,
        )

    def by_kernel(self) -> Exchanges:
        """Returns the exchanges stamped by the kernel in both directions, with its stamps for the agents'."""
        known = (self.received_lain >= 0) & (self.returned_lain >= 0)
        return Exchanges(
            self.sent[known],
            (self.received - self.received_lain)[known],
            self.answered[known],
            (self.returned - self.returned_lain)[known],
        )

    def round_trips(self) -> Times:
        """Returns how long question and answer were under way, without the time between them."""
        return (self.returned - self.sent) - (self.answered - self.received)


@dataclass(frozen=True)
class ToldOffset:
    """How far a clock is ahead of another throughout a trial, by the word of a time service on both hosts:
    between least_ns and most_ns. source: the service; error_ns: what it allows for, of both hosts."""

    source: str
    least_ns: int
    most_ns: int
    error_ns: int

    def reversed(self) -> ToldOffset:
        """Returns how far the one is ahead of the other instead."""
        return ToldOffset(self.source, -self.most_ns, -self.least_ns, self.error_ns)


@dataclass(frozen=True)
class HostExchanges:
    """What two hosts exchanged in a trial, converted to the conductor's clock like everything else.

    clock, other_clock: which clock each host has, as in an `EdgeSpec`. drift: by how much the two may run
    apart at most, as a share. symmetric: the user declares the link symmetric. told: what time services say
    of how far the other's clock is ahead.
    """

    host: str
    other: str
    clock: str
    other_clock: str
    stamps: Exchanges
    drift: float
    symmetric: bool = False
    told: tuple[ToldOffset, ...] = ()


def exchanges_of(stamps: Sequence[Sequence[int]]) -> Exchanges:
    """Returns exchanges from rows of all fields, in their order, or of the four time stamps alone."""
    width = len(stamps[0]) if stamps else 4
    columns = np.array(stamps, dtype=np.int64).reshape(-1, width).T
    return Exchanges(*columns)


def exchanges_frame(exchanges: Sequence[HostExchanges]) -> pl.DataFrame | None:
    """Returns the exchanges in the format of `exchanges/…`, in the order of asking; None without any."""
    frames = [
        pl.DataFrame(
            {
                "host": [pair.host] * len(pair.stamps),
                "other": [pair.other] * len(pair.stamps),
                "sent_ns": pair.stamps.sent,
                "received_ns": pair.stamps.received,
                "answered_ns": pair.stamps.answered,
                "returned_ns": pair.stamps.returned,
                "received_lain_ns": _known(pair.stamps.received_lain),
                "returned_lain_ns": _known(pair.stamps.returned_lain),
            },
            schema=EXCHANGES_SCHEMA,
        )
        for pair in exchanges
        if len(pair.stamps)
    ]
    return pl.concat(frames).sort("sent_ns", maintain_order=True) if frames else None


def _known(lain: Times) -> pl.Series:
    """Returns the times with null for unknown ones."""
    return pl.Series(lain).set(pl.Series(lain) < 0, None)
