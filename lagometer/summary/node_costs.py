# SPDX-License-Identifier: Apache-2.0
"""What a node costs, by adapter: threads, memory, libraries, start-up, and the cost of each message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import polars as pl

from lagometer.stats.cell.taken import taken_messages
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.cell_data import LibraryGroup, NodeCost, NodeCosts, NotAvailable
from lagometer.summary.cell_rows import with_values
from lagometer.units import factor_text

Factors = Mapping[str, Mapping[str, object]]
Record = Mapping[str, Any]

ROWS_MAX = 60  # beyond that, one row per adapter
TICK_NS = 10_000_000  # the kernel's resolution for splitting user and system time
TICK_SHARE_MAX = 0.2  # if rounding may exceed this share of the CPU time, the two are not separated
_NAMED_APART = frozenset({"adapter", "payload_bytes", "rate_hz", "part"})
# A node's figure: the column whose median it is.
PER_NODE = {
    "threads_per_node": "resources_threads",
    "rss_per_node_bytes": "resources_rss_bytes",
    "pss_per_node_bytes": "memory_pss_bytes",
    "uss_per_node_bytes": "resources_uss_bytes",
    "descriptors_per_node": "resources_descriptors",
    "tcp_sockets_per_node": "resources_tcp_sockets",
    "udp_sockets_per_node": "resources_udp_sockets",
    "unix_sockets_per_node": "resources_unix_sockets",
    "other_sockets_per_node": "resources_other_sockets",
}
# A message's figure: the columns whose sum it is.
PER_MESSAGE = {
    "switches_per_message": ("resources_voluntary_switches", "resources_involuntary_switches"),
    "faults_per_message": ("resources_minor_faults", "resources_major_faults"),
    "network_bytes_per_message": ("resources_network_sent_bytes",),
    "cycles_per_message": ("resources_cycles",),
    "instructions_per_message": ("resources_instructions",),
    "cache_misses_per_message": ("resources_cache_misses",),
    "tlb_misses_per_message": ("resources_tlb_misses",),
    "energy_per_message_nj": ("resources_energy_nj",),
}
AS_THEY_ARE = (
    "cpu_per_message_ns",
    "startup_process_ns",
    "startup_participant_ns",
    "startup_matched_ns",
    "startup_first_message_ns",
)
RAMP = ("participant", "matched")  # steps whose first worker is shown beside the last
# What a column's reason is shown for, and its name.
_FIGURE_OF = {
    "cycles": ("cycles_per_message", "cycles per message"),
    "instructions": ("instructions_per_message", "instructions per message"),
    "cache_misses": ("cache_misses_per_message", "cache misses per message"),
    "tlb_misses": ("tlb_misses_per_message", "TLB misses per message"),
    "energy_nj": ("energy_per_message_nj", "energy per message"),
    "network_sent_bytes": ("network_bytes_per_message", "bytes on the network per message"),
}


@dataclass(frozen=True)
class _Trials:
    """The observed valid trials of a cell: their end-to-end rows, and their journal entries."""

    rows: Sequence[Record]
    seen: Sequence[Record]


def node_costs(campaign: Campaign, factors: Factors) -> NodeCosts | None:
    """The table; None if no valid trial was observed."""
    trials = _trials(campaign)
    if not trials:
        return None
    groups: dict[tuple[str, str], list[str]] = {}
    for names in (_varied(factors), []):
        groups = {}
        for cell, values in factors.items():
            if cell in trials:
                settings = ", ".join(
                    factor_text(name, values[name]) for name in names if values.get(name) is not None
                )
                groups.setdefault((str(values.get("adapter")), settings), []).append(cell)
        if len(groups) <= ROWS_MAX:
            break
    rows = []
    for (adapter, settings), cells in groups.items():
        cell = min(cells, key=lambda name: _smallest(factors[name]))
        rows.append(_row(cell, adapter, settings, trials[cell]))
    return NodeCosts(
        rows=rows,
        all_cells=all(len(cells) == 1 for cells in groups.values()),
        not_available=_not_available(rows, [trials[row.cell] for row in rows]),
    )


def _trials(campaign: Campaign) -> dict[str, _Trials]:
    cells = campaign.cells
    if "resources_processes" not in cells.columns:
        return {}
    valid = cells.filter(pl.col("valid"))
    taken = taken_messages(valid)
    whole = valid.filter(pl.col("edge") == END_TO_END)
    rows = {(row["cell"], row["trial"]): row for row in with_values(whole)}
    by_cell: dict[str, _Trials] = {}
    for line in campaign.journal:
        key = (line["cell"], line["trial"])
        resources = line.get("resources")
        if resources is None or key not in rows:
            continue
        earlier = by_cell.get(line["cell"], _Trials((), ()))
        row = {**rows[key], "taken": taken.get(key), **_firsts(line.get("startup_ns") or {})}
        by_cell[line["cell"]] = _Trials([*earlier.rows, row], [*earlier.seen, resources])
    return by_cell


def _firsts(startup_ns: Mapping[str, Mapping[str, int]]) -> dict[str, int | None]:
    """When the first worker reached each step of the ramp; its last one is in the row."""
    workers = startup_ns.values()
    return {
        f"startup_{step}_first_ns": min((each[step] for each in workers if step in each), default=None)
        for step in RAMP
    }


def _varied(factors: Factors) -> list[str]:
    names = dict.fromkeys(name for values in factors.values() for name in values)
    return [
        name
        for name in names
        if name not in _NAMED_APART and len({str(values.get(name)) for values in factors.values()}) > 1
    ]


def _smallest(values: Mapping[str, object]) -> tuple[float, float]:
    payload, rate = values.get("payload_bytes"), values.get("rate_hz")
    return (
        float(payload) if isinstance(payload, int | float) else 0.0,
        float(rate) if isinstance(rate, int | float) else 0.0,
    )


def _row(cell: str, adapter: str, settings: str, trials: _Trials) -> NodeCost:
    first = trials.seen[0]
    nodes = first["nodes"]
    figures: dict[str, float | None] = {
        figure: _divided(_middle(row.get(column) for row in trials.rows), nodes)
        for figure, column in PER_NODE.items()
    }
    for figure, columns in PER_MESSAGE.items():
        figures[figure] = _middle(
            _divided(_sum(row.get(column) for column in columns), row["taken"]) for row in trials.rows
        )
    as_they_are = (*AS_THEY_ARE, *(f"startup_{step}_first_ns" for step in RAMP))
    figures |= {name: _middle(row.get(name) for row in trials.rows) for name in as_they_are}
    figures["system_share"] = _system_share(trials)
    return NodeCost(
        cell=cell,
        adapter=adapter,
        settings=settings,
        trials=len(trials.rows),
        nodes=nodes,
        processes=len(first["processes"]),
        thread_names=_thread_names(first),
        libraries=[
            LibraryGroup(
                group=group,
                mapped_bytes=library["mapped_bytes"],
                resident_bytes=library["resident_bytes"],
                files=sorted(library["files"]),
            )
            for group, library in first["libraries"].items()
            if library["files"]
        ],
        **figures,
    )


def _thread_names(resources: Record) -> dict[str, int]:
    """How many threads of the cell's first trial have each name, most first. Names that differ only in their
    number are combined into one, such as `node:relay-N`."""
    alike: dict[str, dict[str, int]] = {}
    for process in resources["processes"]:
        for name, count in (process["threads"] or {}).items():
            named = alike.setdefault(re.sub(r"(?<=\D)\d+$", "N", name), {})
            named[name] = named.get(name, 0) + count
    counts: dict[str, int] = {}
    for stem, named in alike.items():
        counts.update({stem: sum(named.values())} if len(named) > 1 else named)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _system_share(trials: _Trials) -> float | None:
    """The kernel's part of the CPU time of all trials together; each figure is rounded to the kernel's ticks,
    once per process."""
    user_ns = _sum(row.get("resources_user_ns") for row in trials.rows)
    system_ns = _sum(row.get("resources_system_ns") for row in trials.rows)
    if user_ns is None or system_ns is None:
        return None
    rounded_ns = TICK_NS * sum(len(resources["processes"]) for resources in trials.seen)
    total_ns = user_ns + system_ns
    return system_ns / total_ns if rounded_ns < TICK_SHARE_MAX * total_ns else None


def _not_available(rows: Sequence[NodeCost], trials: Sequence[_Trials]) -> list[NotAvailable]:
    """Why figures are missing, each figure and reason once."""
    entries: dict[tuple[str, str], NotAvailable] = {}
    for row, row_trials in zip(rows, trials, strict=True):
        for resources in row_trials.seen:
            for name, why in resources["not_available"].items():
                figure, words = _FIGURE_OF.get(name, (None, ""))
                if figure is not None and getattr(row, figure) is None:
                    entries[figure, why] = NotAvailable(figure=words, why=why)
    return list(entries.values())


def _divided(value: float | None, divisor: float | None) -> float | None:
    return value / divisor if value is not None and divisor else None


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _middle(values: Iterable[float | None]) -> float | None:
    """The median; None unless every trial has the figure."""
    known = list(values)
    return None if None in known else median(value for value in known if value is not None)
