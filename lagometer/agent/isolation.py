# SPDX-License-Identifier: Apache-2.0
"""Where the workers of a trial keep sockets and shared memory, and how all of it is removed.

In a private network the trial has its own /dev/shm, which disappears with its namespaces. On the host network
this module makes and removes the folder. If a killed agent left one, the next agent removes it when it
starts.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from lagometer.agent.observe.reading import read_whole

PRIVATE_RUNTIME_DIRECTORY = "/dev/shm/lagometer"  # on the trial's own tmpfs, so the name need not be unique
SHARED_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"lagometer-(\d+)-\d+")


def directory_of(network: str, owner: int, number: int) -> str:
    """Returns the runtime directory of a trial. owner: the process that makes it on the host's network;
    number: distinguishes the trials of one process."""
    return (
        PRIVATE_RUNTIME_DIRECTORY if network == "private" else f"{SHARED_MEMORY}/lagometer-{owner}-{number}"
    )


@contextlib.contextmanager
def made_directory(directory: str) -> Iterator[None]:
    """Makes a runtime directory on the host's network, and removes it afterwards."""
    Path(directory).mkdir(mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def runtime_directory(network: str, number: int) -> Iterator[str]:
    """Yields the runtime directory of one private machine that this process makes."""
    directory = directory_of(network, os.getpid(), number)
    with made_directory(directory) if network == "host" else contextlib.nullcontext():
        yield directory


def remove_stale_directories(root: Path = SHARED_MEMORY) -> list[Path]:
    """Removes the folders of processes that no longer exist, and returns them."""
    removed = []
    for directory in root.glob("lagometer-*-*") if root.is_dir() else ():
        match = _NAME.fullmatch(directory.name)
        if match and not _is_alive(int(match[1])):
            shutil.rmtree(directory, ignore_errors=True)
            removed.append(directory)
    return removed


def _is_alive(pid: int) -> bool:
    """Whether a process runs. A zombie does not: its parent may take long to reap it."""
    try:
        stat = read_whole(f"/proc/{pid}/stat")
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
