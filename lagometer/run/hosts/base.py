# SPDX-License-Identifier: Apache-2.0
"""How the conductor reaches an agent: anything that connects one pair of pipes to a process on a host. Knows
nothing of trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class HostError(Exception):
    """The agent can't be reached. Says what was tried and what the other side answered."""


@dataclass(frozen=True)
class AgentPipes:
    """Our ends of an agent's pipes: descriptors that the launcher owns."""

    stdin: int
    stdout: int
    stderr: int


class Launcher(Protocol):
    """Starts one agent on one host, and again after that one has ended. ARCHITECTURE.md describes how to add
    other launchers."""

    def start(self) -> AgentPipes:
        """Starts the agent and returns without waiting for its output. Raises `HostError`."""

    def ended(self) -> str | None:
        """Returns how the agent's carrier process has ended, in words; None while it runs. Does not wait."""

    def there(self, path: str) -> str:
        """Returns the path of a file of this installation on the host, once an agent was started. Any other
        path is the same there."""

    def close(self) -> None:
        """Ends the agent's carrier process, waits until it is gone, closes the pipes. May be called twice."""
