# SPDX-License-Identifier: Apache-2.0
"""Runs trials, one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from lagometer.run.events import EventLog
from lagometer.run.hosts.part import HostPart
from lagometer.run.interruption import Interruption
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.run.worker.plan import Plan
from lagometer.run.worker.steps import TrialFailed, TrialSteps


class Conductor:
    """Runs trials, one at a time."""

    def __init__(self, interruption: Interruption, events: EventLog) -> None:
        self._interruption = interruption
        self._events = events

    def carry_out(self, parts: Sequence[HostPart], plans: Sequence[Plan]) -> TrialOutcome:
        """Returns the results of the trial; raises `Interrupted`. In either case nothing of it runs
        afterwards.

        parts: of the hosts; together they have every worker with a plan.
        """
        trial = TrialSteps(parts, plans, self._interruption, self._events)
        try:
            with contextlib.suppress(TrialFailed):
                trial.start()
                trial.await_workers()
                trial.match()
                trial.await_load()
                trial.go()
                trial.measure()
                trial.collect()
            trial.end()
            return trial.outcome()
        finally:
            trial.close()
            for part in parts:
                part.close()
