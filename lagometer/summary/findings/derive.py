# SPDX-License-Identifier: Apache-2.0
"""All findings of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from lagometer.store.reader import Campaign
from lagometer.summary.data import Finding
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
from lagometer.summary.scheduling import scheduling
from lagometer.summary.scheduling_data import CellScheduling

RULES: tuple[Callable[[CellEvidence], Iterator[Said]], ...] = (
    failures,
    network,
    queues,
    sending,
    settings,
    machine,
    links,
)


def findings(
    campaign: Campaign,
    only: Collection[str] | None = None,
    shares: Sequence[CellScheduling] | None = None,
) -> list[Finding]:
    """What happened in which cell, in the study's order of cells; declared traps of a cell first.

    only: the cells to look at; all if not given. shares: the scheduler's, where the caller has them already.
    """
    declared = campaign.manifest.get("traps")
    declared = declared if isinstance(declared, dict) else {}
    found = []
    rows = campaign.cells.iter_rows(named=True)
    cells = list(cells_of(campaign.manifest, campaign.environment, rows, campaign.journal))
    grows = list(scaling(cells))
    shares = scheduling([campaign]) if shares is None else shares
    for cell in cells:
        if only is not None and cell.cell not in only:
            continue
        said = [*traps(cell, declared), *(each for rule in RULES for each in rule(cell))]
        said += [each for of, each in grows if of is cell]
        said += scheduling_findings(cell, shares)
        found += [_finding(cell, each) for each in said]
    return found


def _finding(cell: CellEvidence, said: Said) -> Finding:
    return Finding(
        cell=cell.cell,
        kind=said.kind,
        trials=said.trials,
        of_trials=len(cell.trials),
        what=said.what,
        number=said.number,
        fix=said.fix,
        source=said.source,
    )
