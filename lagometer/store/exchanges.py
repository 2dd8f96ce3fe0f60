# SPDX-License-Identifier: Apache-2.0
"""Time stamps that the hosts of a trial exchanged, from which it is told how their clocks stood to each
other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.store.format import EXCHANGES_SCHEMA

Times = npt.NDArray[np.int64]
UNKNOWN = -1  # how long something had lain in the kernel, where the kernel's stamp is not known
_NONE: Times = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Exchanges:
    """Questions of one host to another, an entry for each that was answered.

    sent, returned: on the clock of who asked; received, answered: on the other's. received_lain,
    returned_lain: how long question and answer had lain in the kernel before `received` and `returned`, in
    ns, or UNKNOWN; of none where they are left out.
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
        """Returns them with so much taken off the clock of who asked, and off that of who answered."""
        return Exchanges(
            self.sent - asking_ns,
            self.received - answering_ns,
            self.answered - answering_ns,
            self.returned - asking_ns,
            self.received_lain,
            self.returned_lain,
        )

    def by_kernel(self) -> Exchanges:
        """Returns those whose question and answer the kernel stamped, with its stamps for the agents'."""
        known = (self.received_lain >= 0) & (self.returned_lain >= 0)
        return Exchanges(
            self.sent[known],
            (self.received - self.received_lain)[known],
            self.answered[known],
            (self.returned - self.returned_lain)[known],
        )

    def round_trips(self) -> Times:
        """Returns how long question and answer were on their ways, without what lay between them."""
        return (self.returned - self.sent) - (self.answered - self.received)


@dataclass(frozen=True)
class HostExchanges:
    """What two hosts exchanged in a trial, brought to the conductor's clock as everything else is.

    clock, other_clock: whose clock each has, as in an `EdgeSpec`; drift: by how much the two may run apart at
    most, as a share; symmetric: the user names the link so.
    """

    host: str
    other: str
    clock: str
    other_clock: str
    stamps: Exchanges
    drift: float
    symmetric: bool = False


def exchanges_of(stamps: Sequence[Sequence[int]]) -> Exchanges:
    """Returns exchanges from rows of all fields, in their order, or of the four time stamps alone."""
    width = len(stamps[0]) if stamps else 4
    columns = np.array(stamps, dtype=np.int64).reshape(-1, width).T
    return Exchanges(*columns)


def exchanges_frame(exchanges: Sequence[HostExchanges]) -> pl.DataFrame | None:
    """Returns them as `exchanges/…` has them, in the order of asking; None if there are none."""
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
    """Returns them with null for what is not known."""
    return pl.Series(lain).set(pl.Series(lain) < 0, None)
