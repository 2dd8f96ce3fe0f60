# SPDX-License-Identifier: Apache-2.0
"""How fast a clock is pulled against the hardware's: the fastest counts, and no reading's own error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from lagometer.agent.pulled import APART_NS, Distance, PullWatch, distance

MS = 1_000_000


def watched(*distances: tuple[int, int, int] | None) -> PullWatch:
    """A watch after one look for each: how uncertain, when, and how far apart the clocks were."""
    found = [None if each is None else Distance(*each) for each in distances]
    answers: Iterator[Distance | None] = iter(found)
    watch = PullWatch(lambda: next(answers))
    for _ in distances:
        watch.look()
    return watch


def test_the_fastest_pull_counts_though_it_is_undone() -> None:
    """500 ppm for 100 ms, and back: from the beginning to the end nothing has moved."""
    there_and_back = watched((100, 0, 0), (100, 100 * MS, 50_000), (100, 200 * MS, 0), (100, 900 * MS, 0))
    assert there_and_back.most_ppm == pytest.approx(502.0)
    slow = watched((100, 0, 0), (100, 100 * MS, -1_000), (100, 200 * MS, -2_000))
    assert slow.most_ppm == pytest.approx(12.0)


def test_what_a_reading_is_off_by_is_no_pull() -> None:
    assert watched((100, 0, 0), (100, 100 * MS, 200)).most_ppm == 0.0
    assert watched((100, 0, 0), (60_000, 100 * MS, 50_000)).most_ppm == 0.0
    assert watched(None, (100, 0, 0), None, (100, 0, 9_000)).most_ppm == 0.0, "no time has passed"


def test_a_look_a_moment_later_waits_for_the_next() -> None:
    looks: list[Distance] = []

    def read() -> Distance:
        found = distance()
        assert found is not None
        looks.append(found)
        return found

    watch = PullWatch(read)
    for _ in range(100):
        watch.look()
    assert looks and all(later.at_ns - one.at_ns >= APART_NS for one, later in pairwise(looks))
    assert watch.most_ppm < 100_000
