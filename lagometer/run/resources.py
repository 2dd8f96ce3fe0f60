# SPDX-License-Identifier: Apache-2.0
"""What the processes of a trial cost: the file of it, the trial's columns, and its part of the journal."""

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
    """columns: by the names of `RESOURCE_COUNTS`, None where not known; journal: what the views show beside
    them; frame: by `RESOURCES_SCHEMA`."""

    columns: Mapping[str, Number]
    journal: Mapping[str, Any]
    frame: pl.DataFrame


@dataclass(frozen=True)
class _Seen:
    """A process, and what was seen of its host's part. share: by how much its counts
    are multiplied to be those of the measure phase alone; None where that is not known."""

    host: str
    name: str
    use: ProcessUse
    share: float | None


def trial_resources(
    cell: Cell, outcome: TrialOutcome, adapters: Mapping[str, Adapter]
) -> TrialResources | None:
    """Returns what a trial cost, all hosts together; None where one was not looked at."""
    found = [(host, host.evidence.resources if host.evidence is not None else None) for host in outcome.hosts]
    known = [(host, resources) for host, resources in found if resources is not None]
    if not known or len(known) < len(found):
        return None
    seen: list[_Seen] = []
    for host, resources in known:
        for use in resources.processes:
            name = use.name
            if use.worker is not None:
                name = outcome.workers[host.workers[use.worker]].name
            seen.append(_Seen(host.name, name, use, _share(use.began_ns, resources)))
    group_of = grouping(_sidecars(cell, adapters))
    parts = [resources for _, resources in known]
    machines = {str(host.hello.get("boot") or host.name): resources for host, resources in known}
    everybody = sum(each.use.worker is not None for each in seen) == len(outcome.workers)
    columns = _columns(seen, parts, [*machines.values()], group_of) if everybody else {}
    return TrialResources(columns, _journal(cell, seen, parts, group_of), _frame(seen, group_of))


def _sidecars(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[Any]:
    for name in cell.adapters:
        adapter = adapters[name]
        yield adapter.sidecar
        if adapter.base is not None:
            yield adapter.base.sidecar


def _share(began_ns: int | None, resources: Resources) -> float | None:
    """Returns the measure phase over the time in which messages were sent between the two looks."""
    if began_ns is None or resources.measure_end_ns <= began_ns:
        return None
    return (resources.measure_end_ns - resources.measure_begin_ns) / (resources.measure_end_ns - began_ns)


def _columns(
    seen: Sequence[_Seen],
    parts: Sequence[Resources],
    machines: Sequence[Resources],
    group_of: Callable[[str], str],
) -> dict[str, Number]:
    memories = [each.use.memory for each in seen]
    found: dict[str, Number] = {
        "processes": len(seen),
        "threads": _sum(_threads(each.use, group_of) for each in seen),
        "rss_bytes": _sum(each.resident_bytes if each is not None else None for each in memories),
        "uss_bytes": _sum(each.unique_bytes if each is not None else None for each in memories),
        "descriptors": _sum(each.use.descriptors for each in seen),
    }
    for kind in SOCKET_KINDS:
        found[f"{kind}_sockets"] = _sum(each.use.sockets.get(kind) for each in seen)
    sizes = _libraries(seen, group_of)
    known = all(memory is not None for memory in memories)
    for group in ("middleware", "abstraction"):
        found[f"{group}_mapped_bytes"] = sizes[group]["mapped_bytes"] if known else None
        found[f"{group}_resident_bytes"] = sizes[group]["resident_bytes"] if known else None
    for name, count in _OF_ACCOUNTS.items():
        accounts = ((each.use.account, each.share) for each in seen)
        found[name] = _scaled(
            (count(account) if account is not None else None, share) for account, share in accounts
        )
    for name in PROCESSOR_COUNTS:
        counts = ((each.use.counts.get(name), each.share) for each in seen)
        found[name] = _scaled((each.value if each is not None else None, share) for each, share in counts)
    for name in ("sent_bytes", "received_bytes"):
        found[f"network_{name}"] = _scaled(
            (
                part.network_bytes[name] if part.network_bytes is not None else None,
                _share(part.began_ns, part),
            )
            for part in parts
        )
    found["energy_nj"] = _scaled((part.energy_nj, _share(part.began_ns, part)) for part in machines)
    return found


def _threads(use: ProcessUse, group_of: Callable[[str], str]) -> Number:
    """How many threads a process has, without those of a tracer that it has loaded."""
    if use.account is None:
        return None
    names = [thread.name for thread in use.account.threads.values()]
    libraries = use.memory.libraries if use.memory is not None else ()
    if any(group_of(each.path) == TRACER for each in libraries):
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


def _libraries(seen: Sequence[_Seen], group_of: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """Returns the sizes of each group, and its files: each file of a host counts once, however many processes
    have loaded it, with its largest size."""
    files: dict[tuple[str, str], tuple[int, int]] = {}
    for each in seen:
        for library in each.use.memory.libraries if each.use.memory is not None else ():
            mapped, resident = files.get((each.host, library.path), (0, 0))
            sizes = max(mapped, library.mapped_bytes), max(resident, library.resident_bytes)
            files[each.host, library.path] = sizes
    found: dict[str, dict[str, Any]] = {
        group: {"mapped_bytes": 0, "resident_bytes": 0, "files": {}} for group in GROUPS
    }
    for (_, path), (mapped, resident) in files.items():
        group = found[group_of(path)]
        group["mapped_bytes"] += mapped
        group["resident_bytes"] += resident
        group["files"][path.rpartition("/")[2]] = mapped
    return found


def _journal(
    cell: Cell, seen: Sequence[_Seen], parts: Sequence[Resources], group_of: Callable[[str], str]
) -> dict[str, Any]:
    return {
        "nodes": len(cell.graph.nodes),
        "processes": [
            {
                "host": each.host,
                "process": each.name,
                "kind": each.use.kind,
                "threads": _names(each.use.account),
            }
            for each in seen
        ],
        "libraries": _libraries(seen, group_of),
        "not_available": _reasons(seen, parts),
        "user_alone": any(part.user_alone for part in parts),
    }


def _names(account: Account | None) -> dict[str, int] | None:
    if account is None:
        return None
    return dict(Counter(thread.name for thread in account.threads.values()))


def _reasons(seen: Sequence[_Seen], parts: Sequence[Resources]) -> dict[str, str]:
    """Returns why a figure is not known, by its column's name."""
    found: dict[str, str] = {}
    for part in parts:
        found |= part.unavailable
        if part.energy_nj is None and part.energy_why is not None:
            found["energy_nj"] = part.energy_why
        if part.network_bytes is None:
            found |= dict.fromkeys(
                ("network_sent_bytes", "network_received_bytes"), "the network is not the trial's own"
            )
    for each in seen:
        found |= {name: count.why for name, count in each.use.counts.items() if count.why is not None}
    return found


def _frame(seen: Sequence[_Seen], group_of: Callable[[str], str]) -> pl.DataFrame:
    rows = [row for each in seen for row in _rows(each, group_of)]
    absent = dict.fromkeys(RESOURCES_SCHEMA)
    return pl.DataFrame([{**absent, **row} for row in rows], schema=RESOURCES_SCHEMA, orient="row")


def _rows(seen: _Seen, group_of: Callable[[str], str]) -> Iterator[dict[str, object]]:
    """Gives the row of a process, then those of its threads and libraries."""
    use, account, memory = seen.use, seen.use.account, seen.use.memory
    common = {"host": seen.host, "process": seen.name, "kind": use.kind}
    own: dict[str, object] = {**common, "what": "process", "name": seen.name, "share": seen.share}
    if account is not None:
        own |= {name: count(account) for name, count in _OF_ACCOUNTS.items()}
    if memory is not None:
        own |= {"rss_bytes": memory.resident_bytes, "pss_bytes": memory.proportional_bytes}
        own["uss_bytes"] = memory.unique_bytes
    own["descriptors"] = use.descriptors
    own |= {f"{kind}_sockets": use.sockets.get(kind) for kind in SOCKET_KINDS}
    own |= {name: count.value for name, count in use.counts.items()}
    yield own
    for number, thread in account.threads.items() if account is not None else ():
        yield {
            **common,
            "what": "thread",
            "name": thread.name,
            "thread": number,
            "share": seen.share,
            "user_ns": thread.user_ns,
            "system_ns": thread.system_ns,
            "run_ns": thread.run_ns,
            "voluntary_switches": thread.voluntary,
            "involuntary_switches": thread.involuntary,
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
    """Returns the sum; None if one is not known."""
    total = 0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total


def _scaled(figures: Iterable[tuple[Number, float | None]]) -> Number:
    """Returns the sum of counts, each for the measure phase alone; None if one is not known."""
    total = 0.0
    for figure, share in figures:
        if figure is None or share is None:
            return None
        total += figure * share
    return round(total)
