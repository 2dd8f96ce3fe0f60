# SPDX-License-Identifier: Apache-2.0
"""How many trials of each cell a later comparison needs, from the spread of an earlier campaign's trials."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lagometer.stats.compare.comparable import cell_trials, common_blocks
from lagometer.stats.compare.compare import ALPHA, QUANTITIES
from lagometer.stats.interval.confidence import PERMILLE, TRIALS_MIN, Numbers, Pool
from lagometer.stats.interval.power import (
    POWER,
    deviations,
    measured_pair_variance,
    seen_of_pairs,
    trials_needed,
    upper_variance,
)
from lagometer.stats.interval.shares import Floats
from lagometer.store.reader import Campaign


@dataclass(frozen=True)
class CellDetection:
    """One cell: how many valid trials were found, how they spread, and how many it needs.

    relative_sd: an upper limit for the spread of the median from one trial alone (0.05 is 5 %). trials: how
    many show a change of it. The last two are the same for p99, which also needs enough messages for a tail.
    All None with fewer than two trials.
    """

    cell: str
    trials_found: int
    relative_sd: float | None = None
    trials: int | None = None
    relative_sd_p99: float | None = None
    trials_p99: int | None = None


@dataclass(frozen=True)
class PairDetection:
    """Two cells of one campaign whose trials `compare --by` compares block by block.

    Like CellDetection. relative_sd: of the difference within a block, over √2, as the test sees it; this
    leaves out what the machine did to both.
    """

    cell_a: str
    cell_b: str
    blocks_found: int
    relative_sd: float
    trials: int
    relative_sd_p99: float
    trials_p99: int


@dataclass(frozen=True)
class Detection:
    """trials: how many of each cell find an effect on p50 in any of them; trials_p99: the same for p99.

    None if no cell has the data. pairs: cells that differ in one factor only; empty if the earlier campaign
    was not run block by block.
    """

    effect: float
    alpha: float
    power: float
    trials: int | None
    trials_p99: int | None
    cells: list[CellDetection]
    pairs: list[PairDetection]


def trials_to_detect(
    campaign: Campaign,
    cells: Sequence[str],
    effect: float,
    alpha: float = ALPHA,
    power: float = POWER,
) -> Detection:
    """How many trials show that the median or p99 of any of these cells has changed by `effect`.

    The level is what `compare` leaves for one cell's quantity: alpha over all cells and quantities. For
    pairs, `compare --by` turns two cells into one, so it is alpha over half as many. Raises CampaignError if
    samples of a valid trial can't be read.
    """
    aim = _Aim(effect, alpha / (len(QUANTITIES) * max(1, len(cells))), power)
    aim_of_pairs = _Aim(effect, alpha / (len(QUANTITIES) * max(1, len(cells) // 2)), power)
    known = set(campaign.cells["cell"].unique())
    detections, spreads = [], {}
    for cell in cells:
        numbers, started, trials = cell_trials(campaign, cell) if cell in known else ([], [], [])
        detections.append(_of_cell(cell, trials, aim))
        if len(trials) > 1:
            spreads[cell] = _Spread(numbers, started, trials, _supported(trials))
    return Detection(
        effect,
        alpha,
        power,
        _most(detection.trials for detection in detections),
        _most(detection.trials_p99 for detection in detections),
        detections,
        list(_pairs(spreads, aim_of_pairs)),
    )


@dataclass(frozen=True)
class _Aim:
    """What to find: the effect, the level of one test, and the probability."""

    effect: float
    level: float
    power: float

    def trials(self, variance: float, paired: bool, seen: Floats) -> int:
        return trials_needed(variance, self.effect, self.level, self.power, paired, seen)


@dataclass(frozen=True)
class _Spread:
    """A cell's valid trials: which, when each started, and their latencies.

    supported: how many trials a p99 needs to be supported at all.
    """

    numbers: Sequence[int]
    started: Sequence[str]
    trials: Sequence[Numbers]
    supported: int


def _most(counts: Iterable[int | None]) -> int | None:
    return max((count for count in counts if count is not None), default=None)


def _supported(trials: Sequence[Numbers]) -> int:
    """Tails are compared only if there are enough messages for one."""
    return Pool(trials).estimate(PERMILLE["p99"]).needed_trials or 0


def _of_cell(cell: str, trials: Sequence[Numbers], aim: _Aim) -> CellDetection:
    if len(trials) < 2:
        return CellDetection(cell, len(trials))
    whole = [trial for trial in trials if len(trial)]
    far, far_p99 = (deviations(whole, PERMILLE[name], aim.effect) for name in QUANTITIES)
    variance, variance_p99 = upper_variance(far), upper_variance(far_p99)
    return CellDetection(
        cell,
        len(trials),
        math.sqrt(variance),
        aim.trials(variance, False, far),
        math.sqrt(variance_p99),
        max(_supported(trials), aim.trials(variance_p99, False, far_p99)),
    )


def _pairs(spreads: Mapping[str, _Spread], aim: _Aim) -> Iterator[PairDetection]:
    for cell_a, cell_b in itertools.combinations(spreads, 2):
        if not _differ_in_one(cell_a, cell_b):
            continue
        a, b = spreads[cell_a], spreads[cell_b]
        blocks = common_blocks(a.numbers, a.started, b.numbers, b.started)
        if len(blocks) < TRIALS_MIN:
            continue
        in_a, in_b = [a.trials[place] for place, _ in blocks], [b.trials[place] for _, place in blocks]
        both = [seen_of_pairs(in_a, in_b, PERMILLE[name], aim.effect) for name in QUANTITIES]
        (seen, _), (seen_p99, _) = both
        variance, variance_p99 = (measured_pair_variance(of, aim.effect, change) for of, change in both)
        yield PairDetection(
            cell_a,
            cell_b,
            len(blocks),
            math.sqrt(variance),
            aim.trials(variance, True, seen),
            math.sqrt(variance_p99),
            max(a.supported, b.supported, aim.trials(variance_p99, True, seen_p99)),
        )


def _differ_in_one(cell_a: str, cell_b: str) -> bool:
    parts_a, parts_b = cell_a.split("/"), cell_b.split("/")
    return len(parts_a) == len(parts_b) and sum(map(str.__ne__, parts_a, parts_b)) == 1
