# SPDX-License-Identifier: Apache-2.0
"""Where the time of each cell's messages goes, layer by layer, and what would have to go to halve it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lagometer.stats.cell.categories import breakdown, categories, overhead
from lagometer.stats.cell.layers import edge_layers
from lagometer.stats.trial.scheduling import COMPUTATION
from lagometer.stats.trial.way import LAYERS, UNATTRIBUTED
from lagometer.store.errors import CampaignError
from lagometer.store.format import ARROW, END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.campaign import cell_factors
from lagometer.summary.hops import ends
from lagometer.summary.layers import LayerTable
from lagometer.summary.way_data import CellLayers, LayerMean
from lagometer.units import duration_text

COLUMNS = ("edge", "sequence", "publish_ns", "taken_ns", "cause_stream", "cause_sequence", "phase", "outcome")
CHAIN, EDGE = "chain", "edge"


Trials = Sequence[tuple[pl.DataFrame, pl.DataFrame]]  # the messages of each that were delivered, their layers


@dataclass(frozen=True)
class CampaignLayers:
    """The layers of a campaign's cells: of whole messages, and of each edge. Its files are read once."""

    cells: Sequence[CellLayers] = ()
    edges: Sequence[LayerTable] = ()


def campaign_layers(campaign: Campaign) -> CampaignLayers:
    """Of all cells whose layers were measured, in the study's order."""
    valid = campaign.cells.filter(pl.col("valid")).select("cell", "trial").unique(maintain_order=True)
    trials: dict[str, list[int]] = {}
    for cell, trial in valid.iter_rows():
        if campaign.layers_path(cell, trial).is_file():
            trials.setdefault(cell, []).append(trial)
    cells: list[CellLayers] = []
    edges: list[LayerTable] = []
    for cell in dict.fromkeys([*cell_factors(campaign.manifest), *trials]):
        if cell not in trials:
            continue
        try:
            read = _read(campaign, cell, sorted(trials[cell]))
        except CampaignError:  # those of single messages say so
            continue
        row = _of_cell(cell, read)
        cells += [row] if row is not None else []
        edges += _of_each_edge(cell, read)
    return CampaignLayers(cells, edges)


def _of_each_edge(cell: str, read: Trials) -> list[LayerTable]:
    found: dict[str, list[pl.DataFrame]] = {}
    for samples, layers in read:
        measured = _measured(samples, layers)
        for edge in measured["edge"].unique(maintain_order=True):
            found.setdefault(edge, []).append(measured.filter(pl.col("edge") == edge))
    tables = {edge: (len(of_trials), edge_layers(of_trials)) for edge, of_trials in found.items()}
    return [LayerTable(cell, edge, count, each) for edge, (count, each) in tables.items() if each is not None]


def _of_cell(cell: str, read: Trials) -> CellLayers | None:
    of, found = CHAIN, [_of_chain(samples, layers) for samples, layers in read]
    if any(each is None for each in found):
        of, found = EDGE, [_of_edges(samples, layers) for samples, layers in read]
    spent = pl.concat([each for each in found if each is not None], how="diagonal").fill_null(0)
    if spent.is_empty():
        return None
    means = {name: float(spent[name].to_numpy().mean()) for name in spent.columns}
    return layers_of(cell, len(read), spent.height, of, means)


def _read(campaign: Campaign, cell: str, trials: Sequence[int]) -> Trials:
    """The messages of each trial that were delivered, and their layers. Raises CampaignError."""
    found = []
    for trial in trials:
        samples = _delivered(campaign.samples(cell, trial, COLUMNS))
        layers = pl.read_parquet(campaign.layers_path(cell, trial), glob=False)
        found.append((samples, layers.with_columns(_text("edge", "layer"))))
    return found


def layers_of(cell: str, trials: int, messages: int, of: str, means_ns: dict[str, float]) -> CellLayers:
    """The row of a cell from the mean time in each layer."""
    total_ns = sum(means_ns.values())
    order = [*LAYERS[:-1], COMPUTATION]
    layers = [
        LayerMean(name=name, mean_ns=means_ns.get(name, 0.0), share=means_ns.get(name, 0.0) / total_ns)
        for name in [*(name for name in order if means_ns.get(name)), UNATTRIBUTED]
    ]
    over_dds = overhead(means_ns)
    half: list[LayerMean] = []
    for layer in sorted(layers, key=lambda each: -each.mean_ns):
        if 2 * sum(each.mean_ns for each in half) >= total_ns:
            break
        half.append(layer)
    return CellLayers(
        cell=cell,
        trials=trials,
        messages=messages,
        of=of,
        latency_mean_ns=total_ns,
        layers=layers,
        half=[each.name for each in half],
        to_halve=_sentence(total_ns, half),
        categories=_means(categories(means_ns), total_ns),
        breakdown=_means(breakdown(means_ns), total_ns),
        overhead_least=over_dds.least,
        overhead_most=over_dds.most,
        overhead_absent=over_dds.absent,
    )


def _means(of: Mapping[str, float], total_ns: float) -> list[LayerMean]:
    return [LayerMean(name=name, mean_ns=spent, share=spent / total_ns) for name, spent in of.items()]


def _sentence(total_ns: float, half: Sequence[LayerMean]) -> str:
    """What would have to go, said plainly."""
    together = sum(each.share for each in half)
    named = [f"{each.name.replace('_', ' ')} ({each.share:.0%})" for each in half]
    what = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    if len(half) > 1:
        what += f", together {together:.0%},"
    unknown = any(each.name == UNATTRIBUTED for each in half)
    first = "; where the unattributed part goes has to be found first" if unknown else ""
    shrink = 0.5 / together
    return (
        f"To halve the mean of {duration_text(total_ns)}, {what} would have to shrink by {shrink:.0%}{first}."
    )


def _text(*columns: str) -> list[pl.Expr]:
    return [pl.col(name).cast(pl.String()) for name in columns]


def _delivered(samples: pl.DataFrame) -> pl.DataFrame:
    """Messages with their latency."""
    return (
        samples.with_columns(_text("edge", "phase", "outcome"))
        .filter(pl.col("outcome") == "delivered")
        .with_columns((pl.col("taken_ns") - pl.col("publish_ns")).alias("latency_ns"))
        .drop_nulls("latency_ns")
    )


def _measured(samples: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The layers of the messages of the measure phase."""
    measured = samples.filter(pl.col("phase") == "measure").select("edge", "sequence")
    return layers.join(measured, on=("edge", "sequence"), how="semi", maintain_order="left")


def _of_edges(samples: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """A row for each message on each edge, of the measure phase: the time in each layer."""
    return _wide(_measured(samples, layers), ("edge", "sequence"))


def _of_chain(samples: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame | None:
    """A row for each message that went all the way; None where the graph is no single line, or a part of the
    way has no layers."""
    edges = _line(samples)
    if not edges:
        return None
    whole = samples.filter((pl.col("edge") == END_TO_END) & (pl.col("phase") == "measure"))
    roots = whole.select(pl.col("sequence").alias("root"), pl.col("latency_ns").alias("whole_ns"))
    gone = roots.with_columns(pl.col("root").alias("sequence"))
    stays, under_way = [], roots.with_columns(pl.lit(0, pl.Int64()).alias("edges_ns"))
    for place, edge in enumerate(edges):
        own = samples.filter(pl.col("edge") == edge)
        key = "cause_sequence" if place else "sequence"
        on_edge = own.select(pl.col(key).alias("before"), "sequence", "latency_ns")
        gone = gone.select("root", pl.col("sequence").alias("before")).join(on_edge, on="before")
        stays.append(
            layers.filter(pl.col("edge") == edge).join(gone.select("root", "sequence"), on="sequence")
        )
        added = gone.select("root", pl.col("latency_ns").alias("more_ns"))
        under_way = under_way.join(added, on="root").with_columns(pl.col("edges_ns") + pl.col("more_ns"))
        under_way = under_way.drop("more_ns")
    spent = _wide(
        pl.concat(stays).join(under_way.select("root"), on="root", how="semi"), ("root",), keep=True
    )
    found = spent.join(under_way, on="root").with_columns(
        (pl.col("whole_ns") - pl.col("edges_ns")).alias(COMPUTATION)
    )
    names = [name for name in found.columns if name not in ("root", "whole_ns", "edges_ns")]
    known = found.filter(pl.sum_horizontal(names) == pl.col("whole_ns"))
    if roots["root"].is_duplicated().any() or known.height < roots.height:
        return None
    return known.select(names)


def _line(samples: pl.DataFrame) -> list[str]:
    """The edges of a graph that is a single line or one round, in the order in which messages go through
    them; empty for every other graph."""
    first = samples.filter(pl.col("edge").str.contains(ARROW, literal=True))
    edges = [str(name) for name in first["edge"].unique(maintain_order=True)]
    starts = first.filter(pl.col("cause_stream").is_null())["edge"].unique().to_list()
    following = {ends(edge)[0]: edge for edge in edges}
    if len(starts) != 1 or len(following) != len(edges):
        return []
    line = [str(starts[0])]
    while (after := following.get(ends(line[-1])[1])) is not None and after not in line:
        line.append(after)
    return line if len(line) == len(edges) else []


def _wide(stays: pl.DataFrame, key: tuple[str, ...], *, keep: bool = False) -> pl.DataFrame:
    """A row for each message, a column for each layer: the nanoseconds in it."""
    spent = stays.select(*key, "layer", (pl.col("end_ns") - pl.col("begin_ns")).alias("spent_ns"))
    wide = spent.pivot(on="layer", index=list(key), values="spent_ns", aggregate_function="sum").fill_null(0)
    return wide if keep else wide.drop(*key)
