# SPDX-License-Identifier: Apache-2.0
"""The cells of a study that can't run here, grouped by the reason, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


def render_excluded(
    excluded: Sequence[tuple[str, str]], console: Console, named_max: int | None = None
) -> None:
    """Prints each reason once with its cells; nothing without any.

    excluded: cells and reasons. named_max: how many cells are named for each reason; None: all.
    """
    from rich.markup import escape

    if not excluded:
        return
    console.print(f"\n[bold]excluded[/] {len(excluded)}: these cells can't run here")
    by_reason: dict[str, list[str]] = {}
    for cell, reason in excluded:
        by_reason.setdefault(reason, []).append(cell)
    for reason, cells in by_reason.items():
        console.print(f"  {escape(reason)}", style="yellow", soft_wrap=True)
        named = cells[:named_max]
        for cell in named:
            console.print(f"      {escape(cell)}", style="dim", soft_wrap=True)
        if len(cells) > len(named):
            console.print(f"      and {len(cells) - len(named)} more (--json names all)", style="dim")
