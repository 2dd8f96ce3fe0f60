# SPDX-License-Identifier: Apache-2.0
"""The cost of bridges between domains or adapters: time from entry to exit, share, CPU, memory, threads.

A bridge is a node of ours, or a program of its own, in which nothing of ours can stamp: what it takes is only
known as a whole, against the same cell without it. A node may also do other work, or answer on the same side:
only what it passes on to the other side counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Any

import polars as pl

from lagometer.stats.compare.comparable import clock_bound_ns
from lagometer.stats.trial.hops import COLUMNS, Hops, ends
from lagometer.stats.trial.hosts import OFFSET
from lagometer.store.errors import CampaignError
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.campaign import forwarding
from lagometer.summary.cell_data import Bridge

FOLLOWED = 200  # messages of a trial, evenly spread, that are followed for the share
MEMORY = ("rss_bytes", "pss_bytes", "uss_bytes")

Pairs = Collection[tuple[str, str]] | None  # edges that a bridge is between; None: all of its node's


@dataclass(frozen=True)
class _Seen:
    """One trial. stays_ns: for each message passed on, the time from entry to exit; passed: how many were.
    shares: for followed messages, the part of their end-to-end latency spent in the bridge. run_ns: CPU time
    of the process in the measure phase. None for anything not observed."""

    stays_ns: pl.Series
    passed: int
    shares: Sequence[float] = ()
    run_ns: int | None = None
    threads: int | None = None
    memory: Mapping[str, int | None] | None = None


def bridges(campaign: Campaign, names: Sequence[str]) -> list[Bridge]:
    """One row for each bridge of each of these cells that has valid trials; of a program that is one, for
    each of its processes."""
    rows, wanted = [], frozenset(names)
    for cell in campaign.manifest.get("cells", []):
        nodes, program = cell.get("bridges") or {}, cell.get("bridge")
        if cell["id"] not in wanted or not (nodes or program):
            continue
        valid, pairs = _valid(campaign, cell["id"]), forwarding(campaign.manifest, cell["id"])
        for node, process in nodes.items() if valid else ():
            trials = [_seen(campaign, cell["id"], trial, (node, process), pairs) for trial in valid]
            rows.append(_row(cell["id"], node, process, trials))
        if program and valid:
            added_ns = _added_ns(campaign, cell)
            for process in program["processes"]:
                of_process = [_of_program(campaign, cell["id"], trial, process, program) for trial in valid]
                row = _row(cell["id"], process, process, of_process)
                rows.append(row.model_copy(update={"added_p50_ns": added_ns}))
    return rows


def _valid(campaign: Campaign, cell: str) -> list[int]:
    rows = campaign.cells.filter((pl.col("cell") == cell) & pl.col("valid") & (pl.col("edge") == END_TO_END))
    return sorted(rows["trial"].unique())


def _seen(campaign: Campaign, cell: str, trial: int, bridge: tuple[str, str], pairs: Pairs) -> _Seen:
    node, process = bridge
    stays_ns = pl.Series([], dtype=pl.Int64)
    shares: list[float] = []
    try:
        samples = campaign.samples(cell, trial, COLUMNS)
    except CampaignError:
        samples = None
    if samples is not None:
        hops = Hops(samples)
        stays_ns = _stays(samples, hops, node, pairs)
        if _has_one_clock(campaign, cell, trial):
            shares = list(_shares(hops, node, pairs))
    run_ns, threads, memory = _process(campaign, cell, trial, process, "worker")
    return _Seen(stays_ns, len(stays_ns), shares, run_ns, threads, memory)


def _has_one_clock(campaign: Campaign, cell: str, trial: int) -> bool:
    """Whether times of all nodes may be subtracted from each other; otherwise a share is off by an offset."""
    if "clock" not in campaign.cells.columns:
        return True
    rows = campaign.cells.filter((pl.col("cell") == cell) & (pl.col("trial") == trial))
    return OFFSET not in rows["clock"].to_list()


def _of_program(campaign: Campaign, cell: str, trial: int, process: str, program: Mapping[str, Any]) -> _Seen:
    """One process of a program that is a bridge. Each message that arrives behind it has passed all of
    them."""
    nothing = pl.Series([], dtype=pl.Int64)
    run_ns, threads, memory = _process(campaign, cell, trial, process, "daemon")
    return _Seen(nothing, _arrived(campaign, cell, trial, program["edges"]), (), run_ns, threads, memory)


def _arrived(campaign: Campaign, cell: str, trial: int, edges: Sequence[str]) -> int:
    """How many messages of the measure phase arrived on these edges; one that several subscribers got counts
    once."""
    try:
        samples = campaign.samples(cell, trial, ("edge", "sequence", "publish_ns", "phase", "outcome"))
    except CampaignError:
        rows = campaign.cells.filter(
            (pl.col("cell") == cell) & (pl.col("trial") == trial) & pl.col("edge").is_in(edges)
        )
        return int(rows["n"].sum())
    edge = pl.col("edge").cast(pl.String)
    arrived = samples.filter(
        edge.is_in(edges)
        & (pl.col("phase").cast(pl.String) == "measure")
        & (pl.col("outcome").cast(pl.String) == "delivered")
    )
    sender = edge.str.split("→").list.first()
    return arrived.select(sender.alias("sender"), "sequence", "publish_ns").n_unique()


def _process(
    campaign: Campaign, cell: str, trial: int, process: str, kind: str
) -> tuple[int | None, int | None, Mapping[str, Any] | None]:
    """CPU time, threads and memory of a process; None for what was not observed."""
    path = campaign.resources_path(cell, trial)
    if not path.is_file():
        return None, None, None
    rows = pl.read_parquet(path, glob=False, hive_partitioning=False)
    rows = rows.filter((pl.col("process") == process) & (pl.col("kind") == kind))
    whole, threads = rows.filter(pl.col("what") == "process"), rows.filter(pl.col("what") == "thread")
    if whole.height != 1:
        return None, None, None
    run_ns = None if threads["run_ns"].null_count() else int(threads["run_ns"].sum())
    return run_ns, threads.height, {name: whole[name][0] for name in MEMORY}


def _added_ns(campaign: Campaign, cell: Mapping[str, Any]) -> float | None:
    """How much longer the median message takes end to end than in the same cell without the bridge; None if
    that was not measured, or by two clocks."""
    plain = _without_bridge(cell)
    plain_cells = [each for each in campaign.manifest["cells"] if "bridge" not in each]
    other = next((each for each in plain_cells if _without_bridge(each) == plain), None)
    if other is None:
        return None
    if any(clock_bound_ns(campaign, each["id"]) for each in (cell, other)):
        return None
    bridged_ns, plain_ns = (_end_to_end_ns(campaign, each["id"]) for each in (cell, other))
    return None if bridged_ns is None or plain_ns is None else bridged_ns - plain_ns


def _without_bridge(cell: Mapping[str, Any]) -> dict[str, Any]:
    factors = cell.get("factors") or {}
    return {name: value for name, value in factors.items() if name != "bridge"}


def _end_to_end_ns(campaign: Campaign, cell: str) -> float | None:
    rows = campaign.cells.filter((pl.col("cell") == cell) & pl.col("valid") & (pl.col("edge") == END_TO_END))
    return _middle(rows["latency_p50_ns"].to_list())


def _stays(samples: pl.DataFrame, hops: Hops, node: str, pairs: Pairs) -> pl.Series:
    """For each message of the measure phase that the node passed on, the time since its callback began."""
    messages = samples.filter(
        _passed_on(samples, hops, node, pairs)
        & (pl.col("phase").cast(pl.String) == "measure")
        & (pl.col("outcome").cast(pl.String) != "duplicate")
        & pl.col("begun_ns").is_not_null()
        & pl.col("publish_ns").is_not_null()
    )
    # A message with several subscribing nodes has one row for each.
    messages = messages.unique(["publish_ns", "begun_ns", "sequence"])
    return messages["publish_ns"] - messages["begun_ns"]


def _passed_on(samples: pl.DataFrame, hops: Hops, node: str, pairs: Pairs) -> pl.Expr:
    """What the node published on the other side because of what it took on this one."""
    edge = pl.col("edge").cast(pl.String)
    if pairs is None:
        names = samples["edge"].cast(pl.String).unique()
        return edge.is_in([name for name in names if ends(name)[0] == node])
    taken_on: dict[str, set[str]] = {}
    for taken, published in pairs:
        if ends(published)[0] == node:
            taken_on.setdefault(published, set()).add(taken)
    passed_on, cause = pl.lit(value=False), pl.col("cause_stream")
    for published, edges in taken_on.items():
        others = [stream for (at, stream), name in hops.streams.items() if at == node and name not in edges]
        passed_on |= (edge == published) & cause.is_not_null() & ~cause.is_in(others)
    return passed_on


def _shares(hops: Hops, node: str, pairs: Pairs) -> Iterator[float]:
    """For followed messages, the part of the end-to-end latency between taking and republishing by the node.

    A message has no share if its way can't be followed or bypasses the node.
    """
    messages = hops.of_edge(END_TO_END)
    spread = messages.gather_every(max(1, -(-messages.height // FOLLOWED)))
    for sequence, publish_ns, taken_ns, latency_ns in spread.iter_rows():
        way = hops.within(publish_ns, taken_ns).way(sequence, publish_ns, taken_ns)
        inside = [
            later.publish_ns - hop.taken_ns
            for hop, later in pairwise(way)
            if hop.receiver == node and (pairs is None or (hop.edge, later.edge) in pairs)
        ]
        if inside and latency_ns > 0:
            yield sum(inside) / latency_ns


def _row(cell: str, node: str, process: str, trials: Sequence[_Seen]) -> Bridge:
    stays_ns = pl.concat([trial.stays_ns for trial in trials])
    passed = [trial.passed for trial in trials]
    cpu = [
        trial.run_ns / count if trial.run_ns is not None and count else None
        for trial, count in zip(trials, passed, strict=True)
    ]
    return Bridge(
        cell=cell,
        node=node,
        process=process,
        trials=len(trials),
        passed_on=sum(passed),
        stay_p50_ns=_quantile(stays_ns, 0.5),
        stay_p99_ns=_quantile(stays_ns, 0.99),
        stay_share=_middle([fmean(trial.shares) if trial.shares else None for trial in trials]),
        added_p50_ns=None,
        cpu_per_message_ns=_middle(cpu),
        threads=_middle([trial.threads for trial in trials]),
        **{name: _middle([(trial.memory or {}).get(name) for trial in trials]) for name in MEMORY},
    )


def _quantile(values: pl.Series, share: float) -> float | None:
    return values.quantile(share, "higher") if len(values) else None


def _middle(values: Sequence[float | None]) -> float | None:
    """The median; None unless every trial has the figure."""
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None
