# SPDX-License-Identifier: Apache-2.0
"""How exactly trials determine the share of lost messages: the interval of a share from clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lagometer.stats.interval.confidence import CONFIDENCE, SUPPORT, TRIALS_MIN, share_limits


def loss_share_interval(
    trials: Sequence[tuple[int | None, int | None]], alpha: float = 1.0 - CONFIDENCE
) -> tuple[float, float] | None:
    """The interval of the probability that a message is lost, in a trial drawn at random.

    trials: the messages lost and sent in each valid trial. The method is the one for quantiles: the variance
    of the share is the variance between trials, but at least that of independent messages. The limits are
    Clopper and Pearson's for the number of independent messages the trials are worth. None below six trials,
    if the losses are worth fewer than ten independent ones, or if nothing was lost: that is not known to be a
    rate.
    """
    counted = [(lost, sent) for lost, sent in trials if lost is not None and sent]
    if len(counted) < max(TRIALS_MIN, len(trials)):
        return None
    shares = np.array([lost / sent for lost, sent in counted])
    messages, share = sum(sent for _, sent in counted), float(shares.mean())
    if not 0.0 < share < 1.0:
        return None
    single = share * (1.0 - share)
    between = float(shares.var(ddof=1)) / len(counted)
    effective = single / max(between, single / messages)
    if effective * min(share, 1.0 - share) < SUPPORT:
        return None
    return share_limits(share, effective, messages, len(counted), alpha)
