# SPDX-License-Identifier: Apache-2.0
"""How many trials each cell of a campaign gets: the number in the study, until enough are valid, or until the
cell is precise enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from lagometer.run.results.trial_store import Finished
from lagometer.stats.interval.stopping import TRIALS, Bounds, CellProgress, chain_latencies
from lagometer.study import Cell, Study

VALID = "valid"


class Stopping:
    """Follows the cells of one campaign. It receives every finished trial, from this call or an earlier
    one."""

    def __init__(self, study: Study, cells: Sequence[Cell]) -> None:
        self._trials = {cell.id: study.of(cell).trials for cell in cells}
        self._valid_wanted, self._trials_max = study.trials_valid, study.most_trials()
        self._valid: Counter[str] = Counter()
        self._carried_out: Counter[str] = Counter(dict.fromkeys(self._trials, 0))
        bounds = Bounds.of_study(study.as_json())
        self._progress = {cell: CellProgress(bounds) for cell in self._trials} if bounds is not None else {}

    @property
    def adaptive(self) -> bool:
        """Whether the results decide the number of trials."""
        return bool(self._progress)

    @property
    def progress(self) -> Mapping[str, CellProgress]:
        """The progress of each cell of an adaptive campaign; empty otherwise."""
        return self._progress

    def add(self, cell: str, finished: Finished, samples: pl.DataFrame | None) -> None:
        """Adds a finished trial; `samples`: of a valid trial, for an adaptive campaign."""
        self._carried_out[cell] += 1
        self._valid[cell] += finished.valid or finished.saturated
        if self.adaptive:
            latencies = chain_latencies(samples) if finished.valid and samples is not None else None
            self._progress[cell].add(latencies, finished.spent_s)

    def stopped(self, cell: str) -> str | None:
        """Why a cell gets no more trials although there are blocks left; None while it continues."""
        if self._valid_wanted is not None:
            enough = self._valid[cell] >= self._valid_wanted
            return VALID if enough else TRIALS if self._carried_out[cell] >= self._trials_max else None
        if self.adaptive:
            return self._progress[cell].stopped
        return TRIALS if self._carried_out[cell] >= self._trials[cell] else None

    def remaining(self) -> int:
        """How many trials are left in total; for an adaptive campaign, the expected number."""
        if self.adaptive:
            return sum(progress.remaining() for progress in self._progress.values())
        if self._valid_wanted is not None:
            return sum(
                min(self._valid_wanted - self._valid[cell], self._trials_max - carried_out)
                for cell, carried_out in self._carried_out.items()
                if self.stopped(cell) is None
            )
        return sum(self._trials[cell] - carried_out for cell, carried_out in self._carried_out.items())

    def counts(self) -> dict[str, int] | None:
        """How many cells stopped for each reason; None if the number of trials is fixed."""
        if not self.adaptive and self._valid_wanted is None:
            return None
        whys = Counter(self.stopped(cell) or "open" for cell in self._carried_out)
        return {why: whys[why] for why in ("precision", VALID, "time", TRIALS, "open") if whys[why]}
