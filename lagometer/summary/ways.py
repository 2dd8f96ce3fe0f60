# SPDX-License-Identifier: Apache-2.0
"""Single messages as they went: of each cell the slowest and a median one, thread by thread.

Where layers were measured, each stay is one of those; elsewhere our own stamps alone tell how long a message
was under way (`communication`) and in a node (`computation`, `idle`; docs/methodology/chains.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lagometer.store.errors import CampaignError
from lagometer.store.format import ARROW, END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.hops import COLUMNS, Hops, Index
from lagometer.summary.way_data import MessageWay
from lagometer.summary.way_rows import Layered, Stays, Threads

SLOWEST = 3
STAYS_MAX = 12_000  # of all messages of a page or of `show`, which bounds their size
CELLS_MAX = 60  # and the time to read their samples

KEYS = ("sequence", "publish_ns", "taken_ns")
Trial = tuple[str, int]


@dataclass(frozen=True)
class Chosen:
    """A message that was chosen; place: 1 for the slowest."""

    trial: int
    kind: str
    place: int | None
    sequence: int
    publish_ns: int
    taken_ns: int


def message_ways(campaign: Campaign, cells: Sequence[str]) -> tuple[list[MessageWay], list[str]]:
    """The three slowest messages of each cell, and the median one of the trial whose median is the middle
    one; end to end, or of each edge where nothing was measured end to end. Of valid trials.

    Returns with them what has to be said: which cells are left out, since there are too many, and which
    samples can't be read.
    """
    found: list[MessageWay] = []
    notes: list[str] = []
    measured = set(campaign.cells.filter(pl.col("valid"))["cell"])
    wanted = [cell for cell in cells if cell in measured and campaign.imported_from is None]
    for number, cell in enumerate(wanted):
        if number == CELLS_MAX or sum(len(each.stays) for each in found) >= STAYS_MAX:
            notes.append(
                f"Single messages are shown of the first {number:,} of {len(wanted):,} cells; "
                "`lagometer show --json --cell GLOB` and `lagometer export --format perfetto` have all."
            )
            break
        try:
            found += cell_ways(campaign, cell)
        except CampaignError as error:
            notes.append(str(error))
    return found, notes


def cell_ways(campaign: Campaign, cell: str) -> list[MessageWay]:
    """The chosen messages of one cell. Raises CampaignError where samples can't be read."""
    rows = campaign.cells.filter(pl.col("valid") & (pl.col("cell") == cell) & (pl.col("n") > 0))
    whole = rows.filter(pl.col("edge") == END_TO_END)
    edges = [END_TO_END] if whole.height else [edge for edge in rows["edge"].unique() if ARROW in edge]
    trials: dict[int, TrialWays] = {}
    found = []
    for edge in sorted(edges):
        for chosen in _chosen(campaign, cell, edge, rows.filter(pl.col("edge") == edge), trials):
            found.append(trials[chosen.trial].way(edge, chosen))
    return found


def all_ways(campaign: Campaign, cell: str, trial: int) -> Iterator[MessageWay]:
    """Every message of a trial's measure phase that was delivered, by when it was published. Raises
    CampaignError."""
    read = TrialWays(campaign, cell, trial)
    edges, index = read.hops.edges, read.hops.whole()
    for edge in [END_TO_END] if END_TO_END in edges else [edge for edge in edges if ARROW in edge]:
        messages = read.hops.of_edge(edge).sort("publish_ns", "taken_ns")
        for key in messages.select("sequence", "publish_ns", "taken_ns").iter_rows():
            yield read.way(edge, Chosen(trial, "all", None, *key), index)


def _chosen(
    campaign: Campaign, cell: str, edge: str, rows: pl.DataFrame, trials: dict[int, TrialWays]
) -> Iterator[Chosen]:
    """Only trials that can hold one of them are read: the slowest is no slower than its trial's maximum."""

    def messages(trial: int) -> pl.DataFrame:
        if trial not in trials:
            trials[trial] = TrialWays(campaign, cell, trial)
        return trials[trial].hops.of_edge(edge).with_columns(pl.lit(trial).alias("trial"))

    figures = rows.select(
        "trial", "latency_max_ns", pl.coalesce("latency_p50_ns", "latency_mean_ns").alias("middle")
    )
    worst = figures.drop_nulls("latency_max_ns").sort("latency_max_ns", "trial", descending=[True, False])
    if worst.is_empty():
        return
    slowest = pl.concat([messages(trial) for trial in worst["trial"].head(SLOWEST)])
    slowest = slowest.sort("latency_ns", "trial", "sequence", descending=[True, False, False]).head(SLOWEST)
    taken = set(slowest.select("trial", *KEYS).iter_rows())
    for place, (trial, *key) in enumerate(slowest.select("trial", *KEYS).iter_rows(), start=1):
        yield Chosen(trial, "slowest", place, *key)
    figures = figures.sort("middle", "trial")
    trial = figures["trial"][(figures.height - 1) // 2]
    ordered = messages(trial).sort("latency_ns", "sequence").select("trial", *KEYS)
    if ordered.height and (row := ordered.row((ordered.height - 1) // 2)) not in taken:
        yield Chosen(row[0], "median", None, *row[1:])


class TrialWays:
    """The messages of one trial."""

    def __init__(self, campaign: Campaign, cell: str, trial: int) -> None:
        self._cell = cell
        self.hops = Hops(campaign.samples(cell, trial, COLUMNS))
        self._threads = Threads(_journal(campaign, (cell, trial)))
        path = campaign.layers_path(cell, trial)
        self._layered = Layered(pl.read_parquet(path, glob=False) if path.is_file() else None)

    def way(self, edge: str, chosen: Chosen, index: Index | None = None) -> MessageWay:
        """A message as it went. index: of the whole trial, where all are asked for."""
        begin_ns, end_ns = chosen.publish_ns, chosen.taken_ns
        index = index or self.hops.within(begin_ns, end_ns)
        if edge == END_TO_END:
            hops = index.way(chosen.sequence, begin_ns, end_ns)
        else:
            hops = index.single(edge, chosen.sequence)
        stays = Stays(self._threads, begin_ns)
        for place, hop in enumerate(hops):
            stays.under_way(hop, self._layered.of(hop))
            if place + 1 < len(hops):
                stays.in_node(hop, hops[place + 1])
        if not hops:
            stays.unknown(edge, chosen.sequence, end_ns)
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
        )


def _journal(campaign: Campaign, key: Trial) -> Mapping[str, Any]:
    return next((line for line in campaign.journal if (line.get("cell"), line.get("trial")) == key), {})
