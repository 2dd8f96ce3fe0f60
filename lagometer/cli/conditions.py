# SPDX-License-Identifier: Apache-2.0
"""`--fail-if`: conditions such as 'p99 > +5%' or '*/64B/*: p99 > 2ms', and whether they are met."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from lagometer.errors import BadInput

if TYPE_CHECKING:
    from lagometer.stats.cell.limits import AbsoluteLimit, Judgement
    from lagometer.stats.compare.comparable import Comparison
    from lagometer.stats.compare.compare import Limit

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="End with exit code 8 if this is shown for a cell, e.g. 'p99 > 2ms' or '*/64B/*: lost > 0.1%'. "
        "May be repeated.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="With --fail-if: also fail where it is unknown or not ruled out."),
]

_CONDITION = re.compile(
    r"(?:(?P<cells>.*\S)\s*:)?\s*(?P<quantity>[\w.]+)\s*(?P<side>[<>])\s*(?P<limit>[^<>=]+)"
)
_PERCENT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*%\s*")
RELATIVE = ("p50", "p90", "p99", "p99.9")
HINT = (
    "write QUANTITY > LIMIT, such as 'p99 > 2ms', 'lost > 0.1%', 'memory > 200MB', '*/64B/*: cpu > 50us', or "
    "in a comparison 'p99 > +5%'; quantities are p50, p90, p99, p99.9, max, jitter, cpu (times), lost, "
    "undelivered (shares), memory (a size)"
)


@dataclass
class Conditions:
    """The limits of `--fail-if`: on the change between two campaigns, and on one campaign."""

    relative: list[Limit] = field(default_factory=list)
    absolute: list[AbsoluteLimit] = field(default_factory=list)


def parse(texts: Sequence[str]) -> Conditions:
    """Parses conditions into limits. Raises BadInput."""
    conditions = Conditions()
    for text in texts:
        parts = _CONDITION.fullmatch(text.strip())
        if parts is None:
            raise _no_condition(text)
        cells, quantity, above = parts["cells"] or "*", parts["quantity"], parts["side"] == ">"
        percent = _PERCENT.fullmatch(parts["limit"])
        if percent is not None and quantity in RELATIVE:
            conditions.relative.append(_relative(text, quantity, above, float(percent[1]), cells))
        else:
            conditions.absolute.append(_absolute(text, quantity, above, parts["limit"], cells))
    return conditions


def parse_absolute(texts: Sequence[str]) -> list[AbsoluteLimit]:
    """The same for a single campaign, where no limit can be relative. Raises BadInput."""
    conditions = parse(texts)
    if conditions.relative:
        raise BadInput(
            f"'{text_of(conditions.relative[0])}' is a change, and there is one campaign only",
            where="--fail-if",
            hint="write a limit such as 'p99 > 2ms', or compare two campaigns: lagometer compare A B",
        )
    return conditions.absolute


def check_cells(limits: Sequence[AbsoluteLimit | Limit], cells: Sequence[str]) -> None:
    """Raises BadInput for a glob that matches no cell: its limit could never fail."""
    for limit in limits:
        if not any(fnmatch.fnmatchcase(cell, limit.cells) for cell in cells):
            existing = f"there is {', '.join(cells[:3])}" if cells else "there is no cell"
            raise BadInput(f"no cell matches '{limit.cells}'", where="--fail-if", hint=existing)


def _relative(text: str, quantity: str, above: bool, percent: float, cells: str) -> Limit:
    from lagometer.stats.compare.compare import Limit

    if percent <= -100.0:
        raise _no_condition(text)
    return Limit(quantity.replace(".", ""), above, 1.0 + percent / 100.0, cells)


def _absolute(text: str, quantity: str, above: bool, limit: str, cells: str) -> AbsoluteLimit:
    from lagometer.stats.cell.limits import UNITS, AbsoluteLimit
    from lagometer.units import UnitError, parse_duration_ns, parse_payload_bytes, parse_share

    name = quantity.replace("p99.9", "p999")
    parsers = {"ns": parse_duration_ns, "bytes": parse_payload_bytes, "share": parse_share}
    if name not in UNITS or quantity == "p999":
        raise _no_condition(text)
    try:
        value = float(parsers[UNITS[name]](limit))
    except UnitError as error:
        raise _no_condition(text, f": {error}") from error
    return AbsoluteLimit(name, above, value, " ".join(text.split()), cells)


def _no_condition(text: str, reason: str = "") -> BadInput:
    return BadInput(f"'{text}' is not a condition{reason}", where="--fail-if", hint=HINT)


def text_of(limit: Limit) -> str:
    """A limit on a change as a user writes it: p99 > +5%."""
    cells = f"{limit.cells}: " if limit.cells != "*" else ""
    name = limit.quantity.replace("p999", "p99.9")
    return f"{cells}{name} {'>' if limit.above else '<'} {100.0 * (limit.ratio - 1.0):+g}%"


def met(comparison: Comparison, strict: bool) -> list[str]:
    """The conditions on the change that are met, one line for each cell.

    A condition is met if the data show it; with `strict` also if they do not rule it out, or show nothing.
    """
    lines: list[str] = []
    for cell in comparison.cells:
        for finding in cell.limits:
            if finding.shown:
                lines.append(f"{text_of(finding.limit)} is shown: {cell.cell_b}")
            elif strict and finding.possible:
                reason = cell.quantities[finding.limit.quantity].why or "it is not ruled out"
                lines.append(f"{text_of(finding.limit)} is possible: {cell.cell_b} ({reason})")
    if strict:
        lines += [f"not in B: {cell}" for cell in comparison.only_a]
    return lines


def undecided(comparison: Comparison, limits: Sequence[Limit]) -> list[str]:
    """The conditions on the change that could not be judged in any cell, with a reason."""
    if not comparison.cells:
        return ["no cell is in both campaigns"]
    lines: list[str] = []
    for limit in limits:
        findings = [
            (cell, finding) for cell in comparison.cells for finding in cell.limits if finding.limit == limit
        ]
        if findings and all(finding.p is None for _, finding in findings):
            reason = findings[0][0].quantities[limit.quantity].why
            lines.append(f"{text_of(limit)} can't be judged in any cell: {reason}")
    return lines


def failed(judgements: Sequence[Judgement], strict: bool) -> list[str]:
    """The limits that are met, one line for each cell; with `strict` also those that can't be judged."""
    lines: list[str] = []
    for judgement in judgements:
        if judgement.verdict == "met":
            lines.append(f"{judgement.limit} is met: {judgement.cell}")
        elif strict and judgement.verdict == "unknown":
            lines.append(f"{judgement.limit} can't be judged: {judgement.cell} ({judgement.why})")
    return lines
