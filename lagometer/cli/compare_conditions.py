# SPDX-License-Identifier: Apache-2.0
"""`--fail-if`: conditions such as 'p99 > +5%', and whether a comparison meets them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lagometer.errors import BadInput

if TYPE_CHECKING:
    from lagometer.stats.comparable import Comparison
    from lagometer.stats.compare import Limit

_CONDITION = re.compile(r"\s*(p50|p90|p99|p99\.9)\s*([<>])\s*([+-]?\d+(?:\.\d+)?)\s*%\s*")


def parse(texts: Sequence[str]) -> list[Limit]:
    """The limits that conditions stand for. Raises BadInput."""
    from lagometer.stats.compare import Limit

    limits: list[Limit] = []
    for text in texts:
        found = _CONDITION.fullmatch(text)
        percent = float(found[3]) if found else 0.0
        if found is None or percent <= -100.0:
            raise BadInput(
                f"'{text}' is not a condition",
                where="--fail-if",
                mend="write QUANTITY > PERCENT, such as 'p99 > +5%'; quantities are p50, p90, p99, p99.9",
            )
        limits.append(Limit(found[1].replace(".", ""), found[2] == ">", 1.0 + percent / 100.0))
    return limits


def text_of(limit: Limit) -> str:
    """A limit as one would write it: p99 > +5%."""
    return f"{limit.quantity} {'>' if limit.above else '<'} {100.0 * (limit.ratio - 1.0):+g}%"


def met(comparison: Comparison, strict: bool) -> list[str]:
    """The conditions that are met, a line for each cell.

    A condition is met where it is shown; with `strict` also where it is not ruled out, and where nothing can
    be said.
    """
    lines: list[str] = []
    for cell in comparison.cells:
        for finding in cell.limits:
            if finding.shown:
                lines.append(f"{text_of(finding.limit)} is shown: {cell.cell_b}")
            elif strict and finding.possible:
                why = cell.quantities[finding.limit.quantity].why or "it is not ruled out"
                lines.append(f"{text_of(finding.limit)} is possible: {cell.cell_b} ({why})")
    if strict:
        lines += [f"not in B: {cell}" for cell in comparison.only_a]
    return lines


def undecided(comparison: Comparison) -> list[str]:
    """The conditions that could be judged in no cell at all, with a reason."""
    lines: list[str] = []
    if not comparison.cells:
        return ["no cell is in both"]
    for place, finding in enumerate(comparison.cells[0].limits):
        if all(cell.limits[place].p is None for cell in comparison.cells):
            why = comparison.cells[0].quantities[finding.limit.quantity].why
            lines.append(f"{text_of(finding.limit)} can't be judged in any cell: {why}")
    return lines
