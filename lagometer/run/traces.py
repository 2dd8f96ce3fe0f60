# SPDX-License-Identifier: Apache-2.0
"""What the kernel shows of a worker from outside: the memory it shares, and the sockets it holds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONNECTED_TCP = "01"
CONNECTED_UNIX = "03"
RECORDS = "lagometer-records"  # the worker's own memory; its peers have others
Address = tuple[str, str]  # local and remote, as /proc writes them


@dataclass(frozen=True)
class Traces:
    """One worker. memory: shared mappings by (device, inode), with their names; connections: TCP's ends."""

    memory: Mapping[tuple[str, str], str]
    udp_sockets: int
    unix_connections: int
    connections: frozenset[Address]

    def as_json(self) -> dict[str, Any]:
        """Returns it in the form of the journal: names and numbers."""
        return {
            "memory": sorted(self.memory.values()),
            "udp_sockets": self.udp_sockets,
            "unix_connections": self.unix_connections,
            "tcp_connections": len(self.connections),
        }


def find_workers(supervisor: int, numbers: Sequence[int]) -> list[int | None]:
    """Returns the processes below the supervisor whose numbers, in their own namespace, are `numbers`.

    Children have higher numbers than their parents until the numbers start over, so the lower ones are looked
    at only if some are missing.
    """
    every = sorted(int(name.name) for name in Path("/proc").iterdir() if name.name.isdigit())
    found: dict[int, int] = {}
    family = {supervisor}
    for candidates in (
        [pid for pid in every if pid > supervisor],
        [pid for pid in every if pid < supervisor],
    ):
        for pid in candidates:
            parent, inner = _relations(pid)
            if parent in family:
                family.add(pid)
                if inner in numbers:
                    found.setdefault(inner, pid)
        if all(number in found for number in numbers):
            break
    return [found.get(number) for number in numbers]


def _relations(pid: int) -> tuple[int, int]:
    """Returns a process's parent, and its own number in its innermost namespace; zeros if it is gone."""
    parent = inner = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "PPid":
                parent = int(value)
            elif key == "NSpid":
                inner = int(value.split()[-1])
                break
    return parent, inner


def read_traces(pid: int) -> Traces | None:
    """Returns the traces of a living process; None if it is gone or may not be looked at."""
    try:
        sockets = _sockets(pid)
        connections, udp, unix = _network(pid, sockets)
        return Traces(_memory(pid), udp, unix, connections)
    except (OSError, ValueError, IndexError):
        return None


def _memory(pid: int) -> dict[tuple[str, str], str]:
    found = {}
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[1][3] == "s" and fields[4] != "0" and RECORDS not in fields[5]:
            found[fields[3], fields[4]] = fields[5]
    return found


def _sockets(pid: int) -> frozenset[str]:
    found = set()
    with os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                target = str(Path(entry.path).readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return frozenset(found)


def _network(pid: int, sockets: frozenset[str]) -> tuple[frozenset[Address], int, int]:
    connections: set[Address] = set()
    udp = unix = 0
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for fields in _rows(pid, table):
            if fields[9] not in sockets:
                continue
            if table.startswith("udp"):
                udp += 1
            elif fields[3] == CONNECTED_TCP:
                connections.add((fields[1], fields[2]))
    for fields in _rows(pid, "unix"):
        unix += fields[6] in sockets and fields[5] == CONNECTED_UNIX
    return frozenset(connections), udp, unix


def _rows(pid: int, table: str) -> list[list[str]]:
    """Returns the rows of a table; a protocol that the kernel lacks has none."""
    try:
        text = Path(f"/proc/{pid}/net/{table}").read_text(errors="replace")
    except FileNotFoundError:
        return []
    return [line.split() for line in text.splitlines()[1:]]
