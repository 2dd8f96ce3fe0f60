# SPDX-License-Identifier: Apache-2.0
"""What the processes of a trial cost: its file, the trial's columns, and its part of the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lagometer.agent.observe.resources import ProcessUse, Resources
from lagometer.agent.observe.usage import SOCKET_KINDS, Account
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.format import RESOURCES_SCHEMA
from lagometer.store.observed import PROCESSOR_COUNTS
from lagometer.study import Adapter, Cell
from lagometer.study.libraries import GROUPS, TRACER, grouping, is_of_tracer

Number = int | None


@dataclass(frozen=True)
class TrialResources:
    """columns: by the names of `RESOURCE_COUNTS`, None if not known; journal: what the views show next to the
    columns; frame: as in `RESOURCES_SCHEMA`."""

    columns: Mapping[str, Number]
    journal: Mapping[str, Any]
    frame: pl.DataFrame


@dataclass(frozen=True)
class _Seen:
    """A process, and what was observed of it. share: factor that converts its counts to the measure phase
    alone; None if it is not known."""

    host: str
    name: str
    use: ProcessUse
    share: float | None


def trial_resources(
    cell: Cell, outcome: TrialOutcome, adapters: Mapping[str, Adapter]
) -> TrialResources | None:
    """Returns the cost of a trial, for all hosts together; None if one host was not observed."""
    observed = [
        (host, host.evidence.resources if host.evidence is not None else None) for host in outcome.hosts
    ]
    known = [(host, resources) for host, resources in observed if resources is not None]
    if not known or len(known) < len(observed):
        return None
    processes: list[_Seen] = []
    for host, resources in known:
        for use in resources.processes:
            name = use.name
            if use.worker is not None:
                name = outcome.workers[host.workers[use.worker]].name
            processes.append(_Seen(host.name, name, use, _share(use.began_ns, resources)))
    group_of = grouping(_sidecars(cell, adapters))
    parts = [resources for _, resources in known]
    machines = {str(host.hello.get("boot") or host.name): resources for host, resources in known}
    complete = sum(process.use.worker is not None for process in processes) == len(outcome.workers)
    columns = _columns(processes, parts, [*machines.values()], group_of) if complete else {}
    return TrialResources(columns, _journal(cell, processes, parts, group_of), _frame(processes, group_of))


def _sidecars(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[Any]:
    for name in cell.adapters:
        adapter = adapters[name]
        yield adapter.sidecar
        if adapter.base is not None:
            yield adapter.base.sidecar


def _share(began_ns: int | None, resources: Resources) -> float | None:
    """Returns the measure phase divided by the time in which messages were sent between the two readings."""
    if began_ns is None or resources.measure_end_ns <= began_ns:
        return None
    return (resources.measure_end_ns - resources.measure_begin_ns) / (resources.measure_end_ns - began_ns)


def _columns(
    processes: Sequence[_Seen],
    parts: Sequence[Resources],
    machines: Sequence[Resources],
    group_of: Callable[[str], str],
) -> dict[str, Number]:
    memories = [process.use.memory for process in processes]
    columns: dict[str, Number] = {
        "processes": len(processes),
        "threads": _sum(_threads(process.use, group_of) for process in processes),
        "rss_bytes": _sum(memory.resident_bytes if memory is not None else None for memory in memories),
        "uss_bytes": _sum(memory.unique_bytes if memory is not None else None for memory in memories),
        "descriptors": _sum(process.use.descriptors for process in processes),
    }
    for kind in SOCKET_KINDS:
        columns[f"{kind}_sockets"] = _sum(process.use.sockets.get(kind) for process in processes)
    sizes = _libraries(processes, group_of)
    known = all(memory is not None for memory in memories)
    for group in ("middleware", "abstraction"):
        columns[f"{group}_mapped_bytes"] = sizes[group]["mapped_bytes"] if known else None
        columns[f"{group}_resident_bytes"] = sizes[group]["resident_bytes"] if known else None
    for name, count in _OF_ACCOUNTS.items():
        accounts = ((process.use.account, process.share) for process in processes)
        columns[name] = _scaled(
            (count(account) if account is not None else None, share) for account, share in accounts
        )
    for name in PROCESSOR_COUNTS:
        counts = ((process.use.counts.get(name), process.share) for process in processes)
        columns[name] = _scaled(
            (processor_count.value if processor_count is not None else None, share)
            for processor_count, share in counts
        )
    for name in ("sent_bytes", "received_bytes"):
        columns[f"network_{name}"] = _scaled(
            (
                part.network_bytes[name] if part.network_bytes is not None else None,
                _share(part.began_ns, part),
            )
            for part in parts
        )
    columns["energy_nj"] = _scaled((part.energy_nj, _share(part.began_ns, part)) for part in machines)
    return columns


def _threads(use: ProcessUse, group_of: Callable[[str], str]) -> Number:
    """The number of threads of a process, without those of a tracer that it has loaded."""
    if use.account is None:
        return None
    names = [thread.name for thread in use.account.threads.values()]
    libraries = use.memory.libraries if use.memory is not None else ()
    if any(group_of(library.path) == TRACER for library in libraries):
        names = [name for name in names if not is_of_tracer(name)]
    return len(names)


_OF_ACCOUNTS: Mapping[str, Callable[[Account], int]] = {
    "user_ns": lambda account: account.user_ns,
    "system_ns": lambda account: account.system_ns,
    "minor_faults": lambda account: account.minor_faults,
    "major_faults": lambda account: account.major_faults,
    "voluntary_switches": lambda account: sum(each.voluntary for each in account.threads.values()),
    "involuntary_switches": lambda account: sum(each.involuntary for each in account.threads.values()),
}


def _libraries(processes: Sequence[_Seen], group_of: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """Returns the sizes of each group, and its files. Each file of a host counts once, with its largest size,
    however many processes have loaded it."""
    files: dict[tuple[str, str], tuple[int, int]] = {}
    for process in processes:
        for library in process.use.memory.libraries if process.use.memory is not None else ():
            mapped, resident = files.get((process.host, library.path), (0, 0))
            sizes = max(mapped, library.mapped_bytes), max(resident, library.resident_bytes)
            files[process.host, library.path] = sizes
    groups: dict[str, dict[str, Any]] = {
        group: {"mapped_bytes": 0, "resident_bytes": 0, "files": {}} for group in GROUPS
    }
    for (_, path), (mapped, resident) in files.items():
        group = groups[group_of(path)]
        group["mapped_bytes"] += mapped
        group["resident_bytes"] += resident
        group["files"][path.rpartition("/")[2]] = mapped
    return groups


def _journal(
    cell: Cell, processes: Sequence[_Seen], parts: Sequence[Resources], group_of: Callable[[str], str]
) -> dict[str, Any]:
    return {
        "nodes": len(cell.graph.nodes),
        "processes": [
            {
                "host": process.host,
                "process": process.name,
                "kind": process.use.kind,
                "threads": _names(process.use.account),
            }
            for process in processes
        ],
        "libraries": _libraries(processes, group_of),
        "not_available": _reasons(processes, parts),
        "user_alone": any(part.user_alone for part in parts),
    }


def _names(account: Account | None) -> dict[str, int] | None:
    if account is None:
        return None
    return dict(Counter(thread.name for thread in account.threads.values()))


def _reasons(processes: Sequence[_Seen], parts: Sequence[Resources]) -> dict[str, str]:
    """Returns why a figure is not known, by its column's name."""
    reasons: dict[str, str] = {}
    for part in parts:
        reasons |= part.unavailable
        if part.energy_nj is None and part.energy_why is not None:
            reasons["energy_nj"] = part.energy_why
        if part.network_bytes is None:
            reasons |= dict.fromkeys(
                ("network_sent_bytes", "network_received_bytes"), "the network is not the trial's own"
            )
    for process in processes:
        reasons |= {name: count.why for name, count in process.use.counts.items() if count.why is not None}
    return reasons


def _frame(processes: Sequence[_Seen], group_of: Callable[[str], str]) -> pl.DataFrame:
    rows = [row for process in processes for row in _rows(process, group_of)]
    absent = dict.fromkeys(RESOURCES_SCHEMA)
    return pl.DataFrame([{**absent, **row} for row in rows], schema=RESOURCES_SCHEMA, orient="row")


def _rows(process: _Seen, group_of: Callable[[str], str]) -> Iterator[dict[str, object]]:
    """Yields the row of a process, then those of its threads and libraries."""
    use, account, memory = process.use, process.use.account, process.use.memory
    common = {"host": process.host, "process": process.name, "kind": use.kind}
    row: dict[str, object] = {**common, "what": "process", "name": process.name, "share": process.share}
    if account is not None:
        row |= {name: count(account) for name, count in _OF_ACCOUNTS.items()}
    if memory is not None:
        row |= {"rss_bytes": memory.resident_bytes, "pss_bytes": memory.proportional_bytes}
        row["uss_bytes"] = memory.unique_bytes
    row["descriptors"] = use.descriptors
    row |= {f"{kind}_sockets": use.sockets.get(kind) for kind in SOCKET_KINDS}
    row |= {name: count.value for name, count in use.counts.items()}
    yield row
    for number, thread in account.threads.items() if account is not None else ():
        yield {
            **common,
            "what": "thread",
            "name": thread.name,
            "thread": number,
            "share": process.share,
            "user_ns": thread.user_ns,
            "system_ns": thread.system_ns,
            "run_ns": thread.run_ns,
            "voluntary_switches": thread.voluntary,
            "involuntary_switches": thread.involuntary,
            "minor_faults": thread.minor_faults,
            "major_faults": thread.major_faults,
        }
    for library in memory.libraries if memory is not None else ():
        yield {
            **common,
            "what": "library",
            "name": library.path,
            "group": group_of(library.path),
            "mapped_bytes": library.mapped_bytes,
            "rss_bytes": library.resident_bytes,
            "pss_bytes": library.proportional_bytes,
        }


def _sum(figures: Iterable[Number]) -> Number:
    """Returns the sum; None if a figure is not known."""
    total = 0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total


def _scaled(figures: Iterable[tuple[Number, float | None]]) -> Number:
    """Returns the sum of counts, each converted to the measure phase alone; None if one is not known."""
    total = 0.0
    for figure, share in figures:
        if figure is None or share is None:
            return None
        total += figure * share
    return round(total)
