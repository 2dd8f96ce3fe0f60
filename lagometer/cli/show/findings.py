# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: the findings: what happened, the number, the fix, the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lagometer.summary.data import Finding

CELLS_NAMED_MAX = 3


def render_findings(findings: Sequence[Finding], console: Console, title: str = "findings") -> None:
    """Prints each finding once, with the cells that it applies to; nothing without findings."""
    from rich.markup import escape

    if not findings:
        return
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.what, finding.fix), []).append(finding)
    console.print(f"\n[bold yellow]{title}[/] {len(groups)}")
    for (kind, what, fix), group in groups.items():
        console.print(f"  [bold]{escape(kind)}[/]: {escape(what)}")
        for finding in group[:CELLS_NAMED_MAX]:
            trial_count = f"{finding.trials} of {finding.of_trials} trials"
            console.print(f"      {escape(finding.cell)} [dim]({trial_count})[/]: {escape(finding.number)}")
        if len(group) > CELLS_NAMED_MAX:
            console.print(f"      [dim]and {len(group) - CELLS_NAMED_MAX} more cells[/]")
        console.print(f"      fix: {escape(fix)}")
        console.print(f"      [dim]source: {escape(group[0].source)}[/]")
