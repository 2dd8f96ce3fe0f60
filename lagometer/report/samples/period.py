# SPDX-License-Identifier: Apache-2.0
"""Finds a regular repetition in a series of latencies."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import scipy

from lagometer.report.samples.data import Period

_MESSAGES_MIN = 256
MESSAGES_MAX = 2**18
_REPETITIONS_MIN = 5
_NEIGHBOURS = 20
_P_VALUE_MAX = 1e-6
_SHARE_MIN = 0.03
_MESSAGES_PER_PERIOD_MIN = 4


def _background(power: npt.NDArray[np.float64], places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The noise level around some lines: the running median, so that drift and slow noise raise no alarm.

    Lines are mirrored beyond the ends. The median of an exponential distribution is ln 2 of its mean, hence
    the division.
    """
    mirrored = np.pad(power, _NEIGHBOURS, mode="reflect")
    around = np.lib.stride_tricks.sliding_window_view(mirrored, 2 * _NEIGHBOURS + 1)
    level: npt.NDArray[np.float64] = np.median(around[places], axis=1) / np.log(2)
    return level


@functools.lru_cache(maxsize=8)  # edges of a trial mostly delivered the same number
def _line(count: int) -> tuple[npt.NDArray[np.float64], float]:
    """A line through 0, so that mean and slope of a trend are independent, and the sum of its squares."""
    position = np.linspace(-1, 1, count)
    return position, float(np.sum(position**2))


def find_period(latency_ns: npt.NDArray[np.int64], spacing_ns: float) -> Period | None:
    """The strongest line of the periodogram of the logarithm of latency, if noise is an unlikely cause.

    Under noise, a line's power over the level around it is exponentially distributed; over `m` lines the
    chance of one this high is at most m·exp(-ratio) (Bonferroni). A repetition with harmonics is identified
    by its lowest strong line. `spacing_ns` is the time between messages. Not reported: a period that fits
    fewer than 5 times, spans fewer than 4 messages or explains less than 3 % of the variance. In a longer
    series only the first 262,144 messages are searched.
    """
    latency_ns = latency_ns[:MESSAGES_MAX]
    if len(latency_ns) < _MESSAGES_MIN or spacing_ns <= 0:
        return None
    # Without the last few (at most 4 %) if the count has a large prime factor: up to 15 times as slow.
    count = scipy.fft.prev_fast_len(len(latency_ns))
    latency_ns = latency_ns[:count]
    values = np.log(np.maximum(latency_ns, 1).astype(np.float64))
    position, squares = _line(count)
    # Sums, not np.dot: BLAS would start its own threads, which wait by spinning.
    values -= values.mean() + position * (np.sum(position * values) / squares)
    total = float(np.sum(values**2))
    if total <= 0:
        return None
    # SciPy's result equals NumPy's to the last digit; it caches the plans of lengths without small factors.
    power = np.abs(scipy.fft.rfft(values)) ** 2 / count
    lines = power[_REPETITIONS_MIN : count // _MESSAGES_PER_PERIOD_MIN + 1]
    large = np.flatnonzero(2 * lines / total >= _SHARE_MIN)  # few: the shares of all lines add up to 1
    if len(large) == 0:
        return None
    ratio = lines[large] / np.maximum(_background(lines, large), np.finfo(float).tiny)
    p_values = np.minimum(1.0, len(lines) * np.exp(-np.minimum(ratio, 700)))
    strong = np.flatnonzero(p_values < _P_VALUE_MAX)
    if len(strong) == 0:
        return None
    # A train of spikes has harmonics as strong as its first line: take the lowest of about the same power.
    powers = lines[large[strong]]
    lowest = strong[np.flatnonzero(powers >= 0.3 * powers.max())[0]]
    line = int(large[lowest])
    return Period(
        period_ns=round(spacing_ns * count / (line + _REPETITIONS_MIN)),
        p_value=max(float(p_values[lowest]), 1e-300),
        share_of_variance=round(min(1.0, float(2 * lines[line] / total)), 4),
    )
