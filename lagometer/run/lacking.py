# SPDX-License-Identifier: Apache-2.0
"""Which cells can't run because a host lacks something, asked from the agents once before the first trial.

`lagometer plan` asks no host, so it lists these cells as if they could run. A host that can't be reached, or
that answers too late, excludes nothing: then the trials tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lagometer.run.companions.interference import wanted_load
from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.link import AgentLink
from lagometer.run.hosts.looks import complaint, probe_words
from lagometer.study import Adapter, Cell, Excluded, Study
from lagometer.study.daemons import daemons_in_use, find_program
from lagometer.study.interference import PROGRAMS
from lagometer.study.processors import processor_reasons

TRY_S = 20.0  # more than the agent takes
_IS_THERE = 'command -v -- "$0"'
# Succeeds if one of the folders in a variable has a file, or if the variable is empty.
_IN_A_PREFIX = (
    '[ -z "$1" ] && exit 0; IFS=:; for prefix in $1; do [ -f "$prefix/$0" ] && exit 0; done; exit 1'
)


@dataclass(frozen=True)
class _Need:
    """Something that a cell needs on a host. words: a command that fails there without it."""

    name: str
    words: tuple[str, ...]


def hosts_asked(study: Study, cells: Iterable[Cell]) -> tuple[str, ...]:
    """The hosts to ask: those of the study that a cell uses. A study without hosts runs where the cells were
    checked."""
    return tuple(dict.fromkeys(host for cell in cells for host in cell.hosts if host in study.hosts))


def without_lacking(
    study: Study, cells: Sequence[Cell], adapters: Mapping[str, Adapter], links: Mapping[str, AgentLink]
) -> tuple[tuple[Cell, ...], tuple[Excluded, ...]]:
    """Returns the cells that can run, and those that a host lacks something for, with what it lacks.

    links: by host; those that are not open exclude nothing.
    """
    links = {name: link for name, link in links.items() if link.is_open}
    needs = {
        (cell.id, name): list(_needs(study, cell, name, adapters, link))
        for name, link in links.items()
        for cell in cells
        if name in cell.hosts
    }
    wanted: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in links}
    for (_, name), of_cell in needs.items():
        wanted[name] |= {need.name: need.words for need in of_cell}
    lacks = _asked(links, wanted)
    running: list[Cell] = []
    excluded: list[Excluded] = []
    for cell in cells:
        reasons: list[str] = []
        for name in (name for name in cell.hosts if name in lacks):
            workers = [worker for worker in range(len(cell.workers)) if cell.worker_host(worker) == name]
            missing = [lacks[name][need.name] for need in needs[cell.id, name] if need.name in lacks[name]]
            missing += processor_reasons(cell, workers, links[name].cpus)
            reasons += [f"host {name}: {reason}" for reason in missing]
        if reasons:
            excluded.append(Excluded(cell.id, "; ".join(reasons)))
        else:
            running.append(cell)
    return tuple(running), tuple(excluded)


def _needs(
    study: Study, cell: Cell, host: str, adapters: Mapping[str, Adapter], link: AgentLink
) -> Iterator[_Need]:
    for name in _adapters_on(cell, host):
        adapter = adapters[name]
        for loaded in (adapter, *([adapter.base] if adapter.base is not None else [])):
            yield _Need(loaded.name, tuple(probe_words(link, loaded)))
        yield from _option_libraries(adapter, cell)
    if host == cell.hosts[0]:  # daemons run there
        for name in cell.adapters:
            adapter = adapters[name]
            for daemon in daemons_in_use(adapter, cell.options, cell.factors.profile):
                yield _program(find_program(daemon, adapter.directory) or daemon.command[0])
    load = wanted_load(study.of(cell), cell, host, 0, 0)
    if load is not None:
        yield _program(PROGRAMS[load.kind])


def _program(program: str) -> _Need:
    return _Need(f"the program {program}", ("sh", "-c", _IS_THERE, program))


def _option_libraries(adapter: Adapter, cell: Cell) -> Iterator[_Need]:
    """What values of its options need, such as a middleware layer of ROS 2."""
    for key, value in cell.options.get(adapter.name, {}).items():
        option = adapter.sidecar.options.get(key)
        if option is None or option.library is None or value == option.default:
            continue
        file, variable = option.library.file.replace("{value}", str(value)), option.library.prefixes
        words = ("sh", "-c", f'exec sh -c "$0" "$1" "${{{variable}-}}"', _IN_A_PREFIX, file)
        yield _Need(f"{value}: {file} is in no prefix of {variable}", words)


def _adapters_on(cell: Cell, host: str) -> tuple[str, ...]:
    """The adapters that the workers on a host load."""
    names: list[str] = []
    for worker, nodes in enumerate(cell.workers):
        if cell.worker_host(worker) != host:
            continue
        for rule in (rule for node in nodes for rule in cell.graph.rules_of(node)):
            names += [cell.traffic[topic].publisher_adapter for topic in rule.writes]
            names += [cell.traffic[topic].subscriber_adapter for topic in rule.subscribes]
    return tuple(dict.fromkeys(names))


def _asked(
    links: Mapping[str, AgentLink], wanted: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, dict[str, str]]:
    """Returns what each host lacks, in words, by the name of the need. A host that does not answer is left
    out. All hosts try at once, since each takes seconds."""
    for name, link in links.items():
        link.send({"command": "try", "commands": {key: list(words) for key, words in wanted[name].items()}})
    lacks: dict[str, dict[str, str]] = {}
    for name, link in links.items():
        try:
            results = link.hear("tried", TRY_S).get("results")
            lacks[name] = dict(_lacking(results, wanted[name]))
        except (HostError, KeyError, TypeError, AttributeError):
            continue  # an agent that can't be trusted fails its trials
    return lacks


def _lacking(results: object, wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(results, Mapping):
        raise TypeError("no results")
    for name in wanted:
        result = results[name]
        if result["code"] == 0 or result["late"]:
            continue
        why = "" if name.startswith("the program ") else complaint(result)
        yield name, f"lacks {name}: {why}" if why else f"lacks {name}"
