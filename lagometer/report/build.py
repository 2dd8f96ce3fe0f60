# SPDX-License-Identifier: Apache-2.0
"""From a campaign to the data of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report import heads, limits
from lagometer.report.curves import curve
from lagometer.report.data import Counts, Curve, Report, Row, Series
from lagometer.report.floor import with_floor
from lagometer.report.rows import group_by_edge, missing_rows, over_trials, trial_row
from lagometer.report.series import delivered, edge_series, measured
from lagometer.store.errors import CampaignError
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign

DATA_FORMAT = 1


@dataclass
class _Drawn:
    """What the samples have given so far."""

    curves: list[Curve] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    payload_bytes: dict[str, int] = field(default_factory=dict)  # as seen on the wire, by cell


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
    rows, thinned = _rows(measured_rows, factors)
    drawn, notes = _draw(campaign, measured_rows)
    cells = heads.cells(factors, measured_rows, campaign.journal, drawn.payload_bytes)
    failures = heads.failures(campaign.directory, campaign.journal)
    return Report(
        format=DATA_FORMAT,
        campaign=heads.campaign_head(campaign.manifest, campaign.environment),
        counts=Counts(
            cells=len(cells),
            trials=len(campaign.journal),
            trials_valid=len(campaign.journal) - len(failures),
            trials_failed=len(failures),
            excluded=len(campaign.excluded),
            messages=sum(row.n for row in measured_rows if row.edge != END_TO_END),
        ),
        factors=heads.factor_values(factors),
        cells=cells,
        rows=rows,
        curves=drawn.curves,
        series=drawn.series,
        failures=failures,
        exclusions=heads.exclusions(campaign.manifest),
        settings=heads.settings(campaign.manifest),
        environment=heads.environment_facts(campaign.environment),
        thinned=thinned + notes,
    )


def _rows(measured_rows: Sequence[Row], factors: dict[str, dict[str, object]]) -> tuple[list[Row], list[str]]:
    """Rows over trials, and the trials' own where they say something more."""
    groups = group_by_edge(measured_rows)
    summaries = with_floor([over_trials(group) for group in groups.values()], factors)
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


def _draw(campaign: Campaign, rows: Sequence[Row]) -> tuple[_Drawn, list[str]]:
    """Curves and series, one file of samples at a time."""
    wanted = {(row.cell, row.trial, row.edge): row for row in rows if row.n > 0}
    chosen = sorted(wanted, key=lambda key: (key[2] != END_TO_END, key[1] or 0))
    fitting = set(chosen[: limits.SERIES_POINTS_TOTAL // limits.SERIES_POINTS_MIN])
    points = limits.SERIES_POINTS_TOTAL // max(1, len(fitting))
    points = max(limits.SERIES_POINTS_MIN, min(limits.SERIES_POINTS_MAX, points))
    drawn = _Drawn()
    for cell in dict.fromkeys(row.cell for row in rows):
        _draw_cell(
            campaign, cell, [row for key, row in wanted.items() if key[0] == cell], fitting, points, drawn
        )
    return drawn, _notes(drawn, len(wanted), len(fitting), points)


def _draw_cell(
    campaign: Campaign,
    cell: str,
    rows: Sequence[Row],
    fitting: set[tuple[str, int | None, str]],
    points: int,
    drawn: _Drawn,
) -> None:
    latencies: dict[str, list[npt.NDArray[np.int64]]] = {}
    for trial in sorted({row.trial for row in rows if row.trial is not None}):
        try:
            samples = measured(campaign.samples(cell, trial))
        except (CampaignError, pl.exceptions.PolarsError) as error:
            drawn.unread.append(f"The samples of {cell}, trial {trial}, could not be read: {error}")
            continue
        if samples.is_empty():
            continue
        seen = samples["payload_bytes"].max() if "payload_bytes" in samples.columns else None
        if isinstance(seen, int):
            drawn.payload_bytes[cell] = max(seen, drawn.payload_bytes.get(cell, 0))
        origin_ns = int(samples["publish_ns"][0])
        for row in (row for row in rows if row.trial == trial):
            edge_rows = samples.filter(pl.col("edge").cast(pl.String) == row.edge)
            if row.valid:
                arrived = delivered(edge_rows)
                values = (arrived["taken_ns"] - arrived["publish_ns"]).to_numpy().astype(np.int64)
                latencies.setdefault(row.edge, []).append(values)
            if (cell, trial, row.edge) in fitting:
                series = edge_series(cell, trial, row.edge, edge_rows, origin_ns, points)
                drawn.series += [] if series is None else [series]
    for edge, trials in latencies.items():
        made = curve(cell, edge, trials) if len(drawn.curves) < limits.CURVES_MAX else None
        drawn.curves += [] if made is None else [made]


def _notes(drawn: _Drawn, wanted: int, fitting: int, points: int) -> list[str]:
    notes = []
    thinned = [series for series in drawn.series if len(series.time_us) < series.n]
    if thinned:
        notes.append(
            f"{len(thinned):,} of {len(drawn.series):,} time series are thinned to about {points:,} messages "
            "each: every run of messages keeps its fastest and its slowest, and the slowest "
            f"{limits.SLOWEST} are always there."
        )
    if fitting < wanted:
        notes.append(f"{wanted - fitting:,} of {wanted:,} time series are left out; all are in samples/.")
    if len(drawn.curves) >= limits.CURVES_MAX:
        notes.append(f"Percentile curves beyond the first {limits.CURVES_MAX:,} are left out.")
    return notes + drawn.unread
