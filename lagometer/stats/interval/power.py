# SPDX-License-Identifier: Apache-2.0
"""How many trials a comparison needs to find a difference, and how large a difference it would have found.

Both are for the test in shares.py, whose statistic is Student's t. Its power is that of the t test (the
noncentral t distribution; Cohen, *Statistical Power Analysis for the Behavioral Sciences*, 1988), and the
number of trials is at least what a permutation test of this level needs. Effects are relative: 0.05 is 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from lagometer.stats.interval.confidence import TRIALS_MIN
from lagometer.stats.interval.shares import Floats, Numbers, Side, fewest_trials

POWER = 0.95
# A variance from few trials is as often too small as too large. Used as it is, a prediction would fail every
# other time. This share of all predictions is enough (Browne, *On the use of a pilot sample for sample size
# determination*, Statistics in Medicine 14, 1995).
ASSURANCE = 0.8
TRIALS_FORESEEN = 100_000  # nobody runs more


def trials_needed(
    variance: float, effect: float, alpha: float, power: float = POWER, paired: bool = False
) -> int:
    """How many trials of each of two cells show a difference of `effect` with this probability.

    variance: of the logarithm of a cell's quantile, as determined by one trial alone (`measured_variance`);
    for trials compared block by block, half the variance of the difference within a block
    (`measured_pair_variance`). alpha: the level of the two-sided test, divided by the number of tests if
    there are several. At most 100,000. Raises ValueError for an effect of zero, or a level or power that is
    not a probability.
    """
    if not effect > 0.0 or not 0.0 < alpha < 1.0 or not alpha < power < 1.0 or not variance >= 0.0:
        raise ValueError(f"variance {variance}, effect {effect}, alpha {alpha}, power {power}")
    low = max(TRIALS_MIN, fewest_trials(alpha, paired))
    high = low
    while high < TRIALS_FORESEEN and power_of(variance, effect, alpha, high, paired) < power:
        low, high = high + 1, min(2 * high, TRIALS_FORESEEN)
    while low < high:
        middle = (low + high) // 2
        if power_of(variance, effect, alpha, middle, paired) < power:
            low = middle + 1
        else:
            high = middle
    return high


def power_of(variance: float, effect: float, alpha: float, trials: int, paired: bool = False) -> float:
    """The probability that this many trials of each of two cells show a difference of `effect`.

    The arguments are those of `trials_needed`.
    """
    if variance == 0.0:
        return 1.0
    degrees = trials - 1 if paired else 2 * trials - 2
    distance = math.log1p(effect) / math.sqrt(2.0 * variance / trials)
    limit = float(scipy.special.stdtrit(degrees, 1.0 - alpha / 2.0))
    if distance > limit + 20.0:  # the distribution function has no digits there
        return 1.0
    return float(scipy.stats.nct.sf(limit, degrees, distance))


def detectable_effect(low: float, high: float, degrees: int, alpha: float, power: float = POWER) -> float:
    """The difference that would have been found with this probability, from a ratio's 95 % interval.

    degrees: of freedom: the trials of both cells minus two, or the pairs minus one. alpha: the level of the
    test.
    """
    standard_error = math.log(high / low) / 2.0 / float(scipy.special.stdtrit(degrees, 0.975))
    limit = float(scipy.special.stdtrit(degrees, 1.0 - alpha / 2.0)) + float(
        scipy.special.stdtrit(degrees, power)
    )
    return math.expm1(limit * standard_error)


def measured_variance(
    trials: Sequence[Numbers], permille: int, effect: float, assurance: float = ASSURANCE
) -> float:
    """The variance for `trials_needed`, from earlier trials of a cell.

    This is not the smallest variance that fits but the upper limit (chi square) that holds with probability
    `assurance`. Raises ValueError for fewer than two trials.
    """
    return _upper_variance(deviations([trial for trial in trials if len(trial)], permille, effect), assurance)


def measured_pair_variance(deviations_a: Floats, deviations_b: Floats, assurance: float = ASSURANCE) -> float:
    """The same for trials compared block by block: the `deviations` of two cells, in the same order."""
    return _upper_variance(deviations_b - deviations_a, assurance) / 2.0


def deviations(trials: Sequence[Numbers], permille: int, effect: float) -> Floats:
    """How far each trial lies from its cell's quantile, on the logarithmic scale; shape (trials,).

    The test sees shares of messages. So the deviation is the trial's share up to the quantile, divided by how
    much the effect would change shares. trials: none of them empty.
    """
    if not trials:
        return np.zeros(0)
    side, share = Side(trials), permille / 1000.0
    quantile, half = side.quantile(share), math.sqrt(1.0 + effect)
    change = float((side.shares(quantile * half)[1] - side.shares(quantile / half)[1]).mean())
    change = max(change, 1.0 / len(side.values))
    shares: Floats = side.shares(quantile).mean(axis=0)
    return (share - shares) * (math.log1p(effect) / change)


def _upper_variance(values: Floats, assurance: float) -> float:
    """The limit that the variance of the values' distribution does not exceed, with this probability."""
    if len(values) < 2:
        raise ValueError("a variance takes two trials")
    degrees = len(values) - 1
    return float(np.var(values, ddof=1)) * degrees / float(scipy.stats.chi2.ppf(1.0 - assurance, degrees))
