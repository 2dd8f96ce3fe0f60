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

COST = ProbeCost(6, 4_000.0, (4_000.0,), 0.04, 100_000.0, stamps_per_message=9.0, clock_read_ns=25.0)


def test_the_cost_comes_from_pairs_and_the_stamps_from_the_layers(tmp_path: Path) -> None:
    probed = write_ways(tmp_path / "probed", Made([[30_000] * 40]))
    (probed / form.ENVIRONMENT).write_text(json.dumps({"clock_read_ns": 25.0}))
    plain = write_ways(tmp_path / "plain", Made([[28_000] * 40], layers=False))
    found = probe_cost([(open_campaign(probed), open_campaign(plain))])
    # Half of the messages are on the second edge, where they take half of the time.
    assert (found.pairs, found.probe_cost_ns, found.latency_p50_without_ns) == (1, 1_500, 21_000)
    assert (found.stamps_per_message, found.clock_read_ns) == (6, 25)  # five layers
    assert found.bounds_ns == pytest.approx((630, 300))
    assert found.within_bounds is False


def test_the_larger_bound_counts() -> None:
    assert COST.bounds_ns == (3_000, 450)
    assert COST.within_bounds is False
    assert replace(COST, probe_cost_ns=2_900.0).within_bounds is True
    assert replace(COST, clock_read_ns=250.0).within_bounds is True
    assert replace(COST, probe_cost_ns=-900.0).within_bounds is True


def test_what_is_not_known_is_not_judged() -> None:
    assert ProbeCost(0, None, (), None, None).within_bounds is None
    unknown = replace(COST, clock_read_ns=None)
    assert (unknown.bounds_ns, unknown.within_bounds) == ((3_000, None), None)


def test_the_terminal_has_both_bounds() -> None:
    assert bounds_line(COST) == (
        "they may cost 3 % of that, 3.00 µs, or two clock readings (25 ns each) for each of 9.0 stamps, "
        "450 ns: they cost more"
    )
    assert bounds_line(replace(COST, probe_cost_ns=1.0)).endswith("they do not cost more")
    assert bounds_line(replace(COST, clock_read_ns=None)) == "they may cost 3 % of that, 3.00 µs"
