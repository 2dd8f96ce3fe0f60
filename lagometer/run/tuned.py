# SPDX-License-Identifier: Apache-2.0
"""The factor `tuning`: tunes the machine for one trial. Afterwards, or at the next command, it is
reverted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lagometer.errors import SetupMissing
from lagometer.machine.tuning import Tuner, Tuning, TuningError
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.study import Cell

NONE, LATENCY = "none", "latency"


def put_machine_back() -> tuple[str, ...]:
    """Reverts what is left of a killed lagometer's tuning; returns a warning if there was any.

    Raises `SetupMissing` if that is not possible.
    """
    try:
        restored = Tuner().recover()
    except TuningError as error:
        raise SetupMissing(str(error), hint="lagometer tune-host revert, as root") from error
    return (f"{len(restored)} settings of a killed tuning were restored",) if restored else ()


@dataclass(frozen=True)
class Tuned:
    """The result: why the trial fails, and what could not be set."""

    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def noted(self, outcome: TrialOutcome) -> TrialOutcome:
        """The outcome of the trial with these reasons and warnings."""
        reasons, warnings = (*outcome.reasons, *self.reasons), (*outcome.warnings, *self.warnings)
        return replace(outcome, reasons=reasons, warnings=warnings)


@contextlib.contextmanager
def tuned_for(cell: Cell, tuner: Tuner) -> Iterator[Tuned]:
    """Tunes the machine while the trial runs, if its cell asks for it.

    A cell that names a tuning fails on a machine that its user has tuned permanently.
    """
    if "tuning" not in cell.named:
        yield Tuned()
        return
    if cell.factors.tuning == NONE:
        yield _failed("the machine is tuned: `lagometer tune-host revert`") if _in_force(tuner) else Tuned()
        return
    try:
        tuning = tuner.apply(lasting=False)
    except TuningError as error:
        yield _failed(str(error))
        return
    try:
        yield Tuned(warnings=_warnings(tuning)) if tuning.effective else _failed(*_warnings(tuning))
    finally:
        _revert(tuner)


def _revert(tuner: Tuner) -> None:
    try:
        tuner.revert()
    except TuningError as error:
        raise SetupMissing(str(error), where="tuning", hint="lagometer tune-host revert") from error


def _in_force(tuner: Tuner) -> bool:
    with contextlib.suppress(TuningError):
        tuning = tuner.status()
        return tuning is not None and tuning.in_force
    return True


def _failed(*why: str) -> Tuned:
    return Tuned(reasons=tuple(f"tuning-failed: {reason}" for reason in why))


def _warnings(tuning: Tuning) -> tuple[str, ...]:
    """What could not be set, in one sentence. Interrupts are only counted, because there are many."""
    undone = [change for change in tuning.changes if change.verdict in ("refused", "absent")]
    interrupts = sum(change.name.startswith("interrupt ") for change in undone)
    named = [f"{change.name} ({change.why})" for change in undone if not change.name.startswith("interrupt ")]
    if tuning.holder is not None and tuning.holder.said:
        named.append(f"idle states ({tuning.holder.said})")
    named += [f"{interrupts} interrupts"] if interrupts else []
    return (f"tuning: not set: {', '.join(named)}",) if named else ()
