# SPDX-License-Identifier: Apache-2.0
"""The result of `--fail-if` on one campaign, for the table, for `--json` and for the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lagometer.cli import conditions
from lagometer.errors import Regression

if TYPE_CHECKING:
    from rich.console import Console

    from lagometer.stats.cell.limits import AbsoluteLimit, Judgement
    from lagometer.store.reader import Campaign


@dataclass(frozen=True)
class Judged:
    """The judgements, and the conditions that end the command with exit code 8, one line each."""

    judgements: Sequence[Judgement] = ()
    failed: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        return Regression.exit_code if self.failed else 0

    def as_json(self) -> dict[str, object]:
        """`limits` and `failed_conditions`."""
        return {
            "limits": [asdict(judgement) for judgement in self.judgements],
            "failed_conditions": list(self.failed),
        }

    def render(self, console: Console) -> None:
        from lagometer.cli.show.limits import render_limits

        render_limits(self.judgements, console)
        if self.failed:
            console.print(f"failed: {len(self.failed)} of --fail-if (exit code {self.exit_code})")


def judged_limits(campaign: Campaign, limits: Sequence[AbsoluteLimit], strict: bool) -> Judged:
    """Judges the limits in a campaign. Raises BadInput for a limit that matches none of its cells."""
    from lagometer.stats.cell.limits import cell_ids, judge_limits

    conditions.check_cells(limits, cell_ids(campaign))
    judgements = judge_limits(campaign, limits)
    return Judged(judgements, conditions.failed(judgements, strict))
