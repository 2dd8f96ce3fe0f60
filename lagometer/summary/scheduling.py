# SPDX-License-Identifier: Apache-2.0
"""The scheduler's share of the layers, of campaigns with `scheduler: on` (docs/methodology/scheduler.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import polars as pl

from lagometer.stats.cell.scheduling import EdgeScheduling, Instead, Waiting, edge_scheduling
from lagometer.stats.trial.run_queue import IDLE_NAME
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign
from lagometer.summary.layers import measured_layers, valid_trials
from lagometer.summary.scheduling_data import CellScheduling, LayerWaiting, RanInstead, WaitingShare
from lagometer.units import duration_text

NAMED_MAX = 3  # of those who ran instead, in the sentence
NAMED_SHARE_MIN = 0.01
MOST = 0.5  # of the waiting: then one alone is named as its reason
Trials = list[tuple[pl.DataFrame, pl.DataFrame]]


def scheduling(campaigns: Sequence[Campaign]) -> list[CellScheduling]:
    """A row for each cell and edge, over the valid trials of all campaigns; empty where nobody asked."""
    found: dict[tuple[str, str], Trials] = {}
    for campaign in campaigns:
        for cell, trial in valid_trials(campaign):
            path = campaign.scheduler_path(cell, trial)
            if not path.is_file():
                continue
            try:
                layers = measured_layers(campaign, cell, trial)
            except CampaignError:  # those of single messages say so
                continue
            stays = pl.read_parquet(path, glob=False).with_columns(pl.col("edge").cast(pl.String()))
            for edge in layers["edge"].unique(maintain_order=True):
                own = pl.col("edge") == edge
                found.setdefault((cell, edge), []).append((layers.filter(own), stays.filter(own)))
    return [
        _row(cell, edge, figures)
        for (cell, edge), trials in found.items()
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
        in_node=[LayerWaiting(**asdict(each)) for each in figures.in_node],
        because=because(figures),
    )


def _share(waiting: Waiting) -> WaitingShare:
    given = asdict(waiting)
    layers = [LayerWaiting(**each) for each in given.pop("layers")]
    instead = [RanInstead(**{**each, "cpus": list(each["cpus"])}) for each in given.pop("instead")]
    return WaitingShare(**given, layers=layers, instead=instead)


def because(figures: EdgeScheduling) -> str:
    """Says how much of the slowest messages' time is waiting for a CPU, and who ran meanwhile; of all
    messages where there are too few."""
    waiting = figures.slowest
    if waiting is None or figures.p99_ns is None:
        waiting = figures.whole
        head = f"Of the mean of {duration_text(waiting.latency_ns)},"
    else:
        head = f"p99 is {duration_text(figures.p99_ns)}: of the slowest 1 %,"
    said = f"{head} {waiting.waiting_share:.0%} is waiting for a CPU"
    if ran := named(waiting.instead):
        said += ", while " + ", ".join(f"{who_ran(each)} ({each.share:.0%} of it)" for each in ran)
    if waiting.known_share < 1:
        said += f" (of the {waiting.known_share:.0%} that the scheduler tells of)"
    return said + "."


def named(instead: Sequence[Instead] | Sequence[RanInstead]) -> list[Instead | RanInstead]:
    """Those that are worth their name."""
    return [each for each in instead[:NAMED_MAX] if each.share >= NAMED_SHARE_MIN]


def reason(instead: Sequence[RanInstead]) -> str:
    """Says who it was: one that had most of the time, or else that there were several."""
    first = instead[0]
    if first.share >= MOST:
        return who_ran(first)
    return "others had the CPU: " + ", ".join(
        f"{who_ran(each)} ({each.share:.0%})" for each in named(instead)
    )


def who_ran(each: Instead | RanInstead) -> str:
    """Says who ran, and where."""
    cpus = "CPU " + ", ".join(str(cpu) for cpu in each.cpus)
    if each.name == IDLE_NAME:
        return f"{cpus} woke from idling"
    return f"{each.name} ran on {cpus}"
