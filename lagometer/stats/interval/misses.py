# SPDX-License-Identifier: Apache-2.0
"""How far a cell's share of missed deadlines may be off. The unit is the trial.

The quantity: *draw a trial of the cell at random and a message of it at random; with what probability does it
miss its deadline?* Every trial weighs the same, as for quantiles (`confidence`), and the interval is computed
the same way. The variance of the share is the largest of three: between trials, within trials by the block
bootstrap, and of independent messages. It gives how many independent messages the trials are worth, and that
number gives Clopper and Pearson's limits as Korn and Graubard (1998) use them.

Misses are rare and come in clusters, so two rules are added. First, messages are never worth more than at the
median of their times, where their dependence is known well. If no message or every message missed, that alone
decides. The limit is then for how often misses begin, since nothing shows how long they last. Second, the
variance never counts as known from fewer than ten independent misses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from lagometer.stats.interval.bootstrap import Bins, variance_of_trial_means
from lagometer.stats.interval.confidence import SUPPORT, degrees_of_freedom
from lagometer.store.format import APART

Mask = npt.NDArray[np.bool_]
_OWN = ~pl.col("outcome").is_in(APART)


def missed_in_order(measured: pl.DataFrame, deadline_ns: int) -> Mask:
    """For each message of an edge's measure phase, in the order of the rows, whether it missed.

    This shows how misses cluster, not how many there were: skipped messages have no row, and it ignores
    whether a message still under way at the end of the drain would have been in time.
    """
    due = pl.coalesce("intended_ns", "publish_ns")
    met = (pl.col("outcome") == "delivered") & (pl.col("taken_ns") - due <= deadline_ns)
    return measured.filter(_OWN).select(missed=~met.fill_null(value=False))["missed"].to_numpy()


def miss_limits(
    shares: Sequence[float], missed: Sequence[Mask], due: int, worth: float, alpha: float
) -> tuple[float, float]:
    """The limits that enclose the share of misses with probability 1 - alpha.

    shares: of the messages due in each trial. missed: per trial, in time order. due: messages of all trials.
    worth: how many independent messages those are worth before looking at the misses.
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
    """The part of the mean share's variance that comes from the clustering of misses within trials."""
    filled = [trial for trial in missed if len(trial)]
    if not filled:
        return 0.0
    bins = Bins([len(trial) for trial in filled])
    return variance_of_trial_means(bins.sums(np.concatenate(filled)), bins.sizes)


def clopper_pearson(hits: float, count: float, alpha: float) -> tuple[float, float]:
    """The exact limits for a share, given `hits` of `count`; neither needs to be a whole number."""
    low = scipy.special.betaincinv(hits, count - hits + 1.0, alpha / 2.0) if hits > 0.0 else 0.0
    high = scipy.special.betaincinv(hits + 1.0, count - hits, 1.0 - alpha / 2.0) if hits < count else 1.0
    return float(low), float(high)
