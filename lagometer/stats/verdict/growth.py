# SPDX-License-Identifier: Apache-2.0
"""Whether a queue builds up in a trial: the median response time grows during the measure phase.

Between the medians of the first and the last third of the messages, the response time grows by some share of
the elapsed time. A queue builds up if the growth is more than 1 %, amounts to at least two messages, and
exceeds chance: the medians' 99 % intervals (sign test) do not overlap. `lagometer search` and the warning
`queue-builds-up` share this judgement; docs/methodology/sustained-rate.md explains it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from lagometer.stats.interval.medians import median_interval
from lagometer.store import format as form

GROWTH_MAX = 0.01  # the reader keeps up with 99 % of what is sent, as for `rate-missed`
MESSAGES_MIN = 2.0  # growth of a backlog; less is not a queue but one message that waits now and then
THIRD_MIN = 10  # messages in one third
CHANCE = 0.01  # that a median lies outside its interval


@dataclass(frozen=True)
class Growth:
    """How the response time grew in a trial.

    per_s: seconds per second of sending. waiting: messages under way at a time in the last third, i.e. as
    many as arrive while one is under way (Little, *A Proof for the Queuing Formula: L = λW*, Operations
    Research 9, 1961). builds_up: whether that is a queue.
    """

    per_s: float
    waiting: float
    builds_up: bool

    @property
    def slope(self) -> float:
        """The growth per second at the reader, which is what a longer trial would add. Example: if each
        message waits 5 ms more than the one before, and one is taken every 15 ms, it is a third.
        """
        return self.per_s / (1.0 + self.per_s) if self.per_s > -1.0 else self.per_s


def response_growth(samples: pl.DataFrame, edge: str = form.END_TO_END) -> Growth | None:
    """The growth on an edge over the measure phase's delivered messages; measured from publishing if no
    schedule says when they were due. None with fewer than ten messages in each third.
    """
    due = pl.coalesce("intended_ns", "publish_ns")
    times = (
        samples.filter(
            (pl.col("edge") == edge) & (pl.col("phase") == "measure") & (pl.col("outcome") == "delivered")
        )
        .select(due_ns=due, response_ns=pl.col("taken_ns") - due)
        .drop_nulls()
        .sort("due_ns")
    )
    third = times.height // 3
    if third < THIRD_MIN:
        return None
    first, last = times.head(third), times.tail(third)
    first_due_ns, first_ns = (float(np.median(first[name])) for name in times.columns)
    last_due_ns, last_ns = (float(np.median(last[name])) for name in times.columns)
    passed_ns = last_due_ns - first_due_ns
    if passed_ns <= 0:
        return None
    period_ns = passed_ns / (times.height - third)
    grown_ns = last_ns - first_ns
    shown = grown_ns > GROWTH_MAX * passed_ns and grown_ns >= MESSAGES_MIN * period_ns
    return Growth(grown_ns / passed_ns, last_ns / period_ns, shown and _apart(first, last))


def _apart(first: pl.DataFrame, last: pl.DataFrame) -> bool:
    """Whether the last messages' median lies above the first ones', beyond chance."""
    below = median_interval(first["response_ns"].to_list(), CHANCE)
    above = median_interval(last["response_ns"].to_list(), CHANCE)
    return below is not None and above is not None and above[0] > below[1]
