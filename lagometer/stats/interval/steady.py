# SPDX-License-Identifier: Apache-2.0
"""Where a trial becomes steady: caches are warm, connections exist, frequencies are settled.

The procedure is that of Heidelberger and Welch (1983): test whether the whole series is stationary; if not,
drop another twentieth of its beginning, until the test passes or half is gone. The test is Cramér and von
Mises' on the series' cumulated deviations, which are a Brownian bridge if it is stationary. The dependence
between messages is judged in the second half, where a warm-up should be over. Two things are our own. The
series contains the latencies' ranks, because latencies have tails in which one stall outweighs everything
else. And a drift too small to matter passes, because with many messages any drift is significant.
"""

from __future__ import annotations

import numpy as np
import scipy

from lagometer.stats.interval.bootstrap import Bins, Floats, variance_of_trial_means
from lagometer.stats.interval.confidence import Numbers

MESSAGES_MIN = 100  # with fewer, nothing can be distinguished
STEPS = 20  # a step is one part in this many of the series
CRITICAL = 0.743  # a stationary series' statistic exceeds it in 1 % of all cases
DRIFT_MAX = 0.02  # how much the quarters' medians may differ from the whole series' median


def steady_start(latencies: Numbers, latest: int | None = None) -> int | None:
    """The index of the first message of the steady part; None if there is none.

    latencies: of a trial's delivered messages in time order, from the earliest that may count; at least
    MESSAGES_MIN, otherwise ValueError. latest: the steady part starts at this index or earlier; half of the
    series is the limit in any case.
    """
    count = len(latencies)
    if count < MESSAGES_MIN:
        raise ValueError(f"{count} messages are too few to be tested; {MESSAGES_MIN} are needed")
    ranks = scipy.stats.rankdata(latencies)
    limit = count // 2 if latest is None else min(latest, count // 2)
    for step in range(STEPS // 2 + 1):
        start = count * step // STEPS
        if start > limit:
            break
        if _bridge_statistic(ranks[start:]) <= CRITICAL or _drifts_little(latencies[start:]):
            return start
    return None


def _bridge_statistic(series: Floats) -> float:
    """The Cramér-von Mises statistic of the cumulated deviations from the mean, in units of their spread."""
    half = series[len(series) // 2 :]
    bins = Bins([len(half)])
    spectrum = variance_of_trial_means(bins.sums(half), bins.sizes) * len(half)
    if spectrum <= 0.0:
        return 0.0 if np.ptp(series) == 0.0 else np.inf
    bridge = np.cumsum(series - series.mean())
    return float(np.mean(np.square(bridge)) / (spectrum * len(series)))


def _drifts_little(latencies: Numbers) -> bool:
    whole = float(np.median(latencies))
    quarters = [float(np.median(part)) for part in np.array_split(latencies, 4)]
    return max(abs(quarter - whole) for quarter in quarters) <= DRIFT_MAX * abs(whole)
