# SPDX-License-Identifier: Apache-2.0
"""What the kernel's scheduler does on every CPU while a trial runs. `lagometer-scheduler` records it, outside
the trial's namespaces.

The program sleeps through the trial and writes into its own memory. It ends with its standard input, and
therefore with this process, however that ends. If the kernel does not allow recording, the reason is kept.
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

FILE_BYTES = 256 << 20  # for eight million records; memory is only used as it is written
HEADER = struct.Struct("<QIIQ")  # magic, version, bytes of a record, records
HEADER_BYTES = 64
EVENTS = ("ready", "began")  # its events
READY_S, END_S = 1.0, 2.0  # together less than a conductor waits for an agent
LINE_BYTES = 4096


@dataclass(frozen=True)
class ThreadNumbers:
    """A worker's thread: its number here, and its number in the trial's namespace."""

    worker: int
    here: int
    there: int
    name: str


@dataclass(frozen=True)
class Recorded:
    """The result. why: the reason if nothing could be recorded."""

    why: str | None
    threads: tuple[ThreadNumbers, ...] = ()
    content: bytes = b""


class SchedulerWatch:
    """Records one trial. Always call `close`. program: the path of `lagometer-scheduler`."""

    def __init__(self, program: str) -> None:
        self._why: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: dict[tuple[int, int], ThreadNumbers] = {}
        self._text = b""  # of the program's output, as far as it was read
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
        """Starts recording. `end` tells whether it worked."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"begin\n")
                process.stdin.flush()

    def system_calls(self) -> int | None:
        """The number of the tracepoint at the end of system calls, if the program is ready; None: not
        known."""
        self._read_lines(1, 0.0)
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
            return int(json.loads(self._text.splitlines()[0])["system_calls"]) or None
        return None

    def _read_lines(self, count: int, wait_s: float) -> bool:
        """Waits until the program has written that many lines, or ended; returns whether it did."""
        process = self._process
        if process is None or process.stdout is None:
            return True
        output = process.stdout.fileno()
        while self._text.count(b"\n") < count:
            if not select.select([output], [], [], wait_s)[0]:
                return False
            part = os.read(output, LINE_BYTES)
            if not part:
                break
            self._text += part
        return True

    def look_at_threads(self, workers: Sequence[int | None]) -> None:
        """Notes the numbers of the workers' threads, and adds threads that have appeared since."""
        for worker, pid in enumerate(workers):
            if pid is not None and self._why is None:
                for thread in thread_numbers(worker, pid):
                    self._threads[worker, thread.here] = thread

    def end(self) -> Recorded:
        """Stops recording, and returns the result."""
        process = self._process
        if process is not None and process.stdin is not None and process.stdout is not None:
            silent = not self._read_lines(len(EVENTS), READY_S)
            self._why = "lagometer-scheduler said nothing" if silent else _refusal(self._text)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                code = process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._why = self._why or "lagometer-scheduler did not end"
            else:
                failure = None if code == 0 else f"lagometer-scheduler ended with {code}"
                self._why = self._why or failure
        if self._why is not None:
            return Recorded(self._why)
        return Recorded(None, tuple(self._threads.values()), self._content())

    def _content(self) -> bytes:
        head = os.pread(self._file, HEADER_BYTES, 0)
        if len(head) < HEADER_BYTES:
            return head
        _, _, record_bytes, records = HEADER.unpack_from(head)
        remaining, parts = record_bytes * records, [head]
        at = len(head)
        while remaining > 0 and (part := os.pread(self._file, remaining, at)):
            parts.append(part)
            at, remaining = at + len(part), remaining - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Ends the program if it still runs. May be called twice."""
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


def _refusal(text: bytes) -> str | None:
    """Why the program could not record or did not begin, from what it wrote; None if it did."""
    lines = text.splitlines()
    try:
        messages = [json.loads(line) for line in lines]
        refused = next((str(message["reason"]) for message in messages if message["event"] == "failed"), None)
        events = [message["event"] for message in messages]
    except (ValueError, KeyError, TypeError):
        return f"lagometer-scheduler wrote {text[:80]!r}"
    if refused is None and events != list(EVENTS):
        return "lagometer-scheduler ended before it recorded anything"
    return refused


def thread_numbers(worker: int, pid: int) -> list[ThreadNumbers]:
    """The numbers of a process's threads, without those that may not be read."""
    threads = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (much faster)
            with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
                text = read_whole(f"/proc/{pid}/task/{name}/status").decode(errors="replace")
                status_fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
                numbers = status_fields["NSpid"].split()
                threads.append(ThreadNumbers(worker, int(name), int(numbers[-1]), status_fields["Name"]))
    return threads


def unavailable(program: str) -> str | None:
    """Returns why the scheduler can't be recorded here; None if it can."""
    watch = SchedulerWatch(program)
    try:
        watch.begin()
        return watch.end().why
    finally:
        watch.close()
