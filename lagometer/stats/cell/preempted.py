# SPDX-License-Identifier: Apache-2.0
"""Which trials of a campaign were preempted more than the others.

With more busy threads than CPUs, the workers of every trial preempt each other, and a flag on every trial
says nothing. So a trial is flagged only if it stands out from its own campaign. The robust rule looks at
causes only, never at the latency the trial gave (docs/methodology/noise.md). The raw counts stay in
cells.parquet.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from lagometer.stats.cell.taken import Key, taken_messages
from lagometer.stats.verdict.noise import PREEMPTED_SHARE_MAX

Z_MAX = 3.5  # modified z-score: Iglewicz and Hoaglin 1993
TIMES_MIN = 2.0  # at least this multiple of comparable trials
TRIALS_MIN = 3  # a cell with fewer has no median to compare with
PER_MESSAGE_MIN = 0.01  # smaller rates count as this: one switch in a hundred messages does not matter
_WORD = "preempted"
_TEXT = _WORD + r": (\d+) involuntary switches"


@dataclass(frozen=True)
class Preempted:
    """How often a valid trial's workers were switched out involuntarily, per message taken.

    times: the rate as a multiple of the median of comparable trials: those of its cell, or, if the cell has
    fewer than three trials, those of all such cells. above: whether it is worth mentioning. stands_out:
    whether it is flagged.
    """

    cell: str
    trial: int
    per_message: float
    times: float
    above: bool
    stands_out: bool


def preempted_trials(cells: pl.DataFrame) -> list[Preempted]:
    """The valid trials with a known rate, the most preempted relative to comparable trials first.

    cells: cells.parquet. A file from an older lagometer has the rate of flagged trials only.
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
    """Judges groups of comparable trials; the spread within groups is taken over all groups together."""
    above_median: dict[Key, float] = {}
    for keys in groups:
        median = statistics.median(logs[key] for key in keys)
        above_median |= {key: logs[key] - median for key in keys}
    if not above_median:
        return []
    # For normally distributed numbers this is the standard deviation.
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
    """cells.parquet with `noise` and `noisy` judged within the campaign: only outliers keep `preempted`."""
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
    """The rate of each valid trial, from its count, or from its flag if there is no column of counts."""
    if not {"noise", "trial", "n"} <= set(cells.columns):
        return {}
    from_flag = (
        pl.col("noise").cast(pl.List(pl.String())).list.join("\n").str.extract(_TEXT, 1).cast(pl.Int64)
    )
    counted = pl.col("involuntary_switches") if "involuntary_switches" in cells.columns else pl.lit(None)
    taken = taken_messages(cells)
    trials = (
        cells.filter("valid")
        .with_columns(switches=pl.coalesce(counted, from_flag))
        .group_by("cell", "trial", maintain_order=True)
        .agg(pl.col("switches").first())
        .filter(pl.col("switches").is_not_null())
    )
    return {
        (cell, trial): switches / messages
        for cell, trial, switches in trials.iter_rows()
        if (messages := taken[cell, trial])
    }
