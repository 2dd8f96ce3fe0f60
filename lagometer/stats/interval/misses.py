# SPDX-License-Identifier: Apache-2.0
"""How far the share of missed deadlines of a cell may be off. The unit is the trial.

The quantity: *draw a trial of the cell at random and a message of it at random; with what probability does it
miss its deadline?* Every trial weighs the same, as for quantiles (`confidence`), and so the interval is made
like theirs: the variance of the share is the largest of that between trials, that within trials by the block
bootstrap, and that of independent messages; from it follows how many independent messages the trials are
worth, and from that Clopper and Pearson's limits as Korn and Graubard (1998) use them.

Misses are rare and come in clusters, so two things are added. Messages are never taken to be worth more than
they are at the median of their times, where how they hang together is known well; where none was missed, or
every one, that alone decides, and the limit is for how often misses begin, since none tells how long they
last. And the variance counts as known from no fewer than ten independent misses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from lagometer.stats.interval.bootstrap import Bins, variance_of_trial_means
from lagometer.stats.interval.confidence import SUPPORT, degrees_of_freedom

Mask = npt.NDArray[np.bool_]
_OWN = ~pl.col("outcome").is_in(["duplicate", "unmatched"])


def missed_in_order(measured: pl.DataFrame, deadline_ns: int) -> Mask:
    """Of each message of an edge's measure phase, in the order of the samples, whether it missed.

    It says how misses hang together and not how many there were: what was skipped has no row, and whether one
    that was under way when the drain ended would have been in time is not asked.
    """
    due = pl.coalesce("intended_ns", "publish_ns")
    met = (pl.col("outcome") == "delivered") & (pl.col("taken_ns") - due <= deadline_ns)
    return measured.filter(_OWN).select(missed=~met.fill_null(value=False))["missed"].to_numpy()


def miss_limits(
    shares: Sequence[float], missed: Sequence[Mask], due: int, worth: float, alpha: float
) -> tuple[float, float]:
    """The limits that enclose the share of misses with probability 1 - alpha.

    shares: of the messages due in each trial; missed: of each trial, in the order of time; due: messages of
    all trials; worth: as many independent messages those are worth where misses say nothing of it.
    """
    trials = len(shares)
    share = float(np.mean(shares))
    single = share * (1.0 - share)
    if single <= 0.0:
        return clopper_pearson(share * worth, worth, alpha)
    between = float(np.var(shares, ddof=1)) / trials
    effective = min(worth, single / max(between, _within(missed), single / due))
    degrees = degrees_of_freedom(share, max(effective, SUPPORT / single), trials)
    probability = 1.0 - alpha / 2.0
    ratio = scipy.special.stdtrit(max(due - 1, 1), probability) / scipy.special.stdtrit(degrees, probability)
    counted = effective * min(ratio, 1.0) ** 2
    return clopper_pearson(float(share * counted), float(counted), alpha)


def _within(missed: Sequence[Mask]) -> float:
    """The variance of the mean share as far as it comes from how misses hang together within trials."""
    filled = [trial for trial in missed if len(trial)]
    if not filled:
        return 0.0
    bins = Bins([len(trial) for trial in filled])
    return variance_of_trial_means(bins.sums(np.concatenate(filled)), bins.sizes)


def clopper_pearson(hits: float, count: float, alpha: float) -> tuple[float, float]:
    """The exact limits for a share of which `hits` of `count` were seen, neither need be whole."""
    low = scipy.special.betaincinv(hits, count - hits + 1.0, alpha / 2.0) if hits > 0.0 else 0.0
    high = scipy.special.betaincinv(hits + 1.0, count - hits, 1.0 - alpha / 2.0) if hits < count else 1.0
    return float(low), float(high)
