# SPDX-License-Identifier: Apache-2.0
"""Where the time of each edge's messages goes, for campaigns with `layers: on`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from lagometer.stats.cell.layers import EdgeLayers, edge_layers
from lagometer.stats.trial.seen_calls import SeenCalls, added
from lagometer.store.format import ARROW
from lagometer.store.reader import Campaign

MEASURED = ("sequence", "layer", "begin_ns", "end_ns")


@dataclass(frozen=True)
class LayerTable:
    """The layers of one edge of one cell."""

    cell: str
    edge: str
    trials: int
    figures: EdgeLayers


def layer_tables(campaigns: Sequence[Campaign]) -> list[LayerTable]:
    """A table per cell and edge, over the valid trials of all campaigns; empty without requested layers."""
    by_edge: dict[tuple[str, str], list[pl.DataFrame]] = {}
    for campaign in campaigns:
        for cell, trial in valid_trials(campaign):
            if not campaign.layers_path(cell, trial).is_file():
                continue
            measured = measured_layers(campaign, cell, trial)
            for edge in measured["edge"].unique(maintain_order=True):
                by_edge.setdefault((cell, edge), []).append(measured.filter(pl.col("edge") == edge))
    return [
        LayerTable(cell, edge, len(trials), figures)
        for (cell, edge), trials in by_edge.items()
        if (figures := edge_layers(trials)) is not None
    ]


def valid_trials(campaign: Campaign) -> Iterable[tuple[str, int]]:
    """The trials that count."""
    valid = campaign.cells.filter(pl.col("valid") & pl.col("edge").str.contains(ARROW, literal=True))
    return valid.select("cell", "trial").unique(maintain_order=True).iter_rows()


def measured_layers(campaign: Campaign, cell: str, trial: int) -> pl.DataFrame:
    """The layers of the messages of the measure phase. Raises CampaignError."""
    layers = pl.read_parquet(campaign.layers_path(cell, trial), glob=False)
    samples = campaign.samples(cell, trial, ("edge", "sequence", "phase"))
    text = pl.col("edge").cast(pl.String())
    measured = samples.filter(pl.col("phase") == "measure").select(text, "sequence")
    return layers.with_columns(text).join(measured, on=("edge", "sequence"), how="semi")


def probed_calls(campaigns: Sequence[Campaign]) -> SeenCalls:
    """How many of the kernel's calls the probes saw, in the valid trials of all campaigns."""
    trials: list[SeenCalls] = []
    for campaign in campaigns:
        valid = set(valid_trials(campaign))
        entries = (entry for entry in campaign.journal if (entry.get("cell"), entry.get("trial")) in valid)
        trials += [SeenCalls.from_json(entry["system_calls"]) for entry in entries if "system_calls" in entry]
    return added(trials) if trials else SeenCalls(absent="no valid trial counted them")


@dataclass(frozen=True)
class ProbeCost:
    """What the probes add to the median latency, from pairs of trials with and without them.

    probe_cost_ns: the median of the pairs' differences; None unless both trials of at least one pair are
    valid. probe_cost_share: relative to the median latency without probes, latency_p50_without_ns.
    """

    pairs: int
    probe_cost_ns: float | None
    probe_cost_pairs_ns: tuple[float, ...]
    probe_cost_share: float | None
    latency_p50_without_ns: float | None


def probe_cost(pairs: Sequence[tuple[Campaign, Campaign]]) -> ProbeCost:
    """Compares the two campaigns of each pair; the one with probes comes first."""
    medians = [(_median_latency_ns(probed), _median_latency_ns(plain)) for probed, plain in pairs]
    known = [(with_ns, plain_ns) for with_ns, plain_ns in medians if with_ns and plain_ns]
    if not known:
        return ProbeCost(0, None, (), None, None)
    differences = tuple(with_ns - plain_ns for with_ns, plain_ns in known)
    cost_ns, plain_ns = median(differences), median(plain_ns for _, plain_ns in known)
    return ProbeCost(len(known), cost_ns, differences, cost_ns / plain_ns, plain_ns)


def _median_latency_ns(campaign: Campaign) -> float | None:
    """Over all messages of the measure phase, on every edge; None without a valid trial."""
    frames = [
        campaign.samples(cell, trial, ("edge", "phase", "outcome", "publish_ns", "taken_ns"))
        for cell, trial in valid_trials(campaign)
    ]
    if not frames:
        return None
    measured = pl.concat(frames).filter(
        (pl.col("phase") == "measure")
        & (pl.col("outcome") == "delivered")
        & pl.col("edge").cast(pl.String()).str.contains(ARROW, literal=True)
    )
    latency_ns = measured.select((pl.col("taken_ns") - pl.col("publish_ns")).median()).item()
    return None if latency_ns is None else float(latency_ns)
