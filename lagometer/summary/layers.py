# SPDX-License-Identifier: Apache-2.0
"""Where the time of each edge's messages goes, for campaigns with `layers: on`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import polars as pl

from lagometer.stats.cell.layers import EdgeLayers, edge_layers
from lagometer.stats.interval.medians import median_interval
from lagometer.stats.trial.seen_calls import SeenCalls, added
from lagometer.store.format import ARROW
from lagometer.store.reader import Campaign

COST_SHARE_MAX = 0.03  # of the median latency; what the probes may cost at least
READS_PER_STAMP = 2  # of the clock; likewise, for each stamp on the way


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
    stamps_per_message: how many stamps bound its layers, on average. clock_read_ns: what reading the clock
    costs on this machine. Both are None if they are not known.
    """

    pairs: int
    probe_cost_ns: float | None
    probe_cost_pairs_ns: tuple[float, ...]
    probe_cost_share: float | None
    latency_p50_without_ns: float | None
    stamps_per_message: float | None = None
    clock_read_ns: float | None = None

    @property
    def bounds_ns(self) -> tuple[float | None, float | None]:
        """What the probes may cost: 3 % of the median latency without them, and two readings of the clock for
        each stamp. The larger one counts."""
        of_latency = of_stamps = None
        if self.latency_p50_without_ns is not None:
            of_latency = COST_SHARE_MAX * self.latency_p50_without_ns
        if self.stamps_per_message is not None and self.clock_read_ns is not None:
            of_stamps = READS_PER_STAMP * self.clock_read_ns * self.stamps_per_message
        return of_latency, of_stamps

    @property
    def interval_ns(self) -> tuple[float, float] | None:
        """The 95 % interval of the cost; None with too few pairs (fewer than six)."""
        return median_interval(self.probe_cost_pairs_ns)

    @property
    def within_bounds(self) -> bool | None:
        """Whether the whole interval of the cost is at most the larger bound (true) or above it (false). None
        if the pairs can't tell, or if anything is not known."""
        of_latency_ns, of_stamps_ns = self.bounds_ns
        if self.interval_ns is None or of_latency_ns is None or of_stamps_ns is None:
            return None
        low_ns, high_ns = self.interval_ns
        bound_ns = max(of_latency_ns, of_stamps_ns)
        return None if low_ns <= bound_ns < high_ns else high_ns <= bound_ns


def probe_cost(pairs: Sequence[tuple[Campaign, Campaign]]) -> ProbeCost:
    """Compares the two campaigns of each pair; the one with probes comes first."""
    medians = [(_median_latency_ns(probed), _median_latency_ns(plain)) for probed, plain in pairs]
    known = [(with_ns, plain_ns) for with_ns, plain_ns in medians if with_ns and plain_ns]
    if not known:
        return ProbeCost(0, None, (), None, None)
    differences = tuple(with_ns - plain_ns for with_ns, plain_ns in known)
    cost_ns, plain_ns = median(differences), median(plain_ns for _, plain_ns in known)
    probed = [campaign for campaign, _ in pairs]
    reads_ns = [campaign.environment.get("clock_read_ns") for campaign in probed]
    known_ns = [float(read_ns) for read_ns in reads_ns if isinstance(read_ns, int | float)]
    return ProbeCost(
        len(known),
        cost_ns,
        differences,
        cost_ns / plain_ns,
        plain_ns,
        _stamps_per_message(probed),
        median(known_ns) if known_ns else None,
    )


def _stamps_per_message(campaigns: Sequence[Campaign]) -> float | None:
    """How many stamps bound the layers of a message of the measure phase: each layer ends with one, and the
    first begins with one. None without layers."""
    stays = messages = 0
    for campaign in campaigns:
        for cell, trial in valid_trials(campaign):
            if campaign.layers_path(cell, trial).is_file():
                measured = measured_layers(campaign, cell, trial)
                stays += measured.height
                messages += measured.select("edge", "sequence").n_unique()
    return stays / messages + 1 if messages else None


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
