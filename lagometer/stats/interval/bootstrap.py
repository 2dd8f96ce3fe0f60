# SPDX-License-Identifier: Apache-2.0
"""How a trial's messages depend on each other: the variance of a mean over dependent numbers.

The circular block bootstrap (Politis and Romano 1992) draws blocks of consecutive numbers, so that dependent
numbers stay together. For a mean, its variance is known without drawing: it is the variance of the sum over a
block, averaged over all positions where a block may start. So nothing here is random. The block length comes
from the numbers themselves: Politis and White, *Automatic Block-Length Selection for the Dependent
Bootstrap*, Econometric Reviews 23 (2004), with the correction of Patton, Politis and White (2009).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

Floats = npt.NDArray[np.float64]

BINS_MAX = 4096  # per trial
SIGNIFICANT = 2.0  # times sqrt(log10(n) / n): smaller autocorrelations count as none (Politis and White)


class Bins:
    """Turns the numbers of several trials, one trial after the other, into one row per trial.

    Long trials are summed over consecutive bins, which keeps their mean; shorter ones end with empty bins.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        """counts: how many numbers each trial has; none is 0."""
        self._width = -(-max(counts) // BINS_MAX)
        self._ends = np.cumsum(counts).tolist()
        bins = np.array([-(-count // self._width) for count in counts])
        self._filled = np.arange(bins.max()) < bins[:, None]
        self.sizes = np.where(self._filled, float(self._width), 0.0)  # numbers in each bin of each trial
        self.sizes[np.arange(len(counts)), bins - 1] -= bins * self._width - np.array(counts)

    def sums(self, numbers: npt.NDArray[np.bool_] | Floats) -> Floats:
        """The sum over each bin; one row per trial."""
        rows = np.zeros(self._filled.shape)
        if self._width == 1:
            rows[self._filled] = numbers
            return rows
        begins = [0, *self._ends[:-1]]
        for row, begin, end in zip(rows, begins, self._ends, strict=True):  # by trial: each needs a copy
            starts = np.arange(0, end - begin, self._width)
            row[: len(starts)] = np.add.reduceat(numbers[begin:end], starts, dtype=np.float64)
        return rows


def variance_of_trial_means(sums: Floats, sizes: Floats) -> float:
    """The within-trial part of the variance of the mean over all trials' means.

    sums: of the numbers in each bin, one row per trial, in time order. sizes: how many numbers each bin has.
    Differences between trials do not count: each trial is centred on its own mean. Zero if no trial varies.
    """
    counts = sizes.sum(axis=1)
    centred = sums - (sums.sum(axis=1) / counts)[:, None] * sizes
    length = block_length(centred)
    blocks = _circular_block_sums(centred, length)
    variances_of_sums = np.square(blocks).sum(axis=1) / length
    return float((variances_of_sums / counts**2).sum()) / len(sums) ** 2


def block_length(centred: Floats) -> int:
    """The block length that suits these series, in numbers; between 1 and a third of a series.

    centred: one row per series, each centred on its own mean (zeros after the end of a shorter one). The
    series share one length, from their common autocovariance, because the same process made them.
    """
    rows, columns = centred.shape
    lags_run = max(5, int(np.ceil(np.sqrt(np.log10(max(columns, 2))))))
    lags_max = min(int(np.ceil(np.sqrt(columns))) + lags_run, columns - 1)
    limit = max(1, min(int(np.ceil(3 * np.sqrt(columns))), columns // 3))
    covariance = _autocovariance(centred, lags_max)
    if lags_max < 1 or covariance[0] <= 0.0:
        return 1
    reach = min(2 * _last_significant_lag(covariance, lags_run, rows * columns), lags_max)
    if reach == 0:
        return 1
    lags = np.arange(reach + 1)
    weights = np.minimum(1.0, 2.0 * (1.0 - lags / reach))  # the flat-top window
    weighted = weights * covariance[: reach + 1]
    spectrum = covariance[0] + 2.0 * float(weighted[1:].sum())  # at frequency zero
    slope = 2.0 * float((lags * weighted).sum())
    if spectrum <= 0.0:
        return 1
    # D of the circular block bootstrap is 4/3 of the spectrum squared (Patton, Politis and White 2009).
    optimal = (2.0 * slope**2 / (4.0 / 3.0 * spectrum**2) * rows * columns) ** (1.0 / 3.0)
    return int(np.clip(round(optimal), 1, limit))


def _circular_block_sums(centred: Floats, length: int) -> Floats:
    """For every row and position, the sum over a block that starts there and wraps around at the end."""
    columns = centred.shape[1]
    sums = np.zeros((len(centred), columns + length + 1))
    np.cumsum(np.concatenate((centred, centred[:, :length]), axis=1), axis=1, out=sums[:, 1:])
    return sums[:, length : length + columns] - sums[:, :columns]


def _autocovariance(centred: Floats, lags_max: int) -> Floats:
    """The autocovariances at lags 0 to `lags_max`, averaged over the rows."""
    columns = centred.shape[1]
    size = scipy.fft.next_fast_len(columns + lags_max + 1, real=True)
    power = np.square(np.abs(scipy.fft.rfft(centred, size, axis=1))).mean(axis=0)
    covariance: Floats = scipy.fft.irfft(power, size)[: lags_max + 1] / columns
    return covariance


def _last_significant_lag(covariance: Floats, lags_run: int, count: int) -> int:
    """The lag after which `lags_run` consecutive autocorrelations are practically zero."""
    limit = SIGNIFICANT * np.sqrt(np.log10(max(count, 2)) / count)
    significant = np.flatnonzero(np.abs(covariance[1:] / covariance[0]) >= limit) + 1
    last = 0
    for lag in significant:
        if lag - last > lags_run:
            break
        last = int(lag)
    return last
