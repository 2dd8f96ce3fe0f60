# SPDX-License-Identifier: Apache-2.0
"""What the conductor orders an agent to do on its host in one trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lagometer.agent.commands import Command, Companion, Leaves
from lagometer.agent.cpu_limit import GROUP, SHARE_MIN, CpuLimit
from lagometer.agent.daemons import Ready, Wanted
from lagometer.agent.load import Wanted as WantedLoad
from lagometer.agent.observe.resources import OFF, ON, WITH_COUNTERS


@dataclass(frozen=True)
class Orders:
    """One host's part of a trial.

    network: `private` (its own namespaces) or `host`; directory: folder for sockets and shared memory, made
    for the trial on the host's network; daemons: serve before a worker starts; load: None without
    interference; address: of the link to other hosts, empty without one; captures: packets are copied into a
    file; probed: names of the files in the directory to which the workers' probes write, empty without
    probes; files: text by name, written into the directory before anything starts; resources: whether to
    observe what the processes cost: `off`, `on`, or `counters` (with those of the processor); scheduler: the
    path of the program that records what the kernel's scheduler does, empty if that is not wanted; cpu_limit:
    of workers and daemons, None without one.
    """

    network: str
    directory: str
    workers: tuple[Command, ...]
    daemons: tuple[Wanted, ...] = ()
    load: WantedLoad | None = None
    leaves: Leaves = field(default_factory=Leaves)
    address: str = ""
    captures: bool = False
    probed: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    resources: str = ON
    scheduler: str = ""
    cpu_limit: CpuLimit | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns it in the form that `parsed` reads."""
        return asdict(self)


def parsed(values: Mapping[str, Any]) -> Orders:
    """Reads the output of `as_json`. Raises KeyError, TypeError, ValueError for anything else."""
    load, limit = values["load"], values["cpu_limit"]
    leaves = values["leaves"]
    return Orders(
        network=str(values["network"]),
        directory=str(values["directory"]),
        workers=tuple(_command(worker) for worker in values["workers"]),
        daemons=tuple(_daemon(daemon) for daemon in values["daemons"]),
        load=None if load is None else WantedLoad(**{**load, "pinned": tuple(load["pinned"])}),
        leaves=Leaves(
            str(leaves["directory"]), tuple(leaves["shared_memory"]), tuple(leaves["message_queues"])
        ),
        address=str(values["address"]),
        captures=bool(values["captures"]),
        probed=tuple(values["probed"]),
        files={str(name): str(text) for name, text in values["files"].items()},
        resources=_choice(values["resources"]),
        scheduler=str(values["scheduler"]),
        cpu_limit=None if limit is None else _cpu_limit(limit),
    )


def _choice(value: Any) -> str:
    if value not in (OFF, ON, WITH_COUNTERS):
        raise ValueError(f"resources: {value}")
    return str(value)


def _cpu_limit(values: Mapping[str, Any]) -> CpuLimit:
    limit = CpuLimit(str(values["group"]), int(values["cpus"]), float(values["share"]))
    if not (SHARE_MIN <= limit.share <= 1 and limit.cpus > 0 and GROUP.fullmatch(limit.group)):
        raise ValueError(f"cpu_limit: {values}")
    return limit


def _command(values: Mapping[str, Any]) -> Command:
    return Command(tuple(values["arguments"]), dict(values["environment"]))


def _daemon(values: Mapping[str, Any]) -> Wanted:
    companion = values["companion"]
    return Wanted(
        name=values["name"],
        companion=Companion(tuple(companion["arguments"]), dict(companion["environment"]), daemon=True),
        ready=Ready(**values["ready"]),
        for_workers=dict(values["for_workers"]),
        files=dict(values["files"]),
        leaves=tuple(values["leaves"]),
    )
