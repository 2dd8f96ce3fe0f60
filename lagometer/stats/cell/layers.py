# SPDX-License-Identifier: Apache-2.0
"""How long an edge's messages spend in each layer, over a cell's trials (docs/methodology/layers.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lagometer.stats.trial.quantile import quantile
from lagometer.stats.trial.way import LAYERS, UNATTRIBUTED


@dataclass(frozen=True)
class LayerFigures:
    """The figures of one layer. A message that does not pass through it spends no time there.

    p50_ns, p99_ns: None with fewer than ten messages above. share: of the latency, averaged over messages, so
    that the shares of all layers add up to 1.
    """

    name: str
    p50_ns: int | None
    p99_ns: int | None
    share: float


@dataclass(frozen=True)
class EdgeLayers:
    """The layers of one edge's messages, in the order messages pass them; `unattributed` is one of them.

    latency_p50_ns: the latency of the same messages; None as above. unattributed_p50_share: the median share
    of a message's latency.
    """

    messages: int
    latency_p50_ns: int | None
    layers: tuple[LayerFigures, ...]
    unattributed_share: float
    unattributed_p50_share: float


def edge_layers(trials: Sequence[pl.DataFrame]) -> EdgeLayers | None:
    """The figures of one edge from its trials, each in `LAYERS_SCHEMA`; None if there are no messages."""
    tables = [_times(trial) for trial in trials if not trial.is_empty()]
    if not tables:
        return None
    times = pl.concat(tables, how="diagonal").fill_null(0)
    total = times.select(pl.sum_horizontal(pl.all())).to_series().to_numpy()
    layers = []
    for name in (name for name in LAYERS if name in times.columns):
        layer_ns = times[name].to_numpy()
        ordered = np.sort(layer_ns)
        layers.append(
            LayerFigures(
                name=name,
                p50_ns=quantile(ordered, 500),
                p99_ns=quantile(ordered, 990),
                share=float(np.mean(layer_ns / total)),
            )
        )
    missing = (
        times[UNATTRIBUTED].to_numpy() / total if UNATTRIBUTED in times.columns else np.zeros(len(total))
    )
    return EdgeLayers(
        messages=len(times),
        latency_p50_ns=quantile(np.sort(total), 500),
        layers=tuple(layers),
        unattributed_share=float(np.mean(missing)),
        unattributed_p50_share=float(np.median(missing)),
    )


def _times(trial: pl.DataFrame) -> pl.DataFrame:
    """One row per message and one column per layer: the nanoseconds in it."""
    durations = trial.select(
        "sequence",
        pl.col("layer").cast(pl.String()),
        (pl.col("end_ns") - pl.col("begin_ns")).alias("spent_ns"),
    )
    wide = durations.pivot(on="layer", index="sequence", values="spent_ns", aggregate_function="sum")
    return wide.drop("sequence").cast(pl.Int64())
