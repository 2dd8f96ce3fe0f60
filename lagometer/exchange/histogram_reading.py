# SPDX-License-Identifier: Apache-2.0
"""Reads HdrHistogram's transportable form, encodings V0, V1 and V2, from base64 in logs.

Layout of the reference implementation (HdrHistogram, Gil Tene): zlib around a header and the counts. Counts
are words of 2, 4 or 8 bytes in V0 and V1, and ZigZag LEB128 numbers in V2, where -n is a run of n zeros. The
library `hdrhistogram` reads only V2, and only tests use it.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lagometer.exchange.errors import ExchangeError
from lagometer.stats.interval.confidence import SUPPORT

Numbers = npt.NDArray[np.int64]
COMPRESSED = {0x1C849309: 0, 0x1C849302: 1, 0x1C849304: 2}
PLAIN = {0x1C849308: 0, 0x1C849301: 1, 0x1C849303: 2}
DOUBLE = (0x0C72124E, 0x0C72124F)  # of DoubleHistogram, whose values may be fractional
SIZE_BITS = 0xF0  # of a cookie: the size of a word, in V0 and V1
HEADER_V0, HEADER = struct.Struct(">Iiqqq"), struct.Struct(">Iiiiqqd")
WORDS = {2: ">i2", 4: ">i4", 8: ">i8"}
MOST_BYTES = 1 << 27  # of counts, unpacked


@dataclass(frozen=True)
class Histogram:
    """Counts of values by bucket, ascending: a value is between `lowest` and `highest`, both included.

    digits: significant digits of the values; unit: the smallest difference that it resolves; scale: the
    factor of the values.
    """

    lowest: Numbers
    highest: Numbers
    counts: Numbers
    digits: int
    unit: int
    scale: float

    @property
    def total(self) -> int:
        """The number of values."""
        return int(self.counts.sum())


def joined(histograms: Sequence[Histogram]) -> Histogram:
    """All values of several histograms, which must have the same scale."""
    highest = np.concatenate([histogram.highest for histogram in histograms])
    order = np.argsort(highest, kind="stable")
    return Histogram(
        np.concatenate([histogram.lowest for histogram in histograms])[order],
        highest[order],
        np.concatenate([histogram.counts for histogram in histograms])[order],
        min(histogram.digits for histogram in histograms),
        max(histogram.unit for histogram in histograms),
        histograms[0].scale,
    )


def quantile(histogram: Histogram, permille: int) -> int | None:
    """The highest value of the bucket that contains the type-1 quantile of the values.

    The k-th smallest value, k = ceil(n * permille / 1000), is in the bucket where the counts reach k. The
    result is never below that value, and above it by less than the bucket's width: 10^-digits of it, or the
    unit if that is larger. None if fewer than 10 values lie beyond it, as with raw samples.
    """
    rank = max(1, -(-histogram.total * permille // 1000))
    beyond = histogram.total - rank if permille >= 500 else rank - 1
    if beyond < SUPPORT:
        return None
    return int(histogram.highest[np.searchsorted(np.cumsum(histogram.counts), rank)])


def decoded(text: str, where: str) -> Histogram:
    """The histogram in a field of a log. Raises ExchangeError with `where` and what is wrong."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ExchangeError(
            f"{where}: the histogram is not base64 ({error}); the line was cut off"
        ) from error
    cookie, length = struct.unpack(">II", raw[:8]) if len(raw) >= 8 else (0, 0)
    if cookie & ~SIZE_BITS in DOUBLE or cookie in DOUBLE:
        raise ExchangeError(f"{where}: a DoubleHistogram, which can't be read; record whole numbers")
    if cookie & ~SIZE_BITS not in COMPRESSED:
        raise ExchangeError(f"{where}: not a compressed HdrHistogram of encoding V0, V1 or V2")
    if length > len(raw) - 8:
        raise ExchangeError(f"{where}: {len(raw) - 8} bytes of {length}; the line was cut off")
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(raw[8 : 8 + length], MOST_BYTES)
    except zlib.error as error:
        raise ExchangeError(f"{where}: the histogram is damaged ({error})") from error
    if not unpacking.eof:
        raise ExchangeError(f"{where}: the histogram is not whole, or larger than {MOST_BYTES >> 20} MiB")
    try:
        return _plain(body, where)
    except struct.error as error:
        raise ExchangeError(f"{where}: the histogram ends within its header") from error


def _plain(body: bytes, where: str) -> Histogram:
    cookie = struct.unpack(">I", body[:4])[0]
    version = PLAIN.get(cookie & ~SIZE_BITS)
    if version is None:
        raise ExchangeError(f"{where}: what is compressed is not an HdrHistogram of encoding V0, V1 or V2")
    scale = 1.0
    if version == 0:
        _, digits, unit, _, _ = HEADER_V0.unpack(body[: HEADER_V0.size])
        payload = body[HEADER_V0.size :]
    else:
        _, size, _, digits, unit, _, scale = HEADER.unpack(body[: HEADER.size])
        payload = body[HEADER.size :][: max(0, size)]
        if size != len(payload):
            raise ExchangeError(f"{where}: {len(payload)} bytes of counts, but the header says {size}")
    if not (0 <= digits <= 5 and 1 <= unit < 2**62 and math.isfinite(scale) and scale > 0):
        raise ExchangeError(f"{where}: {digits} digits, unit {unit}, scale {scale:g}: no histogram has these")
    if version == 2:
        indices, counts = _variable(payload, where)
    else:
        word = WORDS.get((cookie & SIZE_BITS) >> 4 & 0xE)
        if word is None or len(payload) % int(word[2:]):
            raise ExchangeError(f"{where}: counts of no size that V0 and V1 have")
        all_counts = np.frombuffer(payload, word).astype(np.int64)
        indices = np.flatnonzero(all_counts).astype(np.int64)
        counts = all_counts[indices]
    if (counts < 0).any() or counts.astype(object).sum() >= 2**62:
        raise ExchangeError(f"{where}: a count that can't be; the histogram is damaged")
    return _bucketed(indices, counts, digits, unit, scale, where)


def _bucketed(
    indices: Numbers, counts: Numbers, digits: int, unit: int, scale: float, where: str
) -> Histogram:
    """Converts the indices of counters to the values that they represent."""
    shift = (2 * 10**digits - 1).bit_length() - 1  # half of the sub-buckets are 2 to this power
    magnitude = unit.bit_length() - 1
    bucket = np.maximum((indices >> shift) - 1, 0)
    first = indices < 1 << shift
    sub = (indices & ((1 << shift) - 1)) + np.where(first, 0, 1 << shift)
    if len(indices) and int(bucket.max()) + magnitude + shift + 1 > 62:
        raise ExchangeError(f"{where}: a value of more than 62 bits; the histogram is damaged")
    width = np.int64(1) << (bucket + magnitude)
    lowest = sub << (bucket + magnitude)
    return Histogram(lowest, lowest + width - 1, counts, digits, 1 << magnitude, scale)


def _variable(payload: bytes, where: str) -> tuple[Numbers, Numbers]:
    """ZigZag LEB128 of up to 9 bytes: a count, or the negated length of a run of zeros."""
    indices: list[int] = []
    counts: list[int] = []
    index = position = 0
    while position < len(payload):
        value = shift = 0
        while True:
            if position >= len(payload):
                raise ExchangeError(f"{where}: the counts end within a number; the histogram is damaged")
            byte = payload[position]
            position += 1
            if shift == 56:  # the ninth byte holds eight bits
                value |= byte << shift
                break
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        number = (value >> 1) ^ -(value & 1)
        if number > 0:
            indices.append(index)
            counts.append(number)
        index += -number if number < 0 else 1
        if index > 1 << 40:
            raise ExchangeError(f"{where}: more counters than a histogram has; it is damaged")
    return np.array(indices, dtype=np.int64), np.array(counts, dtype=np.int64)
