# SPDX-License-Identifier: Apache-2.0
"""The results of a check: lines, each kept, broken or not applicable, and the verdict on an ability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lagometer.study.sidecar import OptionValue

Verdict = Literal["pass", "fail", "absent", "absent-against-manual", "not-run"]


# Begins the detail of a line that applies and that nobody could judge.
NOT_JUDGED = "not judged: "


@dataclass(frozen=True)
class Line:
    """One requirement. passed: None if it does not apply, for the reason in `detail`."""

    name: str
    passed: bool | None
    detail: str = ""


@dataclass
class Findings:
    """The lines of one check, in the order in which they were checked.

    under_way: the line that is being checked, for a check that ends before it judges this line.
    """

    lines: list[Line] = field(default_factory=list)
    under_way: str = ""

    def begin(self, name: str) -> None:
        """This line is being checked from now on, until it is judged."""
        self.under_way = name

    def judge(self, name: str, passed: bool, detail: str = "") -> bool:
        """Adds a line and returns whether it is kept; the detail says what was observed if it isn't."""
        self.lines.append(Line(name, passed, "" if passed else detail))
        self.under_way = ""
        return passed

    def note(self, name: str, detail: str) -> None:
        """Adds a line that is kept, with useful information."""
        self.lines.append(Line(name, True, detail))

    def skip(self, name: str, reason: str) -> None:
        """Adds a line that does not apply."""
        self.lines.append(Line(name, None, reason))

    @property
    def broken(self) -> list[Line]:
        """The lines that are not kept."""
        return [line for line in self.lines if line.passed is False]


@dataclass(frozen=True)
class Otherwise:
    """What a check found instead of a pass, if no line is broken: the ability is absent as declared, or
    nothing could be judged (`not-run`). reason: in words that stand alone."""

    verdict: Literal["absent", "not-run"]
    reason: str


@dataclass(frozen=True)
class Result:
    """The result for one ability of one adapter; `seconds`: how long it took."""

    ability: str
    verdict: Verdict
    reason: str = ""
    lines: tuple[Line, ...] = ()
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The form of docs/FORMAT.md."""
        return {
            "ability": self.ability,
            "verdict": self.verdict,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "lines": [asdict(line) for line in self.lines],
        }


@dataclass(frozen=True)
class AdapterReport:
    """All abilities of one adapter. version: the middleware's, None if the adapter could not report it.

    options: the ones that it was set up with.
    """

    adapter: str
    title: str
    version: str | None
    results: tuple[Result, ...]
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    def having(self, *verdicts: Verdict) -> list[Result]:
        """The abilities with one of these verdicts."""
        return [result for result in self.results if result.verdict in verdicts]

    def as_json(self) -> dict[str, Any]:
        """The form of docs/FORMAT.md."""
        return {
            "adapter": self.adapter,
            "options": dict(self.options),
            "title": self.title,
            "version": self.version,
            "abilities": [result.as_json() for result in self.results],
        }
