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
from typing import IO, Any

ENDED_S = 5.0
LATENCY_US = 0  # the longest way back from an idle state that the kernel may choose
# No Python: it would take 25 ms to start, which each tuned trial waits for. It ends unless it gets an answer:
# by then it is recorded. Then it waits for the end of a pipe: of ours, which ends however we end, or of one
# whose other end it has itself.
_PROGRAM = 'read answer && read end <"$1"'
# Our ends of the pipes, by the holder's process number. A holder that ends with us needs its own to be open.
_LIFELINES: dict[int, IO[bytes]] = {}


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
    held, said = _held(device)
    endless = () if with_parent else os.pipe()
    try:
        process = subprocess.Popen(
            # Its first argument is for lists of processes.
            ["/bin/sh", "-c", _PROGRAM, str(device), f"/proc/self/fd/{endless[0] if endless else 0}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(*held, *endless),
            start_new_session=True,
            cwd="/",
            bufsize=0,
        )
    finally:
        for descriptor in (*held, *endless):
            os.close(descriptor)
    assert process.stdin is not None
    try:
        note(Holder(process.pid, _started_ticks(process.pid) or 0, said))
        process.stdin.write(b"\n")
    except BaseException:
        process.stdin.close()
        process.wait()
        raise
    process.returncode = 0  # it continues without us: no warning about that
    if with_parent:
        _LIFELINES[process.pid] = process.stdin
    else:
        process.stdin.close()


def _held(device: Path) -> tuple[tuple[int, ...], str]:
    """Returns the open file with the request in it, and empty; or no file, and why it can't be held."""
    descriptor = -1
    try:
        descriptor = os.open(device, os.O_WRONLY | os.O_CLOEXEC)
        os.write(descriptor, LATENCY_US.to_bytes(4, sys.byteorder))
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        return (), error.strerror or str(error)
    return (descriptor,), ""


def end_holder(holder: Holder) -> None:
    """Ends the process if it still runs, and waits until it is gone."""
    if (lifeline := _LIFELINES.pop(holder.pid, None)) is not None:
        lifeline.close()
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
