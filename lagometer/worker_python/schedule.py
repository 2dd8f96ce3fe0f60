# SPDX-License-Identifier: Apache-2.0
"""When a timer sends and how long a node works: exactly the same sequences as in the C++ worker."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lagometer.worker_python import plan_bounds

MASK_64 = (1 << 64) - 1
WORK_NS_MAX = float(plan_bounds.Rule.WORK_NS.high)


@dataclass(frozen=True)
class SchedulePlan:
    """kind: periodic, poisson, burst, ramp, recorded; late: what happens to a message that is overdue by a
    whole spacing: burst (sent), skip (dropped), shift (all later ones move by the same amount)."""

    kind: str = "periodic"
    late: str = "burst"
    seed: int = 0
    messages: int = 1
    end_period_ns: int = 0
    begin_ns: int = 0
    duration_ns: int = 0
    intervals_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class WorkPlan:
    """kind: constant, normal (spread_ns around the mean, truncated at 0), lognormal (sigma of the log),
    recorded (times_ns, repeated)."""

    kind: str = "constant"
    spread_ns: int = 0
    sigma: float = 0.0
    seed: int = 0
    times_ns: tuple[int, ...] = ()


class Random:
    """SplitMix64 (Steele, Lea and Flood 2014), as in the C++ worker."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def bits(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E37_79B9_7F4A_7C15) & MASK_64
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK_64
        word = ((word ^ (word >> 27)) * 0x94D0_49BB_1331_11EB) & MASK_64
        return word ^ (word >> 31)

    def uniform(self) -> float:
        """Uniform in (0, 1], so its logarithm is finite."""
        return ((self.bits() >> 11) + 1.0) * 2.0**-53

    def exponential(self) -> float:
        """Exponential with mean 1."""
        return -math.log(self.uniform())

    def normal(self) -> float:
        """Normal with mean 0 and standard deviation 1 (Box and Muller 1958; discards the second of each
        pair)."""
        radius = math.sqrt(-2.0 * math.log(self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())


class Schedule:
    """The intended times of a timer's messages, one after another, counted from the start."""

    def __init__(self, plan: SchedulePlan, period_ns: int) -> None:
        self._plan = plan
        self._period_ns = period_ns
        self._random = Random(plan.seed)
        self._index = 0
        self._sum_ns = 0
        self.spacing_ns = _spacing_ns(plan, period_ns)  # a message overdue by this much is late

    def next_ns(self) -> int:
        """The intended time of the next message. Never decreases."""
        plan, index = self._plan, self._index
        self._index += 1
        if plan.kind == "poisson":
            self._sum_ns += _rounded(self._random.exponential() * self._period_ns)
            return self._sum_ns
        if plan.kind == "burst":
            return index // plan.messages * self.spacing_ns
        if plan.kind == "ramp":
            return _rounded(self._ramp_ns(index))
        if plan.kind == "recorded":
            if index > 0:
                self._sum_ns += plan.intervals_ns[(index - 1) % len(plan.intervals_ns)]
            return self._sum_ns
        return index * self._period_ns

    def _ramp_ns(self, index: int) -> float:
        """Message k is due when the integral of the rate, a t + (b - a) t² / 2 D, reaches k. Uses the
        solution without cancellation. Each time is computed from k alone, so errors don't add up."""
        plan = self._plan
        begin_rate, end_rate = 1.0 / self._period_ns, 1.0 / plan.end_period_ns
        within = index - plan.begin_ns * begin_rate
        if within <= 0.0:
            return index / begin_rate
        whole_ramp = (begin_rate + end_rate) / 2.0 * plan.duration_ns
        if within >= whole_ramp:
            return plan.begin_ns + plan.duration_ns + (within - whole_ramp) / end_rate
        square = begin_rate * begin_rate + 2.0 * (end_rate - begin_rate) * within / plan.duration_ns
        return plan.begin_ns + 2.0 * within / (begin_rate + math.sqrt(square))


class Work:
    """Draws work times."""

    def __init__(self, plan: WorkPlan, work_ns: int) -> None:
        self._plan = plan
        self._work_ns = work_ns
        self._random = Random(plan.seed)
        self._next = 0

    def next_ns(self) -> int:
        """How long the node works on the next message."""
        plan = self._plan
        if plan.kind == "normal":
            while True:  # truncated: negative values are drawn again, on average at most once
                drawn = self._work_ns + plan.spread_ns * self._random.normal()
                if drawn >= 0.0:
                    return _rounded(min(drawn, WORK_NS_MAX))
        if plan.kind == "recorded":
            self._next += 1
            return plan.times_ns[(self._next - 1) % len(plan.times_ns)]
        if plan.kind == "lognormal":
            return _rounded(min(self._work_ns * math.exp(plan.sigma * self._random.normal()), WORK_NS_MAX))
        return self._work_ns


def messages_due(plan: SchedulePlan, period_ns: int, offset_ns: int, begin_ns: int, end_ns: int) -> int:
    """Returns how many messages a schedule has from begin_ns up to, but not including, end_ns, both counted
    from the start."""
    if plan.kind == "periodic":
        return _periods_before(end_ns, period_ns, offset_ns) - _periods_before(begin_ns, period_ns, offset_ns)
    schedule, count = Schedule(plan, period_ns), 0
    while (due_ns := offset_ns + schedule.next_ns()) < end_ns:
        count += due_ns >= begin_ns
    return count


def _periods_before(time_ns: int, period_ns: int, offset_ns: int) -> int:
    return 0 if time_ns <= offset_ns else -(-(time_ns - offset_ns) // period_ns)


def _spacing_ns(plan: SchedulePlan, period_ns: int) -> int:
    if plan.kind == "burst":
        return period_ns * plan.messages
    if plan.kind == "ramp":
        return max(period_ns, plan.end_period_ns)
    if plan.kind == "recorded":
        return max(1, sum(plan.intervals_ns) // len(plan.intervals_ns))
    return period_ns


def _rounded(value: float) -> int:
    """Rounds to the nearest whole number, halves away from zero, like C's llround."""
    whole = math.trunc(value)
    return whole + int(math.copysign(abs(value - whole) >= 0.5, value))
