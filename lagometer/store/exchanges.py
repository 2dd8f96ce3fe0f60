# SPDX-License-Identifier: Apache-2.0
"""Time stamps that the hosts of a trial exchanged, from which it is told how their clocks stood to each
other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.store.format import EXCHANGES_SCHEMA

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Exchanges:
    """Questions of one host to another, an entry for each that was answered.

    sent, returned: on the clock of who asked; received, answered: on the other's.
    """

    sent: Times
    received: Times
    answered: Times
    returned: Times

    def __len__(self) -> int:
        return len(self.sent)

    def shifted(self, asking_ns: int, answering_ns: int) -> Exchanges:
        """Returns them with so much taken off the clock of who asked, and off that of who answered."""
        return Exchanges(
            self.sent - asking_ns,
            self.received - answering_ns,
            self.answered - answering_ns,
            self.returned - asking_ns,
        )


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
    """Returns exchanges from rows of four time stamps, in the order of the fields."""
    columns = np.array(stamps, dtype=np.int64).reshape(-1, 4).T
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
            },
            schema=EXCHANGES_SCHEMA,
        )
        for pair in exchanges
        if len(pair.stamps)
    ]
    return pl.concat(frames).sort("sent_ns", maintain_order=True) if frames else None
