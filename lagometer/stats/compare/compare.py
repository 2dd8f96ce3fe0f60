# SPDX-License-Identifier: Apache-2.0
"""Whether cells differ, judged by their trials' latencies: ratios, intervals, and verdicts for all cells.

The tests (one per cell and quantity) form one family: the probability that even one of them shows a
difference where there is none is at most alpha (Holm, *A simple sequentially rejective multiple test
procedure*, Scandinavian Journal of Statistics 6, 1979). shares.py contains the test itself.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lagometer.stats.interval.confidence import CONFIDENCE, NOT_ENOUGH, PERMILLE, TRIALS_MIN, Numbers, Pool
from lagometer.stats.interval.medians import TrialMedian
from lagometer.stats.interval.power import detectable_effect
from lagometer.stats.interval.shares import RatioTest, Sides, fewest_trials, smallest_p

ALPHA = 0.02  # family-wise
QUANTITIES = ("p50", "p99")

FASTER, SLOWER, MIXED = "faster", "slower", "mixed"
NO_DIFFERENCE, NOT_COMPARABLE = "no-difference", "not-comparable"


@dataclass(frozen=True)
class Limit:
    """A condition on B relative to A, such as p99 > +5 %: the quantity, above or below, and the ratio (1.05).

    cells: a glob of cell ids of B.
    """

    quantity: str
    above: bool
    ratio: float
    cells: str = "*"


@dataclass(frozen=True)
class Pair:
    """Two cells to compare: the latencies of their valid trials in ns, in time order.

    blocks: for each block in which both have a valid trial, the positions of these trials in `a` and `b`;
    empty if the trials were not run in common blocks. refused: why they must not be compared. alphas: the
    error probability of the intervals of each side's own figures. bounds_ns: how far off all latencies of a
    side may be together, if they span two clocks.
    """

    cell_a: str
    cell_b: str
    a: Sequence[Numbers] = ()
    b: Sequence[Numbers] = ()
    blocks: Sequence[tuple[int, int]] = ()
    refused: str | None = None
    notes: Sequence[str] = ()
    alphas: tuple[float, float] = (1.0 - CONFIDENCE, 1.0 - CONFIDENCE)
    bounds_ns: tuple[int, int] = (0, 0)


@dataclass
class LimitFinding:
    """Whether a limit is passed: `shown` (corrected for all cells), or `possible`: not ruled out."""

    limit: Limit
    p: float | None = None
    shown: bool = False
    possible: bool = True


@dataclass
class QuantityComparison:
    """B relative to A in one quantity. The figures are None if the verdict is `not-comparable`.

    a_low_ns to b_high_ns: the 95 % intervals of each side's own figure; None if the samples support none.
    low, high: the 95 % interval of this ratio alone. p_corrected: the p-value corrected for all tests.
    detectable: the difference that would have been found with 95 % probability; 0.05 is 5 %.
    """

    a_ns: int | None = None
    a_low_ns: int | None = None
    a_high_ns: int | None = None
    b_ns: int | None = None
    b_low_ns: int | None = None
    b_high_ns: int | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    detectable: float | None = None
    verdict: str = NOT_COMPARABLE
    why: str | None = None


@dataclass
class CellComparison:
    """Two cells: the overall verdict, and the comparison in each quantity.

    cpu_per_message_a, cpu_per_message_b: the cost of a message, shown next to every latency but not tested.
    """

    cell_a: str
    cell_b: str
    trials_a: int
    trials_b: int
    paired: bool = False
    quantities: dict[str, QuantityComparison] = field(default_factory=dict)
    limits: list[LimitFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdict: str = NOT_COMPARABLE
    why: str | None = None
    cpu_per_message_a: TrialMedian = field(default_factory=TrialMedian)
    cpu_per_message_b: TrialMedian = field(default_factory=TrialMedian)


def compare_pairs(
    pairs: Sequence[Pair],
    alpha: float = ALPHA,
    quantities: Sequence[str] = QUANTITIES,
    limits: Sequence[Limit] = (),
) -> list[CellComparison]:
    """Compares all pairs as one family of tests at level `alpha`."""
    wanted = list(dict.fromkeys((*quantities, *(limit.quantity for limit in limits))))
    level = alpha / max(1, len(wanted) * sum(pair.refused is None for pair in pairs))
    comparisons = [_Compared(pair, level) for pair in pairs]
    for comparison in comparisons:
        comparison.compare(wanted, level)
    tests = [
        finding
        for comparison in comparisons
        for finding in comparison.cell.quantities.values()
        if finding.p is not None
    ]
    for finding, corrected in zip(tests, holm([comparison.p or 0.0 for comparison in tests]), strict=True):
        finding.p_corrected = corrected
        finding.verdict = NO_DIFFERENCE
        if corrected <= alpha and finding.ratio is not None:
            finding.verdict = SLOWER if finding.ratio > 1.0 else FASTER
    for limit in limits:
        _judge(limit, comparisons, alpha)
    for comparison in comparisons:
        comparison.cell.verdict, comparison.cell.why = _of_cell(comparison.cell)
    return [comparison.cell for comparison in comparisons]


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number; those up to alpha are shown at family-wise level alpha."""
    corrected, most = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        most = max(most, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = most
    return corrected


def overall(cells: Sequence[CellComparison]) -> str:
    """The verdict over all cells; cells that can't be compared count only if there are no others."""
    return _joined([cell.verdict for cell in cells])


def _joined(verdicts: Sequence[str]) -> str:
    comparable = set(verdicts) - {NOT_COMPARABLE}
    if MIXED in comparable or {FASTER, SLOWER} <= comparable:
        return MIXED
    for verdict in (SLOWER, FASTER, NO_DIFFERENCE):
        if verdict in comparable:
            return verdict
    return NOT_COMPARABLE


def _of_cell(cell: CellComparison) -> tuple[str, str | None]:
    verdict = _joined([quantity.verdict for quantity in cell.quantities.values()])
    if verdict != NOT_COMPARABLE:
        return verdict, None
    return verdict, cell.why or next((quantity.why for quantity in cell.quantities.values()), None)


@dataclass(frozen=True)
class Margin:
    """The factors by which an observed ratio may be off, because its clocks agree only within a bound."""

    least: float = 1.0
    most: float = 1.0

    @classmethod
    def of(cls, a_ns: float, b_ns: float, bounds_ns: tuple[int, int]) -> Margin:
        """The margin for two figures above 0 and their bounds."""
        bound_a_ns, bound_b_ns = bounds_ns
        least = max(0.0, b_ns - bound_b_ns) / b_ns * a_ns / (a_ns + bound_a_ns)
        most = (b_ns + bound_b_ns) / b_ns * (a_ns / (a_ns - bound_a_ns) if a_ns > bound_a_ns else math.inf)
        return cls(least, most)

    @property
    def is_wide(self) -> bool:
        """Whether there is a bound at all."""
        return self.least < 1.0 or self.most > 1.0


def _widened(low_ns: int | None, high_ns: int | None, by_ns: int) -> tuple[int | None, int | None]:
    return (None if low_ns is None else low_ns - by_ns), (None if high_ns is None else high_ns + by_ns)


class _Compared:
    """One pair while it is being compared."""

    def __init__(self, pair: Pair, level: float) -> None:
        self.sides, blocks = _sides(pair, level)
        self._tests: dict[str, RatioTest] = {}
        self._margins: dict[str, Margin] = {}
        self._alphas = pair.alphas
        self._bounds_ns = pair.bounds_ns
        self.cell = CellComparison(
            pair.cell_a,
            pair.cell_b,
            len(self.sides.a),
            len(self.sides.b),
            paired=self.sides.paired,
            notes=[*pair.notes, *blocks],
            why=pair.refused,
        )

    def compare(self, quantities: Sequence[str], level: float) -> None:
        """Adds quantities: the ratio of each with its interval and p-value, or why there is none."""
        pools = Pool(self.sides.a), Pool(self.sides.b)
        for quantity in quantities:
            self.cell.quantities[quantity] = self._compared(quantity, level, pools)

    def _compared(self, quantity: str, level: float, pools: tuple[Pool, Pool]) -> QuantityComparison:
        comparison = QuantityComparison()
        comparison.why = self.cell.why or self._hindrance(quantity, level, pools)
        if comparison.why is not None:
            return comparison
        test = RatioTest(self.sides, PERMILLE[quantity], level)
        self._tests[quantity] = test
        comparison.a_ns, comparison.b_ns, comparison.ratio = int(test.a_ns), int(test.b_ns), test.estimate
        a, b = (
            pool.estimate(PERMILLE[quantity], alpha) for pool, alpha in zip(pools, self._alphas, strict=True)
        )
        bound_a_ns, bound_b_ns = self._bounds_ns
        comparison.a_low_ns, comparison.a_high_ns = _widened(a.low_ns, a.high_ns, bound_a_ns)
        comparison.b_low_ns, comparison.b_high_ns = _widened(b.low_ns, b.high_ns, bound_b_ns)
        margin = self._margins[quantity] = Margin.of(test.a_ns, test.b_ns, self._bounds_ns)
        low, high = test.interval()
        comparison.low, comparison.high = low * margin.least, high * margin.most
        comparison.p = self.p_value(Limit(quantity, above=True, ratio=1.0))
        if comparison.low > 0.0 and comparison.high < math.inf:
            count = self.cell.trials_a
            degrees = count - 1 if self.sides.paired else count + self.cell.trials_b - 2
            comparison.detectable = detectable_effect(comparison.low, comparison.high, degrees, level)
        return comparison

    def p_value(self, limit: Limit) -> float | None:
        """The p-value of the hypothesis that the ratio is the limit's; None if it can't be compared."""
        test, margin = self._tests.get(limit.quantity), self._margins.get(limit.quantity)
        if test is None or margin is None:
            return None
        # If the limit's ratio is the true one, any of these may be observed.
        lowest = limit.ratio / margin.most
        highest = limit.ratio / margin.least if margin.least > 0 else math.inf
        if lowest < test.estimate < highest and margin.is_wide:
            return 1.0
        return test.p_value(highest if test.estimate >= highest else lowest)

    def _hindrance(self, quantity: str, level: float, pools: tuple[Pool, Pool]) -> str | None:
        """Why these trials can't be compared in this quantity."""
        counts = self.cell.trials_a, self.cell.trials_b
        wanted = max(TRIALS_MIN, fewest_trials(level, paired=False))
        if min(counts) < TRIALS_MIN or self.sides.smallest_p > level:
            return f"{counts[0]} and {counts[1]} trials can't show a difference; {wanted} of each can"
        permille = PERMILLE[quantity]
        for name, pool in zip("AB", pools, strict=True):
            if pool.quantile(permille / 1000.0) <= 0:
                return f"{name}: the latency is not above 0"
            estimate = pool.estimate(permille) if quantity != "p50" else None
            if estimate is not None and estimate.status == NOT_ENOUGH:
                return f"{name}: not enough samples ({estimate.needed_trials} trials would be enough)"
        return None


def _sides(pair: Pair, level: float) -> tuple[Sides, list[str]]:
    """The trials to compare, as pairs if there are enough blocks to show anything."""
    blocks = pair.blocks
    if blocks and smallest_p(len(blocks), len(blocks), paired=True) <= level:
        a = tuple(pair.a[place] for place, _ in blocks)
        b = tuple(pair.b[place] for _, place in blocks)
        unpaired = len(pair.a) + len(pair.b) - 2 * len(blocks)
        notes = [f"{unpaired} valid trials without a valid one of the same block are left out"] * bool(
            unpaired
        )
        return Sides(a, b, paired=True), notes
    return Sides(tuple(pair.a), tuple(pair.b)), []


def _judge(limit: Limit, comparisons: Sequence[_Compared], alpha: float) -> None:
    """Adds to each cell the limit applies to whether it passes the limit; these tests form one family."""
    comparisons = [
        comparison for comparison in comparisons if fnmatch.fnmatchcase(comparison.cell.cell_b, limit.cells)
    ]
    findings = [LimitFinding(limit, comparison.p_value(limit)) for comparison in comparisons]
    known = [finding for finding in findings if finding.p is not None]
    corrected: Mapping[int, float] = {
        id(finding): p for finding, p in zip(known, holm([test.p or 0.0 for test in known]), strict=True)
    }
    for comparison, finding in zip(comparisons, findings, strict=True):
        comparison.cell.limits.append(finding)
        quantity = comparison.cell.quantities[limit.quantity]
        if finding.p is None or quantity.ratio is None or quantity.low is None or quantity.high is None:
            continue
        beyond = quantity.ratio > limit.ratio if limit.above else quantity.ratio < limit.ratio
        finding.shown = beyond and corrected[id(finding)] <= alpha
        finding.possible = quantity.high > limit.ratio if limit.above else quantity.low < limit.ratio
