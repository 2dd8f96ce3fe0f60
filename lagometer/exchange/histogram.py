# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram: counts per bucket of equal relative width, and their transportable form.

Formulas and layout follow the reference implementation (HdrHistogram, Gil Tene; encoding V2): buckets of 2^k
sub-buckets, so that each value is known to a number of significant decimal digits; counts are ZigZag LEB128
numbers, a run of empty counts is its negated length, and zlib compresses the whole. The package
`hdrhistogram` reads it in the tests; at run time it would record value by value, in Python.
"""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

COOKIE = 0x1C849303 | 0x10
COMPRESSED_COOKIE = 0x1C849304 | 0x10
SIGNIFICANT_DIGITS = 3
LOWEST_NS = 1
_HEADER = struct.Struct(">IIIIqqd")


@dataclass(frozen=True)
class Buckets:
    """The shape of a histogram from 1 ns to a highest value, to 3 significant digits."""

    sub_bucket_bits: int  # the number of sub-buckets is 2 to this power
    highest_ns: int

    @classmethod
    def to(cls, largest_ns: int) -> Buckets:
        """Buckets large enough for this value; `largest_ns` may be 0."""
        # Distinguishing v from v + 1 at 3 digits up to 2 * 10^3 needs this many sub-buckets.
        bits = (2 * 10**SIGNIFICANT_DIGITS - 1).bit_length()
        return cls(bits, max(2 * LOWEST_NS, largest_ns))

    @property
    def count(self) -> int:
        """The number of counters."""
        return int(self.index(np.array([self.highest_ns], dtype=np.int64))[0]) + 1

    def index(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The counter of each value: the leading bit selects the bucket, the next bits the sub-bucket."""
        masked = values | ((1 << self.sub_bucket_bits) - 1)
        # frexp gives the exact bit length only for exact doubles; above 2^53 rounding could add a bit.
        length = np.frexp((masked >> 1).astype(np.float64))[1].astype(np.int64) + 1
        length -= (masked >> np.minimum(length - 1, 62)) == 0
        bucket = length - self.sub_bucket_bits
        half = 1 << (self.sub_bucket_bits - 1)
        indices: npt.NDArray[np.int64] = ((bucket + 1) * half) + ((values >> bucket) - half)
        return indices


def encoded(values: npt.NDArray[np.int64]) -> str:
    """The histogram of these numbers of nanoseconds in base64, as in logs. ValueError: one is below 0."""
    if values.min(initial=0) < 0:
        raise ValueError(f"a histogram has no bucket for {values.min()}")
    buckets = Buckets.to(int(values.max(initial=0)))
    counts = np.bincount(buckets.index(values), minlength=buckets.count) if len(values) else np.zeros(1, int)
    packed = _packed(counts)
    header = _HEADER.pack(COOKIE, len(packed), 0, SIGNIFICANT_DIGITS, LOWEST_NS, buckets.highest_ns, 1.0)
    body = zlib.compress(header + packed)
    return base64.b64encode(struct.pack(">II", COMPRESSED_COOKIE, len(body)) + body).decode("ascii")


def _packed(counts: npt.NDArray[np.int64]) -> bytes:
    """The counts up to the last non-zero one; a run of n > 1 zeros is the number -n."""
    occupied = np.flatnonzero(counts)
    out = bytearray()
    next_index = 0
    for index, count in zip(occupied.tolist(), counts[occupied].tolist(), strict=True):
        gap = index - next_index
        if gap:
            out += _zigzag(-gap if gap > 1 else 0)
        out += _zigzag(count)
        next_index = index + 1
    return bytes(out)


def _zigzag(number: int) -> bytes:
    """ZigZag LEB128 of a 64-bit number; a ninth byte holds eight bits instead of seven."""
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value >= 0x80 and len(out) < 8:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
