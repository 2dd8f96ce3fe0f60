# SPDX-License-Identifier: Apache-2.0
"""Load next to the workers of a trial: how it is made, that it ran all the time, and how much it did.

The trial's supervisor starts the generators in its namespaces, and they end with it. The agent observes them
from outside just before the common start and after the last worker's `done`, never in between.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lagometer.agent.observe.sockets import find_workers

NS_PER_S = 1_000_000_000
START_S_MAX = 10.0
STARTED_NS = 1_000_000  # after this much CPU time a generator is at work
STARTED_BYTES = 1 << 20  # likewise, bytes sent over a connection
SPARE_S = 60  # a generator that nobody ends ends by itself, this long after the trial's longest time
IPERF_PORT = 5201
FILE_BYTES = "64M"  # of each I/O generator
_STRESSORS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("--cpu", "{level}", "--cpu-method", "int64"),
    "memory": ("--stream", "{level}", "--stream-l3-size", "{stream_kib}K"),
    "cache": ("--cache", "{level}", "--cache-no-affinity"),
    "io": ("--hdd", "{level}", "--hdd-bytes", FILE_BYTES, "--hdd-opts", "fsync"),
}
STREAM_KIB_MIN = 8 << 10
_METRICS = re.compile(rb"^stress-ng: metrc: \[\d+\] \S+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Wanted:
    """The load of a trial. name: the factor's value; kind, level: its parts; seconds: its longest time;
    pinned: words before each command; private: it has the trial's own network; folder: name of the folder
    that it writes files to. For a connection between hosts, this end receives on `listens` and sends to
    `sends_to`."""

    name: str
    kind: str
    level: int
    seconds: int
    pinned: tuple[str, ...] = ()
    private: bool = True
    folder: str = ""
    listens: str = ""
    sends_to: str = ""


@dataclass(frozen=True)
class Done:
    """What a trial's load did. name: the factor's value; cpu_ns: CPU time from the common start to the last
    `done`; achieved_per_s: bytes over the loopback (network) or into files (io), otherwise stress-ng's bogus
    operations; None if unknown."""

    name: str
    cpu_ns: int | None
    achieved_per_s: float | None


@dataclass(frozen=True)
class _Process:
    program: str
    run_ns: int
    read_bytes: int | None
    written_bytes: int | None


class Load:
    """The load of one trial. `commands` are the generators, in the order in which they start."""

    def __init__(self, wanted: Wanted) -> None:
        self.name = wanted.name
        self.commands = tuple((*wanted.pinned, *command) for command in _commands(wanted))
        self.kind, self._level = wanted.kind, wanted.level
        self._moves = "written_bytes" if wanted.kind == "io" or wanted.sends_to else "read_bytes"
        self._sessions: frozenset[int] = frozenset()
        self._before: Mapping[int, _Process] = {}
        self._began_ns = 0
        self._cpu_ns: int | None = None
        self._bytes_per_s: float | None = None

    @property
    def shares_network(self) -> bool:
        """Whether the counters of the trial's network also include the load's packets."""
        return self.kind == "network"

    def attach(self, supervisor: int | None, numbers: Sequence[int]) -> None:
        """Finds the generators by their process numbers in their own namespace."""
        pids = find_workers(supervisor, numbers) if supervisor is not None else []
        self._sessions = frozenset(pid for pid in pids if pid is not None)

    def is_running(self) -> bool:
        """Whether all generators are at work: every process has used the CPU, and bytes flow."""
        processes = _processes(self._sessions)
        busy = [process for process in processes.values() if process.run_ns >= STARTED_NS]
        if self.kind != "network":
            return sum(process.program.startswith("stress-ng-") for process in busy) >= self._level
        moved_bytes = [getattr(process, self._moves) for process in busy if process.program == "iperf3"]
        known = [count for count in moved_bytes if count is not None]
        return len(moved_bytes) == len(self.commands) and (not known or sum(known) >= STARTED_BYTES)

    def begin(self) -> None:
        """Notes the progress of the generators."""
        self._before = _processes(self._sessions)
        self._began_ns = time.monotonic_ns()

    def end(self) -> str | None:
        """Notes what they did since `begin`. Returns what is wrong if they did nothing."""
        processes = _processes(self._sessions)
        elapsed_ns = max(1, time.monotonic_ns() - self._began_ns)
        self._cpu_ns = sum(
            process.run_ns - (self._before[pid].run_ns if pid in self._before else 0)
            for pid, process in processes.items()
        )
        gone = [pid for pid in self._before if pid not in processes]
        if gone:
            return f"{len(gone)} of {len(self._before)} processes of '{self.name}' ended during the trial"
        if self._cpu_ns <= 0:
            return f"'{self.name}' used no CPU time during the trial"
        if self.kind in ("network", "io"):
            self._bytes_per_s = self._moved_bytes(processes) * NS_PER_S / elapsed_ns
        return None

    def done(self, outputs: Sequence[bytes]) -> Done:
        """Returns what the load did. `outputs`: what each generator wrote until its end."""
        if self.kind in ("network", "io"):
            return Done(self.name, self._cpu_ns, self._bytes_per_s)
        rates = [float(match[1]) for output in outputs for match in _METRICS.finditer(output)]
        return Done(self.name, self._cpu_ns, sum(rates) if rates else None)

    def _moved_bytes(self, processes: Mapping[int, _Process]) -> int:
        name, moved = self._moves, 0
        for pid, process in processes.items():
            before = getattr(self._before[pid], name) if pid in self._before else 0
            moved += (getattr(process, name) or 0) - (before or 0)
        return moved


@contextlib.contextmanager
def files_of(wanted: Wanted) -> Iterator[None]:
    """Makes the folder that the generators write files to, and removes it afterwards."""
    if wanted.kind == "network":
        yield
        return
    folder = files_folder() / wanted.folder
    folder.mkdir(mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_folder() -> Path:
    """The folder for I/O generators: /var/tmp, if it is writable. Unlike /tmp it is on a disk."""
    return Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())


def _commands(wanted: Wanted) -> Iterator[tuple[str, ...]]:
    seconds = wanted.seconds + SPARE_S
    if wanted.kind == "network":
        if wanted.listens:
            yield ("iperf3", "-s", "-1", "-B", wanted.listens, "-p", str(IPERF_PORT))
        elif wanted.sends_to:
            client = f"iperf3 -c {wanted.sends_to} -p {IPERF_PORT} -t {seconds} -b {wanted.level}G -i 0"
            yield ("sh", "-c", f"until {client}; do sleep 0.05; done")  # the other end may not listen yet
        else:
            yield from _iperf(wanted.level, IPERF_PORT if wanted.private else _free_port(), seconds)
    else:
        yield _stress(wanted.kind, wanted.level, seconds, files_folder() / wanted.folder)


def _stress(kind: str, level: int, seconds: int, folder: Path) -> tuple[str, ...]:
    stressor = [word.format(level=level, stream_kib=stream_kib()) for word in _STRESSORS[kind]]
    bounds = ("--temp-path", str(folder), "--timeout", f"{seconds}s", "--oomable", "--metrics-brief")
    return ("stress-ng", *stressor, *bounds)


def stream_kib(caches: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """The cache size to give `--stream`, in KiB.

    stress-ng makes three arrays, each four times as large. With a quarter of the largest cache the three
    together are three times its size, so copying misses the cache. More would make rounds long, and a round
    always runs to its end.
    """
    sizes = [re.fullmatch(r"(\d+)K", path.read_text().strip()) for path in caches.glob("index*/size")]
    return max([STREAM_KIB_MIN, *(int(size[1]) // 4 for size in sizes if size is not None)])


def _iperf(level: int, port: int, seconds: int) -> Iterator[tuple[str, ...]]:
    """One TCP connection over the loopback at `level` Gbit/s."""
    address = ("127.0.0.1", "-p", str(port))
    yield ("iperf3", "-s", "-1", "-B", *address)
    client = " ".join(["iperf3 -c", *address, f"-t {seconds} -b {level}G -i 0"])
    listening = f"[0-9A-F]*:{port:04X} [0-9A-F]*:[0-9A-F]* 0A "
    yield ("sh", "-c", f"until grep -q '{listening}' /proc/self/net/tcp; do sleep 0.01; done; exec {client}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _processes(sessions: frozenset[int]) -> dict[int, _Process]:
    """Returns the processes of these sessions by process number, without those that have ended."""
    processes: dict[int, _Process] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 (much faster)
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            head, _, rest = Path(f"/proc/{name}/stat").read_text().rpartition(")")
            fields = rest.split()
            if fields[0] not in "ZX" and int(fields[3]) in sessions:
                processes[int(name)] = _process(name, head.partition("(")[2], fields)
    return processes


def _process(pid: str, program: str, fields: Sequence[str]) -> _Process:
    try:
        run_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except FileNotFoundError:  # a kernel without it: in ticks
        run_ns = (int(fields[11]) + int(fields[12])) * (NS_PER_S // os.sysconf("SC_CLK_TCK"))
    counters: dict[str, int] = {}
    with contextlib.suppress(OSError):  # only its owner may read it
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            key, _, value = line.partition(": ")
            counters[key] = int(value)
    return _Process(program, run_ns, counters.get("rchar"), counters.get("wchar"))
