# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the findings: what happened, the number, the fix, the source; and their footnotes beside
figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from lagometer.summary.data import Finding

CELLS_NAMED_MAX = 3
NOTES_MAX = 3  # beside one figure


def mark(notes: Sequence[int]) -> str:
    """What stands beside a figure: ` [1,4]`; nothing without footnotes."""
    if not notes:
        return ""
    more = ["…"] if len(notes) > NOTES_MAX else []
    return f" [{','.join([*map(str, notes[:NOTES_MAX]), *more])}]"


def with_footnotes(rows: Sequence[dict[str, Any]], findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Rows of cells.parquet, with the footnotes of their cell as `findings`."""
    from lagometer.summary.findings.footnotes import footnotes

    notes = footnotes(findings)
    return [{**row, "findings": notes.get(row["cell"], [])} for row in rows]


def sides_mark(notes: Sequence[Mapping[str, Sequence[int]]], cells: Sequence[str]) -> str:
    """The footnotes of two compared cells: `A [1], B [1,2]`; empty without any."""
    marks = [mark(of_side.get(cell, ())) for of_side, cell in zip(notes, cells, strict=True)]
    return ", ".join(f"{side}{text}" for side, text in zip("AB", marks, strict=True) if text)


def render_findings(findings: Sequence[Finding], console: Console, title: str = "findings") -> None:
    """Prints each finding once, with the cells that it applies to; nothing without findings."""
    from rich.markup import escape

    if not findings:
        return
    groups: dict[int, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.footnote, []).append(finding)
    console.print(f"\n[bold yellow]{title}[/] {len(groups)}")
    for footnote, group in groups.items():
        kind, what, fix = group[0].kind, group[0].what, group[0].fix
        console.print(f"  [{footnote}] [bold]{escape(kind)}[/]: {escape(what)}")
        for finding in group[:CELLS_NAMED_MAX]:
            trial_count = f"{finding.trials} of {finding.of_trials} trials"
            console.print(f"      {escape(finding.cell)} [dim]({trial_count})[/]: {escape(finding.number)}")
        if len(group) > CELLS_NAMED_MAX:
            console.print(f"      [dim]and {len(group) - CELLS_NAMED_MAX} more cells[/]")
        console.print(f"      fix: {escape(fix)}")
        console.print(f"      [dim]source: {escape(group[0].source)}[/]")
