# SPDX-License-Identifier: Apache-2.0
"""How many trials of each cell a later comparison takes, from how an earlier campaign's trials varied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lagometer.stats.comparable import cell_trials
from lagometer.stats.compare import ALPHA, QUANTITIES
from lagometer.stats.confidence import PERMILLE
from lagometer.stats.power import POWER, measured_variance, trials_needed
from lagometer.store.reader import Campaign


@dataclass(frozen=True)
class CellDetection:
    """Of one cell: how many valid trials of it were found, how they spread, how many it takes.

    relative_sd: of the median as one trial alone fixes it (0.05 is 5 %), an upper limit; both None with fewer
    than two trials.
    """

    cell: str
    trials_found: int
    relative_sd: float | None
    trials: int | None


@dataclass(frozen=True)
class Detection:
    """trials: of each cell, so that an effect on p50 is found in any of them; None if no cell tells."""

    effect: float
    alpha: float
    power: float
    trials: int | None
    cells: list[CellDetection]


def trials_to_detect(
    campaign: Campaign,
    cells: Sequence[str],
    effect: float,
    alpha: float = ALPHA,
    power: float = POWER,
) -> Detection:
    """How many trials show that the median of any of these cells has changed by `effect`.

    The level is what `compare` leaves for one cell's median: alpha over all cells and quantities. Raises
    CampaignError if samples of a valid trial can't be read.
    """
    level = alpha / (len(QUANTITIES) * max(1, len(cells)))
    known = set(campaign.cells["cell"].unique())
    found = [_of_cell(campaign, cell, effect, level, power, cell in known) for cell in cells]
    counts = [each.trials for each in found if each.trials is not None]
    return Detection(effect, alpha, power, max(counts, default=None), found)


def _of_cell(
    campaign: Campaign, cell: str, effect: float, level: float, power: float, known: bool
) -> CellDetection:
    trials = cell_trials(campaign, cell)[2] if known else []
    if len(trials) < 2:
        return CellDetection(cell, len(trials), None, None)
    variance = measured_variance(trials, PERMILLE["p50"], effect)
    needed = trials_needed(variance, effect, level, power)
    return CellDetection(cell, len(trials), math.sqrt(variance), needed)
