# SPDX-License-Identifier: Apache-2.0
"""What the kernel shows about a worker from outside: the memory it shares, and the sockets it holds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from lagometer.agent.observe.reading import read_whole

CONNECTED_TCP = "01"
CONNECTED_UNIX = "03"
LISTENING_TCP = "0A"
DATAGRAM_UNIX = "0002"  # a type: it sends to any name and receives from anybody, without a connection
STREAM_UNIX = ("0001", "0005")  # types whose server must listen as well as have a name: stream, seqpacket
LISTENING_UNIX = 0x10000  # a flag
NAMELESS = "unix-nameless"  # a socket for datagrams that nobody can send to
DOORS = (
    "knock-"  # sockets by which late subscribers of our own adapters announce themselves, and no messages go
)
RECORDS = "lagometer-records"  # the worker's own memory; its peers have theirs
IPV4_IN_IPV6 = "0000000000000000FFFF0000"  # prefix of an IPv4 address in the IPv6 tables: ::ffff:0:0/96
Address = tuple[str, str]  # local and remote, as /proc writes them
Network = Mapping[str, tuple[str, Address]]  # by inode of a socket: udp, tcp, unix or NAMELESS; its addresses


@dataclass(frozen=True)
class Traces:
    """One worker. memory: shared mappings by (device, inode), with their names; unix_sockets: the number of
    Unix-domain sockets that can send: connected ones, and those for datagrams; unix_reachable: the number of
    those that can receive: connected, or for datagrams and with a name; connections: the addresses of TCP
    connections."""

    memory: Mapping[tuple[str, str], str]
    udp_sockets: int
    unix_sockets: int
    unix_reachable: int
    connections: frozenset[Address]

    def as_json(self) -> dict[str, Any]:
        """Returns it in the journal's form: names and numbers."""
        return {
            "memory": sorted(self.memory.values()),
            "udp_sockets": self.udp_sockets,
            "unix_sockets": self.unix_sockets,
            "unix_reachable": self.unix_reachable,
            "tcp_connections": len(self.connections),
        }

    def as_frame(self) -> dict[str, Any]:
        """Returns it in the form that `from_frame` reads."""
        return {
            "memory": [[*place, name] for place, name in self.memory.items()],
            "udp_sockets": self.udp_sockets,
            "unix_sockets": self.unix_sockets,
            "unix_reachable": self.unix_reachable,
            "connections": sorted(map(list, self.connections)),
        }

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any]) -> Traces:
        """Reads the output of `as_frame`. Raises KeyError, TypeError, ValueError for anything else."""
        return cls(
            memory={(device, inode): name for device, inode, name in frame["memory"]},
            udp_sockets=int(frame["udp_sockets"]),
            unix_sockets=int(frame["unix_sockets"]),
            unix_reachable=int(frame["unix_reachable"]),
            connections=frozenset((local, remote) for local, remote in frame["connections"]),
        )


def find_workers(supervisor: int, numbers: Sequence[int]) -> list[int | None]:
    """Returns the supervisor's descendants whose process numbers, in their own namespace, are `numbers`.

    Children have higher numbers than their parents until the numbers start over, so lower ones are searched
    only if some processes are missing.
    """
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (much faster)
    by_number: dict[int, int] = {}
    family = {supervisor}
    for candidates in (
        [pid for pid in pids if pid > supervisor],
        [pid for pid in pids if pid < supervisor],
    ):
        for pid in candidates:
            if _parent(pid) in family:
                family.add(pid)
                by_number.setdefault(_own_number(pid), pid)
        if all(number in by_number for number in numbers):
            break
    return [by_number.get(number) for number in numbers]


def _parent(pid: int) -> int:
    """Returns the process number of a process's parent; 0 if the process is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(read_whole(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    return 0


def _own_number(pid: int) -> int:
    """Returns a process's number in its innermost namespace; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = read_whole(f"/proc/{pid}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0]
        return int(line.split()[-1])
    return 0


def read_network(pid: int) -> Network:
    """Returns the sockets of the namespace that a process is in; empty if they may not be read.

    The kernel walks all of its hash tables for each list, so only lists with a socket in use are read.
    """
    sockets: dict[str, tuple[str, Address]] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for table in _tables_in_use(pid):
            kind = table.rstrip("6")
            for fields in _rows(pid, table):
                if kind == "udp" or fields[3] == CONNECTED_TCP:
                    local, remote = (end.removeprefix(IPV4_IN_IPV6) for end in fields[1:3])
                    sockets[fields[9]] = (kind, (local, remote))
        for fields in _rows(pid, "unix"):
            connected, name = fields[5] == CONNECTED_UNIX, "".join(fields[7:])
            if connected or (fields[4] == DATAGRAM_UNIX and not PurePath(name).name.startswith(DOORS)):
                sockets[fields[6]] = ("unix" if connected or name else NAMELESS, ("", ""))
    return sockets


def read_traces(pid: int, network: Network) -> Traces | None:
    """Returns the traces of a living process; None if it is gone or may not be read."""
    try:
        sockets = [network[inode] for inode in _sockets(pid) if inode in network]
        memory = _memory(pid)
    except (OSError, ValueError, IndexError):
        return None
    kinds = [kind for kind, _ in sockets]
    connections = frozenset(ends for kind, ends in sockets if kind == "tcp")
    reachable = kinds.count("unix")
    return Traces(memory, kinds.count("udp"), reachable + kinds.count(NAMELESS), reachable, connections)


def listens_on(pid: int, port: int, holders: Sequence[int]) -> bool:
    """Whether one of the processes `holders` listens on a TCP port of the namespace that `pid` is in."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for fields in _rows(pid, table):
                if fields[3] == LISTENING_TCP and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(fields[9])
    for holder in holders if inodes else ():
        with contextlib.suppress(OSError):
            if not inodes.isdisjoint(_sockets(holder)):
                return True
    return False


def has_bound_socket(pid: int, path: str) -> bool:
    """Whether a Unix-domain socket with this path takes messages in the namespace that `pid` is in."""
    with contextlib.suppress(OSError):
        for fields in _rows(pid, "unix"):
            if fields[7:] == [path]:
                return fields[4] not in STREAM_UNIX or bool(int(fields[3], 16) & LISTENING_UNIX)
    return False


def _memory(pid: int) -> dict[tuple[str, str], str]:
    mappings = {}
    for line in read_whole(f"/proc/{pid}/maps").decode(errors="replace").splitlines():
        # Permissions follow the two addresses; most mappings are private and not worth splitting.
        if line[line.find(" ") + 4] != "s":
            continue
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[4] != "0" and RECORDS not in fields[5]:
            mappings[fields[3], fields[4]] = fields[5]
    return mappings


def _sockets(pid: int) -> frozenset[str]:
    inodes = set()
    with os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                target = os.readlink(entry.path)  # noqa: PTH115 (a Path for each is slow)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    return frozenset(inodes)


def _tables_in_use(pid: int) -> Iterator[str]:
    """Yields those of tcp, tcp6, udp, udp6 in which the namespace has sockets. The IPv6 lists may contain
    IPv4 sockets, too."""
    for file, suffix in (("sockstat", ""), ("sockstat6", "6")):
        try:
            text = read_whole(f"/proc/{pid}/net/{file}").decode()
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for line in text.splitlines():
            name, _, counts = line.partition(": inuse ")
            if name in (f"TCP{suffix}", f"UDP{suffix}") and counts.split()[0] != "0":
                yield name.lower()


def _rows(pid: int, table: str) -> list[list[str]]:
    text = read_whole(f"/proc/{pid}/net/{table}").decode(errors="replace")
    return [line.split() for line in text.splitlines()[1:]]
