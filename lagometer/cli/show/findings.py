# SPDX-License-Identifier: Apache-2.0
"""What `lagometer show` says of what was found: what happened, the number, the fix, the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.data import Finding

CELLS_NAMED_MAX = 3


def render_findings(findings: Sequence[Finding], console: Console, title: str = "findings") -> None:
    """Prints each finding once, with the cells that it holds for; nothing where there is none."""
    from rich.markup import escape

    if not findings:
        return
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.kind, each.what, each.fix), []).append(each)
    console.print(f"\n[bold yellow]{title}[/] {len(groups)}")
    for (kind, what, fix), group in groups.items():
        console.print(f"  [bold]{escape(kind)}[/]: {escape(what)}")
        for each in group[:CELLS_NAMED_MAX]:
            seen = f"{each.trials} of {each.of_trials} trials"
            console.print(f"      {escape(each.cell)} [dim]({seen})[/]: {escape(each.number)}")
        if len(group) > CELLS_NAMED_MAX:
            console.print(f"      [dim]and {len(group) - CELLS_NAMED_MAX} more cells[/]")
        console.print(f"      fix: {escape(fix)}")
        console.print(f"      [dim]source: {escape(group[0].source)}[/]")
