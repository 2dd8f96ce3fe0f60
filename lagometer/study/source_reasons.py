# SPDX-License-Identifier: Apache-2.0
"""Why the sources of a workload can't publish as a cell says: its rate, its schedule, and when they begin."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer import units
from lagometer.study.cell import Cell
from lagometer.study.graph import Graph


def source_reasons(cell: Cell, template: Graph, warmup_ns: int, measure_ns: int) -> Iterator[str]:
    """The reasons; none if they can. template: the workload before rate and work are filled in."""
    name = template.name
    if "rate_hz" in cell.named and not template.follows_rate:
        reason = "a closed loop" if template.closed_loop else "its timers have their own rates"
        yield f"{name} has no rate: {reason}"
    if cell.factors.work_ns and not template.follows_work:
        yield f"{name} has no relay to do the work"
    if cell.factors.work_spread != "none" and not (cell.factors.work_ns and template.follows_work):
        yield f"there is no work that {cell.factors.work_spread} could spread"
    yield from _schedule(cell, template)
    for rule in cell.graph.rules:
        if rule.jitter_ns > (rule.period_ns or rule.jitter_ns):
            yield f"the jitter of {rule.node} is longer than its period"
    slowest_ns = max(((rule.period_ns or 0) * rule.schedule.messages for rule in cell.graph.rules), default=0)
    if slowest_ns > measure_ns:
        yield f"a source publishes nothing within the {units.format_duration(measure_ns)} that are measured"
    yield from _too_late(cell.graph, warmup_ns + measure_ns)


def _schedule(cell: Cell, template: Graph) -> Iterator[str]:
    factors = cell.factors
    reason = "a closed loop" if template.closed_loop else "its timers have their own rates"
    if factors.schedule != "periodic" and not template.follows_rate:
        yield f"{template.name} has no schedule: {reason}"
    if factors.late != "burst" and template.closed_loop:
        yield f"{template.name} has no schedule that a message could be late by: {reason}"
    if factors.schedule.startswith("recorded-") and "rate_hz" in cell.named:
        yield f"{factors.schedule} sets the rate itself"
    for rule in cell.graph.rules:
        # A worker gets jitter as recorded intervals, which leave no room for another schedule.
        if rule.jitter_ns and rule.schedule.kind != "periodic":
            yield f"{rule.node} has a jitter, which is for periodic timers, not for {factors.schedule}"


def _too_late(graph: Graph, end_ns: int) -> Iterator[str]:
    """Timers that never fire. Nodes without one may join at any time."""
    for rule in graph.rules:
        first_ns = graph.start_ns(rule.node) + rule.offset_ns
        if rule.trigger == "timer" and first_ns >= end_ns:
            first, end = units.format_duration(first_ns), units.format_duration(end_ns)
            yield f"{rule.node} publishes nothing: it first fires at {first}, and measuring ends at {end}"
