# SPDX-License-Identifier: Apache-2.0
"""What an agent reports about its host, and about the ways to others, while no trial runs (docs/PROTOCOL.md).

Each command has one answer. One agent asks at a time, for at most a few seconds; the others answer on their
sockets alongside everything else.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lagometer.agent.observe.network import network_facts
from lagometer.agent.observe.synchronisation import synchronisation

GROUP = "239.255.76.71"  # in the organisation-local scope (RFC 2365)
ROUND_TRIPS = 20
ATTEMPTS = 3  # after these, a datagram without an answer counts as lost
FIRST_S = 3.0
ANSWER_S = 0.2
PROBES_S = 6.0  # time to open the libraries of all adapters
CASTS = 3
SMALL_BYTES = 64
LARGE_BYTES = 60_000  # is sent in fragments
HEADERS_BYTES = 28  # of IPv4 and UDP
MTUS = (9000, 1500, 1492, 1450, 1400, 1280, 576)
IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_PROBE = 10, 0, 3
Send = Callable[[Mapping[str, Any]], None]


class Looks:
    """The state of these checks. `send` writes one frame to the conductor."""

    def __init__(self, selector: selectors.BaseSelector, send: Send) -> None:
        self._selector, self._send = selector, send
        self._ways: socket.socket | None = None
        self._casts: socket.socket | None = None
        self._address = ""
        self._port = 0
        self._heard: list[str] = []

    def obey(self, message: Mapping[str, Any]) -> bool:
        """Carries out a command; returns False for any other message."""
        command = message.get("command")
        if command == "look":
            self._look(str(message["address"]), message["probes"])
        elif command == "try":
            self._send({"event": "tried", "results": _tried(message["commands"])})
        elif command == "listen":
            self._listen(str(message["address"]), int(message["port"]))
        elif command == "ask":
            self._ask((str(message["address"]), int(message["port"])), int(message["mtu"]))
        elif command == "cast":
            self._cast(str(message["word"]))
        elif command == "heard":
            self._hear_casts()
            self._send({"event": "heard", "words": list(dict.fromkeys(self._heard))})
        else:
            return False
        return True

    def _look(self, address: str, probes: Mapping[str, Sequence[str]]) -> None:
        facts = {**network_facts(address), "clock": synchronisation(), "probes": _tried(probes)}
        self._send({"event": "looked", "facts": facts})

    # --- ways

    def _listen(self, address: str, port: int) -> None:
        """Answers on the address, and listens to the group. Reports why if it can't."""
        self.close()
        try:
            self._ways = _socket((address, 0))
            self._casts = _socket(("", port))
            member = struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton(address))
            self._casts.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        except OSError as error:
            self.close()
            self._send({"event": "listening", "port": 0, "wrong": error.strerror})
            return
        self._address, self._port = address, port
        self._selector.register(self._ways, selectors.EVENT_READ, self._answer)
        self._selector.register(self._casts, selectors.EVENT_READ, self._hear_casts)
        self._send({"event": "listening", "port": self._ways.getsockname()[1], "wrong": None})

    def _answer(self) -> None:
        """Sends back each datagram as it came: whole, or in fragments."""
        assert self._ways is not None
        with contextlib.suppress(OSError):
            while True:
                data, sender = self._ways.recvfrom(1 << 16)
                _let_fragment(self._ways, data[:1] == b"L")
                self._ways.sendto(data, sender)

    def _hear_casts(self) -> None:
        if self._casts is None:
            return
        with contextlib.suppress(OSError):
            while True:
                self._heard.append(self._casts.recv(256).decode(errors="replace"))

    def _ask(self, peer: tuple[str, int], mtu: int) -> None:
        """Measures the round trip to another agent."""
        trips: list[int | None] = []
        with _socket((self._address, 0)) as asking:
            # The first datagram resolves the other's Ethernet address; a link that has just come up takes a
            # second.
            begin_s = time.monotonic()
            answered = False
            while not answered and time.monotonic() - begin_s < FIRST_S:
                answered = _round_trip(asking, peer, b"F", SMALL_BYTES) is not None
            path, large = None, None
            if answered:
                words = (b"S%d" % number for number in range(ROUND_TRIPS))
                trips = [_round_trip(asking, peer, word, SMALL_BYTES) for word in words]
                path = next((size for size in _sizes(mtu) if _passes(asking, peer, size)), None)
                tries = (_round_trip(asking, peer, b"L%d" % n, LARGE_BYTES) for n in range(ATTEMPTS))
                large = any(trip is not None for trip in tries)
        self._send({"event": "asked", "round_trips_ns": trips, "path_mtu": path, "large_arrives": large})

    def _cast(self, word: str) -> None:
        """Sends a word to the group. Reports why if this host does not let it out."""
        wrong = None
        try:
            with _socket((self._address, 0)) as casting:
                casting.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(self._address))
                for _ in range(CASTS):
                    casting.sendto(word.encode(), (GROUP, self._port))
        except OSError as error:
            wrong = error.strerror
        self._send({"event": "cast", "wrong": wrong})

    def close(self) -> None:
        """Closes the sockets. May be called twice."""
        for listener in (self._ways, self._casts):
            if listener is not None:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(listener)
                listener.close()
        self._ways = self._casts = None
        self._heard = []


def _socket(address: tuple[str, int]) -> socket.socket:
    new_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        new_socket.bind(address)
    except OSError:
        new_socket.close()
        raise
    return new_socket


def _let_fragment(through: socket.socket, may: bool) -> None:
    kind = IP_PMTUDISC_DONT if may else IP_PMTUDISC_PROBE
    through.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, kind)


def _sizes(mtu: int) -> list[int]:
    return sorted({mtu, *(size for size in MTUS if size < mtu)}, reverse=True)


def _passes(asking: socket.socket, peer: tuple[str, int], mtu: int) -> bool:
    """Whether a packet of that size makes the round trip in one piece."""
    return any(_round_trip(asking, peer, b"M%d" % mtu, mtu - HEADERS_BYTES) is not None for _ in range(2))


def _round_trip(asking: socket.socket, peer: tuple[str, int], word: bytes, size: int) -> int | None:
    """Returns the round-trip time of a datagram; None if it did not come back."""
    data = word.ljust(size, b" ")
    _let_fragment(asking, data[:1] == b"L")
    began_ns = time.monotonic_ns()
    deadline_s = time.monotonic() + ANSWER_S
    with contextlib.suppress(OSError):
        asking.sendto(data, peer)
        asking.setblocking(True)
        while (remaining_s := deadline_s - time.monotonic()) > 0:
            asking.settimeout(remaining_s)
            if asking.recv(1 << 16) == data:
                return time.monotonic_ns() - began_ns
    return None


def _tried(commands: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Runs programs side by side; returns, by name, how each ended, what it wrote last, and whether it took
    too long."""
    results: dict[str, Any] = {}
    running: dict[str, subprocess.Popen[bytes]] = {}
    for name, command in commands.items():
        try:
            running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            results[name] = {"code": None, "said": f"{command[0]}: {error.strerror}", "late": False}
    deadline_s = time.monotonic() + PROBES_S
    for name, process in running.items():
        late = False
        try:
            output = process.communicate(timeout=max(0.0, deadline_s - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            process.kill()
            late = True
            output = process.communicate()[0] + b"it took too long"
        text = output.decode(errors="replace").strip()
        said = text.splitlines()[-1] if text else ""
        results[name] = {"code": process.returncode, "said": said, "late": late}
    return results
