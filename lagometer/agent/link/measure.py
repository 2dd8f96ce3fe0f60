# SPDX-License-Identifier: Apache-2.0
"""Measures a link with its own packets, in the network of the trial and before any worker starts.

Each host sends to the next one and judges what comes from the one before it. The kernel stamps a packet on
arrival, on the same clock that its sender read: emulated hosts share one machine, so one-way times need no
estimate.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lagometer.agent.link.figures import (
    NS_PER_S,
    Figure,
    delay_figures,
    loss_figures,
    rate_figure,
    share_figure,
)
from lagometer.agent.link.orders import FRAME_HEADER_BYTES, LinkOrders, LinkProfile

PORT = 47811
UDP_BYTES = 28  # headers of IPv4 and UDP
PACKET = struct.Struct("<4sBxxxIq")  # kind, train, sequence, sent
MAGIC = b"LgLk"
SMALL_BYTES = 64
STEADY, APART, FAST, WHOLE = range(4)
STEADY_COUNT, STEADY_COUNT_BURSTS = 2000, 5000
STEADY_NS = 250_000
STEADY_RATE_SHARE = 0.1  # of the link's rate, so nothing waits for it
APART_DEVIATIONS = 4  # packets this far apart keep their order by themselves
APART_NS, APART_S_MAX = 1_000_000, 3.0
APART_COUNTS = (60, 200)
FAST_S, FAST_JITTERS, FAST_BYTES_MAX, FAST_COUNT_MIN = 0.3, 100, 8_000_000, 150
FAST_OVER = 1.3  # they are sent this much faster than the link
WHOLE_COUNT = 20
BUFFER_BYTES = 64 << 20
PROBE_PRIORITY = 40
MEET_S, ANNOUNCE_S, LINGER_S = 30.0, 0.02, 0.5
_SO_TIMESTAMPNS, _SO_RCVBUFFORCE, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 35, 33, 10, 2
_STAMP = struct.Struct("qq")


class MeasureError(Exception):
    """The link can't be measured. Says what was tried and what the system answered."""


@dataclass(frozen=True)
class Arrival:
    """A packet that arrived: its train, its number, when it was sent and when it arrived."""

    train: int
    sequence: int
    sent_ns: int
    arrived_ns: int

    @property
    def transit_ns(self) -> int:
        """How long the packet took."""
        return self.arrived_ns - self.sent_ns


class Probe:
    """The two sockets of a host. `close` closes them."""

    def __init__(self, orders: LinkOrders) -> None:
        self._orders, self._profile = orders, orders.profile
        self._receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
        self._receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._receiver.bind((orders.address, PORT))
        self._receiver.setblocking(False)
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sender.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
        if self._profile.queue_bytes:  # keep the waiting packets below the queue's size, so none is dropped
            self._sender.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, max(4608, self._profile.queue_bytes // 2)
            )
        self._sender.bind((orders.address, 0))
        self._sender.connect((orders.next, PORT))
        self._mtu_refused: bool | None = None

    def close(self) -> None:
        """Closes the sockets."""
        self._receiver.close()
        self._sender.close()

    def send(self) -> None:
        """Sends all trains except the fast one, and waits until the last packet must have arrived. Raises
        MeasureError."""
        profile = self._profile
        small_bits = 8 * (SMALL_BYTES + UDP_BYTES + FRAME_HEADER_BYTES + profile.frame_overhead_bytes)
        spacing_ns = small_bits * NS_PER_S / (STEADY_RATE_SHARE * profile.rate_bps) if profile.rate_bps else 0
        with _prompt(), _said():
            self._send(STEADY, _steady_count(profile), max(STEADY_NS, round(spacing_ns)), SMALL_BYTES)
            self._wait()
            self._send(APART, *_apart(profile), SMALL_BYTES)
            self._wait()
            self._send_whole()
            self._wait()

    def send_fast(self) -> None:
        """Sends faster than the link. No other host does so meanwhile: the CPUs can handle only one such
        train at a time. Raises MeasureError."""
        profile, count = self._profile, _fast_count(self._profile)
        if count:
            with _prompt(), _said():
                self._send(FAST, count, _fast_spacing_ns(profile), profile.mtu_bytes - UDP_BYTES)
                self._wait(min(count * profile.frame_bytes, profile.queue_bytes))

    def measured(self) -> list[Figure]:
        """Returns what was measured on the way from the previous host."""
        return self._judged(self._arrived(), _steady_count(self._profile))

    def _send(self, train: int, count: int, spacing_ns: int, size_bytes: int) -> None:
        rest = bytes(size_bytes - PACKET.size)
        begin_ns = time.monotonic_ns()
        for sequence in range(count):
            wait_ns = begin_ns + sequence * spacing_ns - time.monotonic_ns()
            if wait_ns > 0:
                time.sleep(wait_ns / NS_PER_S)
            with contextlib.suppress(BlockingIOError):
                self._sender.send(PACKET.pack(MAGIC, train, sequence, time.time_ns()) + rest)

    def _send_whole(self) -> None:
        """Sends packets that just fit, and one that is a byte too long."""
        size = self._profile.mtu_bytes - UDP_BYTES
        self._send(WHOLE, WHOLE_COUNT, 2 * STEADY_NS, size)
        try:
            self._sender.send(bytes(size + 1))
            self._mtu_refused = False
        except OSError:
            self._mtu_refused = True

    def _wait(self, waiting_bytes: int = 0) -> None:
        """Waits until the packets in transit have arrived."""
        profile = self._profile
        longest_ns = profile.delay_ns + 6 * profile.jitter_ns
        queue_ns = 8 * waiting_bytes * NS_PER_S // profile.rate_bps if waiting_bytes else 0
        time.sleep((longest_ns + queue_ns) / NS_PER_S + 0.05)

    def _arrived(self) -> list[Arrival]:
        arrivals: list[Arrival] = []
        while True:
            try:
                data, ancillary, _, _ = self._receiver.recvmsg(PACKET.size, 128)
            except BlockingIOError:
                return arrivals
            if len(data) == PACKET.size and data[:4] == MAGIC and ancillary:
                seconds, nanoseconds = _STAMP.unpack(ancillary[0][2][: _STAMP.size])
                _, train, sequence, sent_ns = PACKET.unpack(data)
                arrivals.append(Arrival(train, sequence, sent_ns, seconds * NS_PER_S + nanoseconds))

    def _judged(self, arrivals: Sequence[Arrival], steady_count: int) -> list[Figure]:
        profile = self._profile
        by_train = {
            train: [arrival for arrival in arrivals if arrival.train == train]
            for train in (STEADY, APART, FAST, WHOLE)
        }
        first_by_sequence: dict[int, Arrival] = {}
        for arrival in by_train[STEADY]:
            first_by_sequence.setdefault(arrival.sequence, arrival)
        figures = loss_figures(profile, [sequence in first_by_sequence for sequence in range(steady_count)])
        transit_by_sequence = {arrival.sequence: arrival.transit_ns for arrival in reversed(by_train[APART])}
        transits_ns = [
            transit_ns
            for transit_ns in transit_by_sequence.values()
            if not profile.reorder or transit_ns > profile.delay_ns / 2
        ]
        figures += delay_figures(profile, transits_ns)
        if profile.duplicate:
            copies = len(by_train[STEADY]) - len(first_by_sequence)
            figures.append(share_figure("duplicate", profile.duplicate, copies, len(first_by_sequence)))
        if profile.reorder:
            early = sum(arrival.transit_ns < profile.delay_ns / 2 for arrival in first_by_sequence.values())
            figures.append(share_figure("reorder", profile.reorder, early, len(first_by_sequence)))
        if profile.rate_bps:
            arrivals_ns = list({arrival.sequence: arrival.arrived_ns for arrival in by_train[FAST]}.values())
            figures.append(rate_figure(profile, sorted(arrivals_ns), profile.frame_bytes))
        fits = bool(by_train[WHOLE]) and self._mtu_refused is True
        mtu = profile.mtu_bytes
        figures.append(Figure("mtu_bytes", mtu, mtu if fits else None, mtu, mtu, len(by_train[WHOLE])))
        return figures


class Meeting:
    """Synchronises all hosts of a link: none goes on before all have reached the same step. Each host
    repeats its step until the meeting is closed, because links lose some messages and other hosts may not
    listen yet."""

    def __init__(self, orders: LinkOrders) -> None:
        self._orders, self._reached = orders, 0
        self._others = {address: 0 for address in orders.peers if address != orders.address}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((orders.address, PORT + 1))
        self._socket.settimeout(ANNOUNCE_S)
        self._over = threading.Event()
        self._announcing = threading.Thread(target=self._announce, daemon=True)
        if self._others:
            self._announcing.start()

    def close(self) -> None:
        """Stops once the others can have received the last message."""
        if self._others:
            time.sleep(LINGER_S)
            self._over.set()
            self._announcing.join()
        self._socket.close()

    def reach(self, step: int) -> None:
        """Waits until all others have reached this step. Raises MeasureError."""
        self._reached = step
        end_s = time.monotonic() + MEET_S
        while any(reached < step for reached in self._others.values()):
            if time.monotonic() > end_s:
                late_addresses = ", ".join(
                    address for address, reached in self._others.items() if reached < step
                )
                raise MeasureError(
                    f"the other end at {late_addresses} did not come as far within {MEET_S:.0f} s"
                )
            with contextlib.suppress(OSError):  # nothing received
                data, (address, _) = self._socket.recvfrom(16)
                if address in self._others and data:
                    self._others[address] = max(self._others[address], data[0])

    def _announce(self) -> None:
        while not self._over.wait(ANNOUNCE_S):
            for address in self._others:
                with contextlib.suppress(OSError):  # not up yet
                    self._socket.sendto(bytes((self._reached,)), (address, PORT + 1))


def _steady_count(profile: LinkProfile) -> int:
    """How many packets measure the loss: more if losses come together."""
    return STEADY_COUNT_BURSTS if profile.burst > 1 else STEADY_COUNT


def _apart(profile: LinkProfile) -> tuple[int, int]:
    """How many packets measure delay and jitter, and how far apart they are."""
    spacing_ns = max(APART_NS, APART_DEVIATIONS * profile.jitter_ns)
    fewest, most = APART_COUNTS
    return min(most, max(fewest, round(APART_S_MAX * NS_PER_S / spacing_ns))), spacing_ns


def _fast_count(profile: LinkProfile) -> int:
    """How many whole frames measure the rate."""
    if not profile.rate_bps:
        return 0
    long_s = max(FAST_S, FAST_JITTERS * profile.jitter_ns / NS_PER_S)
    size_bytes = min(FAST_BYTES_MAX, profile.rate_bps / 8 * long_s)
    return max(FAST_COUNT_MIN, round(size_bytes / (profile.frame_bytes + profile.frame_overhead_bytes)))


def _fast_spacing_ns(profile: LinkProfile) -> int:
    """The interval at which they are sent."""
    bits = 8 * (profile.frame_bytes + profile.frame_overhead_bytes)
    return round(bits * NS_PER_S / profile.rate_bps / FAST_OVER) if profile.rate_bps else 0


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Raises MeasureError if the system refuses something."""
    try:
        yield
    except OSError as error:
        raise MeasureError(f"its packets can't be sent: {error.strerror}") from error


@contextlib.contextmanager
def _prompt() -> Iterator[None]:
    """Makes packets leave on time, whatever else the machine does, if the system allows it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PROBE_PRIORITY))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
