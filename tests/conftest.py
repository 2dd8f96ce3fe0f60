# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all Python tests: where the programs are. What a test needs of the machine is in needs.py."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest
import seats
import turns

# Our commands write as a user's do: buffered, so that what can't be written in the end is noticed.
os.environ.pop("PYTHONUNBUFFERED", None)
# A shell lets a job in the background ignore SIGINT, and our commands would go on doing so.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _program_folder(folder: Path) -> Path:
    worker = folder / "engine" / "lagometer-worker"
    assert worker.exists(), f"{worker} is missing: run make setup (or tools/setup --test)"
    return folder


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder of the build that measures."""
    return _program_folder(needs.build_folder())


@pytest.fixture(scope="session")
def guard_build() -> Path:
    """The folder of the build that aborts when measuring allocates, locks or writes."""
    return _program_folder(needs.guard_build_folder())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first, so that in the end no test is left alone; of crossed tests every other one, and of
    those that are alike for many adapters or cases a part, by turns."""
    asked_for = any("::" in word for word in config.args)  # a test by its name
    if "LAGOMETER_LONG" not in os.environ and not asked_for:
        left_out = {item for item in items if _is_black(item)}
        white = [item for item in items if item not in left_out]
        left_out |= turns.left_to_others(white, turns.turn_of_commit())
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    items[:] = seats.long_first(items, seats.durations())


def _is_black(item: pytest.Item) -> bool:
    """In a chessboard's pattern over the parameters of a test that is marked as `crossed`."""
    callspec = getattr(item, "callspec", None)
    return item.get_closest_marker("crossed") is not None and sum(callspec.indices.values()) % 2 == 1


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What computes takes a seat, with its fixtures."""
    with seats.seat_for(item):
        yield


@pytest.fixture(autouse=True)
def _turn() -> Iterator[None]:
    """A test that took its turn at something that is one for the machine gives it back."""
    yield
    needs.end_turn()
