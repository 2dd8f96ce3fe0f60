# SPDX-License-Identifier: Apache-2.0
"""An agent on this machine: a child process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lagometer.run.hosts.base import AgentPipes
from lagometer.run.hosts.process import AgentProcess

AGENT = "lagometer.agent"


class LocalLauncher:
    """The launcher for this machine; see `lagometer.run.hosts.base.Launcher`.

    supervisor: the program that starts the agent's trials; before: words before the agent's command.
    """

    def __init__(self, supervisor: Path, before: Sequence[str] = ()) -> None:
        self._command = (*before, sys.executable, "-I", "-m", AGENT, str(supervisor))
        self._process: AgentProcess | None = None

    def start(self) -> AgentPipes:
        """Starts the agent."""
        self._process = AgentProcess(self._command)
        return self._process.pipes

    def ended(self) -> str | None:
        """Returns the exit code or signal."""
        return self._process.ended() if self._process is not None else "was not started"

    def there(self, path: str) -> str:
        """Paths stay the same."""
        return path

    def close(self) -> None:
        """Closes its input, which makes it end everything. Kills it if that takes too long."""
        process, self._process = self._process, None
        if process is not None:
            process.close()
