# SPDX-License-Identifier: Apache-2.0
"""Copies every packet of a trial's network into a file while the trial runs, by dumpcap.

It is started before daemons and workers, so that their discovery is in the file. It sees packets where they
leave and enter the network's interfaces: the loopback, and of a host among several the link to the others.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from lagometer.agent.commands import Companion, LaunchError
from lagometer.agent.load import files_folder

PROGRAM = "dumpcap"
LOOPBACK = "lo"
FILE = "packets.pcapng"
READY = re.compile(r"^File: ", re.MULTILINE)  # said when every interface is open
TIMEOUT_NS = 20_000_000_000
BUFFER_MIB = 32  # in the kernel, for each interface
FILE_KIB_MAX = 1 << 20  # a larger file could fill the disk: the trial fails
PART_BYTES = 1 << 20
SIOCGIFADDR = 0x8915
INTERFACE_NAME_BYTES = 16
_COUNTS = re.compile(r"Packets received/dropped on interface '[^']*': (\d+)/(\d+)")


@dataclass(frozen=True)
class Captured:
    """What a capture tells of itself.

    address: of the host on its link, empty on a private loopback; received, dropped: packets that the kernel
    handed over, and those that it had no room for, None where it was ended before it could say so;
    wall_ns: CLOCK_REALTIME less CLOCK_MONOTONIC of this
    host, at the beginning and at the end: packets bear wall-clock times.
    """

    address: str
    received: int | None
    dropped: int | None
    wall_ns: tuple[int, int]

    @classmethod
    def from_frame(cls, frame: dict[str, Any]) -> Captured:
        """Reads what `asdict` gives. Raises KeyError, TypeError, ValueError for anything else."""
        first, last = frame["wall_ns"]
        received, dropped = (
            None if frame[name] is None else int(frame[name]) for name in ("received", "dropped")
        )
        return cls(str(frame["address"]), received, dropped, (int(first), int(last)))


class Capture:
    """The capture of one trial on one host. `address`: of its link to other hosts, empty without."""

    def __init__(self, address: str = "") -> None:
        self._address = address
        # By this name the next agent removes it if this one is killed.
        self._folder = files_folder() / f"lagometer-{os.getpid()}-{time.monotonic_ns()}"
        self._folder.mkdir(mode=0o700)
        self._wall_ns = wall_offset_ns()
        self._file: BinaryIO | None = None

    @property
    def command(self) -> Companion:
        """What the supervisor is to start. Raises `LaunchError` where no interface has the address."""
        interfaces = [LOOPBACK, *([interface_of(self._address)] if self._address else [])]
        words = [word for name in interfaces for word in ("-i", name, "-B", str(BUFFER_MIB))]
        size = ("-a", f"filesize:{FILE_KIB_MAX}")
        return Companion((PROGRAM, *words, *size, "-w", str(self._folder / FILE)), daemon=True)

    def reads(self, output: bytes) -> bool:
        """Returns whether packets are copied by now, by what dumpcap wrote. From then on the file has no
        name: it is gone with the last process that has it open, however that ends. Raises OSError."""
        if self._file is None and READY.search(output.decode(errors="replace")) is not None:
            self._file = (self._folder / FILE).open("rb")
            shutil.rmtree(self._folder, ignore_errors=True)
        return self._file is not None

    def done(self, output: bytes) -> Captured:
        """Returns what it tells at its end; `output`: what dumpcap wrote."""
        counts = [(int(one), int(other)) for one, other in _COUNTS.findall(output.decode(errors="replace"))]
        return Captured(
            self._address,
            received=sum(received for received, _ in counts) if counts else None,
            dropped=sum(dropped for _, dropped in counts) if counts else None,
            wall_ns=(self._wall_ns, wall_offset_ns()),
        )

    def parts(self) -> Iterator[bytes]:
        """Gives the file, piece by piece; nothing if no file was opened."""
        while self._file is not None and (part := self._file.read(PART_BYTES)):
            yield part

    def close(self) -> None:
        """Lets the file go. May be called twice."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._file is not None:
            self._file.close()


def wall_offset_ns() -> int:
    """Returns CLOCK_REALTIME less CLOCK_MONOTONIC, of the reading that took least of several."""
    readings = []
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


def interface_of(address: str) -> str:
    """Returns the name of the interface that has this IPv4 address. Raises `LaunchError`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, name in socket.if_nameindex():
            request = struct.pack(f"{INTERFACE_NAME_BYTES}s24x", name.encode())
            try:
                answer = fcntl.ioctl(asker, SIOCGIFADDR, request)
            except OSError:  # it has no address
                continue
            begin = INTERFACE_NAME_BYTES + 4  # of the address within its sockaddr_in
            if socket.inet_ntoa(answer[begin : begin + 4]) == address:
                return name
    raise LaunchError(f"no interface has the address {address}, so its packets can't be captured")
