# SPDX-License-Identifier: Apache-2.0
"""Runs a study: all trials in randomised complete blocks, each stored before the next one begins."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lagometer
from lagometer.errors import CannotStore, Interrupted, NothingRunnable
from lagometer.installation import worker_path
from lagometer.run.adaptive import Stopping
from lagometer.run.companions.bridges import bridge_processes
from lagometer.run.devices import MachineSpeed, speed_for, speed_json
from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.order import blocks, control_cell, long_trial_cells, long_trial_ns
from lagometer.run.progress import CampaignProgress
from lagometer.run.results.campaign_files import Results
from lagometer.run.results.trial_store import Finished, TrialStore
from lagometer.run.trial import Trial, TrialRunner
from lagometer.run.tuned import put_machine_back
from lagometer.run.wakeup import WakeupError, wakeup_duration_ns, write_wakeup
from lagometer.run.worker.conductor import Conductor
from lagometer.stats.cell.campaign_estimates import make_estimates
from lagometer.stats.cell.long_trials import known_of, long_checks
from lagometer.store.errors import StoreError
from lagometer.store.format import MANIFEST
from lagometer.store.reader import open_campaign, read_manifest
from lagometer.store.storing import prepare_folder
from lagometer.study import Adapter, Cell, Excluded, Study
from lagometer.study.matrix import TRIAL_OVERHEAD_NS

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Assignment:
    """What to run, and where the results go. `max_s`: no trial begins that would end later than this."""

    study: Study
    cells: Sequence[Cell]
    excluded: Sequence[Excluded]
    adapters: Mapping[str, Adapter]
    directory: Path
    resume: bool = False
    max_s: float | None = None


@dataclass
class Beside:
    """Results of trials that are not the study's own: those of the control cell, or the long ones."""

    cells: list[str] = field(default_factory=list)
    valid: int = 0
    failed: int = 0
    excluded: str | None = None


@dataclass
class Tally:
    """The results of a campaign, in the form that `run --json` prints.

    valid, saturated, failed, failures: of the study's own trials; stopped: how many cells of an adaptive
    campaign stopped for each reason; remaining: trials left for `--resume`, for an adaptive campaign the
    expected number.
    """

    dir: str
    valid: int = 0
    saturated: int = 0
    failed: int = 0
    excluded: list[dict[str, str]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    resumed: int = 0
    remaining: int = 0
    moved: str | None = None
    seconds: float = 0.0
    interrupted: bool = False
    stopped: dict[str, int] | None = None
    control: Beside | None = None
    long_trials: Beside | None = None

    @property
    def finished(self) -> int:
        """The number of trials that were run."""
        return self.valid + self.saturated + self.failed


class OutOfTime(Exception):
    """The next trial would end after `--max-time`."""


class CampaignRun:
    """One call of `lagometer run`, from an empty folder (or a resumed one) to the last trial."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._results = Results(assignment.directory)
        self._runner = TrialRunner(assignment.adapters, assignment.cells)
        self._stopping = Stopping(assignment.study, assignment.cells)
        self._began_s = 0.0
        self._spent: list[float] = []
        self.tally = Tally(
            dir=str(assignment.directory),
            excluded=[
                {"cell": exclusion.cell, "reason": exclusion.reason} for exclusion in assignment.excluded
            ],
        )

    def carry_out(self) -> Tally:
        """Runs the missing trials.

        Raises `NothingRunnable`, `CannotStore`, `BadInput`, `SetupMissing`; `Interrupted`, with the tally so
        far in `tally`.
        """
        if not self._assignment.cells:
            raise _nothing_runnable(self._assignment.excluded)
        self._began_s = time.monotonic()
        self.tally.warnings += put_machine_back()
        events = EventLog()
        try:
            self._leave_out_lacking()
            self._open()
            self._carry_out(events)
        finally:
            self._runner.close()
            events.close()
            self._results.close()
        return self.tally

    def _leave_out_lacking(self) -> None:
        """Excludes the cells that one of their hosts lacks something for. Raises `NothingRunnable`."""
        assignment = self._assignment
        cells, lacking = self._runner.without_lacking(assignment.study)
        if not lacking:
            return
        self._assignment = replace(assignment, cells=cells, excluded=(*assignment.excluded, *lacking))
        self._stopping = Stopping(assignment.study, cells)
        self.tally.excluded += [{"cell": each.cell, "reason": each.reason} for each in lacking]
        if not cells:
            raise _nothing_runnable(lacking, "`lagometer doctor --hosts STUDY` looks at the hosts")

    def _carry_out(self, events: EventLog) -> None:
        try:
            with Interruption() as interruption:
                self._measure_wakeup(interruption)
                self._runner.prepare(self._assignment.study)
                self._run_trials(Conductor(interruption, events), interruption)
        except BaseException as error:
            self.tally.interrupted = isinstance(error, Interrupted)
            with contextlib.suppress(CannotStore):  # report the first error
                self._finish()
            raise
        self._finish()
        self._write_estimates()

    def _measure_wakeup(self, interruption: Interruption) -> None:
        """Writes floor.json. A campaign is as good without it, so a failure is only a warning."""
        study = self._assignment.study
        try:
            duration_ns = wakeup_duration_ns(study, self._assignment.cells, self._assignment.max_s)
            write_wakeup(self._assignment.directory, worker_path(), duration_ns, study.priority, interruption)
        except WakeupError as error:
            self.tally.warnings.append(f"no wake-up latency of this machine: {error}")

    def _write_estimates(self) -> None:
        """Writes estimates.parquet, and compares the long trials with it. Readers can make it themselves."""
        try:
            campaign = open_campaign(self._assignment.directory)
            estimates = make_estimates(campaign, self._stopping.progress)
            self._results.write_estimates(estimates)
            for check in long_checks(campaign, known_of(estimates)):
                self.tally.warnings += [f"long trial of {check.cell}: {remark}" for remark in check.remarks()]
        except StoreError as error:
            self.tally.warnings.append(f"no intervals: {error}")

    def _open(self) -> None:
        assignment = self._assignment
        self._runner.speed = self._speed()
        moved = prepare_folder(assignment.directory, assignment.resume)
        self.tally.moved = str(moved) if moved is not None else None
        manifest = self._manifest()
        self._results.lock()
        if assignment.resume and (assignment.directory / MANIFEST).is_file():
            self._results.reopen(manifest)
            self._count_resumed()
        else:
            self._results.create(manifest)

    def _speed(self) -> MachineSpeed | None:
        """The speed of this machine, measured once for a campaign with devices. Raises BadInput."""
        assignment, known = self._assignment, None
        if assignment.resume and (assignment.directory / MANIFEST).is_file():
            known = read_manifest(assignment.directory).get("machine_speed")
        return speed_for(assignment.cells, assignment.study.hosts, known)

    def _run_trials(self, conductor: Conductor, interruption: Interruption) -> None:
        self.tally.remaining = self._stopping.remaining()
        with CampaignProgress(self.tally.remaining, self._predicted_s()).shown() as progress:
            if self.tally.moved:
                progress.note(f"an older campaign was moved to {self.tally.moved}")
            turn = _Turn(conductor, interruption, progress)
            try:
                self._run_blocks(turn)
                self._run_long_trials(turn)
            except OutOfTime:
                progress.note(f"--max-time is over: {self.tally.remaining} trials are left for --resume")

    def _run_blocks(self, turn: _Turn) -> None:
        """Runs block after block until every cell has enough trials. Each block begins with a trial of the
        control."""
        study, finished = self._assignment.study, self._results.trials.done
        control_study, control = control_cell(study, self._assignment.adapters)
        if isinstance(control, Excluded):
            self.tally.control = Beside(excluded=control.reason)
            turn.progress.note(f"no control: {control.reason}")
        for trial, block in zip(
            range(_most_trials(study)), blocks(self._assignment.cells, study.seed), strict=False
        ):
            missing = [
                cell
                for cell in block
                if self._stopping.stopped(cell.id) is None and (cell.id, trial) not in finished
            ]
            if missing and control_study is not None and isinstance(control, Cell):
                self._run_beside(turn, control_study, control, trial, self._results.control)
            for cell in missing:
                self._run_own(turn, cell, trial)
            if missing:
                self._results.checkpoint()

    def _run_own(self, turn: _Turn, cell: Cell, trial: int) -> None:
        """Runs a trial of the study."""
        result = self._run(turn, self._assignment.study.of(cell), cell, trial, self._results.trials)
        finished = self._results.trials.done[(cell.id, trial)]
        self._stopping.add(cell.id, finished, result.samples)
        self._count(cell.id, trial, finished, result.warnings)
        self.tally.remaining = self._stopping.remaining()
        turn.progress.expect(self.tally.finished - self.tally.resumed + self.tally.remaining)
        turn.progress.end(cell.id, trial, result.valid, result.reasons, finished.spent_s)

    def _run_beside(self, turn: _Turn, study: Study, cell: Cell, trial: int, store: TrialStore) -> None:
        """Runs a trial that is not the study's own."""
        if (cell.id, trial) in store.done:
            return
        result = self._run(turn, study, cell, trial, store)
        if not result.valid:
            kind = "control" if store is self._results.control else "long trial"
            turn.progress.note(f"{kind} {cell.id} #{trial} failed ({'; '.join(result.reasons)})")

    def _run_long_trials(self, turn: _Turn) -> None:
        study, cells = self._assignment.study, self._assignment.cells
        longer_ns = long_trial_ns(study, cells)
        for cell in long_trial_cells(study, cells):
            longer = replace(study.of(cell), duration_ns=longer_ns)
            self._run_beside(turn, longer, cell, 0, self._results.long)

    def _run(self, turn: _Turn, study: Study, cell: Cell, trial: int, store: TrialStore) -> Trial:
        turn.interruption.check()
        if self._out_of_time((study.trial_ns() - self._assignment.study.trial_ns()) / NS_PER_S):
            raise OutOfTime
        turn.progress.begin(cell.id, trial)
        result = self._runner.run(turn.conductor, study, cell, trial, store)
        if store is self._results.trials:
            self._results.learn(cell.id, result.outcome)
            self._spent.append(store.done[(cell.id, trial)].spent_s)
        return result

    def _predicted_s(self) -> float:
        """The approximate duration of the study's next trial."""
        if self._spent:
            return sum(self._spent) / len(self._spent)
        return (self._assignment.study.trial_ns() + TRIAL_OVERHEAD_NS) / NS_PER_S

    def _out_of_time(self, longer_s: float) -> bool:
        limit = self._assignment.max_s
        return limit is not None and time.monotonic() - self._began_s + self._predicted_s() + longer_s > limit

    def _count(self, cell: str, trial: int, finished: Finished, warnings: Sequence[str] = ()) -> None:
        if finished.valid:
            self.tally.valid += 1
        elif finished.saturated:
            self.tally.saturated += 1
        else:
            self.tally.failed += 1
            self.tally.failures.append({"cell": cell, "trial": trial, "reasons": list(finished.reasons)})
        self.tally.warnings += [warning for warning in warnings if warning not in self.tally.warnings]

    def _count_resumed(self) -> None:
        """Counts the trials that earlier calls have finished: the tally, and every decision, is about the
        whole campaign.

        Only the journal, and the samples of the trials in it, determine how far a cell is.
        """
        study, store = self._assignment.study, self._results.trials
        cells = {cell.id: study.of(cell) for cell in self._assignment.cells}
        for (cell, trial), finished in sorted(store.done.items(), key=lambda item: item[0][1]):
            if cell not in cells or trial >= cells[cell].most_trials():
                continue
            self.tally.resumed += 1
            self._count(cell, trial, finished)
            samples = store.samples((cell, trial)) if finished.valid and self._stopping.adaptive else None
            self._stopping.add(cell, finished, samples)

    def _finish(self) -> None:
        """Notes how the campaign ended, also after an error or a signal."""
        self.tally.seconds = round(time.monotonic() - self._began_s, 3)
        self.tally.stopped = self._stopping.counts()
        for part, store in (("control", self._results.control), ("long_trials", self._results.long)):
            if store.done:
                valid = sum(finished.valid for finished in store.done.values())
                cells = list(dict.fromkeys(cell for cell, _ in store.done))
                setattr(self.tally, part, Beside(cells, valid, len(store.done) - valid))
        self._results.finish("finished" if self.tally.remaining == 0 else "interrupted")

    def _manifest(self) -> dict[str, Any]:
        study = self._assignment.study
        return {
            "name": study.name,
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "study": study.as_json(),
            "study_text": study.text,
            "study_path": str(study.path.absolute()) if study.path is not None else None,
            "seed": study.seed,
            "lagometer_version": lagometer.__version__,
            "cells": [
                {
                    "id": cell.id,
                    "factors": cell.columns(),
                    "defaults": cell.defaults(),
                    "trials": study.of(cell).fewest_trials(),
                    **({"topics": _topics(cell)} if cell.graph.topics else {}),
                    **({"bridges": cell.bridges, "forwarding": cell.forwarding} if cell.bridges else {}),
                    **({"bridge": _bridge(cell)} if cell.bridge is not None else {}),
                }
                for cell in self._assignment.cells
            ],
            "excluded": self.tally.excluded,
            "traps": self._traps(),
            "options": self._options(),
            **speed_json(self._runner.speed),
        }

    def _options(self) -> dict[str, dict[str, Any]]:
        """By adapter, how the sidecars declare which effective settings report each option."""
        adapter_names = {name for cell in self._assignment.cells for name in cell.adapters}
        fields = {"default", "reported", "only_with", "also"}
        return {
            name: {
                key: option.model_dump(mode="json", include=fields) for key, option in sidecar.options.items()
            }
            for name in sorted(adapter_names & set(self._assignment.adapters))
            if (sidecar := self._assignment.adapters[name].sidecar).options
        }

    def _traps(self) -> dict[str, list[dict[str, Any]]]:
        """The declared traps of the sidecars, by adapter, so a campaign can be read on a machine without
        adapters."""
        adapter_names = {name for cell in self._assignment.cells for name in cell.adapters}
        adapters = self._assignment.adapters
        declared = {name: adapters[name].sidecar.traps for name in sorted(adapter_names & set(adapters))}
        return {
            name: [trap.model_dump(mode="json") for trap in traps]
            for name, traps in declared.items()
            if traps
        }


def _nothing_runnable(
    excluded: Sequence[Excluded], hint: str = "`lagometer plan` names all with their reasons"
) -> NothingRunnable:
    if not excluded:
        return NothingRunnable("no cell is selected", hint="`lagometer plan` lists the cells")
    first, more = excluded[0], f", and {len(excluded) - 1} more" if len(excluded) > 1 else ""
    message = f"no cell can run here: {first.cell}{more}: {first.reason}"
    return NothingRunnable(message, hint=hint)


def _most_trials(study: Study) -> int:
    """The upper limit of blocks. Cells of parts with fewer trials are not in the later blocks."""
    return max(part.most_trials() for part in study.parts.values() or (study,))


def _bridge(cell: Cell) -> dict[str, Any]:
    """The program between the domains of a cell: its processes, and the edges that it carries."""
    assert cell.bridge is not None, "called for cells with one"
    return {
        "name": cell.bridge.name,
        "title": cell.bridge.title,
        "processes": list(bridge_processes(cell)),
        "edges": [edge.name for edge in cell.edges_across],
        "lacks": [lack.model_dump(exclude_defaults=True) for lack in cell.bridge.lacks],
    }


def _topics(cell: Cell) -> dict[str, dict[str, Any]]:
    """What each topic carries. If payloads are drawn or recorded: the smallest, the mean and the largest
    size."""
    topics = {}
    for topic, traffic in cell.traffic.items():
        topics[topic] = {key: value for key, value in vars(traffic).items() if key != "sizes_bytes"}
        if traffic.sizes_bytes:
            sizes = {
                "min": min(traffic.sizes_bytes),
                "mean": traffic.mean_bytes,
                "max": traffic.payload_bytes,
            }
            topics[topic]["payload_bytes"] = sizes
    return topics


@dataclass(frozen=True)
class _Turn:
    """What every trial of one call needs."""

    conductor: Conductor
    interruption: Interruption
    progress: CampaignProgress
