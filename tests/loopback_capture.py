# SPDX-License-Identifier: Apache-2.0
"""Every packet of another process's loopback, and which DDS domain its sender is in."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading

from own_network import CLONE_NEWNET

ALL_PROTOCOLS = 0x0003  # ETH_P_ALL
HEADERS = 14 + 20 + 8  # Ethernet, IPv4 without options, UDP
PORT_BASE, PORTS_OF_A_DOMAIN = 7400, 250  # RTPS 2.3, 9.6.1.1


class Capture:
    """A context manager that copies the packets, from outside of the process."""

    def __init__(self, pid: int) -> None:
        self.packets: list[bytes] = []
        self._opened = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(pid,))

    def __enter__(self) -> Capture:
        self._thread.start()
        assert self._opened.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _listen(self, pid: int) -> None:
        """A thread may enter a network of its own, and a socket stays in the one that it was made in."""
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        assert ctypes.CDLL(None).setns(network, CLONE_NEWNET) == 0
        os.close(network)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
            raw.settimeout(0.1)
            self._opened.set()
            while not self._over.is_set():
                with contextlib.suppress(TimeoutError):
                    self.packets.append(raw.recv(1 << 16))

    def holds(self, text: bytes, domain: int | None = None) -> bool:
        """Whether a packet contains this, of anybody or of participants in this domain."""
        packets = self.packets if domain is None else self.of_domain(domain)
        return any(text in packet for packet in packets)

    def of_domain(self, domain: int) -> list[bytes]:
        """The packets of everybody who announces itself in a domain, whatever ports they go to."""
        first = PORT_BASE + PORTS_OF_A_DOMAIN * domain
        own = range(first, first + PORTS_OF_A_DOMAIN)
        senders = {sender_of(packet) for packet in self.packets if port_of(packet) in own} - {b""}
        return [packet for packet in self.packets if sender_of(packet) in senders]


def port_of(packet: bytes) -> int:
    """The port that an RTPS message goes to; 0 for other packets."""
    return int.from_bytes(packet[36:38], "big") if sender_of(packet) else 0


def sender_of(packet: bytes) -> bytes:
    """The GUID prefix in the header of an RTPS message, which is never encrypted; empty for other packets."""
    is_udp = packet[12:15] == b"\x08\x00\x45" and packet[23] == socket.IPPROTO_UDP
    return packet[HEADERS + 8 : HEADERS + 20] if is_udp and packet[HEADERS:].startswith(b"RTPS") else b""
