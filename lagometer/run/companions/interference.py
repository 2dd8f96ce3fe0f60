# SPDX-License-Identifier: Apache-2.0
"""Which load a trial has beside its workers."""

from __future__ import annotations

from lagometer.agent.load import Wanted
from lagometer.study import Cell, Study
from lagometer.study.interference import NONE, kind_and_level

NS_PER_S = 1_000_000_000


def wanted_load(study: Study, cell: Cell, owner: int, number: int) -> Wanted | None:
    """Returns the load of one trial of a cell, None if it has none.

    owner: the process number of the agent that starts it; number: tells its trials apart. The folder of what
    the generators write bears both, so that a killed agent's is found.
    """
    name = cell.factors.interference
    if name == NONE:
        return None
    pinned: tuple[str, ...] = ()
    if cell.factors.cpus not in ("any", "spread"):
        pinned = ("taskset", "-c", cell.factors.cpus)
    kind, level = kind_and_level(name)
    return Wanted(
        name=name,
        kind=kind,
        level=level,
        seconds=(study.trial_ns() + study.discovery_ns(cell)) // NS_PER_S,
        pinned=pinned,
        private=cell.factors.network == "private",
        folder=f"lagometer-{owner}-{number}",
    )
