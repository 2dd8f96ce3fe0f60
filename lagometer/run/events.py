# SPDX-License-Identifier: Apache-2.0
"""A log of what the conductor observes, for people and scripts that follow a trial from outside.

`LAGOMETER_EVENTS=FILE` names it. Each line is a JSON object (docs/PROTOCOL.md, "Following a trial").
"""

from __future__ import annotations

import json
import os
import time

VARIABLE = "LAGOMETER_EVENTS"


class EventLog:
    """Appends one line for each event, or does nothing when no file is named."""

    def __init__(self, path: str | None = None) -> None:
        path = path if path is not None else os.environ.get(VARIABLE)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644) if path else -1

    @property
    def enabled(self) -> bool:
        """Whether the log was requested."""
        return self._descriptor >= 0

    def write(self, event: str, **values: object) -> None:
        """Appends an event with the time on CLOCK_MONOTONIC."""
        if self.enabled:
            line = json.dumps({"event": event, "time_ns": time.monotonic_ns(), **values})
            os.write(self._descriptor, line.encode() + b"\n")

    def close(self) -> None:
        """Closes the file."""
        if self.enabled:
            os.close(self._descriptor)
            self._descriptor = -1
