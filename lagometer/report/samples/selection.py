# SPDX-License-Identifier: Apache-2.0
"""Order statistics of latencies; of a great many in two passes over them, without sorting them all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

PARTITIONED_MAX = 2_000  # so few are put in order as far as needed
SORTED_MAX = 100_000  # and so few altogether, which NumPy does in less time than it takes to count them
CHUNK = 1 << 17  # numbers at a time, so that what is made of them stays in the cache
SAMPLE = 2_048
TAIL_SHARE = 0.001  # of the numbers, about, that share the last bin
BINS_BITS_MAX = 16
PER_BIN = 4  # numbers, about, where there are not more than fill all bins


@dataclass(frozen=True)
class Bins:
    """Bins of equal width from the smallest number on; the last holds whatever lies beyond."""

    low: int
    shift: int
    last: int

    def of(self, numbers: Numbers) -> Numbers:
        """The bin of each number."""
        places = numbers - self.low
        places >>= self.shift
        return np.minimum(places, self.last, out=places)


def order_statistics(parts: Sequence[Numbers], ranks: npt.NDArray[np.int64]) -> Numbers:
    """The numbers of these ranks among those of all parts together; rank 1 is the smallest.

    Of many it is first counted how many lie in which bin of values; then the few bins with a wanted rank are
    sorted.
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
    """In 32 bits where their range has room in them: twice as many at a time, for NumPy and for the cache."""
    low, high = int(values.min()), int(values.max())
    if high - low > np.iinfo(np.uint32).max:
        return np.sort(values)
    narrow = (values - low).astype(np.uint32)
    narrow.sort()
    wide: Numbers = narrow.astype(np.int64)
    wide += low
    return wide


def selected(parts: Sequence[Numbers], bins: Bins, counts: Numbers, ranks: Numbers) -> Numbers:
    """The numbers of these ranks, where it is known how many lie in each bin."""
    ends = np.cumsum(counts)
    bin_of_rank = np.searchsorted(ends, ranks)
    wanted = np.zeros(bins.last + 1, dtype=np.bool_)
    wanted[bin_of_rank] = True
    candidates = np.sort(np.concatenate([chunk[wanted[bins.of(chunk)]] for chunk in chunks(parts)]))
    left_out = ends - np.cumsum(np.where(wanted, counts, 0))  # numbers up to a bin's end that were not kept
    chosen: Numbers = candidates[ranks - left_out[bin_of_rank] - 1]
    return chosen


def suitable_bins(parts: Sequence[Numbers]) -> Bins:
    """Narrow where most numbers lie: a single stall of a second must not widen the bins of all others."""
    filled = [part for part in parts if len(part)]
    low, count = min(int(part.min()) for part in filled), sum(len(part) for part in filled)
    step = max(1, count // SAMPLE)
    sample = np.sort(np.concatenate([part[::step] for part in filled]))
    width = int(sample[int((1.0 - TAIL_SHARE) * (len(sample) - 1))]) - low
    shift = max(0, width.bit_length() - min(BINS_BITS_MAX, (count // PER_BIN).bit_length()))
    return Bins(low, shift, (width >> shift) + 1)


def chunks(parts: Sequence[Numbers]) -> Iterator[Numbers]:
    """The same numbers in pieces that stay in the cache, none of two parts."""
    for part in parts:
        for begin, end in itertools.pairwise([*range(0, len(part), CHUNK), len(part)]):
            yield part[begin:end]
