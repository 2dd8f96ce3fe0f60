# SPDX-License-Identifier: Apache-2.0
"""How long an edge's messages wait for a CPU, layer by layer, and what ran meanwhile, over a cell's trials
(docs/methodology/scheduler.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lagometer.stats.trial.quantile import quantile
from lagometer.stats.trial.scheduling import IN_NODE
from lagometer.stats.trial.way import LAYERS

INSTEAD_MAX = 5  # names to list
PARTS = ("asleep_ns", "waiting_ns", "running_ns")
STAY = ("trial", "sequence", "layer", "begin_ns")


@dataclass(frozen=True)
class LayerShare:
    """One layer. stays: how often messages were in it. known: how many stays the scheduler data cover
    completely. The times are means over the known stays and add up to the mean stay."""

    name: str
    stays: int
    known: int
    asleep_ns: float
    waiting_ns: float
    running_ns: float


@dataclass(frozen=True)
class Instead:
    """What ran on a CPU while threads of messages waited for it, by thread name. share: of all that waiting.
    threads: how many have that name. longest_ns: during one stay."""

    name: str
    share: float
    threads: int
    cpus: tuple[int, ...]
    longest_ns: int


@dataclass(frozen=True)
class Waiting:
    """Figures for some messages. latency_ns: their mean. known_share: the share of their time that the
    scheduler data cover completely. waiting_share: the part of the known time in a run queue; asleep_share,
    running_share: likewise."""

    messages: int
    latency_ns: float
    known_share: float
    asleep_share: float
    waiting_share: float
    running_share: float
    layers: tuple[LayerShare, ...]
    instead: tuple[Instead, ...]


@dataclass(frozen=True)
class EdgeScheduling:
    """whole: over all messages. slowest: over the slowest 1 %; None with fewer than ten above p99.

    in_node: between this edge and the next, `callback_queue`, `computation` and `idle`, or `bridge`; only
    known stays count.
    """

    trials: int
    p99_ns: int | None
    whole: Waiting
    slowest: Waiting | None
    in_node: tuple[LayerShare, ...] = ()


def edge_scheduling(trials: Sequence[tuple[pl.DataFrame, pl.DataFrame]]) -> EdgeScheduling | None:
    """The figures of one edge from its trials: each trial's layers in `LAYERS_SCHEMA` and scheduler data in
    `SCHEDULER_SCHEMA`. None if no stay is known."""
    stays = pl.concat([_stays(place, *trial) for place, trial in enumerate(trials)])
    if stays.is_empty() or not stays["known"].any():
        return None
    latencies = stays.group_by("trial", "sequence").agg(pl.col("stay_ns").sum().alias("latency_ns"))
    p99_ns = quantile(latencies["latency_ns"].sort().to_numpy(), 990)
    slowest = None
    if p99_ns is not None:
        slow = latencies.sort("latency_ns", "trial", "sequence", descending=[True, False, False])
        slow = slow.head(latencies.height // 100)
        slowest = _waiting(stays.join(slow, on=("trial", "sequence"), how="semi"), slow)
    return EdgeScheduling(len(trials), p99_ns, _waiting(stays, latencies), slowest, _in_node(trials))


def _in_node(trials: Sequence[tuple[pl.DataFrame, pl.DataFrame]]) -> tuple[LayerShare, ...]:
    """What the node does with messages that have layers; scheduler data also have those of other phases."""
    layer = pl.col("layer").cast(pl.String())
    tables = [
        scheduled.with_columns(layer)
        .filter(layer.is_in(IN_NODE))
        .join(layers.select("sequence").unique(), on="sequence", how="semi")
        for layers, scheduled in trials
    ]
    return tuple(_shares_of(pl.concat(tables).with_columns(pl.lit(True).alias("known")), IN_NODE))


def _stays(trial: int, layers: pl.DataFrame, scheduled: pl.DataFrame) -> pl.DataFrame:
    """Every stay of a trial with its scheduler data; null where there are none."""
    stays = layers.select(
        pl.lit(trial).alias("trial"),
        "sequence",
        pl.col("layer").cast(pl.String()),
        "begin_ns",
        (pl.col("end_ns") - pl.col("begin_ns")).alias("stay_ns"),
    )
    times = scheduled.select(
        pl.lit(trial).alias("trial"),
        "sequence",
        pl.col("layer").cast(pl.String()),
        "begin_ns",
        *PARTS,
        "instead",
    )
    joined = stays.join(times, on=STAY, how="left")
    return joined.with_columns(pl.col("waiting_ns").is_not_null().alias("known"))


def _waiting(stays: pl.DataFrame, latencies: pl.DataFrame) -> Waiting:
    known = stays.filter("known")
    total_ns = int(stays["stay_ns"].sum())
    known_ns = int(known["stay_ns"].sum())
    sums = {part: int(known[part].sum()) for part in PARTS}
    shares = {part: spent_ns / known_ns if known_ns else 0.0 for part, spent_ns in sums.items()}
    return Waiting(
        messages=latencies.height,
        latency_ns=float(latencies["latency_ns"].to_numpy().mean()),
        known_share=known_ns / total_ns if total_ns else 0.0,
        asleep_share=shares["asleep_ns"],
        waiting_share=shares["waiting_ns"],
        running_share=shares["running_ns"],
        layers=tuple(_shares_of(stays, LAYERS)),
        instead=tuple(_instead(known, sums["waiting_ns"])),
    )


def _shares_of(stays: pl.DataFrame, order: Sequence[str]) -> list[LayerShare]:
    table = stays.group_by("layer").agg(
        pl.len().alias("stays"), pl.col("known").sum(), *(pl.col(part).mean() for part in PARTS)
    )
    shares = {
        name: LayerShare(name, count, known, *(part or 0.0 for part in parts))
        for name, count, known, *parts in table.iter_rows()
    }
    return [shares[name] for name in order if name in shares]


def _instead(known: pl.DataFrame, waiting_ns: int) -> list[Instead]:
    """The names that ran longest in total."""
    ran = known.select(pl.col("instead").explode()).drop_nulls().unnest("instead")
    if ran.is_empty() or not waiting_ns:
        return []
    table = ran.group_by("name").agg(
        pl.col("ran_ns").sum().alias("all_ns"),
        pl.col("thread").n_unique().alias("threads"),
        pl.col("cpu").unique().sort().alias("cpus"),
        pl.col("ran_ns").max().alias("longest_ns"),
    )
    top = table.sort("all_ns", "name", descending=[True, False]).head(INSTEAD_MAX)
    return [
        Instead(name, total_ns / waiting_ns, threads, tuple(cpus), longest_ns)
        for name, total_ns, threads, cpus, longest_ns in top.iter_rows()
    ]
