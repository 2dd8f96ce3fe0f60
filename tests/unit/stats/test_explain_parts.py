# SPDX-License-Identifier: Apache-2.0
"""The parts of a difference: edges that follow each other add up, edges beside each other don't."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lagometer.stats.compare.explain import parts

SCHEMA = {"edge": pl.String(), "sequence": pl.UInt64(), "phase": pl.String(), "outcome": pl.String()}
SCHEMA |= {name: pl.Int64() for name in ("publish_ns", "signalled_ns", "woken_ns", "taken_ns")}


def trial(latency_ns: int, seed: int, edges: tuple[str, ...]) -> pl.DataFrame:
    """Each message takes that long on each of these edges, and end to end on the first."""
    random, rows = np.random.default_rng(seed), []
    for number in range(500):
        for place, edge in enumerate((*edges, "end-to-end")):
            begin_ns = 1_000_000 * number
            end_ns = begin_ns + latency_ns + int(random.integers(-1000, 1000)) * (place < len(edges))
            rows.append((edge, number, "measure", "delivered", begin_ns, None, None, end_ns))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@pytest.mark.parametrize(
    ("edges", "beside"),
    [
        (("source→sink-1", "source→sink-2"), True),
        (("source-1→sink", "source-2→sink"), True),
        (("source→sink",), False),
        (("ping→pong", "pong→ping"), False),
    ],
)
def test_edges_beside_each_other_have_no_share_and_leave_no_rest(
    edges: tuple[str, ...], beside: bool
) -> None:
    a, b = ([trial(latency, 10 * latency + each, edges) for each in range(3)] for latency in (20_000, 30_000))
    found = parts(a, b)
    assert (all(part.share is None for part in found)) == beside
    if beside:
        assert {part.edge for part in found} == set(edges)
        assert all(part.difference_ns == pytest.approx(10_000, abs=300) for part in found)
