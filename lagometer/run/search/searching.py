# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest sustained rate of each cell of a study, trial by trial."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lagometer import units
from lagometer.errors import BadInput, NothingRunnable
from lagometer.run.events import EventLog
from lagometer.run.interruption import Interruption
from lagometer.run.results.trial_store import TrialStore
from lagometer.run.search.rate_search import Bounds, Found, search_rate
from lagometer.run.trial import TrialRunner
from lagometer.run.tuned import put_machine_back
from lagometer.run.worker.conductor import Conductor
from lagometer.stats.verdict.sustained import verdict
from lagometer.study import Adapter, Cell, Study
from lagometer.study.factors import FACTORS
from lagometer.study.matrix import expand
from lagometer.study.schedule import RECORDED

UNTOLD_MAX = 3  # consecutive trials without a verdict about the rate


class Untold(Exception):
    """A cell's trials fail for reasons unrelated to their rate."""


@dataclass
class CellSearch:
    """The result of the search in one cell. `trials`: each with its rate and verdict, in order."""

    cell: str
    factors: Mapping[str, object]
    status: str = ""
    reason: str = ""
    sustained_hz: float | None = None
    failed_hz: float | None = None
    low_hz: float | None = None
    high_hz: float | None = None
    trials: list[dict[str, Any]] = field(default_factory=list)

    def take(self, result: Found) -> None:
        """Copies the result of the search."""
        self.status, self.sustained_hz, self.failed_hz = result.status, result.sustained_hz, result.failed_hz
        self.low_hz, self.high_hz = result.low_hz, result.high_hz

    def as_json(self) -> dict[str, Any]:
        """The cell's part of search.json."""
        return asdict(self)


def rateless(study: Study) -> Study:
    """The study without the factor `rate`, which the search sets itself, and without transfers beside its
    cells. Raises BadInput if it has parts."""
    if study.parts:
        raise BadInput(
            "a search takes one matrix, and this study has parts",
            where=study.where("parts"),
            hint="write the part that you mean as a study of its own",
        )
    matrix = {name: values for name, values in study.matrix.items() if name != "rate"}
    return replace(study, matrix=matrix, transfer=False)


def cell_at(study: Study, cell: Cell, rate_hz: float, adapters: Mapping[str, Adapter]) -> Cell:
    """The same cell with another rate. Raises NothingRunnable if there is no such cell."""
    factor_values = {name: (getattr(cell.factors, _field(name)),) for name in study.matrix}
    factor_values["rate"] = (rate_hz,)
    matrix = {factor.name: factor_values[factor.name] for factor in FACTORS if factor.name in factor_values}
    expansion = expand(replace(study, matrix=matrix, exclude=()), adapters)
    if not expansion.cells:
        raise NothingRunnable(expansion.excluded[0].reason, where=expansion.excluded[0].cell)
    return expansion.cells[0]


def _field(name: str) -> str:
    return next(factor.field for factor in FACTORS if factor.name == name)


class RateSearch:
    """One call of `lagometer search`."""

    def __init__(
        self,
        study: Study,
        adapters: Mapping[str, Adapter],
        bounds: Bounds,
        loss_max: float,
        cells: Sequence[Cell] = (),
    ) -> None:
        self._study = study
        self._adapters = adapters
        self._bounds = bounds
        self._loss_max = loss_max
        self._runner = TrialRunner(adapters, cells)
        self.results: list[CellSearch] = []

    def carry_out(self, cells: Sequence[Cell], finished: Callable[[], None]) -> None:
        """Searches cell by cell and calls `finished` after each.

        Raises `Interrupted`, `CannotStore`, `SetupMissing`.
        """
        for warning in put_machine_back():
            print(warning, file=sys.stderr)
        events = EventLog()
        try:
            with Interruption() as interruption:
                lacking = {each.cell: each.reason for each in self._runner.without_lacking(self._study)[1]}
                for cell in cells:
                    if cell.id in lacking:
                        self.results.append(CellSearch(cell.id, cell.columns(), "failed", lacking[cell.id]))
                        finished()
                        continue
                    self._search(Conductor(interruption, events), interruption, cell)
                    finished()
        finally:
            self._runner.close()
            events.close()

    def _search(self, conductor: Conductor, interruption: Interruption, cell: Cell) -> None:
        result = CellSearch(cell.id, cell.columns())
        self.results.append(result)

        def attempt(rate_hz: float) -> bool:
            for _ in range(UNTOLD_MAX):
                interruption.check()
                sustained = self._trial(conductor, cell, rate_hz, result)
                if sustained is not None:
                    return sustained
            raise Untold(str(result.trials[-1]["why"]))

        try:
            if cell.factors.schedule.startswith(RECORDED):
                raise NothingRunnable(f"{cell.factors.schedule} sets the rate itself", where=cell.id)
            result.take(search_rate(self._bounds, attempt))
        except (Untold, NothingRunnable) as error:
            result.status, result.reason = "failed", str(error)

    def _trial(self, conductor: Conductor, cell: Cell, rate_hz: float, result: CellSearch) -> bool | None:
        """Runs one trial and keeps only its verdict."""
        number = len(result.trials)
        at_rate = cell_at(self._study, cell, rate_hz, self._adapters)
        with tempfile.TemporaryDirectory(prefix="lagometer-search-") as folder:
            store = TrialStore(Path(folder))
            trial = self._runner.run(conductor, self._study, at_rate, number, store)
        judgement = verdict(trial.rows, trial.samples, self._loss_max)
        result.trials.append({"trial": number, "rate_hz": rate_hz, **asdict(judgement)})
        words = {
            True: "sustained",
            False: f"not sustained ({judgement.why})",
            None: f"no verdict ({judgement.why})",
        }
        print(f"{cell.id} at {units.format_rate(rate_hz)}: {words[judgement.sustained]}", file=sys.stderr)
        return judgement.sustained
