# SPDX-License-Identifier: Apache-2.0
"""How an agent is reached: whatever carries one pair of pipes to a process on a host. Knows nothing of
trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class HostError(Exception):
    """The agent can't be reached: says what was tried and what the other side answered."""


@dataclass(frozen=True)
class AgentPipes:
    """Our ends of an agent's pipes: descriptors, owned by the launcher."""

    stdin: int
    stdout: int
    stderr: int


class Launcher(Protocol):
    """Starts one agent on one host; used again when that has ended. ARCHITECTURE.md says how others would."""

    def start(self) -> AgentPipes:
        """Starts the agent and returns without waiting for what it says. Raises `HostError`."""

    def ended(self) -> str | None:
        """Returns how what carries the agent has ended, in words; None while it goes on. Does not wait."""

    def there(self, path: str) -> str:
        """Returns where a file of this installation lies on the host, once an agent was started. Any other
        path is the same there."""

    def close(self) -> None:
        """Ends what carries the agent, waits until it is gone, closes the pipes. May be called twice."""
