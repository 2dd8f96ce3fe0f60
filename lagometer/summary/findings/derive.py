# SPDX-License-Identifier: Apache-2.0
"""All findings of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lagometer.store.reader import Campaign
from lagometer.summary.cell_rows import with_values
from lagometer.summary.data import Finding
from lagometer.summary.failures import log_text
from lagometer.summary.findings.devices import devices
from lagometer.summary.findings.evidence import CellEvidence, Said, cells_of
from lagometer.summary.findings.failures import failures
from lagometer.summary.findings.links import links
from lagometer.summary.findings.machine import machine
from lagometer.summary.findings.network import network
from lagometer.summary.findings.queues import queues
from lagometer.summary.findings.scaling import scaling
from lagometer.summary.findings.scheduling import scheduling_findings
from lagometer.summary.findings.sending import sending
from lagometer.summary.findings.settings import settings
from lagometer.summary.findings.traps import traps
from lagometer.summary.findings.wire import wire
from lagometer.summary.scheduling import scheduling
from lagometer.summary.scheduling_data import CellScheduling

if TYPE_CHECKING:
    from lagometer.stats.compare.comparable import Comparison

RULES: tuple[Callable[[CellEvidence], Iterator[Said]], ...] = (
    failures,
    network,
    wire,
    queues,
    sending,
    settings,
    machine,
    links,
    devices,
)


def findings(
    campaign: Campaign,
    only: Collection[str] | None = None,
    shares: Sequence[CellScheduling] | None = None,
) -> list[Finding]:
    """What happened in which cell, in the study's order of cells; a cell's declared traps come first.
    Footnotes count from 1, in the order in which they are first needed.

    only: the cells to look at; all if not given. shares: the scheduler's, if the caller already has them.
    """
    declared = campaign.manifest.get("traps")
    declared = declared if isinstance(declared, dict) else {}
    found: list[tuple[CellEvidence, Said]] = []
    rows = with_values(campaign.cells)
    cells = list(cells_of(campaign.manifest, campaign.environment, rows, campaign.journal))
    growth = list(scaling(cells, partial(log_text, campaign.directory)))
    shares = scheduling([campaign]) if shares is None else shares
    for cell in cells:
        if only is not None and cell.cell not in only:
            continue
        statements = [*traps(cell, declared), *(statement for rule in RULES for statement in rule(cell))]
        statements += [statement for owner, statement in growth if owner is cell]
        statements += scheduling_findings(cell, shares)
        found += [(cell, statement) for statement in statements]
    notes: dict[tuple[str, str, str], int] = {}
    return [
        _finding(cell, said, notes.setdefault((said.kind, said.what, said.fix), len(notes) + 1))
        for cell, said in found
    ]


def findings_of_both(comparison: Comparison, a: Campaign, b: Campaign) -> tuple[list[Finding], list[Finding]]:
    """The findings in the compared cells, each side with footnotes of its own."""
    return (
        findings(a, {cell.cell_a for cell in comparison.cells}),
        findings(b, {cell.cell_b for cell in comparison.cells}),
    )


def _finding(cell: CellEvidence, statement: Said, footnote: int) -> Finding:
    return Finding(
        footnote=footnote,
        cell=cell.cell,
        kind=statement.kind,
        trials=statement.trials,
        of_trials=len(cell.trials),
        what=statement.what,
        number=statement.number,
        fix=statement.fix,
        source=statement.source,
    )
