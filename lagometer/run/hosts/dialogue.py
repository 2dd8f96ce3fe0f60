# SPDX-License-Identifier: Apache-2.0
"""The messages to another host before its agent runs: one line after another, each side in turn."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Mapping
from typing import Any

from lagometer.agent.arrival import MARK
from lagometer.run.hosts.base import AgentPipes, HostError

READ_BYTES = 1 << 16
TEXT_BYTES = 16 << 10
LAST_WORDS_S = 1.0  # to read the error output after the output has closed


class DialogueError(HostError):
    """The other side is gone, or silent. said: its error output; noise: its output that was not an answer."""

    def __init__(self, message: str, said: str, noise: str) -> None:
        super().__init__(message)
        self.said, self.noise = said, noise


class Dialogue:
    """Exchanges messages in turns with a process on the other host. The pipes belong to the launcher."""

    def __init__(self, pipes: AgentPipes) -> None:
        self._pipes = pipes
        self._unread = bytearray()
        self._said = b""
        self._noise = b""
        self._hears = True  # until its error output is closed
        for descriptor in (pipes.stdin, pipes.stdout, pipes.stderr):
            os.set_blocking(descriptor, False)

    def hear(self, seconds: float) -> Mapping[str, Any]:
        """Returns the next answer. Skips anything that a shell prints before it. Raises `DialogueError`."""
        deadline_s = time.monotonic() + seconds
        while True:
            while (end := self._unread.find(b"\n")) >= 0:
                line = bytes(self._unread[:end])
                del self._unread[: end + 1]
                if line.startswith(MARK):
                    with contextlib.suppress(ValueError):
                        message = json.loads(line[len(MARK) :])
                        if isinstance(message, dict):
                            return message
                self._noise = (self._noise + line + b"\n")[-TEXT_BYTES:]
            self._await((self._pipes.stdout,), (), deadline_s, f"no answer within {seconds:.0f} s")
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._pipes.stdout, READ_BYTES)
                if not data:
                    raise self._gone("the connection ended")
                self._unread += data

    def say(self, message: Mapping[str, Any], seconds: float) -> None:
        """Writes a message. Raises `DialogueError`."""
        self.write(json.dumps(message).encode() + b"\n", seconds)

    def write(self, data: bytes, seconds: float) -> None:
        """Writes bytes; each part may take this long. Raises `DialogueError`. If the other side is gone, the
        next `hear` reports its last words."""
        unsent = memoryview(data)
        while unsent:
            deadline_s = time.monotonic() + seconds
            self._await((), (self._pipes.stdin,), deadline_s, f"nothing was taken for {seconds:.0f} s")
            try:
                unsent = unsent[os.write(self._pipes.stdin, unsent[:READ_BYTES]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return

    def _await(
        self, readers: tuple[int, ...], writers: tuple[int, ...], deadline_s: float, late: str
    ) -> None:
        """Waits until one of these descriptors is ready, and reads error output meanwhile."""
        while True:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                raise self._error(late)
            watched = (*readers, *((self._pipes.stderr,) if self._hears else ()))
            readable, writable, _ = select.select(watched, writers, [], remaining_s)
            if self._pipes.stderr in readable:
                self._hear_errors()
            if writable or set(readable) & set(readers):
                return

    def _hear_errors(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._pipes.stderr, READ_BYTES)
            self._hears = bool(data)
            self._said = (self._said + data)[-TEXT_BYTES:]

    def _gone(self, problem: str) -> DialogueError:
        deadline_s = time.monotonic() + LAST_WORDS_S
        while self._hears and (remaining_s := deadline_s - time.monotonic()) > 0:
            if select.select([self._pipes.stderr], [], [], remaining_s)[0]:
                self._hear_errors()
        return self._error(problem)

    def _error(self, problem: str) -> DialogueError:
        error_output, noise = (text.decode(errors="replace").strip() for text in (self._said, self._noise))
        return DialogueError(problem, error_output, noise)
