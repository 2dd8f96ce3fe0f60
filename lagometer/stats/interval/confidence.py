# SPDX-License-Identifier: Apache-2.0
"""How far a cell's quantile may be off: intervals from several trials, or "not enough samples".

The quantity: *draw a trial of the cell at random and a message of it at random; with probability q its
latency does not exceed the q-quantile.* It has one true value even if trials differ. Every trial weighs the
same, and the share of messages below a limit estimates its probability without bias, however short trials
are.

The interval (Woodruff 1952) is found on the scale of shares: how exactly do these trials determine the share
of messages below the estimate? The variance of that share is the variance between trials, because messages of
a trial depend on each other and trials differ. If it happens to be below what the block bootstrap sees within
trials, or below the variance of independent messages, the larger one is used. The variance gives how many
independent messages the trials are worth (*effective*). With that number, Clopper and Pearson's limits for a
share, in the form of Korn and Graubard (1998), give two shares. The quantiles of the pooled messages at these
shares are the interval. docs/methodology/intervals.md explains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from lagometer.stats.interval.bootstrap import Bins, variance_of_trial_means

Numbers = npt.NDArray[np.int64]

CONFIDENCE = 0.95
# With five trials, the lowest and highest of their medians would enclose the true one in only 93.75 % of all
# cases (1 - 2 / 2^5). No method can promise more if trials differ by much. With six it is 96.9 %.
TRIALS_MIN = 6
SUPPORT = 10  # how many independent messages those beyond a tail quantile must be worth
FIGURES = ("latency", "response")
PERMILLE = {"p50": 500, "p90": 900, "p99": 990, "p999": 999}

OK = "ok"
NOT_ENOUGH = "not-enough-samples"


@dataclass(frozen=True)
class QuantileEstimate:
    """A quantile of a cell with its interval; the three figures are None unless the status is "ok"."""

    permille: int
    confidence: float  # 1 - alpha, the confidence the interval was computed for
    trials: int
    n: int  # messages of all trials
    effective: float  # how many independent messages would determine the share below the quantile as exactly
    status: str
    estimate_ns: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    needed_trials: int | None = None  # of this length; set if the status is not "ok"
    needed_messages: int | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width divided by the estimate; None if there is no interval."""
        if self.low_ns is None or self.high_ns is None or not self.estimate_ns:
            return None
        return (self.high_ns - self.low_ns) / 2.0 / abs(self.estimate_ns)


class Pool:
    """The messages of all trials of a cell, sorted once for any number of quantiles."""

    def __init__(self, trials: Sequence[npt.NDArray[np.integer[Any]]]) -> None:
        """trials: the latencies of each valid trial, in time order; empty ones do not count."""
        filled = [trial for trial in trials if len(trial)]
        counts = [len(trial) for trial in filled]
        self.trials, self.n = len(filled), sum(counts)
        self._together = np.concatenate(filled) if filled else np.zeros(0, dtype=np.int64)
        ends = np.cumsum(counts[:-1], dtype=np.int64)
        # Every trial weighs the same, however many messages it has; trials of one length are sorted together.
        parts = [self._together] if len(set(counts)) <= 1 else np.split(self._together, ends)
        self._ordered = [np.sort(part) for part in parts]
        self._bins = Bins(counts) if filled else None
        self._known: dict[int, tuple[float, float]] = {}

    def quantile(self, share: float) -> int:
        """The smallest number with at least this share of the weight at or below it (type 1)."""
        slack = 1e-9  # sums of weights, and products such as 0.07 * 100, end up next to whole numbers
        if len(self._ordered) == 1:
            place = int(np.ceil(share * self.n - slack)) - 1
            return int(self._ordered[0][min(max(place, 0), self.n - 1)])
        low = min(int(ordered[0]) for ordered in self._ordered)
        high = max(int(ordered[-1]) for ordered in self._ordered)
        while low < high:  # the smallest such whole number is one of the numbers: the weight grows only there
            middle = (low + high) // 2
            if self._weight_upto(middle) >= share - slack / self.n:
                high = middle
            else:
                low = middle + 1
        return low

    def _weight_upto(self, number: int) -> float:
        """The share of the messages up to a number; each trial weighs the same."""
        # In the array's own type: with any other type, each search would first copy the array.
        typed = self._together.dtype.type(number)
        shares = (np.searchsorted(ordered, typed, "right") / len(ordered) for ordered in self._ordered)
        return float(sum(shares)) / self.trials

    def estimate(self, permille: int, alpha: float = 1.0 - CONFIDENCE) -> QuantileEstimate:
        """The quantile with its interval of confidence 1 - alpha, or why there is none."""
        if self._bins is None:
            return self._not_enough(permille, alpha, 0.0, 0.0)
        share = permille / 1000.0
        effective, _ = self._worth(self._bins, permille)
        supported = self._supported(self._bins, permille) if permille != 500 else np.inf
        low, high = share_limits(share, effective, self.n, max(self.trials, 2), alpha)
        beyond_all = low * self.n < 1.0 or high * self.n > self.n - 1.0
        if self.trials < TRIALS_MIN or supported < SUPPORT or (beyond_all and permille != 500):
            return self._not_enough(permille, alpha, effective, supported)
        return QuantileEstimate(
            permille=permille,
            confidence=1.0 - alpha,
            trials=self.trials,
            n=self.n,
            effective=effective,
            status=OK,
            estimate_ns=self.quantile(share),
            low_ns=self.quantile(low),
            high_ns=self.quantile(high),
        )

    def independence(self) -> float:
        """How many independent messages one message counts as, between 0 and 1, judged at the median."""
        return self._worth(self._bins, 500)[1] / self.n if self._bins is not None else 0.0

    def _supported(self, bins: Bins, permille: int) -> float:
        """How many independent messages the messages beyond the quantile are worth.

        The dependence between messages is judged at the median: there it is known well and does not depend on
        the tail. If it were judged at the quantile itself, the lucky samples would be the ones printed: few
        observed stalls, a low quantile and a narrow interval, all at once.
        """
        return self._worth(bins, 500)[1] * min(permille, 1000 - permille) / 1000.0

    def _worth(self, bins: Bins, permille: int) -> tuple[float, float]:
        """How many independent messages the trials are worth, for the share below one of their quantiles.

        The first number takes everything into account; the second only the dependence between a trial's
        messages. Messages equal to the quantile count as below in part, such that the mean over the trials is
        the share itself: as if equal numbers had been ordered by tiny differences.
        """
        if permille not in self._known:
            share, middle = permille / 1000.0, self.quantile(permille / 1000.0)
            counts = bins.sizes.sum(axis=1)
            below, equal = bins.sums(self._together < middle), bins.sums(self._together == middle)
            share_below = float((below.sum(axis=1) / counts).mean())
            share_equal = float((equal.sum(axis=1) / counts).mean())
            sums = below + (share - share_below) / share_equal * equal
            means = sums.sum(axis=1) / counts
            between = float(means.var(ddof=1)) / len(means) if len(means) > 1 else 0.0
            single = share * (1.0 - share)
            within = max(variance_of_trial_means(sums, bins.sizes), single / self.n)
            self._known[permille] = single / max(between, within), single / within
        return self._known[permille]

    def _not_enough(
        self, permille: int, alpha: float, effective: float, supported: float
    ) -> QuantileEstimate:
        wanted = TRIALS_MIN
        if self.trials >= TRIALS_MIN:  # half as many again if the support is there but the limits are not
            more = SUPPORT / supported if supported < SUPPORT else 1.5
            wanted = max(self.trials + 1, int(np.ceil(self.trials * more)))
        elif supported:
            wanted = max(wanted, int(np.ceil(self.trials * SUPPORT / supported)))
        per_trial = self.n / self.trials if self.trials else 0.0
        least = TRIALS_MIN if permille == 500 else 1000.0 * SUPPORT / min(permille, 1000 - permille)
        return QuantileEstimate(
            permille=permille,
            confidence=1.0 - alpha,
            trials=self.trials,
            n=self.n,
            effective=effective,
            status=NOT_ENOUGH,
            needed_trials=wanted,
            needed_messages=int(np.ceil(max(wanted * per_trial, least))),
        )


def degrees_of_freedom(share: float, effective: float, trials: int) -> float:
    """How well the variance of the share is known, in degrees of freedom (Satterthwaite).

    A variance from k trials has k - 1 if the averaged numbers are normal. The share beyond a tail quantile is
    not: it comes in a few clusters. Its excess kurtosis adds to the variance of the variance. It is that of a
    Bernoulli variable, times three for clusters of geometric sizes, like those of Markov chains.
    """
    excess = max(0.0, 1.0 - 6.0 * share * (1.0 - share)) / (effective * share * (1.0 - share))
    return 1.0 / (1.0 / (trials - 1) + 1.5 * excess)


def share_limits(share: float, effective: float, n: int, trials: int, alpha: float) -> tuple[float, float]:
    """The limits that contain the true share with probability 1 - alpha if the estimate is `share`.

    Korn and Graubard, *Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data*, Survey Methodology 24 (1998): Clopper and Pearson's exact limits for the
    number of independent observations the sample is worth, reduced because the variance is known from few
    trials.
    """
    degrees = degrees_of_freedom(share, effective, trials)
    probability = 1.0 - alpha / 2.0
    ratio = scipy.special.stdtrit(n - 1, probability) / scipy.special.stdtrit(degrees, probability)
    worth = min(effective * ratio**2, float(n))
    hits = worth * share
    low = scipy.special.betaincinv(hits, worth - hits + 1.0, alpha / 2.0)
    high = scipy.special.betaincinv(hits + 1.0, worth - hits, 1.0 - alpha / 2.0)
    return float(low), float(high)


@dataclass(frozen=True)
class Stop:
    """Why a cell got no more trials, and the alpha its intervals may use (sequential.py)."""

    why: str  # "precision" | "time" | "trials"
    alpha: float = 1.0 - CONFIDENCE
