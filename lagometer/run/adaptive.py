# SPDX-License-Identifier: Apache-2.0
"""How many trials each cell of a campaign gets: as many as the study says, or until it is precise enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from lagometer.run.results.trial_store import Finished
from lagometer.stats.interval.stopping import Bounds, CellProgress, chain_latencies
from lagometer.study import Study


class Stopping:
    """Follows the cells of one campaign; it gets every finished trial, from this call or an earlier one."""

    def __init__(self, study: Study, cells: Sequence[str]) -> None:
        self._trials = study.trials
        self._carried_out: Counter[str] = Counter(dict.fromkeys(cells, 0))
        bounds = Bounds.of_study(study.as_json())
        self._progress = {cell: CellProgress(bounds) for cell in cells} if bounds is not None else {}

    @property
    def adaptive(self) -> bool:
        """Whether the number of trials follows from what they show."""
        return bool(self._progress)

    @property
    def progress(self) -> Mapping[str, CellProgress]:
        """How far each cell of an adaptive campaign is; empty otherwise."""
        return self._progress

    def add(self, cell: str, finished: Finished, samples: pl.DataFrame | None) -> None:
        """Adds a finished trial; `samples` of a valid one, for an adaptive campaign."""
        self._carried_out[cell] += 1
        if self.adaptive:
            latencies = chain_latencies(samples) if finished.valid and samples is not None else None
            self._progress[cell].add(latencies, finished.spent_s)

    def stopped(self, cell: str) -> str | None:
        """Why a cell gets no more trials though there are blocks left; None while it goes on."""
        return self._progress[cell].stopped if self.adaptive else None

    def remaining(self) -> int:
        """How many trials are left in all; of an adaptive campaign, as many as are expected."""
        if self.adaptive:
            return sum(each.remaining() for each in self._progress.values())
        return sum(self._trials - done for done in self._carried_out.values())

    def counts(self) -> dict[str, int] | None:
        """How many cells were ended by what; None where the number of trials is fixed."""
        if not self.adaptive:
            return None
        whys = Counter(each.stopped or "open" for each in self._progress.values())
        return {why: whys[why] for why in ("precision", "time", "trials", "open") if whys[why]}
