# SPDX-License-Identifier: Apache-2.0
"""Which load runs next to a trial's workers."""

from __future__ import annotations

from lagometer.agent.load import Wanted
from lagometer.study import Cell, Study
from lagometer.study.interference import NETWORK, NONE, host_named, kind_and_level

NS_PER_S = 1_000_000_000


def _role(study: Study, cell: Cell, host: str) -> dict[str, str] | None:
    """Returns which end of the load a host has, None if it has none. Over several hosts, network load goes
    from the named host to the next host of the cell."""
    name = cell.factors.interference
    loaded = host_named(name) or cell.hosts[0]
    if kind_and_level(name)[0] != NETWORK or len(cell.hosts) < 2:
        return {} if host == loaded else None
    other = cell.hosts[(cell.hosts.index(loaded) + 1) % len(cell.hosts)]
    address = study.hosts[other].address
    return {loaded: {"sends_to": address}, other: {"listens": address}}.get(host)


def wanted_load(study: Study, cell: Cell, host: str, owner: int, number: int) -> Wanted | None:
    """Returns the load of one trial of a cell on a host, None if it has none there.

    owner: the process number of the agent that starts it; number: distinguishes its trials. Both are in the
    name of the folder that the generators write to, so the folder of a killed agent can be found.
    """
    name = cell.factors.interference
    if name == NONE or (role := _role(study, cell, host)) is None:
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
        **role,
    )
