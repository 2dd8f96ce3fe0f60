# SPDX-License-Identifier: Apache-2.0
"""Carries out trials, one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from lagometer.run.companions.companions import Companions
from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.launchers.base import Command, Launcher
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.run.worker.plan import Plan
from lagometer.run.worker.steps import TrialFailed, TrialSteps


class Conductor:
    """Carries out trials, one at a time."""

    def __init__(self, interruption: Interruption, events: EventLog) -> None:
        self._interruption = interruption
        self._events = events

    def carry_out(
        self,
        launcher: Launcher,
        commands: Sequence[Command],
        plans: Sequence[Plan],
        network: str,
        companions: Companions | None = None,
    ) -> TrialOutcome:
        """Returns what came of the trial; raises `Interrupted`. Nothing of it runs afterwards, either way.

        companions: what the launcher starts beside the workers.
        """
        trial = TrialSteps(launcher, plans, self._interruption, self._events, companions or Companions())
        try:
            with contextlib.suppress(TrialFailed):
                trial.start(commands, network)
                trial.await_daemons()
                trial.match()
                trial.await_load()
                trial.go()
                trial.measure()
                trial.collect()
            trial.end()
            return trial.outcome()
        finally:
            trial.close()
