# SPDX-License-Identifier: Apache-2.0
"""Time stamps that agents exchange over the link between their hosts, to estimate the offset of their clocks.

A question and its answer are one datagram each. A delay of either one lengthens the time between question and
answer, but never makes the stamps wrong: `sent` and `answered` are taken before a datagram leaves, `received`
and `returned` after one has come. The last two come with the time that the datagram had waited in the kernel
by then, if the kernel's own stamp shows that.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from lagometer.agent.kernel_stamps import BESIDE_BYTES, UNKNOWN, KernelStamps, stamp_of, wish_for_stamps
from lagometer.agent.pulled import PullWatch

_QUESTION, _ANSWER = b"lag?", b"lag!"
# Type, number, received and answered on the clock of the agent that answers, how long the question had
# waited.
_FORMAT = struct.Struct("!4sQqqq")
AWAITED_MAX = 1024  # unanswered questions to remember

Peer = tuple[str, str, int]  # name, address, port
# Name of the peer; sent, received, answered, returned; how long question and answer had waited in the kernel.
Stamps = tuple[str, int, int, int, int, int, int]


class ClockExchange:
    """Asks, answers, and keeps the results. Owns one UDP socket on `address`; the socket has its own port."""

    def __init__(
        self, address: str, selector: selectors.BaseSelector, kernel: KernelStamps | None = None
    ) -> None:
        """Raises OSError if the host has no such address. kernel: reads the kernel's stamps."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind((address, 0))
        except OSError as error:
            self._socket.close()
            raise OSError(error.errno, f"address {address} of this host: {error.strerror}") from error
        self._kernel = kernel or KernelStamps()
        self._pull = PullWatch()
        wish_for_stamps(self._socket)  # otherwise datagrams come without stamps
        self._selector = selector
        self._selector.register(self._socket, selectors.EVENT_READ, self.hear)
        self._number = 0
        self._awaited: dict[int, tuple[str, int]] = {}  # by number: whom we asked, and when
        self._found: list[Stamps] = []

    @property
    def port(self) -> int:
        """The port that others send questions to."""
        return int(self._socket.getsockname()[1])

    def ask(self, peers: Sequence[Peer]) -> None:
        """Asks each peer once. Skips what can't be sent now."""
        self._kernel.look()
        self._pull.look()
        for name, address, port in peers:
            self._number += 1
            while len(self._awaited) >= AWAITED_MAX:
                del self._awaited[next(iter(self._awaited))]
            sent_ns = time.monotonic_ns()
            with contextlib.suppress(OSError):
                self._socket.sendto(_FORMAT.pack(_QUESTION, self._number, 0, 0, 0), (address, port))
                self._awaited[self._number] = (name, sent_ns)

    def hear(self) -> None:
        """Answers questions and keeps answers. Ignores anything else."""
        while True:
            try:
                data, beside, _, sender = self._socket.recvmsg(_FORMAT.size + 1, BESIDE_BYTES)
            except OSError:  # nothing more; or nobody has the port any more
                return
            arrived_ns = time.monotonic_ns()
            if len(data) != _FORMAT.size:
                continue
            self._kernel.look()
            stamp_ns = stamp_of(beside)
            kind, number, received_ns, answered_ns, lain_ns = _FORMAT.unpack(data)
            if kind == _QUESTION:
                lain_ns = self._kernel.lain_ns(stamp_ns, arrived_ns)
                with contextlib.suppress(OSError):
                    answer = _FORMAT.pack(_ANSWER, number, arrived_ns, time.monotonic_ns(), lain_ns)
                    self._socket.sendto(answer, sender)
            elif kind == _ANSWER and number in self._awaited:
                name, sent_ns = self._awaited.pop(number)
                back_ns = self._kernel.lain_ns(stamp_ns, arrived_ns, since_ns=sent_ns)
                known_ns = max(lain_ns, UNKNOWN)
                self._found.append((name, sent_ns, received_ns, answered_ns, arrived_ns, known_ns, back_ns))

    @property
    def waits(self) -> bool:
        """Whether an answer is still outstanding."""
        return bool(self._awaited)

    @property
    def pulled_ppm(self) -> float:
        """The fastest that this host's clock was pulled between two questions."""
        return self._pull.most_ppm

    def taken(self) -> list[Stamps]:
        """Returns the results since the last call."""
        stamps, self._found = self._found, []
        return stamps

    def close(self) -> None:
        """Closes the socket."""
        self._selector.unregister(self._socket)
        self._socket.close()


def peers_of(peers: Any) -> tuple[Peer, ...]:
    """Reads the peers in a command. Raises TypeError, ValueError for anything else."""
    return tuple((str(name), str(address), int(port)) for name, address, port in peers)
