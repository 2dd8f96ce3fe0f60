# SPDX-License-Identifier: Apache-2.0
"""How two clocks stand to each other: the hard bound has the truth whatever the link did, the narrow one
where the link is what its user says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.trial.offset import Bound, Offset, Times, hard_offset, narrowed, stamped
from lagometer.store.exchanges import Exchanges

MS, S = 1_000_000, 1_000_000_000
PPM = 1e-6
DRIFT_PPM = 200.0
DRIFT = DRIFT_PPM * PPM


class Clock:
    """Another clock: what it shows when ours shows t. wander: its drift changes its sign at these times."""

    def __init__(self, ahead_ns: int, drift_ppm: float, turns: tuple[int, ...] = ()) -> None:
        self._ahead_ns = ahead_ns
        edges = np.array([-(10**12), *sorted(turns), 10**12], dtype=np.float64)
        rates = drift_ppm * PPM * (-1.0) ** np.arange(len(edges) - 1)
        self._edges = edges
        self._sums = np.concatenate(([0.0], np.cumsum(rates * np.diff(edges))))
        self._sums -= np.interp(0.0, edges, self._sums)

    def offset(self, times: Times) -> Times:
        return np.rint(np.interp(times.astype(np.float64), self._edges, self._sums)).astype(np.int64) + (
            self._ahead_ns
        )

    def shown(self, times: Times) -> Times:
        return np.asarray(times + self.offset(times), dtype=np.int64)


def exchanges(
    clock: Clock, at_ns: Times, there_ns: Times, held_ns: Times, back_ns: Times
) -> tuple[Exchanges, Exchanges]:
    """Exchanges that we began at these times, and ones that the other began a moment later."""
    received, answered = at_ns + there_ns, at_ns + there_ns + held_ns
    ours = Exchanges(at_ns, clock.shown(received), clock.shown(answered), answered + back_ns)
    later = answered + back_ns + 1_000
    theirs_received, theirs_answered = later + back_ns, later + back_ns + held_ns
    others = Exchanges(
        clock.shown(later), theirs_received, theirs_answered, clock.shown(theirs_answered + there_ns)
    )
    return ours, others


def truth_of(offset: Offset, clock: Clock, times: Times) -> tuple[np.ndarray, Times]:
    """Where the bound has the truth, and how wide it is."""
    low, high = offset.at(times)
    true = clock.offset(times)
    return (low <= true) & (true <= high), high - low


delays = st.integers(0, 50 * MS)
clocks = st.builds(
    Clock,
    st.integers(-(10**15), 10**15),
    st.floats(-DRIFT_PPM, DRIFT_PPM),
    st.lists(st.integers(0, 20 * S), max_size=4).map(tuple),
)


@settings(max_examples=300, deadline=None)
@given(clocks, st.data())
def test_the_hard_bound_always_has_the_truth(clock: Clock, data: st.DataObject) -> None:
    """However long each way takes, whatever is asked when, and however the drift changes within its limit."""
    count = data.draw(st.integers(1, 12))
    numbers = st.lists(delays, min_size=count, max_size=count)
    gaps = data.draw(st.lists(st.integers(0, 2 * S), min_size=count, max_size=count))
    there, held, back = (np.array(data.draw(numbers), dtype=np.int64) for _ in range(3))
    at_ns = np.cumsum(np.array(gaps, dtype=np.int64))
    ours, others = exchanges(clock, at_ns, there, held, back)
    chosen = data.draw(st.sampled_from([([ours], []), ([], [others]), ([ours], [others])]))
    offset = hard_offset(*chosen, drift=DRIFT)
    assert offset is not None and offset.bound is Bound.HARD
    times = np.array(data.draw(st.lists(st.integers(-S, 30 * S), min_size=1, max_size=20)), dtype=np.int64)
    assert truth_of(offset, clock, times)[0].all()


@settings(max_examples=100, deadline=None)
@given(clocks, st.integers(0, 2**32 - 1))
def test_more_exchanges_make_the_hard_bound_no_wider(clock: Clock, seed: int) -> None:
    random = np.random.default_rng(seed)
    there, held, back = (random.integers(20_000, 200_000, 30) for _ in range(3))
    ours, _ = exchanges(clock, np.arange(30) * 50 * MS, there, held, back)
    half = Exchanges(ours.sent[::2], ours.received[::2], ours.answered[::2], ours.returned[::2])
    few, all_of_them = (hard_offset([each], [], DRIFT) for each in (half, ours))
    assert few is not None and all_of_them is not None
    times = np.arange(0, 1_500, 7) * MS
    wide, narrow = (truth_of(each, clock, times)[1] for each in (few, all_of_them))
    assert np.all(narrow <= wide + 8)


def symmetric(clock: Clock, random: np.random.Generator, count: int = 60) -> tuple[Exchanges, Exchanges]:
    """A link whose two ways take the same, but for what holds up single messages."""
    at_ns = np.arange(count) * 50 * MS + random.integers(0, 5 * MS, count)
    there, back = (40_000 + random.exponential(15_000, count).astype(np.int64) for _ in range(2))
    return exchanges(clock, at_ns, there, random.integers(5_000, 20_000, count), back)


def test_the_narrow_bound_has_the_truth_on_symmetric_links_and_is_narrow() -> None:
    """In at least 99 % of estimates, and below half of the smallest round trip."""
    random = np.random.default_rng(7)
    right, wide, count = 0, 0, 500
    for _ in range(count):
        clock = Clock(int(random.integers(-(10**10), 10**10)), float(random.uniform(-DRIFT_PPM, DRIFT_PPM)))
        ours, others = symmetric(clock, random)
        hard = hard_offset([ours], [others], DRIFT)
        assert hard is not None
        found = narrowed(hard, [ours], [others])
        assert found is not None and found.bound is Bound.NARROW
        times = random.integers(0, 3 * S, 20)
        holds, width = truth_of(found, clock, times)
        assert np.all(truth_of(hard, clock, times)[0]) and np.all(width <= truth_of(hard, clock, times)[1])
        right += bool(holds.all())
        wide += bool(width.max() / 2 >= 80_000 / 2)
    assert right >= 0.99 * count and wide <= 0.01 * count, (right, wide)


def woken(
    each: Exchanges, random: np.random.Generator, asked_ns: int, asking_ns: int, known_share: float = 1.0
) -> Exchanges:
    """The same, taken by agents that first had to wake up; of some the kernel's stamp is not known."""
    there, back = (
        least_ns + random.exponential(least_ns / 4, len(each)).astype(np.int64)
        for least_ns in (asked_ns, asking_ns)
    )
    known = random.random((2, len(each))) < known_share
    return Exchanges(
        each.sent,
        each.received + there,
        each.answered + there,
        each.returned + there + back,
        np.where(known[0], there, -1),
        np.where(known[1], back, -1),
    )


def steady(clock: Clock, random: np.random.Generator, seconds: int) -> tuple[Exchanges, Exchanges]:
    """Ten exchanges a second on a link whose ways take nearly the same."""
    at_ns = np.arange(10 * seconds) * 100 * MS
    there, back = (6_000 + random.exponential(500, len(at_ns)).astype(np.int64) for _ in range(2))
    return exchanges(clock, at_ns, there, np.full(len(at_ns), 5_000), back)


@pytest.mark.parametrize("seconds", [10, 30])
def test_the_narrow_bound_has_the_truth_of_a_clock_whose_drift_changes(seconds: int) -> None:
    """A daemon that adjusts the clock in the middle of a trial bends the line."""
    random = np.random.default_rng(seconds)
    for drift_ppm in (1.0, 5.0, 20.0):
        clock = Clock(3 * S, drift_ppm, (seconds * S // 2,))
        ours, others = steady(clock, random, seconds)
        hard = hard_offset([ours], [others], DRIFT)
        assert hard is not None
        narrow = narrowed(hard, [ours], [others])
        assert narrow is None or truth_of(narrow, clock, np.arange(0, seconds * 1_000, 50) * MS)[0].all()


def smallest_round_trip(*sides: Exchanges) -> int:
    return int(min(each.round_trips().min() for each in sides))


def test_the_kernels_stamps_make_the_narrow_bound_narrow_beside_what_agents_see() -> None:
    """Below a quarter of the smallest round trip by the agents' stamps, with wake-ups as long as a way, and
    right in at least 99 % of estimates; the hard bound has none of them."""
    random = np.random.default_rng(11)
    right, wide, count = 0, 0, 500
    for _ in range(count):
        clock = Clock(int(random.integers(-(10**10), 10**10)), float(random.uniform(-DRIFT_PPM, DRIFT_PPM)))
        asked_ns, asking_ns = (int(each) for each in random.integers(20_000, 60_000, 2))
        ours, others = (woken(each, random, asked_ns, asking_ns) for each in symmetric(clock, random, 120))
        hard, by_agents = hard_offset([ours], [others], DRIFT), plain(ours, others)
        assert hard is not None and by_agents is not None
        times = random.integers(0, 6 * S, 20)
        for one, other in zip(hard.at(times), by_agents.at(times), strict=True):
            assert np.array_equal(one, other)
        found = narrowed(hard, [ours], [others])
        assert found is not None
        holds, width = truth_of(found, clock, times)
        right += bool(holds.all())
        wide += bool(width.max() / 2 >= smallest_round_trip(ours, others) / 4)
    assert right >= 0.99 * count and wide <= 0.01 * count, (right, wide)


def plain(*sides: Exchanges) -> Offset | None:
    ours, others = (Exchanges(each.sent, each.received, each.answered, each.returned) for each in sides)
    return hard_offset([ours], [others], DRIFT)


@pytest.mark.parametrize(("known_share", "by_kernel"), [(0.9, True), (0.5, False), (0.0, False)])
def test_the_two_kinds_of_stamps_are_never_in_one_line(known_share: float, by_kernel: bool) -> None:
    """With few of the kernel's, all are the agents': some of either kind would be off to different sides."""
    random = np.random.default_rng(5)
    sides = symmetric(Clock(0, 0.0), random, 120)
    ours, others = (woken(each, random, 60_000, 20_000, known_share) for each in sides)
    shown = stamped([ours], [others])
    for kept, given_side in zip(shown, (ours, others), strict=True):
        assert (kept[0] is not given_side) == by_kernel
        assert by_kernel or len(kept[0]) == len(given_side)
    # One side that has none leaves all to the agents' stamps.
    bare = Exchanges(others.sent, others.received, others.answered, others.returned)
    assert stamped([ours], [bare]) == ([ours], [bare])


def test_an_asymmetry_stays_within_the_hard_bound_and_fools_the_narrow_one() -> None:
    """Why only the user can name a link symmetric: the exchanges look the same."""
    random, clock = np.random.default_rng(3), Clock(5 * S, 50.0)
    at_ns = np.arange(60) * 50 * MS
    there, back = 500_000 + random.integers(0, 9_000, 60), 20_000 + random.integers(0, 9_000, 60)
    ours, others = exchanges(clock, at_ns, there, random.integers(5_000, 9_000, 60), back)
    hard = hard_offset([ours], [others], DRIFT)
    assert hard is not None
    times = np.arange(0, 3_000, 10) * MS
    assert truth_of(hard, clock, times)[0].all()
    fooled = narrowed(hard, [ours], [others])
    assert fooled is not None and not truth_of(fooled, clock, times)[0].any()


def test_few_exchanges_give_no_narrow_bound() -> None:
    ours, others = symmetric(Clock(0, 0.0), np.random.default_rng(1), count=2)
    hard = hard_offset([ours], [others], DRIFT)
    assert hard is not None and narrowed(hard, [ours], [others]) is None
    assert hard_offset([], [], DRIFT) is None


def test_a_clock_that_drifts_more_than_is_stated_contradicts_itself() -> None:
    """Then the greatest offset is below the least, and no figure may be made of it."""
    clock = Clock(0, 5_000.0)
    at_ns = np.array([0, 10 * S])
    same = np.full(2, 10_000)
    ours, _ = exchanges(clock, at_ns, same, same, same)
    offset = hard_offset([ours], [], DRIFT)
    assert offset is not None
    low, high = offset.at(np.array([5 * S]))
    assert np.all(high < low)


@pytest.mark.parametrize("base_ns", [0, 10**15, -(10**15)])
def test_numbers_as_large_as_clocks_show_lose_nothing(base_ns: int) -> None:
    clock = Clock(base_ns, 0.0)
    at_ns = np.array([10**15, 10**15 + S])
    one = np.full(2, 100)
    ours, _ = exchanges(clock, at_ns, one, one, one)
    offset = hard_offset([ours], [], 0.0)
    assert offset is not None
    low, high = offset.at(np.array([10**15 + S // 2]))
    assert low[0] <= base_ns <= high[0] and high[0] - low[0] <= 206
