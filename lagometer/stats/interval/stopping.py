# SPDX-License-Identifier: Apache-2.0
"""How far each cell of an adaptive campaign is, computed from its finished trials alone.

Nothing else is stored: a campaign that resumes after a kill, and a report made years later, reach the same
decisions from the same trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lagometer.stats.interval.confidence import Numbers, Stop
from lagometer.stats.interval.sequential import Decision, Rule, decide
from lagometer.store import format as form

TIME, TRIALS = "time", "trials"


@dataclass(frozen=True)
class Bounds:
    """What ends a cell of an adaptive campaign. cell_time_s: None means no limit."""

    rule: Rule
    trials_max: int
    cell_time_s: float | None = None

    @classmethod
    def of_study(cls, study: Mapping[str, Any]) -> Bounds | None:
        """From the study in the manifest; None for a study with a fixed number of trials."""
        precision = study.get("precision")
        if not precision:
            return None
        trials_min = max(int(study["trials_min"]), int(study.get("trials", 1)))
        trials_max, cell_time_ns = int(study["trials_max"]), study.get("cell_time_ns")
        rule = Rule(float(precision), trials_min, trials_max)
        return cls(rule, trials_max, cell_time_ns / 1e9 if cell_time_ns else None)


class CellProgress:
    """One cell of an adaptive campaign. Trials are added in the order in which they ran."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._trials: list[Numbers] = []
        self._decision: Decision = Decision(stop=False, next_look=bounds.rule.trials_min)
        self._predicted: int | None = None
        self.carried_out = self.valid = 0
        self.spent_s = 0.0

    @property
    def decision(self) -> Decision:
        """The decision after the last trial."""
        return self._decision

    @property
    def stopped(self) -> str | None:
        """Why the cell gets no more trials: `precision`, `time` or `trials`; None while it continues."""
        return self._decision.why if self._decision.stop else None

    def add(self, latencies: Numbers | None, spent_s: float) -> None:
        """Adds a trial and decides; `latencies` are those of its chains, or None if it is invalid."""
        if self.stopped is not None:
            return  # it ran under another study's or version's rule: it changes nothing
        self.carried_out += 1
        self.spent_s += spent_s
        if latencies is not None:
            self.valid += 1
            self._trials.append(latencies)
        decision = decide(self._trials, self._bounds.rule, self._limit())
        self._predicted = decision.predicted_trials or self._predicted
        self._decision = decision
        if decision.stop:
            self._trials.clear()

    def stop_now(self) -> Stop:
        """What the cell's intervals may use if it ends here, by a decision or from outside."""
        stop = self._decision.as_stop
        if stop is None:
            stop = decide(self._trials, self._bounds.rule, TIME).as_stop
        assert stop is not None, "a limit stops a cell"
        return stop

    def remaining(self) -> int:
        """How many more trials are expected; 0 once the cell has stopped."""
        if self.stopped is not None:
            return 0
        bounds, decision = self._bounds, self._decision
        wanted = self._predicted or decision.next_look or bounds.rule.trials_min
        left = max(1, min(wanted, bounds.trials_max) - self.carried_out)
        if bounds.cell_time_s is not None and self.carried_out:
            trial_s = self.spent_s / self.carried_out
            left = min(left, max(1, int((bounds.cell_time_s - self.spent_s) / max(trial_s, 1e-9))))
        return left

    def _limit(self) -> str | None:
        """The limit that ends the cell, whatever its interval."""
        bounds = self._bounds
        hopeless = not self.valid and self.carried_out >= bounds.rule.trials_min
        if self.carried_out >= bounds.trials_max or hopeless:
            return TRIALS
        next_s = self.spent_s / self.carried_out
        if bounds.cell_time_s is not None and self.spent_s + next_s > bounds.cell_time_s:
            return TIME
        return None


def chain_latencies(samples: pl.DataFrame) -> Numbers:
    """The end-to-end latencies a decision is based on: delivered messages of the measure phase. Those between
    clocks with an unknown offset have none, so there may be none at all in a valid trial."""
    chosen = samples.filter(
        (pl.col("edge") == form.END_TO_END)
        & (pl.col("phase") == "measure")
        & (pl.col("outcome") == "delivered")
    )
    latency_ns = chosen.select(pl.col("taken_ns") - pl.col("publish_ns")).to_series()
    return latency_ns.drop_nulls().to_numpy().astype(np.int64)
