# SPDX-License-Identifier: Apache-2.0
"""Where the time of each cell's messages goes, layer by layer, and what must shrink to halve it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from lagometer.stats.cell.categories import breakdown, categories, overhead
from lagometer.stats.cell.layers import edge_layers
from lagometer.stats.trial.hops import ends
from lagometer.stats.trial.scheduling import BRIDGE, COMPUTATION, IDLE, QUEUE
from lagometer.stats.trial.way import LAYERS, UNATTRIBUTED
from lagometer.store.errors import CampaignError
from lagometer.store.facts import ways_through
from lagometer.store.format import ARROW, END_TO_END, LAYER_FILES
from lagometer.store.reader import Campaign
from lagometer.summary.campaign import cell_factors, forwarding
from lagometer.summary.layers import LayerTable
from lagometer.summary.way_data import CellLayers, LayerMean
from lagometer.units import duration_text

COLUMNS = (
    *("edge", "sequence", "phase", "outcome", "cause_stream", "cause_sequence"),
    *("begun_ns", "publish_ns", "taken_ns", "started_ns", "handled_ns"),
)
CHAIN, EDGE = "chain", "edge"
EDGES = "edges_ns"
ADDED = (EDGES, BRIDGE, QUEUE, IDLE)  # along a chain; the rest is computation


Trials = Sequence[tuple[pl.DataFrame, pl.DataFrame]]  # each trial's delivered messages and their layers
Forwarding = frozenset[tuple[str, str]]  # the pairs of edges between which a bridge is


@dataclass(frozen=True)
class CampaignLayers:
    """The layers of a campaign's cells: for whole messages, and for each edge. The files are read once."""

    cells: Sequence[CellLayers] = ()
    edges: Sequence[LayerTable] = ()


def campaign_layers(campaign: Campaign, only: Collection[str] | None = None) -> CampaignLayers:
    """The layers of all cells in which they were measured, in the study's order. only: of these cells."""
    if not campaign.has(LAYER_FILES):
        return CampaignLayers([], [])
    valid = campaign.cells.filter(pl.col("valid")).select("cell", "trial").unique(maintain_order=True)
    trials: dict[str, list[int]] = {}
    for cell, trial in valid.iter_rows():
        if only is not None and cell not in only:
            continue
        if campaign.layers_path(cell, trial).is_file():
            trials.setdefault(cell, []).append(trial)
    cells: list[CellLayers] = []
    edges: list[LayerTable] = []
    for cell in dict.fromkeys([*cell_factors(campaign.manifest), *trials]):
        if cell not in trials:
            continue
        try:
            frames = _read(campaign, cell, sorted(trials[cell]))
        except CampaignError:  # those of single messages report it
            continue
        row = _of_cell(cell, frames, forwarding(campaign.manifest, cell) or frozenset())
        cells += [row] if row is not None else []
        edges += _of_each_edge(cell, frames)
    return CampaignLayers(cells, edges)


def _of_each_edge(cell: str, trials: Trials) -> list[LayerTable]:
    by_edge: dict[str, list[pl.DataFrame]] = {}
    for samples, layers in trials:
        measured = _measured(samples, layers)
        for edge in measured["edge"].unique(maintain_order=True):
            by_edge.setdefault(edge, []).append(measured.filter(pl.col("edge") == edge))
    tables = {edge: (len(trial_layers), edge_layers(trial_layers)) for edge, trial_layers in by_edge.items()}
    return [
        LayerTable(cell, edge, count, table) for edge, (count, table) in tables.items() if table is not None
    ]


def _of_cell(cell: str, trials: Trials, forwarded: Forwarding) -> CellLayers | None:
    scope, frames = CHAIN, [_of_chain(samples, layers, forwarded) for samples, layers in trials]
    if any(frame is None for frame in frames):
        scope, frames = EDGE, [_of_edges(samples, layers) for samples, layers in trials]
    layer_times = pl.concat([frame for frame in frames if frame is not None], how="diagonal").fill_null(0)
    if layer_times.is_empty():
        return None
    means = {name: float(layer_times[name].to_numpy().mean()) for name in layer_times.columns}
    return layers_of(cell, len(trials), layer_times.height, scope, means)


def _read(campaign: Campaign, cell: str, trials: Sequence[int]) -> Trials:
    """The delivered messages of each trial and their layers. Raises CampaignError."""
    frames = []
    for trial in trials:
        samples = _delivered(campaign.samples(cell, trial, COLUMNS))
        layers = pl.read_parquet(campaign.layers_path(cell, trial), glob=False)
        frames.append((samples, layers.with_columns(_text("edge", "layer"))))
    return frames


def layers_of(cell: str, trials: int, messages: int, of: str, means_ns: dict[str, float]) -> CellLayers:
    """The row of a cell from the mean time in each layer."""
    total_ns = sum(means_ns.values())
    order = [*LAYERS[:-1], BRIDGE, QUEUE, COMPUTATION, IDLE]
    layers = [
        LayerMean(name=name, mean_ns=means_ns.get(name, 0.0), share=means_ns.get(name, 0.0) / total_ns)
        for name in [*(name for name in order if means_ns.get(name)), UNATTRIBUTED]
    ]
    over_dds = overhead(means_ns)
    half: list[LayerMean] = []
    for layer in sorted(layers, key=lambda part: -part.mean_ns):
        if 2 * sum(mean.mean_ns for mean in half) >= total_ns:
            break
        half.append(layer)
    return CellLayers(
        cell=cell,
        trials=trials,
        messages=messages,
        of=of,
        latency_mean_ns=total_ns,
        layers=layers,
        half=[mean.name for mean in half],
        to_halve=_sentence(total_ns, half),
        categories=_means(categories(means_ns), total_ns),
        breakdown=_means(breakdown(means_ns), total_ns),
        overhead_least=over_dds.least,
        overhead_most=over_dds.most,
        overhead_absent=over_dds.absent,
    )


def _means(means_ns: Mapping[str, float], total_ns: float) -> list[LayerMean]:
    return [
        LayerMean(name=name, mean_ns=mean_ns, share=mean_ns / total_ns) for name, mean_ns in means_ns.items()
    ]


def _sentence(total_ns: float, half: Sequence[LayerMean]) -> str:
    """What must shrink to halve the mean, in plain words."""
    together = sum(layer.share for layer in half)
    named = [f"{layer.name.replace('_', ' ')} ({layer.share:.0%})" for layer in half]
    subject = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    if len(half) > 1:
        subject += f", together {together:.0%},"
    unknown = any(layer.name == UNATTRIBUTED for layer in half)
    first = "; where the unattributed part goes has to be found first" if unknown else ""
    shrink = 0.5 / together
    mean = duration_text(total_ns)
    return f"To halve the mean of {mean}, {subject} would have to shrink by {shrink:.0%}{first}."


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
    """One row per message and edge in the measure phase: the time in each layer."""
    return _wide(_measured(samples, layers), ("edge", "sequence"))


def _of_chain(samples: pl.DataFrame, layers: pl.DataFrame, forwarded: Forwarding) -> pl.DataFrame | None:
    """One row for each message that went all the way; None if the graph is not a single line, or a part of
    the way has no layers."""
    edges = _line(samples)
    if not edges:
        return None
    whole = samples.filter((pl.col("edge") == END_TO_END) & (pl.col("phase") == "measure"))
    roots = whole.select(pl.col("sequence").alias("root"), pl.col("latency_ns").alias("whole_ns"))
    absent = [pl.lit(None, pl.Int64()).alias(name) for name in ("taken_ns", "started_ns", "handled_ns")]
    messages = roots.with_columns(pl.col("root").alias("sequence"), *absent)
    bridges, stays = _bridges(edges, forwarded), []
    under_way = roots.with_columns(pl.lit(0, pl.Int64()).alias(name) for name in ADDED)
    for place, edge in enumerate(edges):
        edge_samples = samples.filter(pl.col("edge") == edge)
        key = "cause_sequence" if place else "sequence"
        times = ("begun_ns", "publish_ns", "taken_ns", "started_ns", "handled_ns")
        on_edge = edge_samples.select(pl.col(key).alias("before"), "sequence", "latency_ns", *times)
        before = messages.select(
            "root",
            pl.col("sequence").alias("before"),
            pl.col("taken_ns").alias("left_ns"),
            pl.coalesce("started_ns", "taken_ns").alias("called_ns"),
            pl.col("handled_ns").alias("done_ns"),
        )
        messages = before.join(on_edge, on="before")
        stays.append(
            layers.filter(pl.col("edge") == edge).join(messages.select("root", "sequence"), on="sequence")
        )
        more = messages.select("root", *_more(in_bridge=place - 1 in bridges))
        under_way = under_way.join(more, on="root", suffix="_more").select(
            "root", "whole_ns", *(pl.col(name) + pl.col(f"{name}_more") for name in ADDED)
        )
    layer_times = _wide(
        pl.concat(stays).join(under_way.select("root"), on="root", how="semi"), ("root",), keep=True
    )
    rest = pl.col("whole_ns") - pl.sum_horizontal(ADDED)
    totals = layer_times.join(under_way, on="root").with_columns(rest.alias(COMPUTATION))
    names = [name for name in totals.columns if name not in ("root", "whole_ns", EDGES)]
    complete = totals.filter(pl.sum_horizontal(names) == pl.col("whole_ns"))
    if roots["root"].is_duplicated().any() or complete.height < roots.height:
        return None
    return complete.select(names)


def _bridges(edges: Sequence[str], forwarded: Forwarding) -> Sequence[int]:
    """After which of these edges a message is still on its way in a bridge, as in its time line."""
    ends_of = [ends(edge) for edge in edges]
    back = [receiver == ends_of[0][0] for _, receiver in ends_of]
    forwards = [pair in forwarded for pair in pairwise(edges)]
    places, _ = ways_through(forwards, back[-1] and sum(back) == 1)
    return places


def _more(*, in_bridge: bool) -> Iterator[pl.Expr]:
    """What one more edge, and the node before it, add to the columns of `ADDED`."""
    between_ns = (pl.col("publish_ns") - pl.col("left_ns")).fill_null(0)
    queued_ns = (pl.col("called_ns") - pl.col("left_ns")).fill_null(0)
    waits = (
        (pl.col("called_ns") <= pl.col("done_ns"))
        & (pl.col("done_ns") < pl.col("begun_ns"))
        & (pl.col("begun_ns") <= pl.col("publish_ns"))
    ).fill_null(False)
    idle_ns = pl.when(waits).then(pl.col("begun_ns") - pl.col("done_ns")).otherwise(0)
    yield pl.col("latency_ns").alias(EDGES)
    yield (between_ns if in_bridge else pl.lit(0, pl.Int64())).alias(BRIDGE)
    yield (pl.lit(0, pl.Int64()) if in_bridge else queued_ns).alias(QUEUE)
    yield (pl.lit(0, pl.Int64()) if in_bridge else idle_ns).alias(IDLE)


def _line(samples: pl.DataFrame) -> list[str]:
    """The edges of a graph that is a single line or one round, in the order in which messages pass them;
    empty for any other graph."""
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
    """One row per message and one column per layer: the nanoseconds in it."""
    durations = stays.select(*key, "layer", (pl.col("end_ns") - pl.col("begin_ns")).alias("spent_ns"))
    wide = durations.pivot(
        on="layer", index=list(key), values="spent_ns", aggregate_function="sum"
    ).fill_null(0)
    return wide if keep else wide.drop(*key)
