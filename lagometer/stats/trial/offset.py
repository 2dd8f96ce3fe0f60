# SPDX-License-Identifier: Apache-2.0
"""The offset between two hosts' clocks during a trial, from time stamps the hosts exchanged.

An exchange is a question and its answer: `sent` and `returned` on the asking side's clock, `received` and
`answered` on the other's. Let offset(t) be how far the other's clock is ahead of ours when ours shows t.

*Hard bound.* A message is received after it was sent, and answered before the answer came back, whatever
happened on the way. So between `sent` and `returned` there is an instant at which the offset was at most
`received - sent`, and one at which it was at least `answered - returned`. Away from these instants the offset
changes by at most the greatest drift times the time between. The hard bound is the intersection of what all
exchanges allow (Marzullo and Owicki, "Maintaining the time in a distributed system", 1983). It holds however
different the two directions are.

*Narrow bound.* If both directions take the same time when nothing delays a message, an undelayed exchange
shows the offset at its middle. A line through the fastest exchanges is then the offset (minimum filter, with
the drift as its slope). If the kernel stamped received messages, its stamps are used: they contain no wake-up
of the waiting thread. The hard bound uses none of them: they rest on a wall clock that anyone may set,
while the hard bound rests only on the drift. No exchange can show how much the two directions still differ;
the bound allows a quarter of the fastest round trip for that. Whoever calls a link symmetric vouches for it:
no two-way exchange can distinguish an asymmetry from an offset.

All times are in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from lagometer.store.exchanges import Exchanges, ToldOffset

Times = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FASTEST_SHARE = 0.15  # of the exchanges, for the line
FASTEST_MIN = 6
KERNEL_SHARE_MIN = 0.5  # of the exchanges that a side began; this share must have the kernel's stamps
ASYMMETRY_SHARE = 1 / 4  # of the fastest round trip
ERRORS = 4.0  # standard errors of the line to allow for
ROUNDING_NS = 2.0  # of numbers below 2^53, added up a few times


class Bound(Enum):
    """Which bound a trial has. PTP: the narrow one, which PTP confirmed and nobody vouched for."""

    HARD = "hard"
    NARROW = "narrow"
    PTP = "ptp"


@dataclass(frozen=True)
class Limits:
    """One-sided limits of the offset: `value` holds at some instant in `begin` to `end` of our clock."""

    value: Floats
    begin: Floats
    end: Floats


@dataclass(frozen=True)
class Offset:
    """The offset of the other's clock over time; built by `hard_offset` and `narrowed`.

    drift: the greatest, as a share. origin_ns, base_ns: subtracted from times and offsets to keep them small.
    """

    above: Limits
    below: Limits
    drift: float
    origin_ns: int
    base_ns: int
    line: tuple[float, float, float] | None = None  # the narrow bound: value at the origin, slope, half width
    by_ptp: bool = False

    @property
    def bound(self) -> Bound:
        """Which bound it has."""
        if self.line is None:
            return Bound.HARD
        return Bound.PTP if self.by_ptp else Bound.NARROW

    def at(self, times_ns: Times) -> tuple[Times, Times]:
        """Returns the smallest and the largest possible offset at times of our clock.

        The largest is below the smallest if exchanges contradict each other.
        """
        times = (times_ns - self.origin_ns).astype(np.float64)
        high = _nearest_limit(self.above, times, self.drift)
        low = -_nearest_limit(_negated(self.below), times, self.drift)
        if self.line is not None:
            value, slope, half_width = self.line
            middle = value + slope * times
            low, high = np.maximum(low, middle - half_width), np.minimum(high, middle + half_width)
        return (
            np.floor(low - ROUNDING_NS).astype(np.int64) + self.base_ns,
            np.ceil(high + ROUNDING_NS).astype(np.int64) + self.base_ns,
        )


def hard_offset(ours: Iterable[Exchanges], others: Iterable[Exchanges], drift: float) -> Offset | None:
    """Returns the offset of the other's clock with its hard bound; None without an exchange.

    ours: exchanges that we began. others: exchanges that the other began, with `sent` on its clock. drift:
    the largest share by which the clocks may run apart.
    """
    above: list[tuple[Times, Times, Times]] = []
    below: list[tuple[Times, Times, Times]] = []
    for batch in ours:
        above.append((batch.received - batch.sent, batch.sent, batch.returned))
        below.append((batch.answered - batch.returned, batch.sent, batch.returned))
    for batch in others:
        above.append((batch.returned - batch.answered, batch.answered, batch.answered))
        below.append((batch.sent - batch.received, batch.received, batch.received))
    first = next((part for part in above if len(part[0])), None)
    if first is None:
        return None
    base_ns, origin_ns = int(first[0][0]), int(first[1][0])
    return Offset(
        above=_limits(above, base_ns, origin_ns),
        below=_limits(below, base_ns, origin_ns),
        drift=drift,
        origin_ns=origin_ns,
        base_ns=base_ns,
    )


def _limits(parts: list[tuple[Times, Times, Times]], base_ns: int, origin_ns: int) -> Limits:
    value, begin, end = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return Limits(
        (value - base_ns).astype(np.float64),
        (begin - origin_ns).astype(np.float64),
        (end - origin_ns).astype(np.float64),
    )


def _negated(limits: Limits) -> Limits:
    return Limits(-limits.value, limits.begin, limits.end)


def _nearest_limit(limits: Limits, times: Floats, drift: float) -> Floats:
    """Returns the smallest of the upper limits at each time, each raised by the drift over its greatest age.

    The age is the time to the farther end of the range that contains its instant: to its start if the time is
    after its middle, otherwise to its end.
    """
    middle = (limits.begin + limits.end) / 2
    order = np.argsort(middle, kind="stable")
    past = np.searchsorted(middle[order], times, side="right")
    least_past = np.minimum.accumulate((limits.value - drift * limits.begin)[order])
    least_to_come = np.minimum.accumulate((limits.value + drift * limits.end)[order][::-1])[::-1]
    from_past = np.concatenate(([np.inf], least_past))[past] + drift * times
    from_future = np.concatenate((least_to_come, [np.inf]))[past] - drift * times
    return np.minimum(from_past, from_future)


def narrowed(offset: Offset, ours: Iterable[Exchanges], others: Iterable[Exchanges]) -> Offset | None:
    """Returns the offset with its narrow bound as well, for a link declared symmetric.

    None if there are too few exchanges that one side began, or if they show that the directions differ: the
    line leaves the hard bound.
    """
    # Without the kernel's stamps, the asking side is awake when the answer arrives, but the other side is
    # asleep when the question arrives. So the directions differ by a wake-up, with the opposite sign if the
    # other side asks. Each side therefore has its own line, and the offset is midway.
    ours, others = list(ours), list(others)
    everywhere = np.concatenate([_shown(ours, True).middles, _shown(others, False).middles])
    ours, others = stamped(ours, others)
    sides = [_shown(ours, asked_by_us=True), _shown(others, asked_by_us=False)]
    fastest = [_fastest(side, offset) for side in sides]
    if any(len(times) < FASTEST_MIN for times, _ in fastest):
        return None
    at_origin, slope, error = _common_line(fastest, everywhere - offset.origin_ns, offset)
    round_trip = min(float(side.round_trips.min()) for side in sides)
    bent = max(_bent(side, begin, slope, offset) for side, begin in zip(sides, at_origin, strict=True))
    half_width = round_trip * ASYMMETRY_SHARE + ERRORS * error + bent
    line = (sum(at_origin) / len(at_origin), slope, half_width)
    narrow = Offset(offset.above, offset.below, offset.drift, offset.origin_ns, offset.base_ns, line)
    low, high = narrow.at(everywhere)
    return narrow if bool(np.all(low <= high)) else None


def confirmed(narrow: Offset, told: ToldOffset, times_ns: Times) -> Offset | None:
    """Returns the narrow bound of a link that nobody vouched for, wide enough to contain what PTP says as
    well. None if the two are apart at one of these times of our clock.

    An asymmetry moves the line by half of what the directions differ by, and PTP's offset, which rests on
    other packets that the network cards stamp, by nothing.
    """
    assert narrow.line is not None, "called for a narrow bound"
    value, slope, half_width = narrow.line
    middle = value + slope * (times_ns - narrow.origin_ns).astype(np.float64)
    above, below = told.most_ns - narrow.base_ns - middle, told.least_ns - narrow.base_ns - middle
    if np.any(above < -half_width) or np.any(below > half_width):
        return None
    wide = max(half_width, float(above.max()), float(-below.min()))
    return replace(narrow, line=(value, slope, wide), by_ptp=True)


def stamped(
    ours: Iterable[Exchanges], others: Iterable[Exchanges]
) -> tuple[list[Exchanges], list[Exchanges]]:
    """Returns the exchanges of both sides with the kernel's stamps if both sides have enough of them;
    otherwise all exchanges with the agents' stamps. The two kinds are never mixed in one line."""
    sides = list(ours), list(others)
    by_kernel = [each.by_kernel() for each in sides[0]], [each.by_kernel() for each in sides[1]]
    enough = all(
        sum(map(len, kernel)) >= max(FASTEST_MIN, KERNEL_SHARE_MIN * sum(map(len, side)))
        for kernel, side in zip(by_kernel, sides, strict=True)
    )
    return by_kernel if enough else sides


def _bent(side: _Shown, at_origin: float, slope: float, offset: Offset) -> float:
    """Returns how far the offset leaves a side's line at most, in ns, beyond what delays explain.

    A delay on one way moves an exchange's offset by half of what it adds to the round trip. The rest shows
    that the drift changed, so that the offset follows no straight line.
    """
    times = (side.middles - offset.origin_ns).astype(np.float64)
    away = np.abs(side.offsets - offset.base_ns - at_origin - slope * times)
    delayed = (side.round_trips - side.round_trips.min()) / 2
    return max(0.0, float((away - delayed).max()))


def _common_line(
    sides: Sequence[tuple[Floats, Floats]], within: Times, offset: Offset
) -> tuple[list[float], float, float]:
    """Returns each side's value at the origin, their common slope, and the largest standard error of the line
    midway between them at the times `within`; by least squares, with a slope of at most the drift.
    """
    centres = [times.mean() for times, _ in sides]
    spread = sum(
        float(((times - centre) ** 2).sum()) for (times, _), centre in zip(sides, centres, strict=True)
    )
    together = sum(
        float(((times - centre) * values).sum())
        for (times, values), centre in zip(sides, centres, strict=True)
    )
    slope = together / spread if spread > 0 else 0.0
    slope = min(max(slope, -offset.drift), offset.drift)
    at_origin = [float((values - slope * times).mean()) for times, values in sides]
    squares = sum(
        float(((values - begin - slope * times) ** 2).sum())
        for (times, values), begin in zip(sides, at_origin, strict=True)
    )
    count = sum(len(times) for times, _ in sides)
    variance = squares / (count - len(sides) - 1)
    value_variance = variance * sum(1 / len(times) for times, _ in sides) / len(sides) ** 2
    reach = float(np.abs(within - np.mean(centres)).max())
    # How far off the slope may be at the far end; at most the drift itself.
    slope_error = min(float(np.sqrt(variance / spread)) if spread > 0 else offset.drift, offset.drift) * reach
    return at_origin, slope, float(np.sqrt(value_variance + slope_error**2))


@dataclass(frozen=True)
class _Shown:
    """What exchanges show: each one's middle on our clock, the offset then, and its round trip."""

    middles: Times
    offsets: Floats
    round_trips: Floats


def _shown(exchanges: Iterable[Exchanges], asked_by_us: bool) -> _Shown:
    middles, offsets, round_trips = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)]
    for batch in exchanges:
        begun, came, left, over = batch.sent, batch.received, batch.answered, batch.returned
        if not asked_by_us:  # from our side, the other's question arrived when it was received here
            begun, came, left, over = batch.received, batch.sent, batch.returned, batch.answered
        middles.append((begun + over) // 2)
        offsets.append(((came - begun) + (left - over)) / 2)
        round_trips.append(np.abs((over - begun) - (left - came)).astype(np.float64))
    return _Shown(np.concatenate(middles), np.concatenate(offsets), np.concatenate(round_trips))


def _fastest(side: _Shown, offset: Offset) -> tuple[Floats, Floats]:
    """Returns times and values of the fastest exchanges, minus the origins of an offset."""
    count = max(FASTEST_MIN, round(FASTEST_SHARE * len(side.middles)))
    indices = np.argsort(side.round_trips, kind="stable")[:count]
    times = (side.middles[indices] - offset.origin_ns).astype(np.float64)
    return times, side.offsets[indices] - offset.base_ns
