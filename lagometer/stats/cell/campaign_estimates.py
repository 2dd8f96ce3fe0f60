# SPDX-License-Identifier: Apache-2.0
"""estimates.parquet of a campaign: read if current, otherwise computed from the campaign's other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from lagometer.stats.cell.cell_estimates import estimates
from lagometer.stats.cell.preempted import with_noise_of_campaign
from lagometer.stats.interval.confidence import CONFIDENCE, TRIALS_MIN, Stop
from lagometer.stats.interval.sequential import ALPHA_LOOK
from lagometer.stats.interval.stopping import Bounds, CellProgress, chain_latencies
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign

COLUMNS = ("edge", "phase", "outcome", "intended_ns", "publish_ns", "taken_ns")
OPEN = "open"  # stands for a cell of an adaptive campaign that was interrupted before it stopped


def progress_of_cells(campaign: Campaign) -> dict[str, CellProgress]:
    """How far each cell of an adaptive campaign is; empty for a campaign with a fixed number of trials."""
    study = campaign.manifest.get("study")
    bounds = Bounds.of_study(study) if isinstance(study, Mapping) else None
    if bounds is None:
        return {}
    cells: dict[str, CellProgress] = {}
    for entry in sorted(campaign.journal, key=lambda line: int(line["trial"])):
        progress = cells.setdefault(str(entry["cell"]), CellProgress(bounds))
        valid = bool(entry["valid"])
        samples = campaign.samples(entry["cell"], entry["trial"], COLUMNS) if valid else None
        latencies = chain_latencies(samples) if samples is not None else None
        progress.add(latencies, float(entry.get("spent_s", entry.get("seconds", 0.0))))
    return cells


def stops_of_cells(progress: Mapping[str, CellProgress]) -> dict[str, Stop]:
    """Why each cell gets no more trials, and the alpha its intervals may use."""
    return {
        cell: cell_progress.stop_now()
        if cell_progress.stopped is not None
        else Stop(OPEN, cell_progress.stop_now().alpha)
        for cell, cell_progress in progress.items()
    }


def safe_alpha(campaign: Campaign) -> float:
    """The error probability an interval of any cell may use, without looking at its samples. If cells ended
    because they reached their precision, it must allow for the looks. The level of one look does so, whatever
    ended a cell.
    """
    study = campaign.manifest.get("study")
    adaptive = isinstance(study, Mapping) and Bounds.of_study(study) is not None
    return ALPHA_LOOK if adaptive else 1.0 - CONFIDENCE


def make_estimates(campaign: Campaign, progress: Mapping[str, CellProgress] | None = None) -> pl.DataFrame:
    """Recomputes the table from samples. Raises CampaignError if a valid trial has none.

    progress: the progress of the cells of an adaptive campaign, if already known.
    """
    if progress is None:
        progress = progress_of_cells(campaign)

    def samples(cell: str, trial: int) -> pl.DataFrame:
        return campaign.samples(cell, trial, COLUMNS)

    table = estimates(campaign.cells, samples, stops_of_cells(progress))
    stopped = pl.when(pl.col("stopped") != OPEN).then(pl.col("stopped"))
    return table.with_columns(stopped=stopped)


def estimates_without_noise(campaign: Campaign, alphas: Mapping[str, float]) -> pl.DataFrame:
    """The end-to-end rows from quiet trials only, for cells with disturbed and enough quiet trials.

    alphas: the cells to look at, each with the error probability of its intervals. Raises CampaignError.
    """
    valid = with_noise_of_campaign(campaign.cells).filter(
        pl.col("valid")
        & (pl.col("n") > 0)
        & (pl.col("edge") == form.END_TO_END)
        & pl.col("cell").is_in(list(alphas))
    )
    noisy = pl.col("noise").list.len().fill_null(0) > 0
    enough = (~noisy).sum().over("cell") >= TRIALS_MIN
    chosen = valid.filter(~noisy & noisy.any().over("cell") & enough)
    return estimates(
        chosen,
        lambda cell, trial: campaign.samples(cell, trial, COLUMNS),
        {cell: Stop(OPEN, alpha) for cell, alpha in alphas.items()},
    )


def campaign_estimates(campaign: Campaign) -> pl.DataFrame:
    """A campaign's table: read if it contains every valid trial, otherwise computed. Raises CampaignError.

    Also raises it for an imported campaign: aggregates have no intervals, however many there are.
    """
    if campaign.imported_from is not None:
        raise CampaignError(
            f"the figures were imported from {campaign.imported_from}, whose logs have no samples"
        )
    path = campaign.directory / form.ESTIMATES
    stored = _stored(path)
    if stored is not None and _trials(stored) == _valid_trials(campaign):
        return stored
    return make_estimates(campaign)


def _stored(path: Path) -> pl.DataFrame | None:
    try:
        table = pl.read_parquet(path, glob=False, hive_partitioning=False)
    except (OSError, pl.exceptions.PolarsError):
        return None
    if not set(form.ESTIMATES_SCHEMA) - set(form.SHARES) <= set(table.columns):
        return None
    absent = [
        pl.lit(None, dtype=pl.Float64()).alias(name) for name in form.SHARES if name not in table.columns
    ]
    return table.with_columns(absent)


def _trials(stored: pl.DataFrame) -> dict[str, int]:
    latency_rows = stored.filter(pl.col("quantity") == "latency_p50")
    return dict(latency_rows.group_by("cell").agg(pl.col("trials").max()).iter_rows())


def _valid_trials(campaign: Campaign) -> dict[str, int]:
    """For each cell with a row, how many trials are valid and delivered at least one message."""
    counted = campaign.cells.group_by("cell").agg(
        pl.col("trial").filter(pl.col("valid") & (pl.col("n") > 0)).n_unique()
    )
    return dict(counted.iter_rows())
