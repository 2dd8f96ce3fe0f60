# SPDX-License-Identifier: Apache-2.0
"""Why two cells differ: where along the way the time goes, and what else is not the same.

A message's way is cut at its stamps, or into its layers if both cells have them. Medians of intervals do not
add up to the median of their sum. So the intervals are averaged over the messages in the middle of each
edge's latencies (40 % to 60 %), where they do. The rest of the end-to-end median (the nodes in between, and
what medians leave over) is a part of its own. Settings, CPUs, wake-ups and bytes that differ are listed next
to it. They were present; nothing in the data says that they are the cause.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import scipy

from lagometer.stats.compare import explain_facts
from lagometer.stats.compare.comparable import (
    Difference,
    cell_trials,
    clock_bound_ns,
    common_blocks,
    differences,
    factors_of,
    notes_of_clocks,
    notes_of_looks,
    with_cost,
)
from lagometer.stats.compare.compare import CellComparison, Pair, compare_pairs
from lagometer.stats.interval.shares import Floats
from lagometer.stats.trial.way import LAYERS, UNATTRIBUTED
from lagometer.store import format as form
from lagometer.store.effective import effective_of_both
from lagometer.store.reader import Campaign

ALPHA = 0.05  # for the one test of whether there is a difference at all
MIDDLE = (0.4, 0.6)  # the messages of an edge that represent its median
STAMPS = ("publish_ns", "signalled_ns", "woken_ns", "taken_ns")
WORDS = {
    ("publish_ns", "signalled_ns"): "sending and transport (publish → signalled)",
    ("publish_ns", "woken_ns"): "sending, transport and wake-up (publish → woken)",
    ("publish_ns", "taken_ns"): "all of it (publish → taken)",
    ("signalled_ns", "woken_ns"): "waking the node's thread (signalled → woken)",
    ("signalled_ns", "taken_ns"): "taking (signalled → taken)",
    ("woken_ns", "taken_ns"): "taking (woken → taken)",
}
REMAINDER = "nodes between the edges, and the rest, since medians do not add up"

Layers = Sequence[pl.DataFrame | None]  # of each trial, as `LAYERS_SCHEMA`; None if they were not measured


@dataclass(frozen=True)
class Part:
    """An interval along the way, in ns: in A, in B, and its share of the whole difference.

    low_ns, high_ns: Welch's 95 % interval of the difference over trials, wider by the bounds of both sides'
    clocks if it spans two; None with fewer than two of each.
    """

    edge: str
    what: str
    a_ns: float
    b_ns: float
    share: float | None
    low_ns: float | None = None
    high_ns: float | None = None

    @property
    def difference_ns(self) -> float:
        """How much longer this part takes in B."""
        return self.b_ns - self.a_ns


@dataclass
class Explanation:
    """Two cells: whether they differ, where along the way, and what else differs."""

    a: str
    b: str
    comparison: CellComparison
    parts: list[Part] = field(default_factory=list)
    factors: list[Difference] = field(default_factory=list)
    settings: list[Difference] = field(default_factory=list)
    environment: list[Difference] = field(default_factory=list)
    facts: list[explain_facts.Fact] = field(default_factory=list)


@dataclass(frozen=True)
class CellOf:
    """A cell of a campaign."""

    campaign: Campaign
    cell: str

    def __str__(self) -> str:
        return f"{self.campaign.directory}:{self.cell}"


def explain(a: CellOf, b: CellOf) -> Explanation:
    """Compares two cells part by part. Raises CampaignError if samples of a valid trial can't be read."""
    trials_a, started_a, latencies_a = cell_trials(a.campaign, a.cell)
    trials_b, started_b, latencies_b = cell_trials(b.campaign, b.cell)
    blocks = common_blocks(trials_a, started_a, trials_b, started_b)
    bounds_ns = clock_bound_ns(a.campaign, a.cell), clock_bound_ns(b.campaign, b.cell)
    looks = notes_of_looks((a.campaign, a.cell, trials_a), (b.campaign, b.cell, trials_b))
    notes = [*notes_of_clocks(bounds_ns), *looks]
    pair = Pair(a.cell, b.cell, latencies_a, latencies_b, blocks, notes=notes, bounds_ns=bounds_ns)
    samples_a = [a.campaign.samples(a.cell, trial, explain_facts.COLUMNS) for trial in trials_a]
    samples_b = [b.campaign.samples(b.cell, trial, explain_facts.COLUMNS) for trial in trials_b]
    same = a.campaign.directory == b.campaign.directory
    return Explanation(
        a=str(a),
        b=str(b),
        comparison=with_cost(compare_pairs([pair], ALPHA, ("p50",))[0], a.campaign, b.campaign),
        parts=parts(
            samples_a, samples_b, _layers(a, trials_a), _layers(b, trials_b), _bounds(a, b, samples_a)
        )
        if samples_a and samples_b
        else [],
        factors=list(_unequal(factors_of(a.campaign, a.cell), factors_of(b.campaign, b.cell))),
        settings=list(_settings(a, b)),
        environment=[] if same else list(differences(a.campaign, b.campaign)),
        facts=explain_facts.facts(a.campaign, a.cell, samples_a, b.campaign, b.cell, samples_b),
    )


def _bounds(a: CellOf, b: CellOf, samples_a: Sequence[pl.DataFrame]) -> dict[str, int]:
    """How far off the difference of each edge may be, whose ends have separate clocks."""
    return {
        edge: sum(clock_bound_ns(side.campaign, side.cell, edge) for side in (a, b))
        for edge in _edges(samples_a)
    }


def parts(
    a: Sequence[pl.DataFrame],
    b: Sequence[pl.DataFrame],
    layers_a: Layers = (),
    layers_b: Layers = (),
    bounds_ns: Mapping[str, int] | None = None,
) -> list[Part]:
    """The parts of the end-to-end median's difference, the largest contribution first.

    a, b: the samples of each valid trial. The way is cut into layers if all trials have them, otherwise at
    the stamps that both cells observed. Edges that lie beside each other, as in a fan-out, have no shares and
    no remainder. bounds_ns: by edge, how far off the difference of a part may be that
    begins at the sender and ends at the receiver.
    """
    whole_a, whole_b = (_middle(trials, form.END_TO_END, ("publish_ns", "taken_ns")) for trials in (a, b))
    if whole_a is None or whole_b is None:
        return []
    total = float(whole_b.mean() - whole_a.mean())
    components: list[Part] = []
    rest_a, rest_b = float(whole_a.mean()), float(whole_b.mean())
    common = [edge for edge in _edges(a) if edge in _edges(b)]
    # With other nodes the edges differ, and there is nothing to compare.
    for edge in common if len(common) == len(_edges(a)) == len(_edges(b)) else []:
        cut = _layered(edge, (a, layers_a), (b, layers_b)) or _stamped(edge, a, b)
        if cut is None:
            continue
        labels, intervals_a, intervals_b, crossing = cut
        rest_a -= float(intervals_a.sum(axis=1).mean())
        rest_b -= float(intervals_b.sum(axis=1).mean())
        for place, label in enumerate(labels):
            off_ns = (bounds_ns or {}).get(edge, 0) if place in crossing else 0
            both = intervals_a[:, place], intervals_b[:, place]
            components.append(_part(edge, label, *both, total, off_ns))
    if components and not _is_one_way(common):
        beside = [replace(part, share=None) for part in components]
        return sorted(beside, key=lambda part: -abs(part.difference_ns))
    name = REMAINDER if components else WORDS["publish_ns", "taken_ns"]
    if max(abs(rest_a), abs(rest_b)) >= 1.0:  # with one edge nothing remains
        share = (rest_b - rest_a) / total if total else None
        components.append(Part(form.END_TO_END, name, rest_a, rest_b, share))
    return sorted(components, key=lambda part: -abs(part.difference_ns))


def _is_one_way(edges: Sequence[str]) -> bool:
    """Whether the edges follow each other, so that their parts add up to the whole; those of a fan-out or a
    diamond lie beside each other."""
    ends = [edge.partition(":")[0].split(form.ARROW) for edge in edges]
    return all(len({end[side] for end in ends}) == len(ends) for side in (0, 1))


# Names of intervals, each of them in A and in B, by trial, and the places of those between two hosts.
Cut = tuple[list[str], Floats, Floats, Collection[int]]
CROSSING = ("transport", "unseen_transport", UNATTRIBUTED)


def _stamped(edge: str, a: Sequence[pl.DataFrame], b: Sequence[pl.DataFrame]) -> Cut | None:
    """The intervals between the stamps that both cells observed; None without messages."""
    stamps = [name for name in STAMPS if _observed(a, edge, name) and _observed(b, edge, name)]
    intervals_a, intervals_b = _middle(a, edge, stamps), _middle(b, edge, stamps)
    if intervals_a is None or intervals_b is None:
        return None
    return [WORDS[ends] for ends in itertools.pairwise(stamps)], intervals_a, intervals_b, (0,)


def _layered(
    edge: str, a: tuple[Sequence[pl.DataFrame], Layers], b: tuple[Sequence[pl.DataFrame], Layers]
) -> Cut | None:
    """The layers of the same messages; None unless all trials of both cells have them."""
    rows_a, rows_b = _middle_layers(*a, edge), _middle_layers(*b, edge)
    if not rows_a or not rows_b:
        return None
    names = [name for name in LAYERS if any(name in row for row in (*rows_a, *rows_b))]
    table_a, table_b = (
        np.array([[row.get(name, 0.0) for name in names] for row in rows]) for rows in (rows_a, rows_b)
    )
    crossing = [place for place, name in enumerate(names) if name in CROSSING]
    return [name.replace("_", " ") for name in names], table_a, table_b, crossing


def _middle_layers(
    trials: Sequence[pl.DataFrame], layers: Layers, edge: str
) -> list[Mapping[str, float]] | None:
    """By trial, the mean time in each layer of the messages around the median; None if a trial has no layers
    of this edge. They add up to the mean latency of these messages."""
    if not layers:
        return None
    rows: list[Mapping[str, float]] = []
    latency_ns = (pl.col("taken_ns") - pl.col("publish_ns")).alias("latency_ns")
    for samples, frame in zip(trials, layers, strict=True):
        if frame is None:
            return None
        delivered = _delivered(samples, edge).select("sequence", latency_ns).drop_nulls()
        if delivered.is_empty():
            continue
        low, high = np.quantile(delivered["latency_ns"].to_numpy(), MIDDLE, method="inverted_cdf")
        middle = delivered.filter(pl.col("latency_ns").is_between(int(low), int(high)))
        stays = frame.filter(pl.col("edge") == edge).join(middle, on="sequence", how="semi")
        if stays.is_empty():
            return None
        spent = stays.group_by("layer").agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("spent_ns"))
        sums_ns = {str(name): int(spent_ns) for name, spent_ns in spent.iter_rows()}
        missing_ns = int(middle["latency_ns"].sum()) - sum(sums_ns.values())
        sums_ns[UNATTRIBUTED] = sums_ns.get(UNATTRIBUTED, 0) + missing_ns
        rows.append({name: sum_ns / middle.height for name, sum_ns in sums_ns.items()})
    return rows or None


def _layers(side: CellOf, trials: Sequence[int]) -> Layers:
    """The layers of each trial."""
    paths = [side.campaign.layers_path(side.cell, trial) for trial in trials]
    text = [pl.col(name).cast(pl.String()) for name in ("edge", "layer")]
    return [
        pl.read_parquet(path, glob=False).with_columns(text) if path.is_file() else None for path in paths
    ]


def _part(edge: str, label: str, a: Floats, b: Floats, total: float, off_ns: int) -> Part:
    difference = float(b.mean() - a.mean())
    low = high = None
    if min(len(a), len(b)) > 1:
        variances = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
        if variances.sum() > 0.0:
            degrees = variances.sum() ** 2 / (variances**2 / np.array([len(a) - 1, len(b) - 1])).sum()
            half_width = float(scipy.special.stdtrit(degrees, 0.975) * np.sqrt(variances.sum()))
            low, high = difference - half_width - off_ns, difference + half_width + off_ns
    share = difference / total if total else None
    return Part(edge, label, float(a.mean()), float(b.mean()), share, low, high)


def _middle(trials: Sequence[pl.DataFrame], edge: str, stamps: Sequence[str]) -> Floats | None:
    """The intervals between stamps, one row per trial, averaged over the messages around the median."""
    rows: list[Floats] = []
    for samples in trials:
        delivered = _delivered(samples, edge).drop_nulls(list(stamps))
        if delivered.is_empty():
            continue
        times = delivered.select(stamps).to_numpy().astype(np.int64)
        latency = times[:, -1] - times[:, 0]
        low, high = np.quantile(latency, MIDDLE, method="inverted_cdf")
        rows.append(np.diff(times[(latency >= low) & (latency <= high)], axis=1).mean(axis=0))
    return np.array(rows) if rows else None


def _delivered(samples: pl.DataFrame, edge: str) -> pl.DataFrame:
    counted = (pl.col("phase") == "measure") & (pl.col("outcome") == "delivered")
    return samples.filter(counted & (pl.col("edge") == edge))


def _edges(trials: Sequence[pl.DataFrame]) -> list[str]:
    names = {str(name) for samples in trials for name in samples["edge"].unique()}
    return sorted(name for name in names if form.ARROW in name)


def _observed(trials: Sequence[pl.DataFrame], edge: str, stamp: str) -> bool:
    return all(_delivered(samples, edge)[stamp].null_count() == 0 for samples in trials)


def _settings(a: CellOf, b: CellOf) -> Iterator[Difference]:
    """What the manifests say about the adapters: settings that differ from the vendor's, and observations."""
    of_both = effective_of_both((a.campaign.manifest, a.cell), (b.campaign.manifest, b.cell))
    settings_a, settings_b = (
        {f"{adapter}, {described}: {name}": value for (adapter, described, name), value in effective.items()}
        for effective in of_both
    )
    return _unequal(settings_a, settings_b)


def _unequal(a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[Difference]:
    for name in dict.fromkeys((*a, *b)):
        if a.get(name) != b.get(name):
            yield Difference(name, a.get(name), b.get(name))
