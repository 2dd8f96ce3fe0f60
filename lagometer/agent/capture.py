# SPDX-License-Identifier: Apache-2.0
"""Copies every packet of a trial's network into a file while the trial runs, with dumpcap.

It starts before daemons and workers, so their discovery is in the file. It sees packets where they leave and
enter the network's interfaces: the loopback, and on one of several hosts the link to the others.
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
READY = re.compile(r"^File: ", re.MULTILINE)  # dumpcap prints this when every interface is open
TIMEOUT_NS = 20_000_000_000
BUFFER_MIB = 32  # in the kernel, for each interface
FILE_KIB_MAX = 1 << 20  # a larger file could fill the disk: the trial fails
PART_BYTES = 1 << 20
SIOCGIFADDR = 0x8915
INTERFACE_NAME_BYTES = 16
_COUNTS = re.compile(r"Packets received/dropped on interface '[^']*': (\d+)/(\d+)")


@dataclass(frozen=True)
class Captured:
    """What a capture reports.

    address: the host's address on its link, empty on a private loopback; received, dropped: packets that the
    kernel handed over, and packets for which it had no room; None if the capture ended before it could report
    them; wall_ns: CLOCK_REALTIME minus CLOCK_MONOTONIC of this host, at the beginning and at the end, because
    packets carry wall-clock times.
    """

    address: str
    received: int | None
    dropped: int | None
    wall_ns: tuple[int, int]

    @classmethod
    def from_frame(cls, frame: dict[str, Any]) -> Captured:
        """Reads the output of `asdict`. Raises KeyError, TypeError, ValueError for anything else."""
        first, last = frame["wall_ns"]
        received, dropped = (
            None if frame[name] is None else int(frame[name]) for name in ("received", "dropped")
        )
        return cls(str(frame["address"]), received, dropped, (int(first), int(last)))


class Capture:
    """The capture of one trial on one host. `address`: the host's address on its link to other hosts, empty
    without one."""

    def __init__(self, address: str = "") -> None:
        self._address = address
        # The next agent finds the file by this name and removes it if this agent is killed.
        self._folder = files_folder() / f"lagometer-{os.getpid()}-{time.monotonic_ns()}"
        self._folder.mkdir(mode=0o700)
        self._wall_ns = wall_offset_ns()
        self._file: BinaryIO | None = None

    @property
    def command(self) -> Companion:
        """Returns what the supervisor starts. Raises `LaunchError` if no interface has the address."""
        interfaces = [LOOPBACK, *([interface_of(self._address)] if self._address else [])]
        words = [word for name in interfaces for word in ("-i", name, "-B", str(BUFFER_MIB))]
        size = ("-a", f"filesize:{FILE_KIB_MAX}")
        return Companion((PROGRAM, *words, *size, "-w", str(self._folder / FILE)), daemon=True)

    def reads(self, output: bytes) -> bool:
        """Returns whether dumpcap copies packets by now, judging by its output. From then on the file has
        no name: it disappears with the last process that has it open, however that process ends. Raises
        OSError."""
        if self._file is None and READY.search(output.decode(errors="replace")) is not None:
            self._file = (self._folder / FILE).open("rb")
            shutil.rmtree(self._folder, ignore_errors=True)
        return self._file is not None

    def done(self, output: bytes) -> Captured:
        """Returns what the capture reports at its end. `output`: what dumpcap wrote."""
        counts = [(int(one), int(other)) for one, other in _COUNTS.findall(output.decode(errors="replace"))]
        return Captured(
            self._address,
            received=sum(received for received, _ in counts) if counts else None,
            dropped=sum(dropped for _, dropped in counts) if counts else None,
            wall_ns=(self._wall_ns, wall_offset_ns()),
        )

    def parts(self) -> Iterator[bytes]:
        """Yields the file in pieces; nothing if no file was opened."""
        while self._file is not None and (part := self._file.read(PART_BYTES)):
            yield part

    def close(self) -> None:
        """Closes the file. May be called twice."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._file is not None:
            self._file.close()


def wall_offset_ns() -> int:
    """Returns CLOCK_REALTIME minus CLOCK_MONOTONIC, from the fastest of several readings."""
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
