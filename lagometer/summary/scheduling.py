# SPDX-License-Identifier: Apache-2.0
"""The scheduler's share of the layers, for campaigns with `scheduler: on` (docs/methodology/scheduler.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict

import polars as pl

from lagometer.stats.cell.scheduling import EdgeScheduling, Instead, Waiting, edge_scheduling
from lagometer.stats.trial.run_queue import IDLE_NAME
from lagometer.store.errors import CampaignError
from lagometer.store.format import SCHEDULER
from lagometer.store.reader import Campaign
from lagometer.summary.layers import measured_layers, valid_trials
from lagometer.summary.scheduling_data import CellScheduling, LayerWaiting, RanInstead, WaitingShare
from lagometer.units import duration_text

NAMED_MAX = 3  # of the threads that ran instead, in the sentence
NAMED_SHARE_MIN = 0.01
KNOWN_WHOLE = 0.995  # from here on, it counts as all
MOST = 0.5  # of the waiting: with more, one thread alone is named as the reason
Trials = list[tuple[pl.DataFrame, pl.DataFrame]]


def scheduling(campaigns: Sequence[Campaign], cells: Collection[str] | None = None) -> list[CellScheduling]:
    """A row for each cell and edge, over the valid trials of all campaigns; empty if it was not requested.
    cells: only these."""
    by_edge: dict[tuple[str, str], Trials] = {}
    for campaign in campaigns:
        if not campaign.has(SCHEDULER):
            continue
        for cell, trial in valid_trials(campaign):
            if cells is not None and cell not in cells:
                continue
            path = campaign.scheduler_path(cell, trial)
            if not path.is_file():
                continue
            try:
                layers = measured_layers(campaign, cell, trial)
            except CampaignError:  # those of single messages report it
                continue
            stays = pl.read_parquet(path, glob=False).with_columns(pl.col("edge").cast(pl.String()))
            for edge in layers["edge"].unique(maintain_order=True):
                on_edge = pl.col("edge") == edge
                by_edge.setdefault((cell, edge), []).append((layers.filter(on_edge), stays.filter(on_edge)))
    return [
        _row(cell, edge, figures)
        for (cell, edge), trials in by_edge.items()
        if (figures := edge_scheduling(trials)) is not None
    ]


def _row(cell: str, edge: str, figures: EdgeScheduling) -> CellScheduling:
    return CellScheduling(
        cell=cell,
        edge=edge,
        trials=figures.trials,
        p99_ns=figures.p99_ns,
        whole=_share(figures.whole),
        slowest=_share(figures.slowest) if figures.slowest is not None else None,
        in_node=[LayerWaiting(**asdict(layer)) for layer in figures.in_node],
        because=because(figures),
    )


def _share(waiting: Waiting) -> WaitingShare:
    fields = asdict(waiting)
    layers = [LayerWaiting(**layer) for layer in fields.pop("layers")]
    instead = [RanInstead(**{**other, "cpus": list(other["cpus"])}) for other in fields.pop("instead")]
    return WaitingShare(**fields, layers=layers, instead=instead)


def because(figures: EdgeScheduling) -> str:
    """Says how much of the slowest messages' time is waiting for a CPU, and what ran meanwhile; of all
    messages, if there are too few. Without any known stay it says so, since that is no share of 0."""
    waiting = figures.slowest
    if waiting is None or figures.p99_ns is None:
        waiting = figures.whole
        head = f"Of the mean of {duration_text(waiting.latency_ns)},"
    else:
        head = f"p99 is {duration_text(figures.p99_ns)}: of the slowest 1 %,"
    if not waiting.known_share:
        return f"{head} it is not known how much is waiting for a CPU."
    sentence = f"{head} {waiting.waiting_share:.0%} is waiting for a CPU"
    if ran := named(waiting.instead):
        sentence += ", while " + ", ".join(f"{who_ran(other)} ({other.share:.0%} of it)" for other in ran)
    if waiting.known_share < KNOWN_WHOLE:
        sentence += f" (of the {waiting.known_share:.0%} that the scheduler recorded)"
    return sentence + "."


def named(instead: Sequence[Instead] | Sequence[RanInstead]) -> list[Instead | RanInstead]:
    """Those worth naming."""
    return [other for other in instead[:NAMED_MAX] if other.share >= NAMED_SHARE_MIN]


def reason(instead: Sequence[RanInstead]) -> str:
    """Says what ran: the one thread that had most of the time, or that there were several."""
    first = instead[0]
    if first.share >= MOST:
        return who_ran(first)
    return "others had the CPU: " + ", ".join(
        f"{who_ran(other)} ({other.share:.0%})" for other in named(instead)
    )


def who_ran(other: Instead | RanInstead) -> str:
    """Says which thread ran, and where."""
    cpus = "CPU " + ", ".join(str(cpu) for cpu in other.cpus)
    if other.name == IDLE_NAME:
        return f"{cpus} woke from idling"
    return f"{other.name} ran on {cpus}"
