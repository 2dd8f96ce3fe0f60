# SPDX-License-Identifier: Apache-2.0
"""The ways of single messages: for each cell the slowest ones and a median one, thread by thread.

If layers were measured, each stay is one of them. Otherwise only our own stamps show how long a message was
under way (`communication`) and in a node (`callback_queue`, `computation`, `idle`;
docs/methodology/layers.md), or in a bridge between domains or adapters (`bridge`), where it is still under
way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from lagometer.stats.trial.hops import COLUMNS, Hops, Index
from lagometer.stats.trial.timelines import SLOWEST, median, slowest
from lagometer.store.errors import CampaignError
from lagometer.store.facts import ways_through
from lagometer.store.format import ARROW, END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.campaign import forwarding
from lagometer.summary.way_data import MessageWay
from lagometer.summary.way_events import Events
from lagometer.summary.way_rows import Layered, Shares, Stays, Threads

STAYS_MAX = 12_000  # of all messages of a page or of `show`; limits their size
EVENTS_MAX = 40_000  # likewise: calls and states
CELLS_MAX = 60
MESSAGES_MAX = 8_000_000  # to read for it

Trial = tuple[str, int]


class _Row(NamedTuple):
    """What a row of `cells.parquet` tells of where to look for messages. middle_ns: the median latency, or
    the mean if there is none."""

    edge: str
    trial: int
    n: int
    middle_ns: float | None
    max_ns: float | None


@dataclass(frozen=True)
class Chosen:
    """A chosen message; place: 1 for the slowest."""

    trial: int
    kind: str
    place: int | None
    sequence: int
    publish_ns: int
    taken_ns: int


def message_ways(campaign: Campaign, cells: Sequence[str]) -> tuple[list[MessageWay], list[str]]:
    """The three slowest messages of each cell, and the median message of the trial with the middle median;
    end to end, or for each edge if nothing was measured end to end. Only valid trials count.

    Also returns remarks: which cells are left out because there are too many, and which samples can't be
    read.
    """
    result: list[MessageWay] = []
    notes: list[str] = []
    if campaign.imported_from is not None:
        return result, notes
    measured = set(campaign.cells.filter(pl.col("valid"))["cell"])
    wanted = [cell for cell in cells if cell in measured]
    by_cell = _with_messages(campaign.cells)
    shown = stays = events = messages_read = 0
    without_events = 0
    for cell in wanted:
        if shown == CELLS_MAX or stays >= STAYS_MAX:
            break
        needed = _needed(by_cell.get(cell, []))
        if messages_read + needed.messages > MESSAGES_MAX:
            continue
        shown += 1
        messages_read += needed.messages
        try:
            ways = _cell_ways(campaign, cell, needed)
        except CampaignError as error:
            notes.append(str(error))
            continue
        cell_events = sum(len(way.calls) + len(way.states) for way in ways)
        if events + cell_events > EVENTS_MAX:
            without_events += 1
            ways, cell_events = [_without_events(way) for way in ways], 0
        events += cell_events
        result += ways
        stays += sum(len(way.stays) for way in ways)
    if without_events:
        notes.append(
            f"Calls and scheduler states of {without_events:,} cells are left out, as all would be too many "
            "to read; `lagometer export --format perfetto` has them."
        )
    if shown < len(wanted):
        notes.append(
            f"Single messages are shown of {shown:,} of {len(wanted):,} cells, as all would be too many to "
            "read; `lagometer export --format perfetto` has those of the others."
        )
    return result, notes


def cell_ways(campaign: Campaign, cell: str) -> list[MessageWay]:
    """The chosen messages of one cell. Raises CampaignError if samples can't be read."""
    rows = _with_messages(campaign.cells.filter(pl.col("cell") == cell))
    return _cell_ways(campaign, cell, _needed(rows.get(cell, [])))


def _without_events(way: MessageWay) -> MessageWay:
    left_out = way.events_left_out + len(way.calls) + len(way.states)
    return way.model_copy(update={"calls": [], "states": [], "events_left_out": left_out})


@dataclass(frozen=True)
class Needed:
    """What to read for one cell. edges: for each edge, the trials that can contain one of the slowest
    messages (none is slower than its trial's maximum), and the trial with the middle median."""

    edges: Mapping[str, tuple[list[int], int]]
    trials: list[int]
    messages: int


def _with_messages(cells: pl.DataFrame) -> dict[str, list[_Row]]:
    """By cell, its rows that have messages of valid trials."""
    middle = pl.coalesce("latency_p50_ns", "latency_mean_ns")
    rows = cells.filter(pl.col("valid") & (pl.col("n") > 0))
    by_cell: dict[str, list[_Row]] = {}
    for cell, *row in rows.select("cell", "edge", "trial", "n", middle, "latency_max_ns").iter_rows():
        by_cell.setdefault(cell, []).append(_Row(*row))
    return by_cell


def _needed(rows: Sequence[_Row]) -> Needed:
    """From one cell's rows that have messages."""
    edges = sorted({row.edge for row in rows if row.edge == END_TO_END or ARROW in row.edge})
    if END_TO_END in edges:
        edges = [END_TO_END]
    wanted = {edge: _wanted([row for row in rows if row.edge == edge]) for edge in edges}
    trials = {trial for worst, middle in wanted.values() for trial in (*worst, middle)}
    return Needed(wanted, sorted(trials), sum(row.n for row in rows if row.trial in trials))


def _cell_ways(campaign: Campaign, cell: str, needed: Needed) -> list[MessageWay]:
    """Holds one trial in memory at a time."""
    edges = list(needed.edges)
    slow: dict[str, list[MessageWay]] = {edge: [] for edge in edges}
    medians: dict[str, MessageWay] = {}
    for trial in needed.trials:
        source = TrialWays(campaign, cell, trial)
        for edge, (worst, middle) in needed.edges.items():
            messages = source.hops.of_edge(edge)
            if trial in worst:
                keys = slowest(messages)
                slow[edge] += [source.way(edge, Chosen(trial, "slowest", 0, *key)) for key in keys]
            if trial == middle and (key := median(messages)) is not None:
                medians[edge] = source.way(edge, Chosen(trial, "median", None, *key))
    ways = []
    for edge in edges:
        ordered = sorted(slow[edge], key=lambda way: (-way.latency_ns, way.trial, way.sequence))[:SLOWEST]
        ways += [way.model_copy(update={"place": place}) for place, way in enumerate(ordered, start=1)]
        if edge in medians and _key(medians[edge]) not in map(_key, ordered):
            ways.append(medians[edge])
    return ways


def _wanted(rows: Sequence[_Row]) -> tuple[list[int], int]:
    """From one edge's rows, the trials with the slowest messages, and the one with the middle median."""
    by_middle = sorted(rows, key=lambda row: (-inf if row.middle_ns is None else row.middle_ns, row.trial))
    by_slowest = sorted(rows, key=lambda row: (inf if row.max_ns is None else -row.max_ns, row.trial))
    return [row.trial for row in by_slowest[:SLOWEST]], by_middle[(len(rows) - 1) // 2].trial


def _key(way: MessageWay) -> tuple[int, int, int, int]:
    return way.trial, way.sequence, way.publish_ns, way.latency_ns


def all_ways(campaign: Campaign, cell: str, trial: int) -> Iterator[MessageWay]:
    """Every delivered message of a trial's measure phase, in order of publishing. Raises CampaignError."""
    source = TrialWays(campaign, cell, trial)
    edges, index = source.hops.edges, source.hops.whole()
    for edge in [END_TO_END] if END_TO_END in edges else [edge for edge in edges if ARROW in edge]:
        messages = source.hops.of_edge(edge).sort("publish_ns", "taken_ns")
        for key in messages.select("sequence", "publish_ns", "taken_ns").iter_rows():
            yield source.way(edge, Chosen(trial, "all", None, *key), index)


class TrialWays:
    """The messages of one trial."""

    def __init__(self, campaign: Campaign, cell: str, trial: int) -> None:
        self._cell = cell
        self._forwarding = forwarding(campaign.manifest, cell) or frozenset()
        self.hops = Hops(campaign.samples(cell, trial, COLUMNS))
        self._threads = Threads(_journal(campaign, (cell, trial)))
        self._layered = Layered(_read(campaign.layers_path(cell, trial)))
        self._shares = Shares(_read(campaign.scheduler_path(cell, trial)))
        self._events = Events(_read(campaign.timelines_path(cell, trial)))

    def way(self, edge: str, chosen: Chosen, index: Index | None = None) -> MessageWay:
        """The way of a message. index: of the whole trial, if all messages are requested."""
        begin_ns, end_ns = chosen.publish_ns, chosen.taken_ns
        index = index or self.hops.within(begin_ns, end_ns)
        if edge == END_TO_END:
            hops = index.way(chosen.sequence, begin_ns, end_ns)
        else:
            hops = index.single(edge, chosen.sequence)
        stays = Stays(self._threads, self._shares, begin_ns)
        forwards = [(hop.edge, after.edge) in self._forwarding for hop, after in pairwise(hops)]
        back = [hop.receiver == hops[0].sender for hop in hops]
        on_the_way, _ = ways_through(forwards, bool(back) and back[-1] and sum(back) == 1)
        for place, hop in enumerate(hops):
            stays.under_way(hop, self._layered.of(hop))
            if place + 1 == len(hops):
                continue
            if place in on_the_way:
                stays.in_bridge(hop, hops[place + 1])
            else:
                stays.in_node(hop, hops[place + 1])
        if not hops:
            stays.unknown(edge, chosen.sequence, end_ns)
        events = self._events.of((edge, chosen.sequence, begin_ns, end_ns), stays.rows)
        return MessageWay(
            cell=self._cell,
            trial=chosen.trial,
            edge=edge,
            chosen=chosen.kind,
            place=chosen.place,
            sequence=chosen.sequence,
            publish_ns=begin_ns,
            latency_ns=end_ns - begin_ns,
            followed=bool(hops),
            rows=stays.rows,
            stays=stays.stays,
            calls=events.calls,
            states=events.states,
            events_left_out=events.left_out,
        )


def _read(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path, glob=False) if path.is_file() else None


def _journal(campaign: Campaign, key: Trial) -> Mapping[str, Any]:
    return next((line for line in campaign.journal if (line.get("cell"), line.get("trial")) == key), {})
