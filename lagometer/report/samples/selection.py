# SPDX-License-Identifier: Apache-2.0
"""Order statistics of latencies; two passes over very many of them, without sorting them all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

PARTITIONED_MAX = 2_000  # up to this many are partitioned
SORTED_MAX = 100_000  # up to this many are sorted, which NumPy does faster than counting them
CHUNK = 1 << 17  # numbers at a time, so that their results stay in the cache
SAMPLE = 2_048
TAIL_SHARE = 0.001  # approximate share of the numbers in the last bin
BINS_BITS_MAX = 16
NARROW_MAX = 2**32 - 1
PER_BIN = 4  # approximate numbers per bin, if they do not fill all bins


@dataclass(frozen=True)
class Bins:
    """Bins of equal width from the smallest number on; the last one contains everything beyond."""

    low: int
    shift: int
    last: int

    def of(self, numbers: Numbers) -> Numbers:
        """The bin of each number."""
        places = numbers - self.low
        places >>= self.shift
        return np.minimum(places, self.last, out=places)


def order_statistics(parts: Sequence[Numbers], ranks: npt.NDArray[np.int64]) -> Numbers:
    """The numbers at these ranks in all parts together; rank 1 is the smallest.

    For many numbers, it first counts how many lie in each bin, then sorts the few bins with a requested rank.
    """
    count = sum(len(part) for part in parts)
    if count <= PARTITIONED_MAX:
        values = np.concatenate(parts)
        values.partition(np.unique(ranks) - 1)
        ranked: Numbers = values[ranks - 1]
        return ranked
    if count <= SORTED_MAX:
        return _sorted(parts[0] if len(parts) == 1 else np.concatenate(parts))[ranks - 1]
    bins = suitable_bins(parts)
    counts = np.zeros(bins.last + 1, dtype=np.int64)
    for chunk in chunks(parts):
        counts += np.bincount(bins.of(chunk), minlength=bins.last + 1)
    return selected(parts, bins, counts, ranks)


def _sorted(values: Numbers) -> Numbers:
    """Uses 32 bits if the range fits: twice as many at a time, for NumPy and for the cache."""
    low, high = int(values.min()), int(values.max())
    if high - low > NARROW_MAX:
        return np.sort(values)
    narrow = (values - low).astype(np.uint32)
    narrow.sort()
    wide: Numbers = narrow.astype(np.int64)
    wide += low
    return wide


def selected(parts: Sequence[Numbers], bins: Bins, counts: Numbers, ranks: Numbers) -> Numbers:
    """The numbers at these ranks, given the counts of the bins."""
    ends = np.cumsum(counts)
    bin_of_rank = np.searchsorted(ends, ranks)
    wanted = np.zeros(bins.last + 1, dtype=np.bool_)
    wanted[bin_of_rank] = True
    candidates = np.sort(np.concatenate([chunk[wanted[bins.of(chunk)]] for chunk in chunks(parts)]))
    left_out = ends - np.cumsum(np.where(wanted, counts, 0))  # numbers up to a bin's end that were dropped
    chosen: Numbers = candidates[ranks - left_out[bin_of_rank] - 1]
    return chosen


def suitable_bins(parts: Sequence[Numbers]) -> Bins:
    """Bins that are narrow where most numbers lie: one stall of a second must not widen all bins."""
    filled = [part for part in parts if len(part)]
    low, count = min(int(part.min()) for part in filled), sum(len(part) for part in filled)
    step = max(1, count // SAMPLE)
    sample = np.sort(np.concatenate([part[::step] for part in filled]))
    width = int(sample[int((1.0 - TAIL_SHARE) * (len(sample) - 1))]) - low
    shift = max(0, width.bit_length() - min(BINS_BITS_MAX, (count // PER_BIN).bit_length()))
    return Bins(low, shift, (width >> shift) + 1)


def chunks(parts: Sequence[Numbers]) -> Iterator[Numbers]:
    """The same numbers in pieces that fit the cache; no piece spans two parts."""
    for part in parts:
        for begin, end in itertools.pairwise([*range(0, len(part), CHUNK), len(part)]):
            yield part[begin:end]
