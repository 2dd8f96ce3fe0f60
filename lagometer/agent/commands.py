# SPDX-License-Identifier: Apache-2.0
"""What the agent starts on a host and what it removes afterwards. Knows nothing of plans or phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class LaunchError(Exception):
    """The workers could not be started. Says what was tried and what the machine answered. code: of the
    reason for which the trial fails."""

    code = "launch-failed"


@dataclass(frozen=True)
class Command:
    """One worker to start; `environment` is added to the launcher's own. group: the file by which it enters
    its control group, empty for none."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    group: str = ""


@dataclass(frozen=True)
class Companion:
    """A process that runs next to the workers. daemon: it must serve before a worker starts; group: as for a
    worker."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    daemon: bool = False
    group: str = ""


@dataclass(frozen=True)
class Prepared:
    """Contents of the trial's runtime directory before anything starts. files: content by name."""

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
    """What the trial leaves in the host's /dev/shm and message queues and must remove, however it ends.

    directory: made for the trial, or empty; shared_memory, message_queues: patterns of the names that the
    trial's adapters make.
    """

    directory: str = ""
    shared_memory: tuple[str, ...] = ()
    message_queues: tuple[str, ...] = ()
