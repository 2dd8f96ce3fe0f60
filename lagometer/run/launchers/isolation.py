# SPDX-License-Identifier: Apache-2.0
"""Where the workers of a trial keep sockets and shared memory, and that nothing of it stays behind.

In a private network the trial has a /dev/shm of its own, which goes with its namespaces. On the host network
the folder is made and removed here; one that a killed process left is removed when the next campaign begins.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

PRIVATE_RUNTIME_DIRECTORY = "/dev/shm/lagometer"  # on the trial's own tmpfs, so the name need not be unique
SHARED_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"lagometer-(\d+)-\d+")


@contextlib.contextmanager
def runtime_directory(network: str, number: int) -> Iterator[str]:
    """Gives the runtime directory of one trial; `number` tells the trials of one process apart."""
    if network == "private":
        yield PRIVATE_RUNTIME_DIRECTORY
        return
    directory = SHARED_MEMORY / f"lagometer-{os.getpid()}-{number}"
    directory.mkdir(mode=0o700)
    try:
        yield str(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_stale_directories(root: Path = SHARED_MEMORY) -> list[Path]:
    """Removes the folders of processes that are gone; returns them."""
    removed = []
    for directory in root.glob("lagometer-*-*") if root.is_dir() else ():
        match = _NAME.fullmatch(directory.name)
        if match and not Path(f"/proc/{match[1]}").exists():
            shutil.rmtree(directory, ignore_errors=True)
            removed.append(directory)
    return removed
