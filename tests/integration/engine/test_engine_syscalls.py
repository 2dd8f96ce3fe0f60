# SPDX-License-Identifier: Apache-2.0
"""A busy-polling cell makes no system calls for a message: strace counts the same for ten times as many."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from needs import adapter_library, need
from plan_parts import MILLISECOND_NS, pingpong, plan
from worker_support import run_private

from lagometer.store.records import KIND_RECEIVED

pytestmark = pytest.mark.alone

DIFFERENCE_MAX = 200
ATTEMPTS = 3


def calls(build: Path, folder: Path, messages: int, measure_s: int) -> dict[str, int]:
    """System calls of a whole worker, by name, that sends so many messages over shared memory and gets as
    many replies in this time."""
    summary = folder / f"strace-{messages}"
    nodes = pingpong("poll", messages)
    library = adapter_library("shm", build)
    text = plan(library, "/dev/shm/lagometer", nodes, measure_ns=1_000 * measure_s * MILLISECOND_NS)
    (said,) = run_private(build, [text], wrap=("strace", "-f", "-c", "-o", str(summary)))
    assert said.code == 0, said.errors[-2000:]
    assert len(said.lane(KIND_RECEIVED, 0, 0)) == messages, "the machine was too slow for the measure phase"
    rows = re.findall(
        r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", summary.read_text(), re.MULTILINE
    )
    found = {name: int(count) for count, name in rows}
    return {name: count for name, count in found.items() if name != "total"}


def test_the_count_does_not_grow_with_the_messages(build: Path, tmp_path: Path) -> None:
    """Until the workers have found each other they ask again, so a busy machine adds calls to either run; a
    call for each message would add 90,000 every time."""
    need("netns")
    need("strace")
    for _attempt in range(ATTEMPTS):
        few, many = calls(build, tmp_path, 10_000, 2), calls(build, tmp_path, 100_000, 8)
        assert sum(few.values()) > 200, f"strace saw next to nothing: {few}"
        if abs(sum(many.values()) - sum(few.values())) <= DIFFERENCE_MAX:
            return
    raise AssertionError(
        {
            name: (few.get(name, 0), many.get(name, 0))
            for name in few | many
            if few.get(name) != many.get(name)
        }
    )
