# SPDX-License-Identifier: Apache-2.0
"""Why workers can't run on the CPUs that their host has."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lagometer.study.cell import Cell


def processor_reasons(cell: Cell, workers: Collection[int], cpus: tuple[int, ...]) -> Iterator[str]:
    """Why these workers of a cell can't have the CPUs that they need. cpus: those that they may use."""
    factors = cell.factors
    cell_cpus: tuple[int, ...] = cpus
    if factors.cpus not in ("any", "spread"):
        cell_cpus = tuple(int(cpu) for cpu in factors.cpus.split(","))
    pinned = {cpu for worker in workers for cpu in cell.worker_cpus(worker, cpus)}
    absent = sorted(pinned - set(cpus))
    if absent:
        names = ", ".join(map(str, absent))
        yield f"CPU {names} is not available here (there are: {_ranges(cpus)})"
    if workers and factors.dispatch == "poll" and factors.scheduling == "fifo":
        nodes_here = {node for worker in workers for node in cell.workers[worker]}
        spinning = sum(
            any(topics_read(cell, node) for node in nodes if node in nodes_here)
            for nodes in served_together(cell)
        )
        if spinning >= len(cell_cpus):
            yield f"{spinning} spinning SCHED_FIFO threads on {len(cell_cpus)} CPUs would starve the machine"


def served_together(cell: Cell) -> tuple[tuple[str, ...], ...]:
    """The nodes of each dispatch thread."""
    if cell.factors.threads == "per-process":
        return cell.workers
    return tuple((node,) for node in cell.graph.node_names)


def topics_read(cell: Cell, node: str) -> tuple[str, ...]:
    """The topics that a node subscribes to."""
    return tuple(dict.fromkeys(topic for rule in cell.graph.rules_of(node) for topic in rule.subscribes))


def _ranges(cpus: tuple[int, ...]) -> str:
    return (
        f"{cpus[0]}-{cpus[-1]}"
        if len(cpus) > 1 and cpus[-1] - cpus[0] == len(cpus) - 1
        else ",".join(map(str, cpus))
    )
