# SPDX-License-Identifier: Apache-2.0
"""Carries out a study: all trials in randomised complete blocks, each stored before the next begins."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl

import lagometer
from lagometer.errors import CannotStore, Interrupted, NothingRunnable
from lagometer.run.conductor import Conductor
from lagometer.run.events import EventLog
from lagometer.run.facts import trial_facts
from lagometer.run.interruption import Interruption
from lagometer.run.isolation import remove_stale_directories, runtime_directory
from lagometer.run.launchers.base import Command
from lagometer.run.launchers.local import LocalLauncher
from lagometer.run.outcome import TrialOutcome
from lagometer.run.plan import Plan
from lagometer.run.plans import worker_plans
from lagometer.run.progress import CampaignProgress
from lagometer.run.results import Key, Results
from lagometer.run.storing import prepare_folder
from lagometer.stats.edges import samples as samples_of
from lagometer.stats.estimate import summarise
from lagometer.store.environment import collect
from lagometer.store.errors import RecordsError
from lagometer.store.records import Lane, decode
from lagometer.study import Adapter, Cell, Excluded, Study
from lagometer.study.adapters import supervisor_path, worker_path
from lagometer.study.matrix import TRIAL_OVERHEAD_NS

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Assignment:
    """What is to be carried out, and where it goes. `max_s`: no trial begins that would end later."""

    study: Study
    cells: Sequence[Cell]
    excluded: Sequence[Excluded]
    adapters: Mapping[str, Adapter]
    directory: Path
    resume: bool = False
    max_s: float | None = None


@dataclass
class Tally:
    """What came of a campaign, in the form that `run --json` prints."""

    dir: str
    valid: int = 0
    failed: int = 0
    excluded: list[dict[str, str]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    resumed: int = 0
    remaining: int = 0
    moved: str | None = None
    seconds: float = 0.0
    interrupted: bool = False


def trial_order(cells: Sequence[Cell], trials: int, seed: int) -> list[tuple[Cell, int]]:
    """Returns all trials in randomised complete blocks: each holds every cell once, in an order of its own.

    So a drift of the machine spreads over all cells instead of being mistaken for a difference between them.
    """
    generator = random.Random(seed)
    order: list[tuple[Cell, int]] = []
    for trial in range(trials):
        block = list(cells)
        generator.shuffle(block)
        order += [(cell, trial) for cell in block]
    return order


class CampaignRun:
    """One call of `lagometer run`, from an empty folder (or a resumed one) to the last trial."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._results = Results(assignment.directory)
        self._worker, self._supervisor = worker_path(), supervisor_path()
        self.tally = Tally(
            dir=str(assignment.directory),
            excluded=[{"cell": each.cell, "reason": each.reason} for each in assignment.excluded],
        )

    def carry_out(self) -> Tally:
        """Runs the trials that are missing.

        Raises `NothingRunnable`, `CannotStore`, `BadInput`; `Interrupted` with the tally so far in `tally`.
        """
        if not self._assignment.cells:
            raise NothingRunnable(
                f"no cell can be run: {len(self._assignment.excluded)} are excluded, and none is selected",
                mend="`lagometer plan` says why",
            )
        began = time.monotonic()
        remove_stale_directories()
        self._open()
        events = EventLog()
        try:
            with Interruption() as interruption:
                self._run_trials(Conductor(interruption, events), interruption, began)
        except BaseException as error:
            self.tally.interrupted = isinstance(error, Interrupted)
            with contextlib.suppress(CannotStore):  # the first error is the one to tell
                self._finish(began)
            raise
        finally:
            events.close()
        self._finish(began)
        return self.tally

    def _open(self) -> None:
        assignment = self._assignment
        moved = prepare_folder(assignment.directory, assignment.resume)
        self.tally.moved = str(moved) if moved is not None else None
        manifest = self._manifest()
        if assignment.resume and (assignment.directory / "manifest.json").is_file():
            self._results.reopen(manifest)
        else:
            self._results.create(manifest, collect())

    def _run_trials(self, conductor: Conductor, interruption: Interruption, began: float) -> None:
        study = self._assignment.study
        order = trial_order(self._assignment.cells, study.trials, study.seed)
        left = [(cell, trial) for cell, trial in order if (cell.id, trial) not in self._results.done]
        self._count_resumed(order)
        self.tally.remaining = len(left)
        predicted_s = (study.trial_ns() + TRIAL_OVERHEAD_NS) / NS_PER_S
        with CampaignProgress(len(left), predicted_s).shown() as progress:
            if self.tally.moved:
                progress.note(f"an older campaign was moved to {self.tally.moved}")
            for number, (cell, trial) in enumerate(left):
                interruption.check()
                if self._out_of_time(began, predicted_s):
                    progress.note(f"--max-time is over: {self.tally.remaining} trials are left for --resume")
                    return
                progress.begin(cell.id, trial)
                trial_began = time.monotonic()
                rows = self._run_trial(conductor, cell, trial, number)
                valid, reasons = bool(rows["valid"].all()), rows["reasons"][0].to_list()
                self._count(cell.id, trial, valid, reasons, rows["warnings"][0].to_list())
                progress.end(cell.id, trial, valid, reasons, time.monotonic() - trial_began)
                if number % len(self._assignment.cells) == 0:
                    self._results.checkpoint()

    def _run_trial(self, conductor: Conductor, cell: Cell, trial: int, number: int) -> pl.DataFrame:
        """Carries out one trial and stores it; returns its rows of cells.parquet."""
        assignment, network = self._assignment, cell.factors.network
        with runtime_directory(network, number) as directory:
            plans = worker_plans(
                assignment.study, cell, trial, assignment.adapters, runtime_directory=directory
            )
            commands = [self._command(plan) for plan in plans]
            outcome = conductor.carry_out(LocalLauncher(self._supervisor), commands, plans, network)
        samples, rows = _estimates(cell, trial, outcome)
        self._results.store((cell.id, trial), outcome, samples, rows)
        return rows

    def _command(self, plan: Plan) -> Command:
        """Returns how to start a worker; preloads must be in its environment before its first instruction."""
        preloads = [
            library
            for adapter in plan.adapters
            for library in self._assignment.adapters[adapter.name].sidecar.preload
        ]
        environment = {"LD_PRELOAD": ":".join(dict.fromkeys(preloads))} if preloads else {}
        return Command((str(self._worker),), environment)

    def _out_of_time(self, began: float, predicted_s: float) -> bool:
        limit = self._assignment.max_s
        return limit is not None and time.monotonic() - began + predicted_s > limit

    def _count(self, cell: str, trial: int, valid: bool, reasons: list[str], warnings: list[str]) -> None:
        self.tally.remaining -= 1
        if valid:
            self.tally.valid += 1
        else:
            self.tally.failed += 1
            self.tally.failures.append({"cell": cell, "trial": trial, "reasons": reasons})
        self.tally.warnings += [warning for warning in warnings if warning not in self.tally.warnings]

    def _count_resumed(self, order: Sequence[tuple[Cell, int]]) -> None:
        """Counts the trials that an earlier call has finished, so that the tally is the campaign's."""
        for cell, trial in order:
            key: Key = (cell.id, trial)
            if key not in self._results.done:
                continue
            self.tally.resumed += 1
            if self._results.done[key]:
                self.tally.valid += 1
            else:
                self.tally.failed += 1
                self.tally.failures.append(
                    {"cell": cell.id, "trial": trial, "reasons": self._results.reasons(key)}
                )

    def _finish(self, began: float) -> None:
        """Notes how it ended, also when an error or a signal ends it."""
        self.tally.seconds = round(time.monotonic() - began, 3)
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
                {"id": cell.id, "factors": cell.columns(), "trials": study.trials}
                for cell in self._assignment.cells
            ],
            "excluded": self.tally.excluded,
        }


def _estimates(cell: Cell, trial: int, outcome: TrialOutcome) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the samples of a trial and its rows of cells.parquet.

    Records that contradict themselves fail the trial; what a failed one left in memory is kept.
    """
    lanes, problems = _lanes(outcome)
    facts = trial_facts(cell, trial, outcome, problems)
    try:
        samples = samples_of(lanes, facts)
    except RecordsError as error:
        facts = trial_facts(cell, trial, outcome, (*problems, f"protocol-error: {error}"))
        samples = samples_of([], facts)
    return samples, summarise(samples, facts)


def _lanes(outcome: TrialOutcome) -> tuple[list[Lane], tuple[str, ...]]:
    lanes: list[Lane] = []
    problems: list[str] = []
    for worker in outcome.workers:
        if worker.records is None:
            continue
        try:
            lanes += decode(worker.records)
        except RecordsError as error:
            if not outcome.reasons:  # a killed worker's memory may be half made: its trial has failed anyway
                problems.append(f"protocol-error: records of {worker.name}: {error}")
    return lanes, tuple(problems)
