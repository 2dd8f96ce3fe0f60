# SPDX-License-Identifier: Apache-2.0
"""What to change if a cell needs more than its adapters declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lagometer.study.adapter import Adapter
from lagometer.study.cell import Cell

ABILITIES = {
    "reliability": "reliability",
    "history": "history",
    "durability": "durability",
    "type": "types",
    "profile": "profiles",
}


@dataclass(frozen=True)
class Instead:
    """A factor of a study and a value that all adapters of the cell support."""

    factor: str
    value: str

    def __str__(self) -> str:
        return f"--{self.factor} {self.value}"


def way_out(cell: Cell, adapters: Mapping[str, Adapter]) -> tuple[Instead, ...]:
    """The factors to change so that no adapter's declared ability or limit excludes the cell.

    Empty if none does, or if no alternative would help.
    """
    factors, names = cell.factors, cell.adapters
    # If every topic has its own adapter, the factor's value need not be an adapter.
    if any(name not in adapters for name in (*names, factors.subscriber_adapter)):
        return ()
    sides = [adapters[name].sidecar for name in names]
    offers = {name: [getattr(side.abilities, key) for side in sides] for name, key in ABILITIES.items()}
    offers["dispatch"] = [adapters[factors.subscriber_adapter].sidecar.abilities.dispatch]
    alternatives = []
    for factor, offered in offers.items():
        common = [value for value in offered[0] if all(value in supported for supported in offered)]
        if getattr(factors, factor) not in common and common:
            alternatives.append(Instead(factor, common[0]))
    if factors.domain and not all(side.abilities.domains for side in sides):
        alternatives.append(Instead("domain", "0"))
    if len(cell.workers) > 1 and any(side.scope == "process" for side in sides):
        alternatives.append(Instead("placement", "single-process"))
    largest = min(side.limits.payload_bytes_max or factors.payload_bytes for side in sides)
    if factors.payload_bytes > largest:
        alternatives.append(Instead("payload", f"{largest}B"))
    depth = _depth_max(cell, adapters)
    if depth is not None and factors.depth > depth and factors.history == "keep_last":
        alternatives.append(Instead("depth", str(depth)))
    return tuple(alternatives)


def _depth_max(cell: Cell, adapters: Mapping[str, Adapter]) -> int | None:
    """The deepest queue that all adapters of the cell support; None: no limit is known."""
    factors = cell.factors
    limits = [
        adapters[name].sidecar.limits for name in (factors.publisher_adapter, factors.subscriber_adapter)
    ]
    depths_max = [limit.depth_max for limit in limits]
    if factors.durability == "transient_local":
        depths_max += [limit.transient_local_depth_max for limit in limits]
    if cell.graph.services:
        depths_max += [limit.service_depth_max for limit in limits]
    return min((depth_max for depth_max in depths_max if depth_max is not None), default=None)
