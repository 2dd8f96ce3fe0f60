# SPDX-License-Identifier: Apache-2.0
"""Whether two cells differ by more than their floors. If not, the machine explains it, not the middleware.

A message that is sent rarely finds its receiver's CPU asleep and caches cold, whatever the transport: bare
shared memory gets slower as well. So the change between two cells of one middleware is compared with the
change of a bare transport that did the same work twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy

from lagometer.stats.compare.comparable import clock_bound_ns, factors_of
from lagometer.stats.interval.shares import Floats
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.floor_ratio import BARE_TRANSPORTS, work_key

UNCHANGED = 1.1  # a smaller change of a floor counts as none


@dataclass(frozen=True)
class FloorChange:
    """How many times slower the slower of two cells is, and likewise its floor, by median of p50.

    floor_a, floor_b: the cells of the bare transport. cell_times, floor_times: both in the same direction, so
    the floor's may be below 1. excess_low, excess_high: 95 % interval (Welch, of the logarithms over trials)
    of cell_times over floor_times; None with fewer than two trials of one of the four.
    """

    floor_a: str
    floor_b: str
    cell_times: float
    floor_times: float
    excess_low: float | None = None
    excess_high: float | None = None

    @property
    def verdict(self) -> str:
        """`machine`: no more than the floor; `middleware`: only the cell changed; `both`; `unknown`."""
        if self.excess_low is None or self.excess_high is None:
            return "unknown"
        if self.excess_low <= 1.0:
            return "machine" if self.floor_times >= UNCHANGED else "unknown"
        return "both" if self.floor_times >= UNCHANGED else "middleware"

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        adapter = self.floor_a.split("/")[0]
        changes = (
            f"the floor ({adapter}) changed by {self.floor_times:.2g} ×, this cell by {self.cell_times:.2g} ×"
        )
        says = {
            "machine": "the machine (waking up, cold caches), not the middleware",
            "middleware": "the middleware, not the machine",
            "both": "the machine, and the middleware beyond that",
            "unknown": "too little to tell the machine from the middleware",
        }
        return f"{changes}: {says[self.verdict]}"


def floor_change(a: tuple[Campaign, str], b: tuple[Campaign, str]) -> FloorChange | None:
    """None unless both cells use one middleware, a bare transport did the work of each, and one clock
    measured it.

    a, b: a campaign and one of its cells.
    """
    if any(clock_bound_ns(*side) for side in (a, b)):
        return None  # ratios of figures that are known to a bound alone
    factors = [factors_of(*side) for side in (a, b)]
    if factors[0].get("adapter") != factors[1].get("adapter") or factors[0].get("adapter") in BARE_TRANSPORTS:
        return None
    cell_p50s = [_log_p50s(*side) for side in (a, b)]
    floors = [
        _floors(campaign, side_factors) for (campaign, _), side_factors in zip((a, b), factors, strict=True)
    ]
    common = [name for name in floors[0] if name in floors[1] and floors[0][name] != floors[1][name]]
    if not common or not all(len(p50s) for p50s in cell_p50s):
        return None
    fastest = min(common, key=lambda name: float(_log_p50s(a[0], floors[0][name]).mean()))
    floor_p50s = [_log_p50s(side[0], floors[n][fastest]) for n, side in enumerate((a, b))]
    return _change(cell_p50s, floor_p50s, (floors[0][fastest], floors[1][fastest]))


def _floors(campaign: Campaign, factors: Mapping[str, object]) -> dict[str, str]:
    """The cells of bare transports that did this work and have a figure, by adapter."""
    key = work_key(factors)
    by_adapter: dict[str, str] = {}
    for cell in campaign.cells["cell"].unique(maintain_order=True):
        cell_factors = factors_of(campaign, cell)
        name = str(cell_factors.get("adapter"))
        if name in BARE_TRANSPORTS and work_key(cell_factors) == key and len(_log_p50s(campaign, cell)):
            by_adapter.setdefault(name, cell)
    return by_adapter


def _log_p50s(campaign: Campaign, cell: str) -> Floats:
    """The logarithm of each valid trial's end-to-end p50, if it has one."""
    chosen = (pl.col("cell") == cell) & (pl.col("edge") == END_TO_END) & pl.col("valid")
    p50s = campaign.cells.filter(chosen)["latency_p50_ns"].drop_nulls()
    logarithms: Floats = np.log(p50s.filter(p50s > 0).to_numpy().astype(np.float64))
    return logarithms


def _change(cell_p50s: list[Floats], floor_p50s: list[Floats], names: tuple[str, str]) -> FloorChange:
    cell, floor = (float(pair[1].mean() - pair[0].mean()) for pair in (cell_p50s, floor_p50s))
    sign = 1.0 if cell >= 0 else -1.0
    times = math.exp(sign * cell), math.exp(sign * floor)
    groups = [*cell_p50s, *floor_p50s]
    if min(map(len, groups)) < 2:
        return FloorChange(*names, *times)
    variances = np.array([group.var(ddof=1) / len(group) for group in groups])
    excess, half_width = sign * (cell - floor), 0.0
    if variances.sum() > 0.0:
        degrees = variances.sum() ** 2 / (variances**2 / np.array([len(group) - 1 for group in groups])).sum()
        half_width = float(scipy.special.stdtrit(degrees, 0.975) * np.sqrt(variances.sum()))
    return FloorChange(*names, *times, math.exp(excess - half_width), math.exp(excess + half_width))
