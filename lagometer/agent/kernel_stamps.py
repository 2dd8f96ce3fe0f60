# SPDX-License-Identifier: Apache-2.0
"""How long a datagram had lain in the kernel before this process could say that it came.

The kernel stamps a datagram where it receives it, before it wakes who waits: without that wake-up, which the
two ends of a link hardly have alike. Its stamp is of CLOCK_REALTIME, and everything else of CLOCK_MONOTONIC.
Their distance changes by a step alone (NTP pulls both alike, and a time namespace moves CLOCK_MONOTONIC by a
constant), so it is read before the stamp and after it. Where readings differ, the clock of the day was set in
between, and what the kernel says is not used (docs/methodology/clocks.md).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

UNKNOWN = -1  # how long something had lain, where nothing is known
READINGS = 16  # that are remembered, of several datagrams that came at once
ATTEMPTS = 3  # of a reading; the narrowest counts: the others were interrupted
_NS_PER_S = 1_000_000_000
# Of <asm-generic/socket.h>; what comes beside a datagram is marked with it, too. Python has no name for it.
_TIMESTAMPNS = 35
_TIME = struct.Struct("@ll")  # seconds and nanoseconds, as wide as this machine's `long`
BESIDE_BYTES = socket.CMSG_SPACE(_TIME.size)

Clock = Callable[[], int]
Beside = Iterable[tuple[int, int, bytes]]  # of `recvmsg`: level, kind and data of each


def wish_for_stamps(end: socket.socket) -> bool:
    """Has the kernel stamp what comes to a socket; returns whether it does."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
        return True
    return False


def stamp_of(beside: Beside) -> int | None:
    """Returns the kernel's stamp, of CLOCK_REALTIME in ns, from what came beside a datagram."""
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS) and len(data) == _TIME.size:
            seconds, rest_ns = _TIME.unpack(data)
            return int(seconds) * _NS_PER_S + int(rest_ns)
    return None


@dataclass(frozen=True)
class Reading:
    """How far CLOCK_REALTIME was ahead of CLOCK_MONOTONIC at an instant between two times of the latter."""

    begin_ns: int
    real_ns: int
    end_ns: int

    @property
    def least_ns(self) -> int:
        """The least that the distance can have been."""
        return self.real_ns - self.end_ns

    @property
    def most_ns(self) -> int:
        """The most."""
        return self.real_ns - self.begin_ns


class KernelStamps:
    """Both clocks' distance as last read, by which a stamp becomes a time of CLOCK_MONOTONIC."""

    def __init__(self, monotonic: Clock = time.monotonic_ns, real: Clock = time.time_ns) -> None:
        self._monotonic, self._real = monotonic, real
        self._readings: deque[Reading] = deque(maxlen=READINGS)
        self.look()

    def look(self) -> None:
        """Reads both clocks. A stamp is of use only if this was done before it and after it."""
        readings = [Reading(self._monotonic(), self._real(), self._monotonic()) for _ in range(ATTEMPTS)]
        self._readings.append(min(readings, key=lambda each: each.end_ns - each.begin_ns))

    def lain_ns(self, stamp_ns: int | None, came_ns: int, since_ns: int | None = None) -> int:
        """Returns how long a datagram had lain at `came_ns`, rather less than more, or UNKNOWN.

        To be called after a look behind `came_ns`. stamp_ns: the kernel's, of CLOCK_REALTIME; since_ns: what
        the datagram answers was sent then, so that it can't have come before.
        """
        if stamp_ns is None:
            return UNKNOWN
        least_ns, most_ns, agreed = self._readings[-1].least_ns, self._readings[-1].most_ns, False
        common_least_ns, common_most_ns = least_ns, most_ns
        # Back to a look that was before the stamp, however the distance lay within what all these looks saw.
        for reading in reversed(self._readings):
            common_least_ns = max(common_least_ns, reading.least_ns)
            common_most_ns = min(common_most_ns, reading.most_ns)
            if common_least_ns > common_most_ns:
                return UNKNOWN  # the clock of the day was set
            least_ns, most_ns = min(least_ns, reading.least_ns), max(most_ns, reading.most_ns)
            if reading.end_ns <= stamp_ns - most_ns:
                agreed = True
                break
        # A step that is smaller than what reading takes may be unseen: the least distance makes the stamp
        # late rather than early.
        arrived_ns = stamp_ns - least_ns
        if not agreed or arrived_ns > came_ns or (since_ns is not None and arrived_ns < since_ns):
            return UNKNOWN
        return came_ns - arrived_ns
