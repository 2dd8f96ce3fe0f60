# SPDX-License-Identifier: Apache-2.0
"""Tests that take turns: of what is alike for many adapters or cases, each commit runs a part.

Marked `by_turn` are tests whose parameters differ little in what they can find. They count through their
parameters, so that each turn has about as many as another.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

TURNS = 7  # after so many commits all that is marked `by_turn` was run


def left_to_others(items: Sequence[pytest.Item], turn: int) -> set[pytest.Item]:
    """The tests that one of the next commits runs."""
    seen: Counter[str] = Counter()
    left = set()
    for item in items:
        if item.get_closest_marker("by_turn") is None or not hasattr(item, "callspec"):
            continue
        test = item.nodeid.partition("[")[0]
        # Each test begins elsewhere, so that those of few parameters don't all have the same turn.
        if (seen[test] + zlib.crc32(test.encode()) + turn) % TURNS != 0:
            left.add(item)
        seen[test] += 1
    return left


def turn_of_commit() -> int:
    """How many commits there are, or LAGOMETER_TURN; 0 outside of a repository."""
    if "LAGOMETER_TURN" in os.environ:
        return int(os.environ["LAGOMETER_TURN"])
    command = ("git", "-C", str(Path(__file__).parent), "rev-list", "--count", "HEAD")
    counted = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(counted.stdout) if counted.returncode == 0 else 0
