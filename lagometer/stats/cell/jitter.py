# SPDX-License-Identifier: Apache-2.0
"""How much latency changes from one message to the next.

*Jitter* is the mean absolute difference between the latencies of consecutive messages: the IP packet delay
variation of RFC 3393, taken between neighbours (RFC 5481, section 4.1, calls that IPDV), and what
eProsima/benchmarking calls *mean jitter*. It says how unsteady a stream is from message to message; slow
drift and rare stalls hardly show in it, unlike in a standard deviation.
"""

from __future__ import annotations

import numpy as np
import polars as pl

PAIRS_MIN = 10  # neighbours in a trial; the same minimum as for samples beyond a quantile


def jitter_ns(delivered: pl.DataFrame) -> float | None:
    """The jitter of one trial's delivered messages of an edge, in ns, in sample order.

    delivered: `sequence`, `publish_ns`, `taken_ns`. A pair counts if the later message directly follows the
    earlier one from its source (no message between them was lost, as in RFC 3393) and both went to the same
    reader. None with fewer than ten pairs, if messages of several sources can't be told apart, or if the
    offset between clocks is unknown.
    """
    if delivered["taken_ns"].null_count():
        return None
    sequence = delivered["sequence"].to_numpy().astype(np.int64)
    taken_ns = delivered["taken_ns"].to_numpy().astype(np.int64)
    latency_ns = taken_ns - delivered["publish_ns"].to_numpy().astype(np.int64)
    # End to end, the rows are grouped by reader, and each reader's are in the order in which it took them.
    reader = np.cumsum(np.diff(taken_ns, prepend=taken_ns[:1]) < 0)
    order = np.lexsort((sequence, reader))
    step = np.diff(sequence[order])
    same_reader = np.diff(reader[order]) == 0
    if bool(np.any((step == 0) & same_reader)):
        return None
    pairs = (step == 1) & same_reader
    if int(pairs.sum()) < PAIRS_MIN:
        return None
    return float(np.abs(np.diff(latency_ns[order]))[pairs].mean())
