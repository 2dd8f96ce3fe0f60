# SPDX-License-Identifier: Apache-2.0
"""What the kernel reports about one process: memory, libraries, threads, faults, descriptors.

Reading and parsing are separate: texts that are read while messages may still arrive are kept as they are and
parsed later. proc(5) describes each text.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lagometer.agent.observe.reading import read_whole

PROC = Path("/proc")
KIB = 1024
NS_PER_S = 1_000_000_000
DELETED = " (deleted)"
# Fields of stat after the name, counted from the state.
MINOR_FAULTS, MAJOR_FAULTS, USER, SYSTEM = 7, 9, 11, 12
SOCKET_KINDS = ("tcp", "udp", "unix", "other")


@dataclass(frozen=True)
class Library:
    """One file whose code a process has mapped. mapped_bytes: all its accessible mappings; resident_bytes:
    their part in memory; proportional_bytes: that part divided by the number of its users (PSS)."""

    path: str
    mapped_bytes: int
    resident_bytes: int
    proportional_bytes: int


@dataclass(frozen=True)
class Memory:
    """A process's memory, without mappings that were left out. unique_bytes: memory of this process only
    (USS)."""

    resident_bytes: int
    proportional_bytes: int
    unique_bytes: int
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True)
class Thread:
    """One thread; counts since it began. user_ns, system_ns: with the resolution of the kernel's ticks;
    run_ns: exact, None if the kernel does not report it."""

    name: str
    user_ns: int
    system_ns: int
    run_ns: int | None
    voluntary: int
    involuntary: int
    minor_faults: int = 0
    major_faults: int = 0


@dataclass(frozen=True)
class Account:
    """What a process has used so far, including ended threads; `threads` lists the living ones."""

    user_ns: int
    system_ns: int
    minor_faults: int
    major_faults: int
    threads: Mapping[int, Thread] = field(default_factory=dict)


@dataclass(frozen=True)
class RawAccount:
    """The texts of an account, all read at one time (CLOCK_MONOTONIC)."""

    at_ns: int
    stat: bytes
    threads: Mapping[int, tuple[bytes, bytes, bytes]]  # stat, status, schedstat (empty: not available)


def read_account(pid: int, at_ns: int, proc: Path = PROC) -> RawAccount | None:
    """Reads the texts; None if the process is gone or may not be read."""
    root = f"{proc}/{pid}"
    threads: dict[int, tuple[bytes, bytes, bytes]] = {}
    try:
        stat = read_whole(f"{root}/stat")
        for name in os.listdir(f"{root}/task"):  # noqa: PTH208 (much faster)
            with contextlib.suppress(OSError):  # it ended meanwhile
                task = f"{root}/task/{name}"
                texts = read_whole(f"{task}/stat"), read_whole(f"{task}/status")
                threads[int(name)] = (*texts, _read_if_there(f"{task}/schedstat"))
    except OSError:
        return None
    return RawAccount(at_ns, stat, threads)


def account_of(raw: RawAccount) -> Account:
    """Parses the texts. Raises ValueError, IndexError if a text is malformed."""
    fields = _fields(raw.stat)
    return Account(
        user_ns=_ticks_ns(fields[USER]),
        system_ns=_ticks_ns(fields[SYSTEM]),
        minor_faults=int(fields[MINOR_FAULTS]),
        major_faults=int(fields[MAJOR_FAULTS]),
        threads={number: _thread(*texts) for number, texts in raw.threads.items()},
    )


def _thread(stat: bytes, status: bytes, schedstat: bytes) -> Thread:
    fields = _fields(stat)
    switches = _SWITCHES.search(status)
    if switches is None:
        raise ValueError("a status without context switches")
    return Thread(
        name=stat.partition(b"(")[2].rpartition(b")")[0].decode(errors="replace"),
        user_ns=_ticks_ns(fields[USER]),
        system_ns=_ticks_ns(fields[SYSTEM]),
        run_ns=int(schedstat.split()[0]) if schedstat else None,
        voluntary=int(switches[1]),
        involuntary=int(switches[2]),
        minor_faults=int(fields[MINOR_FAULTS]),
        major_faults=int(fields[MAJOR_FAULTS]),
    )


def between(before: Account, after: Account) -> Account:
    """Returns the increment; a new thread counts in full."""
    none = Thread("", 0, 0, 0, 0, 0)
    threads = {}
    for number, now in after.threads.items():
        then = before.threads.get(number, none)
        exact = now.run_ns is not None and then.run_ns is not None
        threads[number] = Thread(
            name=now.name,
            user_ns=now.user_ns - then.user_ns,
            system_ns=now.system_ns - then.system_ns,
            run_ns=(now.run_ns or 0) - (then.run_ns or 0) if exact else None,
            voluntary=now.voluntary - then.voluntary,
            involuntary=now.involuntary - then.involuntary,
            minor_faults=now.minor_faults - then.minor_faults,
            major_faults=now.major_faults - then.major_faults,
        )
    return Account(
        user_ns=after.user_ns - before.user_ns,
        system_ns=after.system_ns - before.system_ns,
        minor_faults=after.minor_faults - before.minor_faults,
        major_faults=after.major_faults - before.major_faults,
        threads=threads,
    )


def read_smaps(pid: int, proc: Path = PROC) -> bytes | None:
    """Reads the mappings of a process; None if it is gone or may not be read."""
    with contextlib.suppress(OSError):
        return read_whole(f"{proc}/{pid}/smaps") or None
    return None


# A mapping: access, name, then of some 25 lines those that count, in the kernel's order (fs/proc/task_mmu.c).
# One match for each takes half the time of a look at every line, and a trial waits for it.
_MAPPING = re.compile(
    rb"^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)\nSize: +(\d+) kB\n"
    rb"(?:[A-Z].*\n)*?Rss: +(\d+) kB\nPss: +(\d+) kB\n"
    rb"(?:[A-Z].*\n)*?Private_Clean: +(\d+) kB\nPrivate_Dirty: +(\d+) kB$",
    re.MULTILINE,
)
_SWITCHES = re.compile(
    rb"^voluntary_ctxt_switches:\s+(\d+)\nnonvoluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE
)


def memory_of(smaps: bytes, without: str | None = None) -> Memory:
    """Parses mappings; those whose name contains `without` are left out.

    A library is a file with an executable mapping. Raises ValueError if a mapping is not as it should be.
    """
    mappings = _MAPPING.findall(smaps)
    if len(mappings) != smaps.count(b"\nRss:"):
        raise ValueError("a mapping that is not as expected")
    totals = [0, 0, 0]  # resident, proportional, private
    files: dict[str, list[int]] = {}  # mapped, resident, proportional
    code: set[str] = set()
    for access, named, *sizes in mappings:
        name = named.decode(errors="replace").strip()
        if without is not None and without in name:
            continue
        mapped, resident, proportional, clean, dirty = (int(size) * KIB for size in sizes)
        for place, size in enumerate((resident, proportional, clean + dirty)):
            totals[place] += size
        if not name.startswith("/"):
            continue
        path = name.removesuffix(DELETED)
        sums = files.setdefault(path, [0, 0, 0])
        if access[:3] != b"---":
            for place, size in enumerate((mapped, resident, proportional)):
                sums[place] += size
        if b"x" in access:
            code.add(path)
    libraries = tuple(Library(path, *sums) for path, sums in sorted(files.items()) if path in code)
    return Memory(totals[0], totals[1], totals[2], libraries)


def read_descriptors(pid: int, proc: Path = PROC) -> tuple[str, ...] | None:
    """Returns what each descriptor of a process refers to; None if that may not be read."""
    targets = []
    try:
        with os.scandir(f"{proc}/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    targets.append(os.readlink(entry.path))  # noqa: PTH115 (a Path for each is slow)
    except OSError:
        return None
    return tuple(targets)


def read_socket_tables(pid: int, proc: Path = PROC) -> dict[str, bytes]:
    """Reads the socket lists of the network namespace that a process is in, as far as they exist."""
    tables = {}
    for table in _tables_in_use(pid, proc):
        with contextlib.suppress(OSError):
            tables[table] = read_whole(f"{proc}/{pid}/net/{table}")
    return tables


def socket_kinds(tables: Mapping[str, bytes]) -> dict[str, str]:
    """Returns `tcp`, `udp` or `unix` for each socket, by inode."""
    place = {"tcp": 9, "udp": 9, "unix": 6}
    kinds: dict[str, str] = {}
    for table, text in tables.items():
        kind = table.rstrip("6")
        for line in text.decode(errors="replace").splitlines()[1:]:
            fields = line.split()
            if len(fields) > place[kind]:
                kinds[fields[place[kind]]] = kind
    return kinds


def count_sockets(descriptors: tuple[str, ...], kinds: Mapping[str, str]) -> dict[str, int]:
    """Returns the number of sockets of each kind among the descriptors."""
    counts = dict.fromkeys(SOCKET_KINDS, 0)
    for target in descriptors:
        if target.startswith("socket:["):
            counts[kinds.get(target[8:-1], "other")] += 1
    return counts


def _tables_in_use(pid: int, proc: Path) -> Iterator[str]:
    """Yields the tables that have sockets: the kernel walks all of its hash tables for each table."""
    yield "unix"
    for file, suffix in (("sockstat", ""), ("sockstat6", "6")):
        for line in _read_if_there(f"{proc}/{pid}/net/{file}").decode(errors="replace").splitlines():
            name, _, counts = line.partition(": inuse ")
            if name in (f"TCP{suffix}", f"UDP{suffix}"):
                in_use = counts.split()
                # Listening sockets, and sockets that are bound but not connected, count as in use, too.
                if in_use and in_use[0] != "0":
                    yield name.lower()


def _fields(stat: bytes) -> list[bytes]:
    return stat.rpartition(b")")[2].split()


def _ticks_ns(text: bytes) -> int:
    return int(text) * _tick_ns()


@cache
def _tick_ns() -> int:
    return NS_PER_S // os.sysconf("SC_CLK_TCK")


def _read_if_there(path: str) -> bytes:
    with contextlib.suppress(OSError):
        return read_whole(path)
    return b""
