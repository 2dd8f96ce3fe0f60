# SPDX-License-Identifier: Apache-2.0
"""Many cells as one family: corrections, verdicts, limits, and what can't be compared."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_stats_shares import trials

from lagometer.stats.compare.comparable import common_blocks
from lagometer.stats.compare.compare import (
    FASTER,
    MIXED,
    NO_DIFFERENCE,
    NOT_COMPARABLE,
    SLOWER,
    CellComparison,
    Limit,
    Pair,
    compare_pairs,
    holm,
    overall,
)


def pair(name: str, ratio: float, count: int = 9, seed: int = 1, messages: int = 60) -> Pair:
    generator = np.random.default_rng([seed, count])
    a = trials(generator, count, messages, spread=0.02)
    b = trials(generator, count, messages, scale=ratio, spread=0.02)
    return Pair(name, name, a, b)


def test_holm_as_in_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_each_cell_has_a_verdict_and_all_have_one() -> None:
    cells = compare_pairs([pair("slow", 1.3, seed=1), pair("quick", 0.7, seed=2), pair("same", 1.0, seed=3)])
    assert [cell.verdict for cell in cells] == [SLOWER, FASTER, NO_DIFFERENCE]
    assert overall(cells) == MIXED
    assert overall(cells[::2]) == SLOWER
    assert overall(cells[2:]) == NO_DIFFERENCE
    slow = cells[0].quantities["p50"]
    assert slow.low is not None and slow.high is not None and slow.ratio is not None
    assert 1.0 < slow.low < slow.ratio < slow.high
    same = cells[2].quantities["p50"]
    assert same.detectable is not None and same.detectable > 0.0


def test_faster_here_and_slower_there_is_mixed() -> None:
    cell = compare_pairs([pair("a", 1.3)])[0]
    assert cell.verdict == SLOWER
    assert overall([cell, dataclasses.replace(cell, verdict=FASTER)]) == MIXED


def test_the_more_cells_the_more_a_cell_must_show() -> None:
    generator = np.random.default_rng(23)
    alone = compare_pairs([pair("a", 1.05, seed=37)])[0].quantities["p50"]
    others = [Pair(str(n), str(n), trials(generator, 9), trials(generator, 9)) for n in range(12)]
    among = compare_pairs([pair("a", 1.05, seed=37), *others])[0].quantities["p50"]
    assert alone.p is not None and among.p is not None and among.p_corrected is not None
    assert (alone.p_corrected, alone.verdict) == (alone.p, SLOWER)
    assert among.p <= 0.02 < among.p_corrected
    assert among.verdict == NO_DIFFERENCE


def test_too_few_trials_say_how_many_would_do() -> None:
    cell = compare_pairs([pair("few", 2.0, count=5)])[0]
    assert (cell.verdict, cell.quantities["p50"].verdict) == (NOT_COMPARABLE, NOT_COMPARABLE)
    assert cell.why == "5 and 5 trials can't show a difference; 6 of each can"
    cells = compare_pairs([pair(str(n), 2.0, count=6, seed=n) for n in range(10)])
    assert cells[0].why == "6 and 6 trials can't show a difference; 7 of each can"
    assert overall(cells) == NOT_COMPARABLE


def test_a_tail_without_samples_is_not_compared_and_burdens_nobody() -> None:
    cell = compare_pairs([pair("short", 1.3)])[0]
    tail = cell.quantities["p99"]
    assert tail.verdict == NOT_COMPARABLE and "not enough samples" in str(tail.why)
    assert cell.quantities["p50"].p_corrected == cell.quantities["p50"].p
    long = compare_pairs([pair("long", 1.5, count=12, messages=3000)])[0].quantities["p99"]
    assert long.verdict == SLOWER


def test_what_is_refused_is_not_compared() -> None:
    refused = dataclasses.replace(pair("a", 2.0), refused="network: private against host")
    cell = compare_pairs([refused], limits=[Limit("p50", True, 1.0)])[0]
    assert (cell.verdict, cell.why) == (NOT_COMPARABLE, "network: private against host")
    assert not cell.limits[0].shown and cell.limits[0].possible


def test_a_limit_is_passed_only_if_the_difference_lies_beyond_it() -> None:
    def found(ratio: float, limit: float, above: bool = True) -> tuple[bool, bool]:
        finding = compare_pairs([pair("a", ratio)], limits=[Limit("p50", above, limit)])[0].limits[0]
        return finding.shown, finding.possible

    assert found(1.30, 1.05) == (True, True)
    assert found(1.06, 1.05) == (False, True)
    assert found(1.00, 1.20) == (False, False)
    assert found(0.70, 0.90, above=False) == (True, True)
    assert found(0.70, 1.05) == (False, False)


def test_limits_ask_for_their_own_quantity() -> None:
    cell = compare_pairs([pair("a", 1.3, messages=300)], limits=[Limit("p90", True, 1.1)])[0]
    assert list(cell.quantities) == ["p50", "p99", "p90"]
    assert cell.limits[0].shown


def test_blocks_are_used_where_they_can_show_something() -> None:
    whole = pair("a", 1.1, count=10)
    blocks = [(place, place) for place in range(10)]
    assert compare_pairs([dataclasses.replace(whole, blocks=blocks)])[0].paired
    # Of six pairs the smallest p-value is 1/32: then the trials are compared without regard to blocks.
    assert not compare_pairs([dataclasses.replace(whole, blocks=blocks[:6])])[0].paired
    fewer = compare_pairs([dataclasses.replace(whole, blocks=blocks[:8])])[0]
    assert (fewer.paired, fewer.trials_a) == (True, 8)
    assert "4 valid trials" in fewer.notes[0]


def test_trials_of_one_number_are_a_block_if_they_took_turns() -> None:
    assert common_blocks([0, 1, 2], ["10", "20", "30"], [0, 1, 2], ["11", "19", "31"]) == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
    assert common_blocks([0, 2], ["10", "30"], [1, 2], ["20", "31"]) == [(1, 1)]
    assert common_blocks([0, 1], ["10", "20"], [0, 1], ["50", "60"]) == []
    assert common_blocks([0, 1], ["", ""], [0, 1], ["", ""]) == []


def test_comparisons_are_plain_data() -> None:
    cell = compare_pairs([pair("a", 1.3)])[0]
    assert isinstance(cell, CellComparison)
    assert dataclasses.asdict(cell)["quantities"]["p50"]["verdict"] == SLOWER


@pytest.mark.parametrize(
    ("bounds_ns", "verdict"), [((0, 0), SLOWER), ((200, 200), SLOWER), ((2_000, 2_000), NO_DIFFERENCE)]
)
def test_a_difference_within_what_the_clocks_are_known_to_is_none(
    bounds_ns: tuple[int, int], verdict: str
) -> None:
    """The medians are 20 and 22 µs; what both sides may be off by together is 0, 0.4 and 4 µs."""
    known = dataclasses.replace(pair("slow", 1.1, count=12, messages=200), bounds_ns=bounds_ns)
    (cell,) = compare_pairs([known], quantities=("p50",))
    found = cell.quantities["p50"]
    assert found.a_ns is not None and found.b_ns is not None
    assert cell.verdict == verdict, (found, found.b_ns - found.a_ns)
    (exact,) = compare_pairs([dataclasses.replace(known, bounds_ns=(0, 0))], quantities=("p50",))
    tight = exact.quantities["p50"]
    assert found.low is not None and tight.low is not None and found.low <= tight.low
    assert found.high is not None and tight.high is not None and found.high >= tight.high
    assert found.a_low_ns is not None and tight.a_low_ns is not None
    assert tight.a_low_ns - found.a_low_ns == bounds_ns[0]


def test_a_limit_is_passed_only_beyond_the_bound_of_the_clocks() -> None:
    known = dataclasses.replace(pair("slow", 1.3, count=12, messages=200), bounds_ns=(500, 500))
    limits = [Limit("p50", above=True, ratio=ratio) for ratio in (1.05, 1.25)]
    (cell,) = compare_pairs([known], quantities=("p50",), limits=limits)
    assert [each.shown for each in cell.limits] == [True, False] and cell.limits[1].possible


def test_of_a_figure_below_its_bound_nothing_is_concluded() -> None:
    known = dataclasses.replace(pair("slow", 3.0), bounds_ns=(10**9, 10**9))
    (cell,) = compare_pairs([known], quantities=("p50",))
    assert cell.verdict == NO_DIFFERENCE and cell.quantities["p50"].high == float("inf")
