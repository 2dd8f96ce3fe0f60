# SPDX-License-Identifier: Apache-2.0
"""Why a combination of factors cannot exist: every rule is one function that gives reasons in words.

A reason is never an error: the cell is listed as excluded, with every reason that holds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lagometer import units
from lagometer.study.adapter import Adapter
from lagometer.study.cell import Cell, Factors
from lagometer.study.daemons import missing_daemons
from lagometer.study.graph import Graph
from lagometer.study.interference import missing_program
from lagometer.study.own_installation import PRODUCTS, look_for
from lagometer.study.payload import payload_reasons
from lagometer.study.sidecar import Limits
from lagometer.study.stacking import Options


@dataclass(frozen=True)
class Surroundings:
    """What reasons depend on beside the cell: adapters by name, and the CPUs that this process may use."""

    adapters: Mapping[str, Adapter]
    cpus: tuple[int, ...]


def reasons(cell: Cell, template: Graph, measure_ns: int, around: Surroundings) -> list[str]:
    """Why this cell cannot be carried out here; empty if it can.

    template: its workload before rate and work are filled in.
    """
    factors = cell.factors
    names = dict.fromkeys((factors.publisher_adapter, factors.subscriber_adapter))
    if found := list(_own_installations(names, around.adapters)):
        return found
    sides = {name: around.adapters[name] for name in names}
    for name, adapter in sides.items():
        if adapter.missing is not None:
            found.append(f"{name}: {adapter.missing}" if len(sides) > 1 else adapter.missing)
        found += _placement(name, adapter, cell, cell.options)
        found += _abilities(name, adapter, factors)
        found += _scale(name, adapter.sidecar.limits, cell.graph)
        found += missing_daemons(adapter, cell.options, factors.profile)
    found += _dispatch(around.adapters[factors.subscriber_adapter], factors)
    found += _pair(factors, around.adapters)
    found += _worker(cell, around.adapters)
    topics = {stream.topic for stream in cell.graph.streams}
    found += payload_reasons(factors.type, factors.payload_bytes, factors.content, topics)
    found += _workload(cell, template, measure_ns)
    found += _processors(cell, around.cpus)
    found += filter(None, [missing_program(factors.interference)])
    if factors.tuning != "none" and os.geteuid() != 0:
        found.append("tuning needs root")
    return list(dict.fromkeys(found))


def _own_installations(names: Collection[str], adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """Nothing else can be said of a cell whose adapter nobody has written."""
    for name in names:
        if name not in adapters:
            says = look_for(PRODUCTS[name]).says
            yield f"{name}: {says}" if len(names) > 1 else says


def _placement(name: str, adapter: Adapter, cell: Cell, options: Options) -> Iterator[str]:
    if len(cell.workers) < 2:
        return
    alone = f"works only within one process, and the placement has {len(cell.workers)}"
    if adapter.sidecar.scope == "process":
        yield f"{name} {alone}"
    for key, value in options.get(name, {}).items():
        option = adapter.sidecar.options.get(key)
        if option is not None and value in option.within_process:
            yield f"{name} with {key} {value} {alone}"


def _abilities(name: str, adapter: Adapter, factors: Factors) -> Iterator[str]:
    """What both ends of a stream need; how a message is dispatched is the subscriber's affair alone."""
    can = adapter.sidecar.abilities
    asked: tuple[tuple[str, str, Collection[str]], ...] = (
        ("reliability", factors.reliability, can.reliability),
        ("history", factors.history, can.history),
        ("durability", factors.durability, can.durability),
        ("type", factors.type, can.types),
        ("profile", factors.profile, can.profiles),
    )
    for what, value, offered in asked:
        if value not in offered:
            yield _lacks(name, what, value, offered)
    if factors.domain and not can.domains:
        yield f"{name} has no domains"
    yield from _limits(name, adapter.sidecar.limits, factors)


def _limits(name: str, limit: Limits, factors: Factors) -> Iterator[str]:
    if limit.payload_bytes_max is not None and factors.payload_bytes > limit.payload_bytes_max:
        reason = limit.payload_bytes_max_reason or "larger messages do not exist"
        yield f"{name} carries at most {limit.payload_bytes_max} B: {reason}"
    keeps_all = factors.history == "keep_all"
    if limit.depth_max is not None and not keeps_all and factors.depth > limit.depth_max:
        yield _with_reason(f"{name} keeps at most {limit.depth_max} messages", limit.depth_max_reason)
    durable = limit.transient_local_depth_max
    kept_for_late = factors.durability == "transient_local"
    if durable is not None and kept_for_late and (keeps_all or factors.depth > durable):
        at_most = f"{name} keeps at most {durable} messages for late joiners"
        yield _with_reason(at_most, limit.transient_local_depth_max_reason)


def _scale(name: str, limit: Limits, graph: Graph) -> Iterator[str]:
    """How many topics there are at once, and how many endpoints on each."""
    topics = {stream.topic for stream in graph.streams}
    if limit.topics_max is not None and len(topics) > limit.topics_max:
        at_most = f"{name} has at most {limit.topics_max} topics at once, and {graph.name} has {len(topics)}"
        yield _with_reason(at_most, limit.topics_max_reason)
    for topic in sorted(topics):
        writers = sum(stream.topic == topic for stream in graph.streams)
        readers = len({rule.node for rule in graph.rules if topic in rule.reads})
        if limit.endpoints_max is not None and writers + readers > limit.endpoints_max:
            at_most = f"{name} has at most {limit.endpoints_max} endpoints on a topic"
            yield _with_reason(
                f"{at_most}, and '{topic}' has {writers + readers}", limit.endpoints_max_reason
            )


def _with_reason(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def _dispatch(adapter: Adapter, factors: Factors) -> Iterator[str]:
    offered = adapter.sidecar.abilities.dispatch
    if factors.dispatch not in offered:
        yield _lacks(adapter.name, "dispatch", factors.dispatch, offered)


def _pair(factors: Factors, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    publisher, subscriber = factors.publisher_adapter, factors.subscriber_adapter
    if publisher != subscriber and subscriber not in adapters[publisher].sidecar.interoperates_with:
        yield f"{subscriber} does not understand {publisher}"
        return
    for name, other in ((publisher, subscriber), (subscriber, publisher)):
        if name != other and factors.type in adapters[name].sidecar.own_types:
            yield f"{other} does not understand {name}'s type {factors.type}, only messages that both know"


def _worker(cell: Cell, adapters: Mapping[str, Adapter]) -> Iterator[str]:
    """A process is one worker, and that is in one language."""
    publisher, subscriber = cell.factors.publisher_adapter, cell.factors.subscriber_adapter
    workers = adapters[publisher].sidecar.worker, adapters[subscriber].sidecar.worker
    if workers[0] == workers[1]:
        return
    for nodes in cell.workers:
        rules = [rule for node in nodes for rule in cell.graph.rules_of(node)]
        if any(rule.writes for rule in rules) and any(rule.reads for rule in rules):
            named = nodes[0] if len(nodes) == 1 else f"{nodes[0]}, …"
            yield (
                f"the process of {named} publishes through {publisher} and subscribes through {subscriber}, "
                f"which run in different workers ({workers[0]}, {workers[1]})"
            )
            return


def _workload(cell: Cell, template: Graph, measure_ns: int) -> Iterator[str]:
    name = template.name
    if "rate_hz" in cell.named and not template.follows_rate:
        why = "a closed loop" if template.closed_loop else "its timers have their own rates"
        yield f"{name} has no rate: {why}"
    if cell.factors.work_ns and not template.follows_work:
        yield f"{name} has no relay to do the work"
    if cell.factors.work_spread != "none" and not (cell.factors.work_ns and template.follows_work):
        yield f"there is no work that {cell.factors.work_spread} could spread"
    yield from _schedule(cell, template)
    slowest_ns = max(((rule.period_ns or 0) * rule.schedule.messages for rule in cell.graph.rules), default=0)
    if slowest_ns > measure_ns:
        yield f"a source publishes nothing within the {units.format_duration(measure_ns)} that are measured"


def _schedule(cell: Cell, template: Graph) -> Iterator[str]:
    factors = cell.factors
    why = "a closed loop" if template.closed_loop else "its timers have their own rates"
    if factors.schedule != "periodic" and not template.follows_rate:
        yield f"{template.name} has no schedule: {why}"
    if factors.late != "burst" and template.closed_loop:
        yield f"{template.name} has no schedule that a message could be late by: {why}"
    if factors.schedule.startswith("recorded-") and "rate_hz" in cell.named:
        yield f"{factors.schedule} sets the rate itself"


def _processors(cell: Cell, cpus: tuple[int, ...]) -> Iterator[str]:
    factors = cell.factors
    mine: tuple[int, ...] = cpus
    if factors.cpus not in ("any", "spread"):
        mine = tuple(int(cpu) for cpu in factors.cpus.split(","))
        absent = [str(cpu) for cpu in mine if cpu not in cpus]
        if absent:
            yield f"CPU {', '.join(absent)} is not available here (there are: {_ranges(cpus)})"
    if factors.dispatch == "poll" and factors.scheduling == "fifo":
        spinning = sum(
            1 for node in cell.graph.node_names if any(rule.reads for rule in cell.graph.rules_of(node))
        )
        if spinning >= len(mine):
            yield f"{spinning} spinning SCHED_FIFO threads on {len(mine)} CPUs would starve the machine"


def _lacks(name: str, what: str, value: str, offered: Collection[str]) -> str:
    return f"{name} does not offer {what} '{value}' (it offers: {', '.join(offered) or 'none'})"


def _ranges(cpus: tuple[int, ...]) -> str:
    return (
        f"{cpus[0]}-{cpus[-1]}"
        if len(cpus) > 1 and cpus[-1] - cpus[0] == len(cpus) - 1
        else ",".join(map(str, cpus))
    )
