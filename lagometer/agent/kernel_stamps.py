# SPDX-License-Identifier: Apache-2.0
"""How long a datagram had waited in the kernel before this process noticed it.

The kernel stamps a datagram on arrival, before it wakes the receiver. The stamp therefore excludes the
wake-up, which rarely takes equally long at both ends of a link. The stamp is on CLOCK_REALTIME, everything
else on CLOCK_MONOTONIC. Only a step changes the distance of these clocks (NTP pulls both alike, and a time
namespace moves CLOCK_MONOTONIC by a constant), so it is read before the stamp and after it. If the readings
differ, somebody set the wall clock in between, and the stamp is not used (docs/methodology/clocks.md).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

UNKNOWN = -1  # it is not known how long something had waited
READINGS = 256  # kept, for several datagrams that came at once
ATTEMPTS = 3  # per reading; the narrowest counts: the others were interrupted
_NS_PER_S = 1_000_000_000
# From <asm-generic/socket.h>. The kernel also uses it to mark the ancillary data of a datagram. Python has no
# name for it.
_TIMESTAMPNS = 35
_TIME = struct.Struct("@ll")  # seconds and nanoseconds, as wide as this machine's `long`
BESIDE_BYTES = socket.CMSG_SPACE(_TIME.size)

Clock = Callable[[], int]
Beside = Iterable[tuple[int, int, bytes]]  # of `recvmsg`: level, kind and data of each


def wish_for_stamps(end: socket.socket) -> bool:
    """Asks the kernel to stamp what a socket receives; returns whether it does."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        return True
    return False


def stamp_of(beside: Beside) -> int | None:
    """Returns the kernel's stamp, on CLOCK_REALTIME in ns, from the ancillary data of a datagram."""
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS) and len(data) == _TIME.size:
            seconds, rest_ns = _TIME.unpack(data)
            return int(seconds) * _NS_PER_S + int(rest_ns)
    return None


@dataclass(frozen=True)
class Reading:
    """How far CLOCK_REALTIME was ahead of CLOCK_MONOTONIC at an instant between two times on
    CLOCK_MONOTONIC."""

    begin_ns: int
    real_ns: int
    end_ns: int

    @property
    def least_ns(self) -> int:
        """The smallest possible distance."""
        return self.real_ns - self.end_ns

    @property
    def most_ns(self) -> int:
        """The largest possible distance."""
        return self.real_ns - self.begin_ns


class KernelStamps:
    """The distance of both clocks as last read. It converts a stamp to a time on CLOCK_MONOTONIC."""

    def __init__(self, monotonic: Clock = time.monotonic_ns, real: Clock = time.time_ns) -> None:
        self._monotonic, self._real = monotonic, real
        self._readings: deque[Reading] = deque(maxlen=READINGS)
        self.look()

    def look(self) -> None:
        """Reads both clocks. A stamp is only usable with a reading before it and one after it."""
        readings = [Reading(self._monotonic(), self._real(), self._monotonic()) for _ in range(ATTEMPTS)]
        self._readings.append(min(readings, key=lambda each: each.end_ns - each.begin_ns))

    def lain_ns(self, stamp_ns: int | None, came_ns: int, since_ns: int | None = None) -> int:
        """Returns how long a datagram had waited at `came_ns`, rather less than more, or UNKNOWN.

        Call this after a `look` that follows `came_ns`. stamp_ns: the kernel's stamp, on CLOCK_REALTIME;
        since_ns: when the message that the datagram answers was sent; the datagram can't have come before
        that.
        """
        if stamp_ns is None:
            return UNKNOWN
        least_ns, most_ns, agreed = self._readings[-1].least_ns, self._readings[-1].most_ns, False
        common_least_ns, common_most_ns = least_ns, most_ns
        # Go back to a reading that precedes the stamp for every distance within the bounds of these readings.
        for reading in reversed(self._readings):
            common_least_ns = max(common_least_ns, reading.least_ns)
            common_most_ns = min(common_most_ns, reading.most_ns)
            if common_least_ns > common_most_ns:
                return UNKNOWN  # the wall clock was set
            least_ns, most_ns = min(least_ns, reading.least_ns), max(most_ns, reading.most_ns)
            if reading.end_ns <= stamp_ns - most_ns:
                agreed = True
                break
        # A step smaller than the duration of a reading may go unnoticed: the smallest distance makes the
        # stamp late rather than early.
        arrived_ns = stamp_ns - least_ns
        if not agreed or arrived_ns > came_ns or (since_ns is not None and arrived_ns < since_ns):
            return UNKNOWN
        return came_ns - arrived_ns
