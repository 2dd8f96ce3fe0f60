# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a campaign on standard error, only between trials.

While a trial measures, nothing is printed and no thread runs: the bar is redrawn explicitly.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from lagometer.standard_streams import Unfailing
from lagometer.stats.verdict.reasons import in_few
from lagometer.stats.verdict.validity import is_saturated


class CampaignProgress:
    """A bar on a terminal, otherwise one plain line for each trial. Silent once nobody reads it any more."""

    def __init__(self, total: int, predicted_trial_s: float, stream: TextIO | None = None) -> None:
        stream = stream if stream is not None else sys.stderr
        # Results matter, progress doesn't.
        self._stream = Unfailing(stream) if stream is not None else None
        self._total = total
        self._done = self._failed = 0
        self._spent_s = 0.0
        self._predicted_trial_s = predicted_trial_s
        self._bar: Progress | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[CampaignProgress]:
        """Draws the bar for as long as the campaign runs."""
        console = (
            Console(file=cast(TextIO, self._stream)) if self._stream is not None else Console(quiet=True)
        )
        if not console.is_terminal:
            yield self
            return
        columns = (
            BarColumn(24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]} left{task.fields[failed]}"),
            TextColumn("[bold]{task.description}", markup=True),
        )
        with Progress(*columns, console=console, auto_refresh=False, transient=True) as self._bar:
            self._bar.add_task("", total=self._total, left="", failed="")
            yield self
        self._bar = None

    def expect(self, total: int) -> None:
        """Sets the number of trials, if it only becomes known during the campaign."""
        self._total = max(total, self._done)

    def begin(self, cell: str, trial: int) -> None:
        """Names the trial that is about to start."""
        if self._bar is not None:
            self._draw(f"{cell} #{trial}")

    def end(self, cell: str, trial: int, valid: bool, reasons: list[str], seconds: float) -> None:
        """Counts a trial; `seconds`: its total duration."""
        self._done += 1
        saturated = not valid and is_saturated(reasons)
        self._failed += not valid and not saturated
        self._spent_s += seconds
        why = "; ".join(in_few(reasons))
        verdict = "valid" if valid else why if saturated else f"failed ({why})"
        if self._bar is None:
            self._line(f"[{self._done}/{self._total}] {cell} #{trial} {verdict}, {self._left()} left")
        elif not valid:
            self._bar.console.print(f"{cell} #{trial}: {verdict}", markup=False, highlight=False)

    def note(self, text: str) -> None:
        """Prints a note that isn't about one trial."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            self._line(text)

    def _left(self) -> str:
        trial_s = self._spent_s / self._done if self._done else self._predicted_trial_s
        return str(timedelta(seconds=round(trial_s * (self._total - self._done))))

    def _draw(self, description: str) -> None:
        assert self._bar is not None
        failed = f", {self._failed} failed" if self._failed else ""
        task = self._bar.task_ids[0]
        self._bar.update(
            task,
            completed=self._done,
            total=self._total,
            description=description.replace("[", "\\["),
            left=self._left(),
            failed=failed,
        )
        self._bar.refresh()

    def _line(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text + "\n")
            self._stream.flush()
