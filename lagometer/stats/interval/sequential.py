# SPDX-License-Identifier: Apache-2.0
"""When a cell has enough trials: spaced looks at its median, each at a smaller alpha than the whole.

Looking after every trial and stopping as soon as the interval seems narrow stops too early too often: a
variance that happens to be small ends the cell. So there are few looks (the first after six trials, each next
one after 1.4 times as many), and each computes its interval with half of alpha. Using one level for all looks
is Pocock's (1977) way to spend alpha. docs/methodology/intervals.md explains why half is enough for intervals
of a fixed width, and `make coverage` tests the whole procedure. Nothing in this module depends on time or
files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import scipy

from lagometer.stats.interval.confidence import CONFIDENCE, TRIALS_MIN, Numbers, Pool, QuantileEstimate, Stop

ALPHA_LOOK = (1.0 - CONFIDENCE) / 2.0
ALPHA_LAST = 0.04  # of the interval if a limit ends the cell, whatever its width
SPACING = 1.4  # from one look to the next, in trials
TRIALS_FORESEEN = 100_000  # no prediction goes beyond this


@dataclass(frozen=True)
class Rule:
    """The wanted precision of a median, and the limits for the number of trials."""

    precision: float  # half of the interval's width divided by the estimate: 0.05 is 5 %
    trials_min: int = TRIALS_MIN
    trials_max: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError if the rule is impossible to follow."""
        if not 0.0 < self.precision < 1.0:
            raise ValueError(f"precision {self.precision} is not between 0 and 1")
        if self.trials_min < TRIALS_MIN:
            raise ValueError(f"trials_min {self.trials_min} is less than {TRIALS_MIN}")
        if self.trials_max is not None and self.trials_max < self.trials_min:
            raise ValueError(f"trials_max {self.trials_max} is less than trials_min {self.trials_min}")


@dataclass(frozen=True)
class Decision:
    """The result of a look. `estimate` and `alpha` are None if there was no look."""

    stop: bool
    why: str | None = None  # "precision" | "trials" | "time"
    estimate: QuantileEstimate | None = None  # of the median
    alpha: float | None = None  # of its interval, and of the cell's other intervals once it has stopped
    next_look: int | None = None  # valid trials at the next look; None after a stop
    predicted_trials: int | None = None  # total valid trials at which the precision should be reached

    @property
    def as_stop(self) -> Stop | None:
        """What `estimates` needs to know about a stop; None if the cell has not stopped."""
        return Stop(self.why, self.alpha) if self.why is not None and self.alpha is not None else None


def looks(rule: Rule) -> Iterator[int]:
    """The numbers of valid trials after which a stop is considered; the last is trials_max, if given."""
    trials = rule.trials_min
    while rule.trials_max is None or trials < rule.trials_max:
        yield trials
        trials = math.ceil(trials * SPACING)
    if rule.trials_max is not None:
        yield rule.trials_max


def looks_until(trials: int, rule: Rule) -> list[int]:
    """The looks made within this many valid trials."""
    return list(itertools.takewhile(lambda look: look <= trials, looks(rule)))


def decide(trials: Sequence[Numbers], rule: Rule, limit: str | None = None) -> Decision:
    """Whether a cell stops now. Call it after each trial; the same trials give the same answer.

    trials: the latencies of each valid trial, in time order. limit: "time" if the cell has no time left. The
    function checks trials_max itself.
    """
    count = sum(len(trial) > 0 for trial in trials)
    following = _next_look(count, rule)
    decision = Decision(stop=False, next_look=following)
    looked = following is None or count in looks_until(count, rule)
    if not looked and limit is None:
        return decision
    pool = Pool(trials)  # sorts every message, so only if there is a look
    if looked:
        alpha = alpha_at(count, rule)
        estimate = pool.estimate(500, alpha)
        if estimate.half_width is not None and estimate.half_width <= rule.precision:
            return Decision(True, "precision", estimate, alpha)
        predicted = _predict(estimate.half_width, count, alpha, rule)
        decision = Decision(False, None, estimate, alpha, following, predicted)
        limit = limit or ("trials" if following is None else None)
    if limit is None:
        return decision
    alpha = alpha_at(count, rule, limit)
    estimate = pool.estimate(500, alpha)
    predicted = _predict(estimate.half_width, count, alpha, rule)
    return Decision(True, limit, estimate, alpha, predicted_trials=predicted)


def alpha_at(trials: int, rule: Rule, limit: str | None = None) -> float:
    """The alpha of the interval after this many trials: a look's alpha, or more if a limit ends the cell.

    Also for a cell that stopped earlier; `limit` is then the reason (not "precision").
    """
    last = _next_look(trials, rule) is None
    return ALPHA_LAST if limit in ("time", "trials") or last else ALPHA_LOOK


def trials_for(relative_sd: float, rule: Rule) -> int:
    """How many trials a cell will take, from the relative standard deviation of its trials' medians.

    Used to predict a campaign's time. The result is the first look at which the median's interval should be
    narrow enough. For normal trials, the standard error of a median is at least that of the mean.
    """
    for look in looks(rule):
        alpha = alpha_at(look, rule)
        if _student(look, alpha) * relative_sd / math.sqrt(look) <= rule.precision or look > TRIALS_FORESEEN:
            return look
    return rule.trials_max or TRIALS_FORESEEN


def _predict(width: float | None, count: int, alpha: float, rule: Rule) -> int | None:
    if width is None or count < TRIALS_MIN:
        return None
    relative_sd = width * math.sqrt(count) / _student(count, alpha)
    free = Rule(rule.precision, rule.trials_min)
    return next(
        look
        for look in looks(free)
        if look > count
        and (
            _student(look, alpha_at(look, free)) * relative_sd <= rule.precision * math.sqrt(look)
            or look > TRIALS_FORESEEN
        )
    )


def _student(trials: int, alpha: float) -> float:
    return float(scipy.special.stdtrit(trials - 1, 1.0 - alpha / 2.0))


def _next_look(trials: int, rule: Rule) -> int | None:
    return next((look for look in looks(rule) if look > trials), None)
