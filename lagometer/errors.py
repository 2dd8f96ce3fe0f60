# SPDX-License-Identifier: Apache-2.0
"""Everything that can end a command early, as a tree; each class has its own exit code.

    LagometerError
    ├── BadInput        2    what the user wrote cannot be carried out: a file, an option, a name
    ├── TrialsFailed    3    the campaign is finished and stored, but some trials are not valid
    ├── NothingRunnable 4    every cell is excluded, or the selection is empty
    ├── CannotStore     5    results, or a page, cannot be written: disk full, no permission
    ├── SetupMissing    6    a part of lagometer is not there: the worker, every adapter
    ├── Internal        7    a defect of lagometer
    ├── Regression      8    a --fail-if condition is met
    ├── NotComparable   9    nothing could be compared, or a condition be judged in no cell
    └── Interrupted     130  Ctrl-C or SIGTERM

Exit code 0 means that all is valid; 1 is never used on purpose (Python's own for an uncaught exception).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Problem:
    """One problem.

    what: what is wrong; where: file, line and key, or empty; hint: how to fix it, or empty.
    """

    what: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class LagometerError(Exception):
    """The root of the tree. One or more problems; the first one represents all."""

    exit_code: ClassVar[int] = 7
    kind: ClassVar[str] = "error"

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(what, where, hint),)
        super().__init__(str(self.problems[0]))

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> LagometerError:
        """An error of this class that names several problems at once; `problems` is not empty."""
        first = problems[0]
        error = cls(first.what, first.where, first.hint)
        error.problems = tuple(problems)
        error.args = ("\n".join(str(problem) for problem in problems),)
        return error

    def as_json(self) -> dict[str, object]:
        """The output of `--json`: `{"error": …}`."""
        return {
            "error": {
                "kind": self.kind,
                "exit_code": self.exit_code,
                "message": str(self),
                "problems": [asdict(problem) for problem in self.problems],
            }
        }


class BadInput(LagometerError):
    """The user's request cannot be carried out."""

    exit_code = 2
    kind = "bad-input"


class TrialsFailed(LagometerError):
    """The campaign is finished and stored, but some trials are not valid."""

    exit_code = 3
    kind = "trials-failed"


class NothingRunnable(LagometerError):
    """Every cell is excluded, or the selection is empty."""

    exit_code = 4
    kind = "nothing-runnable"


class CannotStore(LagometerError):
    """Results cannot be written; finished cells stay readable."""

    exit_code = 5
    kind = "cannot-store"


class SetupMissing(LagometerError):
    """A part of lagometer itself is missing; `make setup` builds it."""

    exit_code = 6
    kind = "setup-missing"


class Internal(LagometerError):
    """A defect of lagometer: something happened that its own code rules out."""

    exit_code = 7
    kind = "internal"


class Regression(LagometerError):
    """A `--fail-if` condition is met."""

    exit_code = 8
    kind = "regression"


class NotComparable(LagometerError):
    """Nothing could be compared, or no cell could be judged for a `--fail-if` condition."""

    exit_code = 9
    kind = "not-comparable"


class Interrupted(LagometerError):
    """Ctrl-C or SIGTERM; finished work is kept."""

    exit_code = 130
    kind = "interrupted"
