# SPDX-License-Identifier: Apache-2.0
"""Starts the workers of a trial on this machine, inside one `lagometer-supervisor`.

The supervisor is the first process of the trial's namespaces: when it ends, everything in them ends. It ends
when its standard input closes or this process dies, so nothing is left behind, however this process ends. On
the host's network, where shared memory has no namespace, the supervisor removes what the trial left there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lagometer.agent.commands import Command, Companion, LaunchError, Leaves, Pipes, Prepared
from lagometer.standard_streams import ensure_standard_descriptors

STDOUT_PIPE_BYTES = 1 << 20  # records come this way: fewer wake-ups than with the kernel's 64 KiB
DESCRIPTORS_PER_WORKER = 7
TERMINATION_S = 3.0
SUPERVISOR_TEXT_BYTES = 65536
COMPANION_TEXT_BYTES = 65536


class Supervised:
    """The processes of one trial on this host, under a supervisor. Used once, by one thread.

    lease_s: everything ends unless `renew` is called within this time, 0 for no lease. It covers a process
    that may be stopped without ending.
    """

    def __init__(
        self,
        supervisor: Path,
        leaves: Leaves | None = None,
        companions: Sequence[Companion] = (),
        prepared: Prepared | None = None,
        lease_s: float = 0.0,
    ) -> None:
        self._supervisor_path = supervisor
        self._prepared = prepared
        self._lease_s = lease_s
        self._companions = companions
        self._outputs: list[int] = []
        self._leaves = leaves or Leaves()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: list[Pipes] = []
        self._records: list[int] = []
        self._unread = b""
        self._text = b""
        self._ended = False

    @property
    def process_id(self) -> int | None:
        """Returns the supervisor's process number."""
        return self._process.pid if self._process is not None else None

    def start(self, commands: Sequence[Command], network: str) -> Sequence[Pipes]:
        """Starts the supervisor, which starts all workers at once."""
        ensure_standard_descriptors()
        allow_descriptors(DESCRIPTORS_PER_WORKER * len(commands) + 64)
        worker_ends: list[int] = []
        try:
            workers = [self._worker(command, worker_ends) for command in commands]
            companions = [self._companion(companion) for companion in self._companions]
            specification = {
                "network": network,
                "workers": workers,
                "companions": companions,
                "leaves": asdict(self._leaves),
                "lease_ms": round(self._lease_s * 1000),
                **({"prepared": asdict(self._prepared)} if self._prepared is not None else {}),
            }
            self._process = subprocess.Popen(
                [str(self._supervisor_path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[*worker_ends, *self._records, *self._outputs],
                start_new_session=True,  # a Ctrl-C on the terminal is ours to handle, not the workers'
            )
        except OSError as error:
            self.close()
            raise LaunchError(f"{self._supervisor_path} can't be started: {error.strerror}") from error
        finally:
            for descriptor in worker_ends:
                os.close(descriptor)
        self._send_specification(json.dumps(specification).encode() + b"\n")
        return tuple(self._pipes)

    def descriptors(self) -> Sequence[int]:
        """Returns the supervisor's output and error output."""
        assert (
            self._process is not None
            and self._process.stdout is not None
            and self._process.stderr is not None
        )
        return (self._process.stdout.fileno(), self._process.stderr.fileno())

    def notices(self) -> Sequence[Mapping[str, Any]]:
        """Returns the lines that the supervisor wrote since the last call."""
        output, errors = self.descriptors()
        self._text = (self._text + _read_available(errors)[0])[-SUPERVISOR_TEXT_BYTES:]
        data, ended = _read_available(output)
        *lines, self._unread = (self._unread + data).split(b"\n")
        notices = [_notice(line) for line in lines if line]
        if any(notice["event"] == "finished" for notice in notices):
            self._ended = True
        elif ended and not self._ended:
            self._ended = True
            error_text = self._text.decode(errors="replace").strip() or "it said nothing"
            notices.append({"event": "failed", "message": f"lagometer-supervisor ended early: {error_text}"})
            notices.append({"event": "finished"})
        return notices

    def salvage(self, worker: int) -> memoryview | None:
        """Ends the processes and maps the worker's memfd."""
        self._end_all()
        descriptor = self._records[worker]
        if os.fstat(descriptor).st_size == 0:
            return None
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))

    def records_descriptor(self, worker: int) -> int:
        """Returns the worker's memfd, which can be read while it runs."""
        return self._records[worker]

    def start_workers(self) -> None:
        """Sends the line that makes the supervisor start the workers, if it waits for one."""
        if any(companion.daemon for companion in self._companions):
            self._say(b"start\n")

    def renew(self) -> None:
        """Renews the lease, if there is one."""
        if self._lease_s:
            self._say(b"lease\n")

    def release_companions(self) -> None:
        """Sends the line that makes the supervisor end the companions once no worker runs."""
        if self._companions:
            self._say(b"end\n")

    def companion_output(self, companion: int) -> bytes:
        """Returns the last part of what a companion wrote on standard output and standard error."""
        if companion >= len(self._outputs):
            return b""
        descriptor = self._outputs[companion]
        end = os.fstat(descriptor).st_size
        return os.pread(descriptor, COMPANION_TEXT_BYTES, max(0, end - COMPANION_TEXT_BYTES))

    def close(self, patience_s: float = TERMINATION_S) -> None:
        """Closes the supervisor's standard input, which makes it kill everything, and waits for its end."""
        self._end_all(patience_s)
        for pipes in self._pipes:
            for descriptor in (pipes.stdin, pipes.stdout, pipes.stderr):
                os.close(descriptor)
        for descriptor in (*self._records, *self._outputs):
            os.close(descriptor)
        self._pipes, self._records, self._outputs = [], [], []

    def _end_all(self, patience_s: float = TERMINATION_S) -> None:
        process, self._process = self._process, None
        if process is not None:
            _end(process, patience_s)

    def _worker(self, command: Command, worker_ends: list[int]) -> dict[str, Any]:
        """Makes the pipes and the records memory of one worker; puts the child's ends into `worker_ends`."""
        stdin_child, stdin = os.pipe()
        stdout, stdout_child = os.pipe()
        stderr, stderr_child = os.pipe()
        records = os.memfd_create("lagometer-records", os.MFD_CLOEXEC)
        self._pipes.append(Pipes(stdin, stdout, stderr))
        self._records.append(records)
        worker_ends += [stdin_child, stdout_child, stderr_child]
        for descriptor in (stdin, stdout, stderr):
            os.set_blocking(descriptor, False)
        with contextlib.suppress(OSError):  # over the user's limit on pipe memory: slower, but correct
            fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, STDOUT_PIPE_BYTES)
        return {
            "argv": list(command.arguments),
            "environment": dict(command.environment),
            "stdin": stdin_child,
            "stdout": stdout_child,
            "stderr": stderr_child,
            "records": records,
            "group": command.group,
        }

    def _companion(self, companion: Companion) -> dict[str, Any]:
        """Makes the memory that receives a companion's output."""
        self._outputs.append(os.memfd_create("lagometer-companion", os.MFD_CLOEXEC))
        return {
            "argv": list(companion.arguments),
            "environment": dict(companion.environment),
            "daemon": companion.daemon,
            "output": self._outputs[-1],
            "group": companion.group,
        }

    def _say(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line)
                self._process.stdin.flush()

    def _send_specification(self, line: bytes) -> None:
        """Writes the first line. The supervisor reads it completely before it does anything that could
        block."""
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            self._process.wait()
            error_text = _read_available(self.descriptors()[1])[0].decode(errors="replace").strip()
            self.close()
            raise LaunchError(
                f"{self._supervisor_path} ended before it read its orders: {error_text}"
            ) from error


def allow_descriptors(count: int) -> None:
    """Raises the soft limit on open files if `count` more would not fit; raises `LaunchError` if it can't."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + len(list(Path("/proc/self/fd").iterdir()))
    if needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise LaunchError(
            f"{needed} open files are needed and the limit is {hard}: raise it (ulimit -n {needed})"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _notice(line: bytes) -> Mapping[str, Any]:
    """Parses one line of the supervisor. An invalid line becomes a `failed` that quotes it."""
    try:
        notice = json.loads(line)
    except ValueError:
        notice = None
    if isinstance(notice, dict) and isinstance(notice.get("event"), str):
        return notice
    return {"event": "failed", "message": f"lagometer-supervisor wrote an unknown line: {line[:200]!r}"}


def _read_available(descriptor: int) -> tuple[bytes, bool]:
    """Reads what is available without waiting. The flag says that the other side has closed."""
    os.set_blocking(descriptor, False)
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except BlockingIOError:
            return b"".join(pieces), False
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)


def _end(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Lets the supervisor end everything. If it can't (it was stopped, for example), killing it ends
    everything, too."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    if not ends_within(process, patience_s):
        process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()


def ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for the end of a process without the polling of `Popen.wait(timeout)`."""
    if process.poll() is not None:
        return True
    handle = os.pidfd_open(process.pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
