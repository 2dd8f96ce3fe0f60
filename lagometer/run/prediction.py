# SPDX-License-Identifier: Apache-2.0
"""How long a campaign will take: from its study, and from the duration and spread of earlier trials."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from lagometer.run.order import control_cell, long_trial_cells, long_trial_ns
from lagometer.run.wakeup import wakeup_duration_ns
from lagometer.stats.interval.sequential import trials_for
from lagometer.stats.interval.stopping import Bounds
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign, open_campaign
from lagometer.study import Adapter, Cell, Study
from lagometer.study.matrix import overhead_ns

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Prediction:
    """The total time, including control, long trials and floor, and the number of trials of the study's
    cells.

    least_s, most_s: the bounds, equal if the number of trials is fixed; earlier: the campaign that provides
    overhead and spread. If it is None, typical values replace them, and the number of trials of an adaptive
    study is a guess.
    """

    seconds: float
    least_s: float
    most_s: float
    trials: int
    earlier: Path | None = None


@dataclass(frozen=True)
class Experience:
    """How much longer than their phases earlier trials took, in s, and the spread of the p50 of a cell's
    trials."""

    overhead_s: Mapping[str, float]  # by adapter
    relative_sd: Mapping[str, float]  # by cell

    def overhead_of(self, cell: Cell) -> float:
        """The overhead of a trial of this cell. If it was never run, that of other adapters, or a typical
        one."""
        usual_s = overhead_ns(cell) / NS_PER_S
        all_s = statistics.median(self.overhead_s.values()) if self.overhead_s else usual_s
        return self.overhead_s.get(cell.factors.adapter, all_s)

    def spread_of(self, cell: Cell) -> float | None:
        """Standard deviation divided by mean, for a new cell the median of the others; None if none is
        known."""
        if not self.relative_sd:
            return None
        return self.relative_sd.get(cell.id, statistics.median(self.relative_sd.values()))


def predict(
    study: Study, cells: Sequence[Cell], adapters: Mapping[str, Adapter], directory: Path
) -> Prediction:
    """Predicts the time of a campaign of these cells. `directory`: where an earlier campaign may be."""
    earlier = _earlier(directory)
    experience = experience_of(earlier) if earlier is not None else Experience({}, {})
    expected = least = most = 0.0
    counts: list[tuple[int, int, int]] = []
    for cell in cells:
        cell_study = study.of(cell)
        duration_s = cell_study.trial_ns() / NS_PER_S + experience.overhead_of(cell)
        counts.append(trials_of(cell_study, duration_s, experience.spread_of(cell)))
        least, expected, most = (
            total + number * duration_s
            for total, number in zip((least, expected, most), counts[-1], strict=True)
        )
    # Parts may have different numbers of trials: there are as many blocks as the cell with the most has.
    blocks = [max(numbers) for numbers in zip(*counts, strict=True)] or [0, 0, 0]
    beside_s = [_beside_s(study, cells, adapters, number, experience) for number in blocks]
    wakeup_s = wakeup_duration_ns(study, cells) / NS_PER_S
    return Prediction(
        seconds=expected + beside_s[1] + wakeup_s,
        least_s=least + beside_s[0] + wakeup_s,
        most_s=most + beside_s[2] + wakeup_s,
        trials=sum(count for _, count, _ in counts),
        earlier=directory if earlier is not None and experience.overhead_s else None,
    )


def trials_of(study: Study, trial_s: float, relative_sd: float | None) -> tuple[int, int, int]:
    """The lowest, the expected and the highest number of trials of a cell if each takes `trial_s`."""
    bounds = Bounds.of_study(study.as_json())
    if bounds is None:
        return study.fewest_trials(), study.fewest_trials(), study.most_trials()
    fewest, highest = study.fewest_trials(), bounds.trials_max
    if bounds.cell_time_s is not None:
        highest = min(highest, max(1, int(bounds.cell_time_s / trial_s)))
    needed = fewest if relative_sd is None else trials_for(relative_sd, bounds.rule)
    return min(fewest, highest), min(max(needed, fewest), highest), highest


def experience_of(campaign: Campaign) -> Experience:
    """How much longer than their phases a campaign's trials took, and the spread of their medians."""
    study = campaign.manifest.get("study", {})
    factors = {item["id"]: item.get("factors", {}) for item in campaign.manifest.get("cells", [])}
    overhead: dict[str, list[float]] = {}
    for entry in campaign.journal:
        adapter = factors.get(entry["cell"], {}).get("adapter")
        if entry.get("valid") and adapter and "spent_s" in entry:
            phases_s = _phases_s((study.get("parts") or {}).get(factors[entry["cell"]].get("part"), study))
            overhead.setdefault(str(adapter), []).append(max(0.0, float(entry["spent_s"]) - phases_s))
    medians = campaign.cells.filter(pl.col("valid") & (pl.col("edge") == form.END_TO_END)).drop_nulls(
        "latency_p50_ns"
    )
    spread = medians.group_by("cell").agg(
        sd=pl.col("latency_p50_ns").std(), mean=pl.col("latency_p50_ns").mean()
    )
    return Experience(
        {adapter: statistics.median(values) for adapter, values in overhead.items()},
        {cell: sd / mean for cell, sd, mean in spread.drop_nulls("sd").iter_rows() if mean},
    )


def _phases_s(study: Mapping[str, object]) -> float:
    """The duration of the phases of one trial, for a study or a part as in its manifest."""
    known = (study.get(f"{phase}_ns", 0) for phase in ("warmup", "duration", "drain"))
    return sum(phase_ns for phase_ns in known if isinstance(phase_ns, int)) / NS_PER_S


def _beside_s(
    study: Study, cells: Sequence[Cell], adapters: Mapping[str, Adapter], blocks: int, experience: Experience
) -> float:
    """The time of the control's trials, one per block, and of the long trials."""
    longer_ns = long_trial_ns(study, cells)
    other_trials = [
        (replace(study.of(cell), duration_ns=longer_ns), cell, 1) for cell in long_trial_cells(study, cells)
    ]
    control_study, control = control_cell(study, adapters)
    if control_study is not None and isinstance(control, Cell):
        other_trials.append((control_study, control, blocks))
    return sum(
        number * (trial_study.trial_ns() / NS_PER_S + experience.overhead_of(cell))
        for trial_study, cell, number in other_trials
    )


def _earlier(directory: Path) -> Campaign | None:
    try:
        return open_campaign(directory)
    except CampaignError:
        return None
