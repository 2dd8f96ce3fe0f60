# SPDX-License-Identifier: Apache-2.0
"""When a test runs: files that take long begin first, and what computes takes one of as many seats as CPUs.

More tests run side by side than there are CPUs, since most wait for trials. Those that compute would starve
the trials: they are all of tests/unit and tests/web, and whatever is marked `cpu_heavy`. With a seat they
also step back behind the trials (as root, who alone may undo that).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = ROOT / "tests" / "durations.json"
HEAVY_FOLDERS = (ROOT / "tests" / "unit", ROOT / "tests" / "web")
NICE = 10


def seat_count() -> int:
    """How many tests may compute at once."""
    return max(1, len(os.sched_getaffinity(0)))


def is_heavy(item: pytest.Item) -> bool:
    """Whether a test computes more than it waits."""
    marked = item.get_closest_marker("cpu_heavy") is not None
    return marked or any(item.path.is_relative_to(folder) for folder in HEAVY_FOLDERS)


def durations(path: Path = DURATIONS) -> Mapping[str, int]:
    """Seconds by the name of a test file, as `tools/ci_report.py --record` wrote them."""
    found: Mapping[str, int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def long_first(items: Sequence[pytest.Item], seconds: Mapping[str, int]) -> list[pytest.Item]:
    """The tests, those of the longest files first, else in their order; files not known last."""
    return sorted(items, key=lambda item: -seconds.get(item.path.name, 0))


def take(folder: Path, count: int, first: int) -> int:
    """An open lock on one of the seats: a free one, else number `first` once it is free."""
    descriptors = []
    for number in range(count):
        path = folder / f"cpu-seat-{(first + number) % count}.lock"
        descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC))
    chosen = next((each for each in descriptors if _is_taken(each)), None)
    if chosen is None:
        chosen = descriptors[0]
        fcntl.flock(chosen, fcntl.LOCK_EX)
    for each in descriptors:
        if each != chosen:
            os.close(each)
    return chosen


@contextlib.contextmanager
def seat_for(item: pytest.Item) -> Iterator[None]:
    """A seat while a test runs that computes beside others."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or not is_heavy(item):
        yield
        return
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    seat = take(folder, seat_count(), int(worker.removeprefix("gw")) % seat_count())
    steps_back = os.geteuid() == 0
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if steps_back:
        os.setpriority(os.PRIO_PROCESS, 0, max(before, NICE))
    try:
        yield
    finally:
        if steps_back:
            os.setpriority(os.PRIO_PROCESS, 0, before)
        os.close(seat)


def _is_taken(descriptor: int) -> bool:
    """Takes a seat if it is free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
