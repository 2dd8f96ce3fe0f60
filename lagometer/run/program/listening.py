# SPDX-License-Identifier: Apache-2.0
"""The process that subscribes to a topic of a running system (docs/PROTOCOL.md, "The listener")."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from lagometer.errors import Internal, SetupMissing
from lagometer.installation import listen_path
from lagometer.stats.program.heard import Heard

ENDED_S = 10.0


@dataclass(frozen=True)
class Found:
    """What the first writer of the topic offers."""

    type: str
    keyed: bool
    reliable: bool
    transient_local: bool


class Listener:
    """Listens from `__enter__` to `__exit__`. topic: its DDS name. For one thread only."""

    def __init__(self, domain: int, topic: str) -> None:
        self._command = [str(listen_path()), str(domain), topic]
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self.found: Found | None = None
        self.writers = 0
        self.partitions: list[str] = []  # in which writers write; "" is the default one
        self.heard: list[Heard] = []

    def __enter__(self) -> Listener:
        # In its own process group: Ctrl-C is for us, and we end the process through its standard input.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        )
        os.set_blocking(self.descriptor(), False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def descriptor(self) -> int:
        """Becomes readable when there is something to take."""
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.fileno()

    def take(self) -> bool:
        """Takes the new events; returns False once the process has ended. Raises SetupMissing if it
        failed."""
        try:
            block = os.read(self.descriptor(), 1 << 20)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._note(json.loads(line))
        return bool(block)

    def _note(self, event: dict[str, Any]) -> None:
        match event.pop("event"):
            case "found":
                self.partitions = event.pop("partitions")
                self.found = Found(**event)
            case "partitions":
                self.partitions = event["partitions"]
            case "matched":
                self.writers = event["writers"]
            case "message":
                self.heard.append(
                    Heard(
                        event["writer"],
                        event["sequence"],
                        event["source_ns"],
                        event["received_ns"],
                        event["bytes"],
                        bytes.fromhex(event["head"]),
                    )
                )
            case "failed":
                raise SetupMissing(event["reason"], where="lagometer-listen", hint="see `lagometer doctor`")
            case "lost":
                pass  # the sequence numbers show the same, writer by writer
            case other:
                raise Internal(f"lagometer-listen said '{other}'")
