# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest sustained rate: bisection in the logarithm of the rate.

It knows nothing of trials: a function that it receives tries a rate and returns whether it was sustained.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

STEP = 4.0  # between rates until there is a bracket
NEIGHBOURS = 2  # consecutive rates on which all trials must agree at each end of the interval
DIGITS = 4  # of rates: more would exceed what a trial can resolve


@dataclass(frozen=True)
class Bounds:
    """Where and how finely to search.

    low_hz: the first rate to try; floor_hz, ceiling_hz: the lowest and highest rate to try; precision: the
    bracket's width divided by its lower end; repeats: trials of a rate at the border, an odd number.
    """

    low_hz: float
    floor_hz: float
    ceiling_hz: float
    precision: float
    repeats: int


@dataclass
class Found:
    """The result of a search.

    status: `found`; `at-least` (the highest rate was sustained), `below` (the lowest was not). sustained_hz,
    failed_hz: the bracket, whose ends follow the majority of their trials. low_hz, high_hz: the interval
    beyond which all repeated trials of two neighbouring rates agree. None: not tried, or it does not exist.
    """

    status: str = "found"
    sustained_hz: float | None = None
    failed_hz: float | None = None
    low_hz: float | None = None
    high_hz: float | None = None
    tried: dict[float, list[bool]] = field(default_factory=dict)


def rounded(rate_hz: float) -> float:
    """The rate with few digits, so it has a short name."""
    return round(rate_hz, DIGITS - 1 - math.floor(math.log10(rate_hz)))


def search_rate(bounds: Bounds, attempt: Callable[[float], bool]) -> Found:
    """Finds the highest sustained rate. `attempt`: runs one trial at a rate; its errors propagate."""
    search = _Search(bounds, attempt)
    search.carry_out()
    return search.found


class _Search:
    def __init__(self, bounds: Bounds, attempt: Callable[[float], bool]) -> None:
        self._bounds = bounds
        self._attempt = attempt
        self.found = Found()

    def carry_out(self) -> None:
        """Finds a bracket, narrows it, and widens it to the interval."""
        result = self.found
        self._climb()
        while result.status == "found":
            self._bisect()
            assert result.sustained_hz is not None
            if self._majority(result.sustained_hz):
                break
            result.failed_hz, result.sustained_hz = result.sustained_hz, None
            self._descend(result.failed_hz)
        self._widen()

    def _climb(self) -> None:
        """Steps up until a rate is not sustained. Steps down if that was the first rate."""
        bounds, result = self._bounds, self.found
        rate_hz = rounded(bounds.low_hz)
        # One success is enough on the way up: the rate is tried again when it is the end of the bracket. The
        # ceiling is the end of the search.
        while self._try(rate_hz) or self._majority(rate_hz):
            if rate_hz >= bounds.ceiling_hz:
                if not self._majority(rate_hz):
                    break
                result.sustained_hz, result.status = rate_hz, "at-least"
                return
            result.sustained_hz = rate_hz
            rate_hz = rounded(min(rate_hz * STEP, bounds.ceiling_hz))
        result.failed_hz = rate_hz
        if result.sustained_hz is None:
            self._descend(rate_hz)

    def _descend(self, rate_hz: float) -> None:
        """Steps down until a rate is sustained."""
        bounds, result = self._bounds, self.found
        while result.sustained_hz is None:
            if rate_hz <= bounds.floor_hz:
                result.status = "below"
                return
            rate_hz = max(rounded(rate_hz / STEP), bounds.floor_hz)
            if self._majority(rate_hz):
                result.sustained_hz = rate_hz
            else:
                result.failed_hz = rate_hz

    def _bisect(self) -> None:
        result = self.found
        while True:
            assert result.sustained_hz is not None and result.failed_hz is not None
            middle_hz = rounded(math.sqrt(result.sustained_hz * result.failed_hz))
            narrow = result.failed_hz <= result.sustained_hz * (1.0 + self._bounds.precision)
            if narrow or not result.sustained_hz < middle_hz < result.failed_hz:
                break
            if self._majority(middle_hz):
                result.sustained_hz = middle_hz
            else:
                result.failed_hz = middle_hz

    def _widen(self) -> None:
        """Repeats the trials at the bracket's ends, and goes outwards until all trials agree."""
        result = self.found
        if result.sustained_hz is not None:
            result.low_hz = self._until_all(result.sustained_hz, True)
        if result.failed_hz is not None:
            result.high_hz = self._until_all(result.failed_hz, False)

    def _until_all(self, rate_hz: float, wanted: bool) -> float | None:
        """The second of two neighbouring rates at which all repeated trials agree.

        With a soft border, one rate could agree by chance. None: there are no two such rates within the
        bounds.
        """
        agreed = 0
        step = 1.0 + self._bounds.precision
        while self._bounds.floor_hz <= rate_hz <= self._bounds.ceiling_hz:
            if self._all(rate_hz, wanted):
                agreed += 1
            else:
                agreed, step = 0, step**1.5  # few steps for a wide border
            if agreed == NEIGHBOURS:
                return rate_hz
            rate_hz = rounded(rate_hz / step if wanted else rate_hz * step)
        return None

    def _try(self, rate_hz: float) -> bool:
        answer = self._attempt(rate_hz)
        self.found.tried.setdefault(rate_hz, []).append(answer)
        return answer

    def _majority(self, rate_hz: float) -> bool:
        """The majority of the repeated trials. Stops as soon as the rest can't change it."""
        needed = self._bounds.repeats // 2 + 1
        answers = self.found.tried.setdefault(rate_hz, [])
        while max(answers.count(True), answers.count(False)) < needed:
            self._try(rate_hz)
        return answers.count(True) > answers.count(False)

    def _all(self, rate_hz: float, wanted: bool) -> bool:
        answers = self.found.tried.setdefault(rate_hz, [])
        while len(answers) < self._bounds.repeats and (not answers or set(answers) == {wanted}):
            self._try(rate_hz)
        return set(answers) == {wanted}
