# SPDX-License-Identifier: Apache-2.0
"""What the kernel's scheduler does on every CPU while a trial runs: `lagometer-scheduler` records it, outside
of the trial's namespaces.

It sleeps through the trial and writes into memory of its own; it ends with its standard input, so with this
process, however that ends. Where the kernel does not allow it, the reason is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from lagometer.agent.observe.reading import read_whole

FILE_BYTES = 256 << 20  # for eight million records; the memory is taken as it is written to
HEADER = struct.Struct("<QIIQ")  # magic, version, bytes of a record, records
HEADER_BYTES = 64
READY_S, END_S = 5.0, 10.0
LINE_BYTES = 4096


@dataclass(frozen=True)
class ThreadNumbers:
    """A worker's thread: its number here, and in the trial's own namespace."""

    worker: int
    here: int
    there: int
    name: str


@dataclass(frozen=True)
class Recorded:
    """What came of it. why: nothing could be recorded, for this reason."""

    why: str | None
    threads: tuple[ThreadNumbers, ...] = ()
    content: bytes = b""


class SchedulerWatch:
    """Records one trial; `close` always. program: the path of `lagometer-scheduler`."""

    def __init__(self, program: str) -> None:
        self._why: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: dict[tuple[int, int], ThreadNumbers] = {}
        self._file = os.memfd_create("lagometer-scheduler", os.MFD_CLOEXEC)
        try:
            self._process = subprocess.Popen(
                [program, str(self._file), str(FILE_BYTES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[self._file],
            )
        except OSError as error:
            self._why = f"{program} can't be started: {error.strerror}"

    def begin(self) -> None:
        """Records from now on."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        self._why = _refusal(process.stdout.fileno(), "ready")
        if self._why is None:
            with contextlib.suppress(BrokenPipeError):  # the answer says so
                process.stdin.write(b"begin\n")
                process.stdin.flush()
            self._why = _refusal(process.stdout.fileno(), "began")

    def look_at_threads(self, workers: Sequence[int | None]) -> None:
        """Notes which numbers the workers' threads have; those that came later are added."""
        for worker, pid in enumerate(workers):
            if pid is not None and self._why is None:
                for each in thread_numbers(worker, pid):
                    self._threads[worker, each.here] = each

    def end(self) -> Recorded:
        """Records no more, and returns what there is."""
        process = self._process
        if self._why is None and process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                code = process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._why = "lagometer-scheduler did not end"
            else:
                self._why = None if code == 0 else f"lagometer-scheduler ended with {code}"
        if self._why is not None:
            return Recorded(self._why)
        return Recorded(None, tuple(self._threads.values()), self._content())

    def _content(self) -> bytes:
        head = os.pread(self._file, HEADER_BYTES, 0)
        if len(head) < HEADER_BYTES:
            return head
        _, _, record_bytes, records = HEADER.unpack_from(head)
        left, parts = record_bytes * records, [head]
        at = len(head)
        while left > 0 and (part := os.pread(self._file, left, at)):
            parts.append(part)
            at, left = at + len(part), left - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Ends it, if it still runs. May be called twice."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _refusal(output: int, event: str) -> str | None:
    """Waits for a line that it writes; why it can't record, None if it is the event that it should be."""
    text = b""
    while b"\n" not in text:
        if not select.select([output], [], [], READY_S)[0]:
            return "lagometer-scheduler said nothing"
        part = os.read(output, LINE_BYTES)
        if not part:
            return "lagometer-scheduler ended before it said anything"
        text += part
    try:
        said = json.loads(text.partition(b"\n")[0])
        return None if said["event"] == event else str(said["reason"])
    except (ValueError, KeyError, TypeError):
        return f"lagometer-scheduler wrote {text[:80]!r}"


def thread_numbers(worker: int, pid: int) -> list[ThreadNumbers]:
    """The numbers of a process's threads; those that may not be looked at are left out."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (much faster)
            with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
                text = read_whole(f"/proc/{pid}/task/{name}/status").decode(errors="replace")
                said = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
                numbers = said["NSpid"].split()
                found.append(ThreadNumbers(worker, int(name), int(numbers[-1]), said["Name"]))
    return found


def unavailable(program: str) -> str | None:
    """Says why the scheduler can't be recorded here; None if it can."""
    watch = SchedulerWatch(program)
    try:
        watch.begin()
        return watch.end().why
    finally:
        watch.close()
