# SPDX-License-Identifier: Apache-2.0
"""How many trials of each cell a later comparison takes, from how an earlier campaign's trials varied."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lagometer.stats.comparable import cell_trials
from lagometer.stats.compare import ALPHA, QUANTITIES
from lagometer.stats.confidence import PERMILLE, Pool
from lagometer.stats.power import POWER, measured_variance, trials_needed
from lagometer.store.reader import Campaign


@dataclass(frozen=True)
class CellDetection:
    """Of one cell: how many valid trials of it were found, how they spread, how many it takes.

    relative_sd: of the median as one trial alone fixes it (0.05 is 5 %), an upper limit; trials: that show a
    change of it. The last two: likewise of p99, which takes messages enough for a tail, too. All None with
    fewer than two trials.
    """

    cell: str
    trials_found: int
    relative_sd: float | None = None
    trials: int | None = None
    relative_sd_p99: float | None = None
    trials_p99: int | None = None


@dataclass(frozen=True)
class Detection:
    """trials: of each cell, so that an effect on p50 is found in any of them; trials_p99: on p99, likewise.

    None if no cell tells.
    """

    effect: float
    alpha: float
    power: float
    trials: int | None
    trials_p99: int | None
    cells: list[CellDetection]


def trials_to_detect(
    campaign: Campaign,
    cells: Sequence[str],
    effect: float,
    alpha: float = ALPHA,
    power: float = POWER,
) -> Detection:
    """How many trials show that the median, or p99, of any of these cells has changed by `effect`.

    The level is what `compare` leaves for one cell's quantity: alpha over all cells and quantities. Raises
    CampaignError if samples of a valid trial can't be read.
    """
    level = alpha / (len(QUANTITIES) * max(1, len(cells)))
    known = set(campaign.cells["cell"].unique())
    found = [_of_cell(campaign, cell, effect, level, power, cell in known) for cell in cells]
    most, most_p99 = _most(each.trials for each in found), _most(each.trials_p99 for each in found)
    return Detection(effect, alpha, power, most, most_p99, found)


def _most(counts: Iterable[int | None]) -> int | None:
    return max((count for count in counts if count is not None), default=None)


def _of_cell(
    campaign: Campaign, cell: str, effect: float, level: float, power: float, known: bool
) -> CellDetection:
    trials = cell_trials(campaign, cell)[2] if known else []
    if len(trials) < 2:
        return CellDetection(cell, len(trials))
    variance, variance_p99 = (measured_variance(trials, PERMILLE[name], effect) for name in ("p50", "p99"))
    # Tails are compared only where the messages support one.
    supported = Pool(trials).estimate(PERMILLE["p99"]).needed_trials or 0
    return CellDetection(
        cell,
        len(trials),
        math.sqrt(variance),
        trials_needed(variance, effect, level, power),
        math.sqrt(variance_p99),
        max(supported, trials_needed(variance_p99, effect, level, power)),
    )
