# SPDX-License-Identifier: Apache-2.0
"""From a campaign to the data of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from lagometer.report import heads, limits, steadiness
from lagometer.report.conformance import conformance
from lagometer.report.data import Counts, Glance, Interval, Report, Row
from lagometer.report.deadlines import deadlines
from lagometer.report.disturbed import without_noise
from lagometer.report.draw import Drawing
from lagometer.report.floor import with_floor
from lagometer.report.glance import glance
from lagometer.report.interference import interference
from lagometer.report.intervals import Estimated, Key, known, with_intervals
from lagometer.report.lost_tails import lost_tails
from lagometer.report.of_cells import in_order
from lagometer.report.rows import group_by_edge, missing_rows, over_trials, trial_row
from lagometer.stats.confidence import TRIALS_MIN
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign

DATA_FORMAT = 3


def build_report(campaign: Campaign) -> Report:
    """Everything that the page shows. A trial whose samples can't be read is named in `thinned`, not
    dropped in silence.
    """
    factors = heads.cell_factors(campaign.manifest)
    measured_rows = [trial_row(record) for record in campaign.cells.iter_rows(named=True)]
    measured_rows += missing_rows(measured_rows, campaign.journal)
    for row in measured_rows:
        factors.setdefault(row.cell, {})
    order = {cell: place for place, cell in enumerate(factors)}
    measured_rows.sort(key=lambda row: (order[row.cell], row.trial or 0))
    payload_known = frozenset(cell for cell, values in factors.items() if "payload_bytes" in values)
    with closing(Drawing(campaign, measured_rows, payload_known)) as drawing:
        return _report(campaign, measured_rows, factors, order, drawing)


def _report(
    campaign: Campaign,
    measured_rows: Sequence[Row],
    factors: dict[str, dict[str, object]],
    order: Mapping[str, int],
    drawing: Drawing,
) -> Report:
    confidence = known(campaign)
    rows, thinned = _rows(measured_rows, factors, confidence.estimates)
    floor, unread = steadiness.machine_floor(campaign)
    shown, unshown = conformance(campaign)
    failures = heads.failures(campaign.directory, campaign.journal)
    exclusions = heads.exclusions(campaign.manifest)
    at_a_glance = glance(rows, factors, campaign.journal, exclusions, failures)
    needed = _trials_needed(rows) if confidence.absent is None else None
    if needed is not None:  # said once for all, so that a large campaign's page stays small
        rows = [
            row.model_copy(update={"intervals": _with_ends(row)}) if row.intervals else row for row in rows
        ]
    by_cell = in_order(campaign.cells, order)
    misses, tails = deadlines(by_cell, confidence.table), lost_tails(by_cell, confidence.table)
    disturbed = without_noise(campaign, measured_rows, confidence)
    drawn, notes = drawing.finish(confidence.alphas, in_passing=not confidence.affordable)
    cells = heads.cells(factors, measured_rows, campaign.journal, drawn.payload_bytes)
    return Report(
        format=DATA_FORMAT,
        kind="campaign",
        campaign=heads.campaign_head(campaign.manifest, campaign.environment),
        counts=Counts(
            cells=len(cells),
            trials=len(campaign.journal),
            trials_valid=len(campaign.journal) - len(failures),
            trials_failed=len(failures),
            trials_noisy=len({(row.cell, row.trial) for row in measured_rows if row.trials_noisy}),
            excluded=len(campaign.excluded),
            messages=sum(row.n for row in measured_rows if row.edge != END_TO_END),
        ),
        factors=heads.factor_values(factors),
        cells=cells,
        glance=at_a_glance,
        rows=rows,
        curves=drawn.curves,
        series=drawn.series,
        deadlines=misses,
        lost_tails=tails,
        interference=interference(by_cell),
        failures=failures,
        reasons=heads.reason_counts(campaign.journal, measured_rows),
        without_noise=disturbed,
        control=steadiness.control(campaign),
        long_trials=steadiness.long_trials(campaign, rows),
        machine_floor=floor,
        trials_needed=needed,
        intervals_absent=confidence.absent,
        exclusions=exclusions,
        settings=heads.settings(campaign.manifest),
        conformance=shown,
        environment=heads.environment_facts(campaign.environment),
        thinned=[*thinned, *notes, *confidence.notes, *unread, *unshown],
    )


def glance_of(campaign: Campaign) -> Glance | None:
    """The table at a glance alone, with the figures that the page has."""
    factors = heads.cell_factors(campaign.manifest)
    measured_rows = [
        trial_row(record)
        for record in campaign.cells.iter_rows(named=True)
        if record["edge"] == END_TO_END and record["cell"] in factors
    ]
    rows, _ = _rows(measured_rows, factors, known(campaign).estimates)
    failures = heads.failures(campaign.directory, campaign.journal)
    return glance(rows, factors, campaign.journal, heads.exclusions(campaign.manifest), failures)


def _with_ends(row: Row) -> list[Interval]:
    return [each for each in row.intervals if each.low is not None]


def _trials_needed(rows: Sequence[Row]) -> int | None:
    """Trials that would do for an interval of p50 in each cell, where no cell has one."""
    medians = [
        each
        for row in rows
        for each in row.intervals
        if each.figure == "latency_p50_ns" and row.trial is None
    ]
    if any(each.low is not None for each in medians):
        return None
    return max([TRIALS_MIN, *(each.needed_trials or 0 for each in medians)])


def _rows(
    measured_rows: Sequence[Row],
    factors: dict[str, dict[str, object]],
    estimates: dict[Key, Estimated],
) -> tuple[list[Row], list[str]]:
    """Rows over trials, and the trials' own where they say something more."""
    groups = group_by_edge(measured_rows)
    estimated = [with_intervals(over_trials(group), group, estimates) for group in groups.values()]
    summaries = with_floor(estimated, factors)
    trials: dict[str, set[int | None]] = {}
    for row in measured_rows:
        trials.setdefault(row.cell, set()).add(row.trial)
    # A cell's only trial, if valid, says the same as the row over trials.
    single = [row for row in measured_rows if len(trials[row.cell]) > 1 or not row.valid]
    kept = single[: max(0, limits.ROWS_MAX - len(summaries))]
    thinned = []
    if len(kept) < len(single):
        thinned.append(
            f"The table holds {len(kept):,} of {len(single):,} rows of single trials; "
            "all are in cells.parquet."
        )
    return [*summaries, *kept], thinned
