# SPDX-License-Identifier: Apache-2.0
"""Which trials of a campaign were preempted more than its others.

With more busy threads than CPUs the workers of every trial switch each other out: a flag that each trial has
says nothing. So a trial is flagged only where it stands out of its own campaign, by a robust rule on causes
alone, never by the latency that it gave (docs/methodology/noise.md). The raw counts stay in cells.parquet.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from lagometer.stats.verdict.noise import PREEMPTED_SHARE_MAX
from lagometer.store import format as form

Z_MAX = 3.5  # modified z-score: Iglewicz and Hoaglin 1993
TIMES_MIN = 2.0  # as much as its likes, at least
TRIALS_MIN = 3  # a cell with fewer has no median to stand out of
PER_MESSAGE_MIN = 0.01  # less is taken for as much: nobody notices a switch in a hundred messages
_WORD = "preempted"
_TEXT = _WORD + r": (\d+) involuntary switches"

Key = tuple[str, int]


@dataclass(frozen=True)
class Preempted:
    """How often a valid trial's workers were switched out involuntarily, per message delivered.

    times: as a multiple of the median of its likes: of its cell, or, where that has fewer than three trials,
    of all such cells; above: whether it exceeds what is worth mentioning; stands_out: whether it is flagged.
    """

    cell: str
    trial: int
    per_message: float
    times: float
    above: bool
    stands_out: bool


def preempted_trials(cells: pl.DataFrame) -> list[Preempted]:
    """The valid trials of which it is known, the one that was preempted most above its likes first.

    cells: cells.parquet. One that an older lagometer wrote tells of flagged trials alone.
    """
    amounts = _per_message(cells)
    logs = {key: math.log(max(amount, PER_MESSAGE_MIN)) for key, amount in amounts.items()}
    by_cell: dict[str, list[Key]] = {}
    for key in logs:
        by_cell.setdefault(key[0], []).append(key)
    repeated = {cell: keys for cell, keys in by_cell.items() if len(keys) >= TRIALS_MIN}
    alone = [key for cell, keys in by_cell.items() if cell not in repeated for key in keys]
    trials = _judged(logs, amounts, repeated.values())
    trials += _judged(logs, amounts, [alone] if alone else [])
    return sorted(trials, key=lambda trial: -trial.times)


def _judged(
    logs: Mapping[Key, float], amounts: Mapping[Key, float], groups: Iterable[list[Key]]
) -> list[Preempted]:
    """The trials of groups of likes; how much likes differ is judged over all groups together."""
    above_median: dict[Key, float] = {}
    for keys in groups:
        median = statistics.median(logs[key] for key in keys)
        above_median |= {key: logs[key] - median for key in keys}
    if not above_median:
        return []
    # Of normal numbers that is the standard deviation.
    spread = statistics.median(
        abs(difference) for difference in above_median.values()
    ) / statistics.NormalDist().inv_cdf(0.75)
    least = max(Z_MAX * spread, math.log(TIMES_MIN))
    trials = []
    for key, excess in above_median.items():
        above = amounts[key] > PREEMPTED_SHARE_MAX
        stands_out = above and excess > least and len(above_median) >= TRIALS_MIN
        trials.append(Preempted(*key, amounts[key], math.exp(excess), above, stands_out))
    return trials


def with_noise_of_campaign(cells: pl.DataFrame) -> pl.DataFrame:
    """cells.parquet with `noise` and `noisy` as they are seen within the campaign: `preempted` stays with
    those trials alone that stand out.
    """
    if "noise" not in cells.columns or cells.is_empty():
        return cells
    flagged = {(trial.cell, trial.trial) for trial in preempted_trials(cells) if trial.stands_out}
    keys = zip(cells["cell"], cells["trial"], strict=True)
    remaining = [
        None
        if causes is None
        else [cause for cause in causes if key in flagged or not cause.startswith(f"{_WORD}:")]
        for key, causes in zip(keys, cells["noise"].to_list(), strict=True)
    ]
    noise = pl.Series("noise", remaining, dtype=pl.List(pl.String()))
    return cells.with_columns(noise, noise.list.len().gt(0).alias("noisy"))


def _per_message(cells: pl.DataFrame) -> dict[Key, float]:
    """Of each valid trial, by its count, or by what its flag says where there is no column of counts."""
    if not {"noise", "trial", "n"} <= set(cells.columns):
        return {}
    from_flag = (
        pl.col("noise").cast(pl.List(pl.String())).list.join("\n").str.extract(_TEXT, 1).cast(pl.Int64)
    )
    counted = pl.col("involuntary_switches") if "involuntary_switches" in cells.columns else pl.lit(None)
    single = form.of_single_edges()
    trials = (
        cells.filter("valid")
        .with_columns(switches=pl.coalesce(counted, from_flag))
        .group_by("cell", "trial", maintain_order=True)
        .agg(pl.col("switches").first(), delivered=pl.col("n").filter(single).sum())
        .filter(pl.col("switches").is_not_null() & (pl.col("delivered") > 0))
    )
    return {(cell, trial): switches / delivered for cell, trial, switches, delivered in trials.iter_rows()}
