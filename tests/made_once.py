# SPDX-License-Identifier: Apache-2.0
"""What takes long to make and is only read: made by the first process of a run of tests that needs it."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Made = TypeVar("Made")


def place_of_run(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of tests share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def made_once(place: Path, make: Callable[[], Made]) -> Made:
    """What `make` returned in the first process that came here; the others wait for it, and get a copy.

    place: the file that keeps it. If `make` fails, so does the caller, and the next one tries again.
    """
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            made = pickle.dumps(make())
            place.write_bytes(made)
    copy: Made = pickle.loads(place.read_bytes())
    return copy
