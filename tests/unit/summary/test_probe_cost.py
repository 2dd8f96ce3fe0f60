# SPDX-License-Identifier: Apache-2.0
"""What the probes cost, and what they may cost: 3 % of the median, or two clock readings for each stamp."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from way_campaign import Made, write_ways

from lagometer.cli.profile import bounds_line
from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary.layers import ProbeCost, probe_cost

PAIRS_NS = (3_500.0, 4_500.0, 3_800.0, 4_200.0, 3_100.0, 4_000.0)
COST = ProbeCost(6, 3_900.0, PAIRS_NS, 0.039, 100_000.0, stamps_per_message=9.0, clock_read_ns=25.0)


def costing(offset_ns: float) -> ProbeCost:
    """The same pairs, all longer by this much."""
    return replace(COST, probe_cost_pairs_ns=tuple(each + offset_ns for each in PAIRS_NS))


def test_the_cost_comes_from_pairs_and_the_stamps_from_the_layers(tmp_path: Path) -> None:
    probed = write_ways(tmp_path / "probed", Made([[30_000] * 40]))
    (probed / form.ENVIRONMENT).write_text(json.dumps({"clock_read_ns": 25.0}))
    plain = write_ways(tmp_path / "plain", Made([[28_000] * 40], layers=False))
    found = probe_cost([(open_campaign(probed), open_campaign(plain))])
    # Half of the messages are on the second edge, where they take half of the time.
    assert (found.pairs, found.probe_cost_ns, found.latency_p50_without_ns) == (1, 1_500, 21_000)
    assert (found.stamps_per_message, found.clock_read_ns) == (6, 25)  # five layers
    assert found.bounds_ns == pytest.approx((630, 300))
    assert (found.interval_ns, found.within_bounds) == (None, None), "one pair can't tell"


def test_the_larger_bound_counts() -> None:
    assert COST.bounds_ns == (3_000, 450)
    assert COST.within_bounds is False
    assert costing(-1_500).within_bounds is True
    assert replace(COST, clock_read_ns=250.0).within_bounds is True
    assert costing(-9_000).within_bounds is True


def test_pairs_on_both_sides_of_the_bound_do_not_tell() -> None:
    """What was seen: a median of 13.5 µs, from pairs that differ by 30 µs."""
    pairs_ns = (3_800.0, 22_600.0, 16_700.0, -7_560.0, 17_700.0, 10_300.0)
    noisy = replace(COST, probe_cost_ns=13_500.0, probe_cost_pairs_ns=pairs_ns)
    assert noisy.interval_ns == (-7_560, 22_600)
    assert noisy.within_bounds is None
    assert "can't tell" in bounds_line(noisy)
    assert replace(COST, probe_cost_pairs_ns=PAIRS_NS[:5]).within_bounds is None


def test_what_is_not_known_is_not_judged() -> None:
    assert ProbeCost(0, None, (), None, None).within_bounds is None
    unknown = replace(COST, clock_read_ns=None)
    assert (unknown.bounds_ns, unknown.within_bounds) == ((3_000, None), None)


def test_the_terminal_has_both_bounds() -> None:
    assert bounds_line(COST) == (
        "they may cost 3 % of that, 3.00 µs, or two clock readings (25 ns each) for each of 9.0 stamps, "
        "450 ns: they cost more"
    )
    assert bounds_line(costing(-5_000)).endswith("they do not cost more")
    assert bounds_line(replace(COST, clock_read_ns=None)) == "they may cost 3 % of that, 3.00 µs"
