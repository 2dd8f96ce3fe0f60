# SPDX-License-Identifier: Apache-2.0
"""How many trials a comparison needs to find a difference, and how large a difference it would have found.

Both are for the test in shares.py, whose statistic is Student's t. Its power is that of the t test (the
noncentral t distribution; Cohen, *Statistical Power Analysis for the Behavioral Sciences*, 1988) if trials
are normal. Earlier trials show whether they are: the test is tried on data like theirs. With few trials, few
relabellings are as extreme as the level asks for, in the smallest case only the one in which no trial of one
cell is on the other's side, so one trial out of line hides an effect. There the permutation test itself is
tried; with more trials, Student's t.
Effects are relative: 0.05 is 5 %.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import scipy

from lagometer.stats.interval.confidence import TRIALS_MIN
from lagometer.stats.interval.shares import TIE, Floats, Numbers, RatioTest, Side, Sides, fewest_trials

POWER = 0.95
# A variance from few trials is as often too small as too large. Used as it is, a prediction would fail every
# other time. This share of all predictions is enough (Browne, *On the use of a pilot sample for sample size
# determination*, Statistics in Medicine 14, 1995).
ASSURANCE = 0.8
TRIALS_FORESEEN = 100_000  # nobody runs more
# Up to so many trials of each cell, in pairs and otherwise, all relabellings are tried. Beyond, the
# permutation test has the power of the t test on the same data, within a few hundredths.
RELABELLED_IN_PAIRS, RELABELLED = 12, 7
TRIED_MAX = 1_000  # up to so many trials, data like the earlier ones are drawn; the mean of more is normal
DRAWN, SEED = 500, 19_881_204  # the same numbers of trials for the same question
# Earlier trials may by chance have few that are out of line. So the test is tried on resamples of them
# (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 6), and must have its power in this
# share of them. It exceeds ASSURANCE because resamples know nothing rarer than what was seen.
RESAMPLES, RESAMPLES_SHARE = 20, 0.9
# What disturbs a trial often disturbs the next ones, too. So neighbours are drawn together (the circular
# block bootstrap; Politis and Romano 1992): RUN of them, or fewer if the trials seen are fewer than RUNS_MIN
# such runs.
RUN, RUNS_MIN = 8, 10
DOUBLINGS = 6  # of an effect that few blocks show


def trials_needed(
    variance: float,
    effect: float,
    alpha: float,
    power: float = POWER,
    paired: bool = False,
    seen: Floats | None = None,
) -> int:
    """How many trials of each of two cells show a difference of `effect` with this probability.

    variance: of the logarithm of a cell's quantile, as determined by one trial alone (`upper_variance` of
    the `deviations`); for trials compared block by block, half the variance of the difference within a block
    (`measured_pair_variance`). alpha: the level of the two-sided test, divided by the number of tests if
    there are several. seen: the `deviations` or `seen_of_pairs` that the variance is of, in the order of
    time, since neighbours are drawn together; a number of trials is tried on data like them, on normal
    numbers without them. At most 100,000. Raises ValueError for an effect of zero, or a level or power that
    is not a probability.
    """
    if not effect > 0.0 or not 0.0 < alpha < 1.0 or not alpha < power < 1.0 or not variance >= 0.0:
        raise ValueError(f"variance {variance}, effect {effect}, alpha {alpha}, power {power}")
    fewest = max(TRIALS_MIN, fewest_trials(alpha, paired))
    by_student = _first_enough(
        fewest, lambda count: _power_of_student(variance, effect, alpha, count, paired) >= power
    )
    return _first_enough(
        by_student, lambda count: power_of(variance, effect, alpha, count, paired, seen) >= power
    )


def _first_enough(low: int, enough: Callable[[int], bool]) -> int:
    """The first number of trials that is enough, from `low` on; at most TRIALS_FORESEEN."""
    high = low
    while high < TRIALS_FORESEEN and not enough(high):
        low, high = high + 1, min(2 * high, TRIALS_FORESEEN)
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _relabelled(paired: bool) -> int:
    return RELABELLED_IN_PAIRS if paired else RELABELLED


def power_of(
    variance: float,
    effect: float,
    alpha: float,
    trials: int,
    paired: bool = False,
    seen: Floats | None = None,
) -> float:
    """The probability that this many trials of each of two cells show a difference of `effect`.

    The arguments are those of `trials_needed`.
    """
    usable = seen is not None and seen.shape[-1] >= TRIALS_MIN and bool(np.ptp(seen, axis=-1).any())
    if variance > 0.0 and trials <= _relabelled(paired) and not usable:
        return _power_on_normal_data(variance, effect, alpha, trials, paired)
    if variance > 0.0 and trials <= TRIED_MAX and seen is not None and usable:
        return _power_on_data_seen(seen, effect, alpha, trials, paired)
    return _power_of_student(variance, effect, alpha, trials, paired)


def _power_on_normal_data(variance: float, effect: float, alpha: float, trials: int, paired: bool) -> float:
    """The share of drawn data in which the test finds the effect."""
    scale = math.sqrt(2.0 * variance if paired else variance)
    data = np.random.default_rng(SEED).normal(0.0, scale, (trials if paired else 2 * trials, DRAWN))
    return _share_found(data, math.log1p(effect), alpha, paired)


def _power_on_data_seen(seen: Floats, effect: float, alpha: float, trials: int, paired: bool) -> float:
    """The share of drawn data in which the test finds the effect, that RESAMPLES_SHARE of all resamples of
    the trials seen reach."""
    generator = np.random.default_rng(SEED)
    middle = seen.mean(axis=-1, keepdims=True)
    wide = middle * paired + (seen - middle) * math.sqrt(_upper_factor(seen.shape[-1], ASSURANCE))
    count = seen.shape[-1]
    run = max(1, min(RUN, count // RUNS_MIN))
    powers = []
    # All resamples are drawn first: whatever the number of trials, they are the same.
    for chosen in _places_in_runs(generator, count, run, count, RESAMPLES).T:
        # A pair is drawn with either cell as the slower one: the effect is in `seen_of_pairs`.
        resample = wide[..., chosen].ravel()
        sides = [
            resample[_places_in_runs(generator, len(resample), run, trials, DRAWN)]
            for _ in range(1 if paired else 2)
        ]
        shift = 0.0 if paired else math.log1p(effect)
        powers.append(_share_found(np.concatenate(sides), shift, alpha, paired))
    return float(np.quantile(powers, 1.0 - RESAMPLES_SHARE, method="lower"))


def _places_in_runs(
    generator: np.random.Generator, available: int, run: int, count: int, columns: int
) -> npt.NDArray[np.int64]:
    """Places of trials, of which so many at a time (run) are neighbours; the first follows the last. Shape
    (count, columns)."""
    starts = generator.integers(available, size=(-(-count // run), 1, columns))
    places: npt.NDArray[np.int64] = (starts + np.arange(run)[None, :, None]) % available
    return places.reshape(-1, columns)[:count]


def _share_found(data: Floats, shift: float, alpha: float, paired: bool) -> float:
    """In which share of the columns the test finds that B is larger. data: the pairs' differences, or the
    trials of A, then of B; shape (trials, columns). shift: is added to the differences or to B, in place.
    """
    trials = len(data) if paired else len(data) // 2
    data[0 if paired else trials :] += shift
    if trials > _relabelled(paired):
        return _share_by_student(data, alpha, paired)
    sums = _signs(trials, paired) @ data
    observed = sums[0]
    # With as many trials on both sides, a larger difference of means is a larger t, so these are compared.
    beyond = (np.abs(sums) >= np.abs(observed) - TIE).mean(axis=0)
    return float(((beyond <= alpha) & (observed > 0.0)).mean())


def _share_by_student(data: Floats, alpha: float, paired: bool) -> float:
    """As `_share_found`, by Student's t instead of all relabellings."""
    trials = len(data) if paired else len(data) // 2
    a, b = (np.zeros_like(data), data) if paired else (data[:trials], data[trials:])
    difference = b.mean(axis=0) - a.mean(axis=0)
    standard_error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / trials)
    limit = float(scipy.special.stdtrit(trials - 1 if paired else 2 * trials - 2, 1.0 - alpha / 2.0))
    return float((difference > limit * standard_error).mean())


@functools.lru_cache(maxsize=32)
def _signs(trials: int, paired: bool) -> Floats:
    """Every relabelling as a row of signs, without those that only swap A and B; the first is the true one:
    B's trials count as plus."""
    if paired:
        return np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=trials - 1)])
    chosen = np.array(list(itertools.combinations(range(1, 2 * trials), trials)))[::-1]
    signs = np.full((len(chosen), 2 * trials), -1.0)
    np.put_along_axis(signs, chosen, 1.0, axis=1)
    return signs


def _power_of_student(variance: float, effect: float, alpha: float, trials: int, paired: bool) -> float:
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


def seen_of_pairs(
    trials_a: Sequence[Numbers], trials_b: Sequence[Numbers], permille: int, effect: float
) -> tuple[Floats, float]:
    """What the test sees of each block if B is slower by the effect, and if A is; shape (2, blocks). And how
    much of that is the effect, on average.

    It is the difference of the shares of messages, above zero if it speaks for the slower cell. What cells
    differ by on average is left out. A share has ends: a trial far out in the wrong direction counts at most
    as much as one in the right direction. So of few blocks, none may be so even that the effect shows; then
    larger ones tell how much it is. trials_a, trials_b: in one order of blocks, none empty.
    """
    test = RatioTest(Sides(tuple(trials_a), tuple(trials_b), paired=True), permille)

    def seen(slower: float) -> Floats:
        slower_b, slower_a = (test.differences(test.estimate * (1.0 + slower) ** sign) for sign in (-1, 1))
        return np.array([-slower_b, slower_a])

    larger = [effect * 2.0**doublings for doublings in range(DOUBLINGS)]
    change = max(float(seen(slower).mean()) / math.log1p(slower) for slower in larger)
    return seen(effect), change * math.log1p(effect)


def measured_pair_variance(seen: Floats, effect: float, change: float, assurance: float = ASSURANCE) -> float:
    """`upper_variance` of one trial of two that are compared block by block, from `seen_of_pairs`.

    Includes that the effect changes the shares of some blocks more than those of others.
    """
    variances = [upper_variance(direction, assurance) for direction in seen]
    return sum(variances) / len(variances) * (math.log1p(effect) / max(change, TIE)) ** 2 / 2.0


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


def upper_variance(values: Floats, assurance: float = ASSURANCE) -> float:
    """The limit (chi square) that the variance of the values' distribution does not exceed, with this
    probability. Raises ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError("a variance takes two trials")
    return float(np.var(values, ddof=1)) * _upper_factor(len(values), assurance)


def _upper_factor(count: int, assurance: float) -> float:
    """How many times a variance of so many values its upper limit is."""
    return (count - 1) / float(scipy.stats.chi2.ppf(1.0 - assurance, count - 1))
