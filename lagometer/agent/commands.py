# SPDX-License-Identifier: Apache-2.0
"""What is started on a host, and what of it is to be removed: no knowledge of plans or phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """Our ends of one worker's pipes: non-blocking descriptors, owned by `Supervised`."""

    stdin: int
    stdout: int
    stderr: int


@dataclass(frozen=True)
class Leaves:
    """What of the host's /dev/shm and of its message queues is the trial's to remove, however it ends.

    directory: made for the trial, or empty; shared_memory, message_queues: patterns of the names that its
    adapters make.
    """

    directory: str = ""
    shared_memory: tuple[str, ...] = ()
    message_queues: tuple[str, ...] = ()
