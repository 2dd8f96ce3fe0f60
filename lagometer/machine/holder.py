# SPDX-License-Identifier: Apache-2.0
"""A small process that holds /dev/cpu_dma_latency open. While it lives, a tuning is in force.

The kernel keeps idle states shallow only while the file is open, and forgets the request when the process
ends, however it ends. The start time distinguishes the process from a later one with the same number.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ENDED_S = 5.0
# Runs without this package: it must not depend on where it is started. It prints `held`, or why it can't hold
# the file, and ends unless it gets an answer: by then it is recorded.
_PROGRAM = """
import ctypes, os, signal, sys
path, with_parent, parent = sys.argv[1], sys.argv[2] == "1", int(sys.argv[3])
if with_parent:
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != parent:
        sys.exit(1)
try:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(file, (0).to_bytes(4, sys.byteorder))
    said = "held"
except OSError as error:
    said = error.strerror or str(error)
os.write(1, said.encode() + b"\\n")
if not os.read(0, 1):
    sys.exit(1)
for stream in (0, 1):
    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
while True:
    signal.pause()
"""


@dataclass(frozen=True)
class Holder:
    """The process; said: empty if it holds the file, otherwise why it can't."""

    pid: int
    started_ticks: int
    said: str

    def as_json(self) -> dict[str, Any]:
        """Returns it in the state file's form."""
        return asdict(self)

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Holder:
        """Reads the output of `as_json`."""
        return cls(int(value["pid"]), int(value["started_ticks"]), str(value["said"]))

    def is_alive(self) -> bool:
        """Whether exactly this process still runs."""
        return _started_ticks(self.pid) == self.started_ticks


def start_holder(device: Path, note: Callable[[Holder], None], *, with_parent: bool) -> None:
    """Starts the process, which continues once `note` has returned.

    with_parent: it ends with this process. Raises OSError, and whatever `note` raises.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, str(device), str(int(with_parent)), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    assert process.stdin is not None and process.stdout is not None
    with process.stdin, process.stdout:
        answer = process.stdout.readline().decode(errors="replace").strip()
        if not answer:
            raise OSError("the process that holds the tuning could not be started")
        note(Holder(process.pid, _started_ticks(process.pid) or 0, "" if answer == "held" else answer))
        process.stdin.write(b"\n")
    process.returncode = 0  # it continues without us: no warning about that


def end_holder(holder: Holder) -> None:
    """Ends the process if it still runs, and waits until it is gone."""
    try:
        handle = os.pidfd_open(holder.pid)
    except OSError:
        return
    try:
        if holder.is_alive():
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], ENDED_S)
    finally:
        os.close(handle)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(holder.pid, os.WNOHANG)


def _started_ticks(pid: int) -> int | None:
    """When a process was started, in ticks since boot; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if fields[0] not in "ZX" else None
