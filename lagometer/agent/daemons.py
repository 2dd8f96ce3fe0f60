# SPDX-License-Identifier: Apache-2.0
"""The daemons of a trial, such as a broker: what is started, whether it serves, what it used, what it leaves
behind.

The trial's supervisor starts them in its namespaces, and they end with it. The agent observes them from
outside: until they serve, at the borders of the measure phase (one system call for each process), and once in
the drain.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import Any

from lagometer.agent.commands import Companion, Prepared
from lagometer.agent.observe.processes import ancestor_among, cpu_time_ns, parents, proportional_bytes
from lagometer.agent.observe.sockets import find_workers, has_bound_socket, listens_on

NS_PER_S = 1_000_000_000
LOCK_SUFFIX = ".lock"
STALE_S = 10.0  # a program makes a lock file before it locks it


@dataclass(frozen=True)
class Ready:
    """How to tell that a daemon serves, as its sidecar says. Exactly one of the first four is set.

    tcp_port: it listens on this port; unix_socket: it has a Unix-domain socket with this path; file: this
    file exists; output: a regular expression that its output matches. timeout_s: if the daemon takes longer,
    the trial fails.
    """

    tcp_port: int | None = None
    unix_socket: str | None = None
    file: str | None = None
    output: str | None = None
    timeout_s: float = 30.0


@dataclass(frozen=True)
class Wanted:
    """One daemon of a trial, with its texts filled in.

    for_workers: the variables that tell workers where it is; ready: how to tell that it serves; leaves: see
    the sidecar.
    """

    name: str
    companion: Companion
    ready: Ready
    for_workers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()

    def is_like(self, other: Wanted) -> bool:
        """Whether one of the two is enough: a program that several adapters share is in the folder of
        each."""
        mine, theirs = (
            replace(daemon.companion, arguments=tuple(Path(word).name for word in daemon.companion.arguments))
            for daemon in (self, other)
        )
        return mine == theirs and replace(self, companion=other.companion) == other


@dataclass(frozen=True)
class Done:
    """What a daemon did. ready_s: from its start until it served; cpu_ns: CPU time of all its processes in
    the measure phase; pss_bytes: their memory at the end of the phase; None if the trial did not get that
    far."""

    name: str
    command: tuple[str, ...]
    files: Mapping[str, str]
    ready_s: float | None
    cpu_ns: int | None
    pss_bytes: int | None
    processes: int
    output: str = ""

    def as_json(self) -> dict[str, Any]:
        """Returns it in the journal's form. The manifest lists its files among the settings."""
        return {
            "name": self.name,
            "command": list(self.command),
            "ready_s": self.ready_s,
            "cpu_ns": self.cpu_ns,
            "pss_bytes": self.pss_bytes,
            "processes": self.processes,
        }


class Daemons:
    """The daemons of one trial, in the order in which they start."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self.wanted = tuple(wanted)
        self._supervisor = 0
        self._pids: list[int] = []
        self._started_ns = 0
        self._ready_ns: list[int] = [0] * len(self.wanted)
        self._strangers: frozenset[int] = frozenset()
        self._family: dict[int, int] = {}  # process → place of its daemon
        self._begin: tuple[int, dict[int, int]] | None = None  # when, and CPU time by process
        self._end: tuple[int, dict[int, int]] | None = None
        self._newborn: dict[int, int] = {}  # CPU time of processes that appeared since
        self._pss: dict[int, int] | None = None

    # --- until they serve ---

    def attach(self, supervisor: int, numbers: Sequence[int]) -> None:
        """Finds the daemons by their process numbers in their own namespace."""
        pids = [pid for pid in find_workers(supervisor, numbers) if pid is not None]
        if len(pids) == len(self.wanted):
            self._supervisor, self._pids = supervisor, pids
            self._started_ns = self._started_ns or time.monotonic_ns()

    @property
    def attached(self) -> bool:
        """Whether all were found. Until then nothing is known about them."""
        return bool(self._pids)

    @property
    def processes(self) -> tuple[int, ...]:
        """Their processes at the last search."""
        return tuple(self._family) or tuple(self._pids)

    @property
    def names(self) -> Mapping[int, str]:
        """Maps each of these processes to the name of its daemon."""
        return {pid: self.wanted[place].name for pid, place in self._family.items()}

    def root_of(self, name: str) -> tuple[int, int] | None:
        """Returns the place of the daemon with this name, and the process that was started for it; None if
        there is no such daemon."""
        for place, daemon in enumerate(self.wanted):
            if daemon.name == name and self.attached:
                return place, self._pids[place]
        return None

    def waiting_for(self, output: Callable[[int], bytes]) -> int | None:
        """Returns the first daemon that does not serve yet; None if all do. `output`: what each one wrote."""
        self._family = self._find_family() if self.attached else {}
        for place, daemon in enumerate(self.wanted):
            if self._ready_ns[place]:
                continue
            if not self.attached or not self._serves(place, daemon.ready, output(place)):
                return place
            self._ready_ns[place] = time.monotonic_ns()
        return None

    def _serves(self, place: int, ready: Ready, output: bytes) -> bool:
        pid = self._pids[place]
        if ready.tcp_port is not None:
            return listens_on(pid, ready.tcp_port, self._of(place))
        if ready.unix_socket is not None:
            return has_bound_socket(pid, ready.unix_socket)
        if ready.file is not None:  # in its own mounts, which may be the trial's
            return Path(f"/proc/{pid}/root{ready.file}").exists()
        assert ready.output is not None, "one of the four is given"
        return re.search(ready.output, output.decode(errors="replace"), re.MULTILINE) is not None

    # --- during the measurement ---

    def watch(self, strangers: Collection[int]) -> None:
        """Notes which processes are theirs: all of the trial except `strangers` and their descendants."""
        self._strangers = frozenset(strangers)
        self._family = self._find_family()

    def begin(self) -> None:
        """Notes the CPU time of the daemons."""
        self._begin = (time.monotonic_ns(), self._cpu_times())

    def end(self) -> None:
        """Notes the CPU time again."""
        self._end = (time.monotonic_ns(), self._cpu_times())

    def look_at_memory(self) -> None:
        """Notes their memory, and the CPU time of processes that appeared since `watch`."""
        known = set(self._family)
        self._family.update(self._find_family())
        for pid in set(self._family) - known:
            if (used_ns := cpu_time_ns(pid)) is not None:
                self._newborn[pid] = used_ns
        sizes = {pid: proportional_bytes(pid) for pid in self._family}
        self._pss = {pid: size for pid, size in sizes.items() if size is not None}

    def done(self, measure_ns: int, output: Callable[[int], bytes]) -> tuple[Done, ...]:
        """Returns what each daemon did in a measure phase of this length."""
        return tuple(
            Done(
                name=daemon.name,
                command=daemon.companion.arguments,
                files=dict(daemon.files),
                ready_s=self._ready_s(place),
                cpu_ns=self._cpu_ns(place, measure_ns),
                pss_bytes=self._pss_bytes(place),
                processes=len(self._of(place)),
                output=output(place).decode(errors="replace"),
            )
            for place, daemon in enumerate(self.wanted)
        )

    def _ready_s(self, place: int) -> float | None:
        at_ns = self._ready_ns[place]
        return (at_ns - self._started_ns) / NS_PER_S if at_ns else None

    def _cpu_ns(self, place: int, measure_ns: int) -> int | None:
        """Both readings may be late on a busy machine, so the difference is scaled to the measure phase."""
        if self._begin is None or self._end is None:
            return None
        (began_ns, before), (ended_ns, after) = self._begin, self._end
        used_ns = sum(after[pid] - before[pid] for pid in self._of(place) if pid in before and pid in after)
        used_ns += sum(self._newborn.get(pid, 0) for pid in self._of(place))
        return round(used_ns * measure_ns / max(1, ended_ns - began_ns))

    def _pss_bytes(self, place: int) -> int | None:
        if self._pss is None:
            return None
        return sum(self._pss.get(pid, 0) for pid in self._of(place))

    def _cpu_times(self) -> dict[int, int]:
        times = {pid: cpu_time_ns(pid) for pid in self._family}
        return {pid: used_ns for pid, used_ns in times.items() if used_ns is not None}

    def _of(self, place: int) -> list[int]:
        return [pid for pid, owner in self._family.items() if owner == place]

    def _find_family(self) -> dict[int, int]:
        """Returns the daemons' processes. A process that lost its parent is now the supervisor's child. It
        can only belong to a daemon, so it is assigned to the first one."""
        parent_of = parents()
        roots = {*self._pids, *self._strangers, self._supervisor}
        supervisors = {self._supervisor, *(parent_of.get(pid, 0) for pid in self._pids)}
        family: dict[int, int] = {}
        for pid in parent_of:
            root = ancestor_among(pid, roots, parent_of)
            if root is None or root in self._strangers or pid in supervisors:
                continue
            family[pid] = self._pids.index(root) if root in self._pids else 0
        return family


@contextlib.contextmanager
def started_with(wanted: Sequence[Wanted]) -> Iterator[Daemons | None]:
    """Yields these daemons, None if there are none. Removes what they leave outside their folder.

    Also removes what daemons like them left when they were killed together with their lagometer.
    """
    if not wanted:
        yield None
        return
    patterns = [pattern for daemon in wanted for pattern in daemon.leaves]
    _remove({path for path in _matching(patterns) if _is_stale(path)})
    existing = _matching(patterns)
    try:
        yield Daemons(wanted)
    finally:
        _remove(_matching(patterns) - existing)


def prepared(
    daemons: Daemons | None, runtime: str, files: Mapping[str, str] | None = None, needed: bool = False
) -> Prepared | None:
    """Returns what must be in the runtime directory before anything starts: `files` and the files of the
    daemons. Returns None if there is nothing, unless the directory itself is `needed`."""
    contents = dict(files or {})
    for daemon in daemons.wanted if daemons is not None else ():
        contents |= daemon.files
    return Prepared(runtime, contents) if daemons is not None or contents or needed else None


def _matching(patterns: Sequence[str]) -> set[str]:
    """Returns this user's paths that match one of the patterns."""
    paths = set()
    for path in (path for pattern in patterns for path in glob(pattern)):  # noqa: PTH207 (absolute)
        with contextlib.suppress(OSError):
            if os.lstat(path).st_uid == os.geteuid():
                paths.add(path)
    return paths


def _is_stale(path: str) -> bool:
    """Returns whether a lock shows that nobody uses this path any more: its lock file (`x.lock` for `x`)
    exists, no process holds it, and it was not made just now."""
    lock = path if path.endswith(LOCK_SUFFIX) else path + LOCK_SUFFIX
    try:
        # Files are dated by the wall clock.
        if time.time() - os.lstat(lock).st_mtime < STALE_S:  # noqa: TID251
            return False
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(paths: set[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            if Path(path).is_dir() and not Path(path).is_symlink():
                shutil.rmtree(path)
            else:
                os.unlink(path)  # noqa: PTH108 (the path came as text)
