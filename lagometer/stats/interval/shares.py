# SPDX-License-Identifier: Apache-2.0
"""A test and an interval for the ratio of a quantile of two cells. The unit is the trial; nothing is normal.

If two cells have the same latency, so do their messages taken together: at the quantile Q of all of them
(each trial weighs the same), the share of a trial's messages up to Q does not depend on the trial's cell.
These shares, one per trial, are compared by a permutation test. It is exact as long as trials are
exchangeable, whatever the distribution of latencies and the dependence between messages of a trial. Its
statistic is Student's t of the shares (Neuhaus 1993; Chung and Romano, *Exact and asymptotically robust
permutation tests*, Annals of Statistics 41, 2013). So, for many trials, it also holds if two cells agree in
the quantile and in nothing else.

Trials of the same block (neighbours in time) are compared as pairs: labels are swapped within each pair. For
the median, Q is that of the pair. With one Q for all, a machine that slows down for some blocks leaves both
trials of each such block on the same side of Q, where their difference does not show. A tail keeps one Q: it
may consist of a few blocks, and the others' own tails say nothing of it.

The interval of the ratio is the set of all r that the test does not reject when the second cell's latencies
are divided by r. So test and interval cannot contradict each other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from lagometer.stats.interval.blocks import Block

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

ENUMERATED_MAX = 20_000  # up to this many, all are tried; beyond, as many are drawn as alpha needs
DRAWN_PER_ALPHA = 20  # drawn relabellings times alpha: makes the p-value's own error negligible
DRAWN_MIN, DRAWN_MAX = 10_000, 200_000
SEED = 20_130_401  # of the drawn ones: the same data always give the same p-value
TIE = 1e-9  # statistics closer than this count as equal; rounding separates them
RATIO_MAX = 1e4  # an interval that reaches further has no end
MEDIAN = 500  # permille: the quantile that each block has for itself
STEPS = 20  # of the bisection: the end of an interval is exact to a millionth of its distance


@dataclass(frozen=True)
class Sides:
    """The latencies of each valid trial of two cells; paired if trial k of both belongs to block k."""

    a: tuple[Numbers, ...]
    b: tuple[Numbers, ...]
    paired: bool = False

    @property
    def smallest_p(self) -> float:
        """The smallest p-value (two-sided) that any data can give with this many trials."""
        return smallest_p(len(self.a), len(self.b), self.paired)


def smallest_p(trials_a: int, trials_b: int, paired: bool) -> float:
    """The smallest two-sided p-value that a permutation test of this many trials can give."""
    if min(trials_a, trials_b) < 1:
        return 1.0
    return min(
        1.0, 2.0 / (2.0**trials_a if paired else float(scipy.special.comb(trials_a + trials_b, trials_a)))
    )


def fewest_trials(alpha: float, paired: bool) -> int:
    """How many trials of each cell a p-value of alpha needs to be possible at all."""
    return next(n for n in itertools.count(1) if smallest_p(n, n, paired) <= alpha)


class RatioTest:
    """The permutation test of one quantile of two cells, for any hypothetical ratio."""

    def __init__(self, sides: Sides, permille: int, alpha: float = 0.05) -> None:
        """alpha: the smallest level to judge a p-value at; determines how many relabellings to draw."""
        self._share = permille / 1000.0
        self._shape = (len(sides.a), len(sides.b), sides.paired)
        self._alpha = alpha
        self._a, self._b = Side(sides.a), Side(sides.b)
        self._blocks = (
            [Block(a, b, self._share) for a, b in zip(sides.a, sides.b, strict=True)]
            if sides.paired and permille == MEDIAN
            else []
        )
        self.a_ns, self.b_ns = self._a.quantile(self._share), self._b.quantile(self._share)

    @functools.cached_property
    def estimate(self) -> float:
        """B's quantile over A's; if each block has a quantile of its own, the ratio within a block."""
        ratio = self.b_ns / self.a_ns
        if not self._blocks:
            return ratio
        difference = float(self.differences(ratio).mean())
        if difference == 0.0:
            return ratio
        direction = -1 if difference > 0.0 else 1
        balanced = _first(ratio, direction, lambda near: direction * self.differences(near).mean() >= 0.0)
        return ratio if balanced is None else balanced

    def p_value(self, ratio: float = 1.0) -> float:
        """The two-sided p-value of the hypothesis that B's quantile is `ratio` times A's."""
        return self._p_value(ratio, *_relabellings(*self._shape, self._alpha))

    def _p_value(self, ratio: float, labels: Floats, exact: bool) -> float:
        observed, others = self._statistics(ratio, labels)
        beyond = int((np.abs(others) >= abs(observed) - TIE).sum())
        # Drawn relabellings do not include the observed one, so it is counted in addition.
        return beyond / len(others) if exact else (beyond + 1) / (len(others) + 1)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """All ratios that are not rejected at 1 - confidence; 0 or infinity if there is no end."""
        alpha = 1.0 - confidence + TIE  # for example, 1 - 0.95 is below 0.05 in binary
        labels, exact = _relabellings(*self._shape, self._alpha)
        if not exact:
            labels = labels[:DRAWN_MIN]

        def rejected(ratio: float) -> bool:
            return self._p_value(ratio, labels, exact) <= alpha

        low, high = (_first(self.estimate, direction, rejected) for direction in (-1, 1))
        return low or 0.0, high or math.inf

    def _statistics(self, ratio: float, labels: Floats) -> tuple[float, Floats]:
        """The observed statistic, and that of every relabelling."""
        count, _, paired = self._shape
        if paired:
            differences = self.differences(ratio)
            observed = _student_of_pairs(differences, np.ones((1, count)))[0]
            return float(observed), _student_of_pairs(differences, labels)
        shares = _shares(self._a, self._b, self._share, ratio)
        observed_labels = np.zeros((1, len(shares)))
        observed_labels[0, count:] = 1.0
        return float(_student_of_groups(shares, observed_labels)[0]), _student_of_groups(shares, labels)

    def differences(self, ratio: float) -> Floats:
        """How much larger B's share of messages up to the joint quantile is than A's, of each block; B's
        latencies are divided by `ratio`. Only for pairs. Shape (blocks,)."""
        if self._blocks:
            return np.array([block.difference(ratio) for block in self._blocks])
        shares = _shares(self._a, self._b, self._share, ratio)
        return shares[self._shape[0] :] - shares[: self._shape[0]]


def _first(start: float, direction: int, holds: Callable[[float], bool]) -> float | None:
    """The ratio nearest to `start`, upwards or downwards, for which something holds; None up to RATIO_MAX."""
    step = 0.01
    while not holds(start * math.exp(direction * step)):
        step *= 2.0
        if step > math.log(RATIO_MAX):
            return None
    low, high = step / 2.0 if step > 0.01 else 0.0, step
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        if holds(start * math.exp(direction * middle)):
            high = middle
        else:
            low = middle
    return start * math.exp(direction * high)


class Side:
    """The trials of one cell, sorted once for any number of queries."""

    def __init__(self, trials: Sequence[Numbers]) -> None:
        """trials: none of them empty."""
        self.trials = [np.sort(trial).astype(np.float64) for trial in trials]
        counts = np.array([len(trial) for trial in trials])
        together = np.concatenate(self.trials)
        order = np.argsort(together, kind="stable")
        self.values = together[order]
        self.weights = np.cumsum(np.repeat(1.0 / counts, counts)[order])  # each trial weighs 1
        self.slack = 1e-9 / float(counts.max())

    def below(self, number: float) -> float:
        """The weight of the messages up to a number, in trials."""
        place = int(np.searchsorted(self.values, number, "right"))
        return float(self.weights[place - 1]) if place else 0.0

    def quantile(self, share: float) -> float:
        """The type 1 quantile of all messages; every trial weighs the same."""
        place = int(np.searchsorted(self.weights, share * len(self.trials) - self.slack))
        return float(self.values[min(place, len(self.values) - 1)])

    def shares(self, number: float) -> Floats:
        """Two rows: the share of each trial's messages below a number, and the share up to it."""
        limits = number * (1.0 - 1e-12), number * (1.0 + 1e-12)  # it was divided and multiplied
        shares = [[np.searchsorted(trial, limit) / len(trial) for trial in self.trials] for limit in limits]
        return np.array(shares)


def joint_quantile(a: Side, b: Side, share: float, ratio: float = 1.0) -> float:
    """The quantile of both sides' messages together, B's divided by `ratio`; each trial weighs the same."""
    wanted = share * (len(a.trials) + len(b.trials)) - max(a.slack, b.slack)

    def first(side: Side, side_ratio: float, other: Side, other_ratio: float) -> float:
        """The smallest of a side's latencies with at least the wanted weight at or below it."""
        low, high = 0, len(side.values)
        while low < high:
            middle = (low + high) // 2
            number = side.values[middle]
            other_number = number / side_ratio * other_ratio * (1.0 + 1e-12)
            if side.below(number) + other.below(other_number) >= wanted:
                high = middle
            else:
                low = middle + 1
        return float(side.values[low] / side_ratio) if low < len(side.values) else math.inf

    return min(first(a, 1.0, b, ratio), first(b, ratio, a, 1.0))


def _shares(a: Side, b: Side, share: float, ratio: float) -> Floats:
    """The share of each trial's messages up to the joint quantile: of A's trials, then of B's."""
    quantile = joint_quantile(a, b, share, ratio)
    below = np.concatenate((a.shares(quantile), b.shares(quantile * ratio)), axis=1)
    return _split_ties(below, share)


def _split_ties(below_and_upto: Floats, share: float) -> Floats:
    """The share of each trial's messages up to the joint quantile.

    Messages equal to it count in part, such that the mean over all trials is `share` itself: as if equal
    latencies had been ordered by tiny differences.
    """
    below, upto = below_and_upto
    equal = upto - below
    part = (share - below.mean()) / equal.mean() if equal.mean() > 0 else 0.0
    shares: Floats = below + part * equal
    return shares


@functools.lru_cache(maxsize=8)
def _relabellings(a: int, b: int, paired: bool, alpha: float) -> tuple[Floats, bool]:
    """All relabellings of the trials, or as many drawn ones as the level needs, and whether they are all."""
    drawn = int(np.clip(DRAWN_PER_ALPHA / alpha, DRAWN_MIN, DRAWN_MAX))
    generator = np.random.default_rng(SEED)
    if paired:
        if 2**a <= ENUMERATED_MAX:
            return np.array(list(itertools.product((1.0, -1.0), repeat=a))), True
        return generator.choice((1.0, -1.0), size=(drawn, a)), False
    if scipy.special.comb(a + b, b) <= ENUMERATED_MAX:
        chosen = np.array(list(itertools.combinations(range(a + b), b)))
        labels = np.zeros((len(chosen), a + b))
        np.put_along_axis(labels, chosen, 1.0, axis=1)
        return labels, True
    row = np.concatenate((np.zeros(a), np.ones(b)))
    return generator.permuted(np.tile(row, (drawn, 1)), axis=1), False


def _student_of_groups(shares: Floats, labels: Floats) -> Floats:
    """Welch's t of the trials labelled 1 against the others, for each row of labels."""
    b = labels.sum(axis=1)
    a = len(shares) - b
    centred = shares - shares.mean()
    squares = np.square(centred)
    sum_b, square_b = labels @ centred, labels @ squares
    mean_b, mean_a = sum_b / b, (centred.sum() - sum_b) / a
    var_b = np.maximum(square_b / b - mean_b**2, 0.0) / np.maximum(b - 1, 1)
    var_a = np.maximum((squares.sum() - square_b) / a - mean_a**2, 0.0) / np.maximum(a - 1, 1)
    return _ratio(mean_b - mean_a, var_a + var_b)


def _student_of_pairs(differences: Floats, signs: Floats) -> Floats:
    """Student's t of the pairs' differences, for each row of signs."""
    count = len(differences)
    mean = signs @ differences / count
    squares = float(np.square(differences).mean())
    return _ratio(mean, np.maximum(squares - mean**2, 0.0) / max(count - 1, 1))


def _ratio(difference: Floats, variance: Floats) -> Floats:
    """A difference divided by its standard error; without any variance, it exceeds all others."""
    # Rounding leaves about 1e-17 of a zero variance; the smallest step of a share is far larger.
    standard = np.sqrt(np.maximum(variance, 1e-14))
    statistic: Floats = np.where(np.abs(difference) < TIE, 0.0, difference) / standard
    return statistic
