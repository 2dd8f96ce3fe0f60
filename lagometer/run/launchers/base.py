# SPDX-License-Identifier: Apache-2.0
"""What the conductor asks of whatever starts workers: five methods, no knowledge of plans or phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class LaunchError(Exception):
    """The workers could not be started: says what was tried and what the machine answered."""


@dataclass(frozen=True)
class Command:
    """One worker to start; `environment` is added to the launcher's own."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Companion:
    """A process beside the workers. daemon: it must serve before a worker starts."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    daemon: bool = False


@dataclass(frozen=True)
class Prepared:
    """What lies in the trial's runtime directory before anything starts; files: content by name in it."""

    directory: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipes:
    """The conductor's ends of one worker's pipes: non-blocking descriptors, owned by the launcher."""

    stdin: int
    stdout: int
    stderr: int


class Launcher(Protocol):
    """Starts the workers of one trial and ends them; used for one trial only."""

    @property
    def process_id(self) -> int | None:
        """The process on this machine that the workers descend from; None before `start`, or elsewhere."""

    def start(self, commands: Sequence[Command], network: str) -> Sequence[Pipes]:
        """Starts all workers at once and returns their pipes in the same order.

        `network` is `private` (namespaces of their own) or `host`. Where there are daemons, they alone start,
        and the workers with `start_workers`. Raises `LaunchError`.
        """

    def start_workers(self) -> None:
        """Starts the workers, and the companions that are no daemons, once the daemons serve."""

    def descriptors(self) -> Sequence[int]:
        """Returns the descriptors that become readable when `notices` has something to say."""

    def notices(self) -> Sequence[Mapping[str, Any]]:
        """Returns what happened since the last call, without waiting.

        Each notice is one of `isolated`, `started`, `stopped`, `exited`, `failed`, `finished`,
        `companion-started`, `companion-exited` (key `event`), with the keys that docs/PROTOCOL.md names.
        After `finished` nothing of the trial runs.
        """

    def salvage(self, worker: int) -> bytes | memoryview | None:
        """Ends whatever still runs and returns the records that a worker left in memory; None if none.

        It ends all first, since a worker that still ran could change what was returned.
        """

    def release_companions(self) -> None:
        """Lets the companions (daemons, generators of load) end when no worker runs any more."""

    def companion_output(self, companion: int) -> bytes:
        """Returns the last that a companion wrote."""

    def close(self) -> None:
        """Ends whatever still runs, waits until it is gone, closes every descriptor. May be called twice."""
