# SPDX-License-Identifier: Apache-2.0
"""The two pipes that control a worker: plan and commands come in; JSON lines and a block go out."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lagometer.worker_python.plan_bounds import AT_MAX_NS, LINE_BYTES_MAX

NS_PER_S = 1_000_000_000
STDIN, STDOUT, STDERR = 0, 1, 2
FIRST_DESCRIPTOR = 16  # does not collide with those that a client library opens and expects


class ControlError(Exception):
    """Standard input contained something that the protocol does not know."""


@dataclass(frozen=True)
class Command:
    """name: `go` (with at_ns), `stop`, or `end-of-input`."""

    name: str
    at_ns: int = 0


class Control:
    """Takes over standard output, before anybody else prints on it."""

    def __init__(self) -> None:
        try:
            self._output = fcntl.fcntl(STDOUT, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
        except OSError as error:
            raise ControlError(f"standard output can't be copied: {error.strerror}") from error
        try:
            os.dup2(STDERR, STDOUT)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), STDOUT)
        self._pending = bytearray()
        self._searched = 0  # up to here the pending bytes contain no end of a line
        self._ended = self._end_reported = False
        self.end_ignored = False

    def read_plan(self) -> bytes:
        """Returns the first line. Raises ControlError."""
        while True:
            if (line := self._next_line()) is not None:
                return line
            if self._ended:
                if not self._pending:
                    raise ControlError(
                        "standard input: expected a plan (one JSON object on one line), got nothing"
                    )
                line, self._pending = bytes(self._pending), bytearray()
                return line
            self._fill(None)

    def wait(self, until_ns: int) -> Command | None:
        """Returns the next command; None if none came in time. Raises ControlError."""
        while True:
            if (line := self._next_line()) is not None:
                return _command(line)
            if self._ended and not self.end_ignored and not self._end_reported:
                self._end_reported = True
                return Command("end-of-input")
            remaining_ns = until_ns - time.monotonic_ns()
            if remaining_ns <= 0:
                return None
            if self._ended:
                time.sleep(remaining_ns / NS_PER_S)
            else:
                self._fill(remaining_ns)

    def send(self, message: Mapping[str, Any]) -> None:
        """Writes one JSON line."""
        self._write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def send_block(self, block: bytes) -> None:
        """Writes the line `records` and then the block."""
        self.send({"event": "records", "bytes": len(block), "crc32": f"{zlib.crc32(block):08x}"})
        self._write(block)

    def output_is_terminal(self) -> bool:
        """Whether a person is watching."""
        return os.isatty(self._output)

    def _next_line(self) -> bytes | None:
        end = self._pending.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._pending)
            return None
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        self._searched = 0
        return line

    def _fill(self, timeout_ns: int | None) -> None:
        try:
            # Not poll, which only supports whole milliseconds.
            if not select.select([STDIN], [], [], None if timeout_ns is None else timeout_ns / NS_PER_S)[0]:
                return
            octets = os.read(STDIN, 65536)
        except BlockingIOError:
            return
        except OSError:
            octets = b""
        self._pending += octets
        self._ended = not octets
        if len(self._pending) > LINE_BYTES_MAX:
            raise ControlError("standard input: a line of more than 64 MiB")

    def _write(self, octets: bytes) -> None:
        rest = memoryview(octets)
        while rest:
            try:
                rest = rest[os.write(self._output, rest) :]
            except OSError:
                self._alone()

    def _alone(self) -> NoReturn:
        with contextlib.suppress(OSError):
            os.close(self._output)
        os._exit(1)  # the conductor is gone: nobody is left to notify


def _command(line: bytes) -> Command:
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if isinstance(message, dict):
        if message.get("command") == "stop":
            return Command("stop")
        at_ns = message.get("at_ns")
        if message.get("command") == "go" and type(at_ns) is int and 1 <= at_ns <= AT_MAX_NS:
            return Command("go", at_ns)
    raise ControlError(f"standard input: not a command: {line[:200].decode(errors='replace')}")
