# SPDX-License-Identifier: Apache-2.0
"""What was measured of a link next to what was requested, and how far the two may differ.

docs/methodology/links.md lists the tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lagometer.agent.link.orders import LinkProfile

NS_PER_S = 1_000_000_000
DEVIATIONS = 4.0  # standard errors within which a link as requested stays, except for one check in 16,000
REFUSED = 1e-4  # part of the checks of a share that fail although the link is as requested
RATE_SHARE = 0.05
DELAY_SHARE = 0.05
DELAY_NS = 500_000  # what a packet takes on this machine without any link, also on busy CPUs
RATE_STRETCHES = 8
JITTER_ENDS = math.sqrt(2)  # both ends of an interval scatter
MEDIAN_ERROR = 1.2533  # of the median relative to the mean, for a normal distribution


@dataclass(frozen=True)
class Figure:
    """One quantity, in the unit of its name. low, high: the range in which a link as requested can measure;
    n: number of observations."""

    what: str
    asked: float
    measured: float | None
    low: float
    high: float
    n: int

    @property
    def as_asked(self) -> bool:
        """Whether the measured value is within its tolerance."""
        return self.measured is not None and self.low <= self.measured <= self.high

    def as_json(self) -> dict[str, Any]:
        """Returns the journal's form."""
        return {**asdict(self), "as_asked": self.as_asked}


@dataclass(frozen=True)
class Shape:
    """Constants of a distribution with standard deviation 1: its median minus its mean; the standard error of
    the median, times the root of n; the distance between p10 and p90, and its relative standard error, times
    the root of n."""

    median: float
    median_error: float
    deciles: float
    deciles_error: float


# From the densities at the median and at the two deciles (David and Nagaraja, Order Statistics, 3rd ed.,
# 10.3).
SHAPES = {
    "normal": Shape(0.0, 1.2533, 2.5631, 0.8893),
    "uniform": Shape(0.0, 1.7321, 2.7713, 0.5),
    "exponential": Shape(math.log(2) - 1, 1.0, 2.1972, 1.3569),
}


def delay_figures(profile: LinkProfile, transits_ns: Sequence[int]) -> list[Figure]:
    """Delay and jitter, from one-way times of packets that were sent apart. Median and deciles do not move
    when a busy machine holds up a few packets."""
    shape, n = SHAPES[profile.distribution], len(transits_ns)
    if n < 20:
        return [Figure("delay_ns", profile.delay_ns, None, 0, 0, n)]
    ordered = sorted(transits_ns)
    measured = ordered[n // 2] - shape.median * profile.jitter_ns
    error_ns = DEVIATIONS * shape.median_error * profile.jitter_ns / math.sqrt(n)
    away_ns = DELAY_SHARE * profile.delay_ns + DELAY_NS + error_ns
    figures = [_around("delay_ns", profile.delay_ns, measured, away_ns, n)]
    if profile.jitter_ns:
        deviation_ns = (ordered[9 * n // 10] - ordered[n // 10]) / shape.deciles
        away = DEVIATIONS * shape.deciles_error / math.sqrt(n) * profile.jitter_ns + DELAY_NS / 2
        figures.append(_around("jitter_ns", profile.jitter_ns, deviation_ns, away, n))
    return figures


def rate_figure(profile: LinkProfile, arrivals_ns: Sequence[int], frame_bytes: int) -> Figure:
    """The rate, from the arrival times of equally long frames that were sent faster than the link. The first
    quarter is left out, because in it the burst that a shaper saved up arrives at once. The median of several
    intervals does not move when a busy machine holds up a few frames. With jitter, which scatters the ends of
    an interval, there is only one interval."""
    frame_times_ns = list(arrivals_ns)[len(arrivals_ns) // 4 :]
    stretches = 1 if profile.jitter_ns else RATE_STRETCHES
    steps = (len(frame_times_ns) - 1) // stretches
    if steps < 8:
        return Figure("rate_bps", profile.rate_bps, None, 0, 0, len(frame_times_ns))
    arrived = 1 - profile.loss
    bits = 8 * (frame_bytes + profile.frame_overhead_bytes) * steps / arrived
    begins = range(0, stretches * steps, steps)
    rates = sorted(
        bits * NS_PER_S / max(1, frame_times_ns[begin + steps] - frame_times_ns[begin]) for begin in begins
    )
    stretch_ns = bits * NS_PER_S / profile.rate_bps
    lost = math.sqrt(profile.loss * _inflation(profile) / (arrived * steps))
    scatter = math.hypot(lost, JITTER_ENDS * profile.jitter_ns / stretch_ns) / math.sqrt(stretches)
    away = (RATE_SHARE + DEVIATIONS * MEDIAN_ERROR * scatter) * profile.rate_bps
    return _around("rate_bps", profile.rate_bps, rates[stretches // 2], away, len(frame_times_ns))


def share_figure(quantity: str, asked: float, count: int, n: int, inflation: float = 1.0) -> Figure:
    """A share, compared with the exact binomial distribution. inflation: of its variance, if events come
    together."""
    if n == 0:
        return Figure(quantity, asked, None, 0, 0, 0)
    independent = max(1, round(n / inflation))
    low, high = binomial_range(asked, independent, REFUSED)
    return Figure(quantity, asked, count / n, low / independent, high / independent, n)


def loss_figures(profile: LinkProfile, arrived: Sequence[bool]) -> list[Figure]:
    """The share of lost packets, and how many are lost in a row. arrived: one entry for each packet, in the
    order in which they were sent."""
    lost, n = arrived.count(False), len(arrived)
    figures = [share_figure("loss", profile.loss, lost, n, _inflation(profile))]
    if profile.burst > 1:
        bursts = sum(not now and before for before, now in zip((True, *arrived), arrived, strict=False))
        spread = math.sqrt(profile.burst * (profile.burst - 1) / max(1, bursts))
        measured = lost / bursts if bursts else None
        away = DEVIATIONS * spread
        figures.append(
            Figure(
                "burst", profile.burst, measured, max(1.0, profile.burst - away), profile.burst + away, bursts
            )
        )
    return figures


def _inflation(profile: LinkProfile) -> float:
    """By how much bursts raise the variance of a share: for a two-state chain, (1 + r) / (1 - r), where r is
    the correlation of neighbours."""
    if profile.burst <= 1 or not profile.loss:
        return 1.0
    leave = 1 / profile.burst
    neighbours = 1 - leave - leave * profile.loss / (1 - profile.loss)
    return (1 + neighbours) / (1 - neighbours)


def _around(quantity: str, asked: float, measured: float, away: float, n: int) -> Figure:
    return Figure(quantity, asked, measured, max(0.0, asked - away), asked + away, n)


def binomial_range(share: float, n: int, refused: float) -> tuple[int, int]:
    """Returns the smallest and largest likely number of n events with this probability: the probability
    outside is `refused`, half of it on either side."""
    if share <= 0:
        return 0, 0
    if share >= 1:
        return n, n
    log_factorial = math.lgamma(n + 1)
    chances = [
        math.exp(
            log_factorial
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(share)
            + (n - k) * math.log1p(-share)
        )
        for k in range(n + 1)
    ]
    return _first_beyond(chances, refused / 2), n - _first_beyond(chances[::-1], refused / 2)


def _first_beyond(chances: Sequence[float], tail: float) -> int:
    total = 0.0
    for k, chance in enumerate(chances):
        total += chance
        if total > tail:
            return k
    return len(chances) - 1
