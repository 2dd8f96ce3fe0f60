# SPDX-License-Identifier: Apache-2.0
"""Turns a campaign into its summary."""

from __future__ import annotations

from collections.abc import Sequence

from lagometer.stats.cell.preempted import with_noise_of_campaign
from lagometer.stats.interval.confidence import TRIALS_MIN
from lagometer.store.format import ARROW
from lagometer.store.reader import Campaign
from lagometer.summary import steadiness
from lagometer.summary.answer import answers
from lagometer.summary.bridges import bridges
from lagometer.summary.campaign import (
    campaign_head,
    cell_factors,
    cells,
    environment_facts,
    exclusions,
    factor_values,
)
from lagometer.summary.cell_data import Saturated
from lagometer.summary.cell_layers import CampaignLayers, campaign_layers
from lagometer.summary.cell_rows import in_order, with_values
from lagometer.summary.chains import chains
from lagometer.summary.conformance import conformance
from lagometer.summary.daemons import daemons
from lagometer.summary.data import Cell, Counts, Failure, Interval, Row, Summary
from lagometer.summary.deadlines import deadlines
from lagometer.summary.disturbed import preemption, without_noise
from lagometer.summary.failures import failures, reason_counts
from lagometer.summary.feasibility import feasibility
from lagometer.summary.findings.derive import findings
from lagometer.summary.floor_ratio import with_floor
from lagometer.summary.glance import glance
from lagometer.summary.interference import interference
from lagometer.summary.intervals import Known, known, with_intervals
from lagometer.summary.lost_tails import lost_tails
from lagometer.summary.node_costs import node_costs
from lagometer.summary.queues import queues
from lagometer.summary.rows import group_by_edge, missing_rows, over_trials, trial_row
from lagometer.summary.saturated import saturated
from lagometer.summary.scheduling import scheduling
from lagometer.summary.settings import settings
from lagometer.summary.subscribers import joined, served
from lagometer.summary.wire import on_the_wire

Factors = dict[str, dict[str, object]]


def measured(campaign: Campaign) -> tuple[list[Row], Factors]:
    """The rows of all trials, even without figures, and the factors of each cell, in the study's order."""
    factors = cell_factors(campaign.manifest)
    rows = [trial_row(record) for record in with_values(with_noise_of_campaign(campaign.cells))]
    rows += missing_rows(rows, campaign.journal)
    for row in rows:
        factors.setdefault(row.cell, {})
    order = {cell: place for place, cell in enumerate(factors)}
    rows.sort(key=lambda row: (order[row.cell], row.trial or 0))
    return rows, factors


def summarise(
    campaign: Campaign,
    confidence: Known | None = None,
    layers: CampaignLayers | None = None,
    of_trials: tuple[list[Row], Factors] | None = None,
) -> Summary:
    """The summary of a campaign. `confidence`, `layers`, `of_trials` (what `measured` returns): pass them if
    already computed."""
    confidence = confidence or known(campaign)
    layers = layers or campaign_layers(campaign)
    measured_rows, factors = of_trials or measured(campaign)
    summary_rows = _over_trials(measured_rows, factors, confidence)
    floor, floor_notes = steadiness.machine_floor(campaign)
    matrix, conformance_notes = conformance(campaign)
    failed = failures(campaign.directory, campaign.journal)
    excluded = exclusions(campaign.manifest)
    saturated_cells = saturated(campaign, factors)
    parts = (campaign.manifest.get("study") or {}).get("parts") or {}
    at_a_glance = glance(summary_rows, factors, campaign.journal, excluded, failed, parts)
    needed = _trials_needed(summary_rows) if confidence.absent is None else None
    if needed is not None:  # stored once for all, so that a large campaign's page stays small
        summary_rows = [
            row.model_copy(update={"intervals": _with_ends(row)}) if row.intervals else row
            for row in summary_rows
        ]
    rows = [*summary_rows, *_single(measured_rows)]
    by_cell = in_order(campaign.cells, {cell: place for place, cell in enumerate(factors)})
    campaign_cells = cells(factors, measured_rows, campaign.journal)
    shares, growing = scheduling([campaign]), queues(campaign)
    return Summary(
        campaign=campaign_head(campaign.manifest, campaign.environment),
        counts=_counts(campaign, campaign_cells, measured_rows, failed, saturated_cells),
        factors=factor_values(factors),
        cells=campaign_cells,
        glance=at_a_glance,
        fastest=answers(at_a_glance, rows, growing),
        rows=rows,
        deadlines=deadlines(by_cell, confidence.table),
        lost_tails=lost_tails(by_cell, confidence.table),
        interference=interference(by_cell),
        daemons=daemons(by_cell),
        findings=findings(campaign, shares=shares),
        failures=failed,
        saturated=saturated_cells,
        chains=chains(campaign.cells, campaign_cells),
        served=served(campaign.cells, campaign_cells),
        joined=joined(campaign.cells, campaign_cells),
        wire=on_the_wire(campaign, campaign_cells),
        node_costs=node_costs(campaign, factors),
        bridges=bridges(campaign, [cell.id for cell in campaign_cells]),
        scheduling=shares,
        layers=list(layers.cells),
        feasibility=feasibility(campaign),
        reasons=reason_counts(campaign.journal, measured_rows),
        without_noise=without_noise(campaign, measured_rows, confidence),
        preemption=preemption(campaign, measured_rows),
        queues=growing,
        control=steadiness.control(campaign),
        long_trials=steadiness.long_trials(campaign, rows),
        machine_floor=floor,
        trials_needed=needed,
        intervals_absent=confidence.absent,
        exclusions=excluded,
        settings=settings(campaign.manifest),
        conformance=matrix,
        environment=environment_facts(campaign.environment),
        notes=[*confidence.notes, *floor_notes, *conformance_notes],
    )


def _counts(
    campaign: Campaign,
    campaign_cells: Sequence[Cell],
    measured_rows: Sequence[Row],
    failed: Sequence[Failure],
    saturated_cells: Sequence[Saturated],
) -> Counts:
    trials_saturated = sum(cell.trials for cell in saturated_cells)
    return Counts(
        cells=len(campaign_cells),
        trials=len(campaign.journal),
        trials_valid=len(campaign.journal) - len(failed) - trials_saturated,
        trials_saturated=trials_saturated,
        trials_failed=len(failed),
        trials_noisy=len({(row.cell, row.trial) for row in measured_rows if row.trials_noisy}),
        excluded=len(campaign.excluded),
        messages=sum(row.n for row in measured_rows if ARROW in row.edge),
    )


def _with_ends(row: Row) -> list[Interval]:
    return [interval for interval in row.intervals if interval.low is not None]


def _trials_needed(rows: Sequence[Row]) -> int | None:
    """How many trials would be enough for an interval of p50 in each cell, if no cell has one."""
    medians = [
        interval
        for row in rows
        for interval in row.intervals
        if interval.figure == "latency_p50_ns" and row.trial is None
    ]
    if any(interval.low is not None for interval in medians):
        return None
    return max([TRIALS_MIN, *(interval.needed_trials or 0 for interval in medians)])


def _over_trials(measured_rows: Sequence[Row], factors: Factors, confidence: Known) -> list[Row]:
    """A row for each cell and edge, over its trials."""
    groups = group_by_edge(measured_rows)
    estimated = [with_intervals(over_trials(group), group, confidence.estimates) for group in groups.values()]
    return with_floor(estimated, factors)


def _single(measured_rows: Sequence[Row]) -> list[Row]:
    """The trials' own rows if they add something: a cell's only trial, if valid, does not."""
    trials: dict[str, set[int | None]] = {}
    for row in measured_rows:
        trials.setdefault(row.cell, set()).add(row.trial)
    return [row for row in measured_rows if len(trials[row.cell]) > 1 or not row.valid]
