# SPDX-License-Identifier: Apache-2.0
"""Runs one command and everything it starts, each program with the probe, from start to end.

The command has the terminal and our process group, so Ctrl-C reaches it as usual. We end what it leaves
behind: orphaned processes become our children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from lagometer.errors import BadInput
from lagometer.installation import probe_path
from lagometer.run.program.leftovers import Leftovers
from lagometer.stats.program.realtime import ClockPair, RealtimeClock
from lagometer.store import probes
from lagometer.store.errors import RecordsError
from lagometer.store.probes import ProbeLog

MEMORY = Path("/dev/shm")
MEMORY_FREE_MIN = 1 << 30  # bytes; with less free, the files go to the folder for temporary files
FREE_MIN = 128 << 20  # bytes; with less free, the probes must stop
GRACE_S = {signal.SIGINT: 10.0, signal.SIGTERM: 5.0, signal.SIGKILL: 5.0}
CLOCK_READINGS = 500
PR_SET_CHILD_SUBREAPER = 36
_CHUNKS_AT = 16  # `chunks` in the header


@dataclass(frozen=True)
class Look:
    """What the probes of all programs have written so far. stopped: the space ran out, so the probes had to
    stop; unreadable: files that can't be read, and why."""

    logs: Sequence[ProbeLog]
    clock: RealtimeClock
    stopped: bool
    unreadable: Sequence[str]
    left: Sequence[str] = ()


class ProgramRun:
    """A command under the probe. room_bytes: size of each program's file; memory: patterns of the names that
    middlewares use in /dev/shm; output: the descriptor for the command's standard output. For one thread
    only."""

    def __init__(
        self, command: Sequence[str], room_bytes: int, memory: Sequence[str] = (), output: int = 1
    ) -> None:
        self._command = list(command)
        self._output = output
        self._room_bytes = room_bytes
        self._memory = memory
        self._leftovers: Leftovers | None = None
        self._left: list[str] = []
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._begin = read_clocks()
        self._stopped = False

    def __enter__(self) -> ProgramRun:
        """Starts the command. Raises BadInput if that fails, SetupMissing."""
        library = probe_path()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._folder = Path(tempfile.mkdtemp(prefix="lagometer-probe-", dir=_place()))
        self._leftovers = Leftovers(self._memory)
        self._begin = read_clocks()
        environment = _environment(os.environ, library, self._folder, self._room_bytes)
        try:
            self._process = subprocess.Popen(self._command, env=environment, stdout=self._output)
        except OSError as error:
            self._leftovers.remove()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise BadInput(f"can't be started: {error.strerror}", where=self._command[0]) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def wait(self, longest_s: float) -> int | None:
        """Waits for the command's end. Returns its exit code, negative for a signal, or None if it still
        runs."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(longest_s)
        return None

    def end(self) -> None:
        """Ends every process that is still running: first politely, like Ctrl-C, finally by force. Then
        removes what they left in /dev/shm."""
        for number, grace_s in GRACE_S.items():
            if self._wait_for_all(0.0):
                break
            for pid in self._programs():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if self._wait_for_all(grace_s):
                break
        if self._leftovers is not None:
            self._left += self._leftovers.remove()

    def look(self) -> Look:
        """Reads what has been written so far."""
        logs, unreadable = [], []
        for path in sorted(self._folder.iterdir(), key=_in_order):
            try:
                logs.append(probes.decode(probes.read_used(path)))
            except (OSError, RecordsError) as error:
                unreadable.append(f"{path.name}: {error}")
        return Look(logs, RealtimeClock(self._begin, read_clocks()), self._stopped, unreadable, self._left)

    def stop_if_full(self) -> None:
        """Stops the probes when the folder's file system is nearly full: if it could not provide a page, the
        program would die."""
        free = shutil.disk_usage(self._folder).free
        if self._stopped or free >= FREE_MIN:
            return
        self._stopped = True
        for path in self._folder.iterdir():
            with path.open("r+b") as file:
                header = np.frombuffer(file.read(probes.HEADER_DTYPE.itemsize), probes.HEADER_DTYPE)[0]
                file.seek(_CHUNKS_AT)
                file.write(min(header["chunks"], header["chunks_in_use"]).tobytes())

    def _wait_for_all(self, longest_s: float) -> bool:
        deadline_s = time.monotonic() + longest_s
        while True:
            if self._process is not None:
                self._process.poll()
            _reap(pid for pid in self._programs() if self._process is None or pid != self._process.pid)
            if not self._programs():
                return True
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(0.01)

    def _programs(self) -> list[int]:
        """The command and all that it started."""
        own = self._leftovers.pid if self._leftovers is not None else None
        return [pid for pid in descendants(os.getpid()) if pid != own]


def read_clocks() -> ClockPair:
    """Reads both clocks as close together as possible."""
    best: tuple[int, int, int] | None = None
    for _ in range(CLOCK_READINGS):
        before_ns, realtime_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if best is None or after_ns - before_ns < best[0]:
            best = (after_ns - before_ns, (before_ns + after_ns) // 2, realtime_ns)
    assert best is not None
    return ClockPair(best[1], best[2], best[0] // 2 + 1)


def descendants(pid: int) -> list[int]:
    """All descendants of a process."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    pids: list[int] = []
    pending = [pid]
    while pending:
        children = parents.get(pending.pop(), [])
        pids += children
        pending += children
    return pids


def _reap(pids: Iterator[int]) -> None:
    """Reaps those that became our children."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _place() -> Path:
    """The folder for the probes' files: in memory, if there is room."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage(MEMORY).free >= MEMORY_FREE_MIN and os.access(MEMORY, os.W_OK):
            return MEMORY
    return Path(tempfile.gettempdir())


def _environment(
    variables: Mapping[str, str], library: Path, folder: Path, room_bytes: int
) -> dict[str, str]:
    """Other preloaded libraries stay, after the probe."""
    loaded = [str(library), *variables.get("LD_PRELOAD", "").split()]
    return {
        **variables,
        "LD_PRELOAD": ":".join(loaded),
        "LAGOMETER_PROBE_FOLDER": str(folder),
        "LAGOMETER_PROBE_BYTES": str(room_bytes),
    }


def _in_order(path: Path) -> tuple[int, ...]:
    """The sort key: by process number, then by the number of the program in the process."""
    return tuple(int(part) for part in path.name.split(".") if part.isdigit())
