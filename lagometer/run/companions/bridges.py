# SPDX-License-Identifier: Apache-2.0
"""The processes of a bridge that a trial needs next to its workers, with their texts filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lagometer.agent.commands import Companion
from lagometer.agent.daemons import Ready, Wanted
from lagometer.run.companions.pinning import pinned_words
from lagometer.study import Cell
from lagometer.study.bridges import BridgeProgram, filled_in, find_bridge_program
from lagometer.study.daemons import LOOPBACK
from lagometer.study.hosts import Host


def bridge_processes(cell: Cell) -> tuple[str, ...]:
    """Returns the names of the bridge's processes; none without a bridge."""
    return cell.bridge.process_names(cell.domains_across) if cell.bridge is not None else ()


def wanted_bridge(
    cell: Cell, hosts: Mapping[str, Host], host: str, runtime: str, daemons: Sequence[Wanted] = ()
) -> tuple[Wanted, ...]:
    """Returns the processes of the cell's bridge that run on this host, for a trial in the folder `runtime`.
    daemons: of the adapters, which it reaches as the workers do."""
    bridge = cell.bridge
    if bridge is None:
        return ()
    on_hosts = cell.bridge_hosts
    address = LOOPBACK
    if len(cell.hosts) > 1 and on_hosts[0] in hosts:
        address = hosts[on_hosts[0]].address or LOOPBACK
    wanted = []
    for place, process in enumerate(bridge.process_names(cell.domains_across)):
        if on_hosts[place] != host:
            continue
        values = _values(cell, bridge, process, place, address, runtime)
        around = {name: text for daemon in daemons for name, text in daemon.for_workers.items()}
        wanted.append(_process(bridge, process, values, pinned_words(cell), around))
    return tuple(wanted)


def _values(
    cell: Cell, bridge: BridgeProgram, process: str, place: int, address: str, runtime: str
) -> dict[str, str]:
    """Returns the value of each placeholder. The first process listens, the second connects to it."""
    domains = cell.domains_across
    endpoint = f'"tcp/{address}:{bridge.port}"'
    names = "|".join(topic.replace(".", "[.]") for topic in cell.across)
    return {
        "runtime": runtime,
        "process": process,
        "domain": str(domains[place]),
        "first": str(domains[0]),
        "second": str(domains[1]),
        "address": address,
        "listen": endpoint if place == 0 else "",
        "connect": endpoint if place == 1 else "",
        "topics": f"^(.+/)?(rt/)?lagometer/({names})$",
        "ros_topics": f"/lagometer/({names})",
    }


def _process(
    bridge: BridgeProgram,
    process: str,
    values: Mapping[str, str],
    before: tuple[str, ...],
    around: Mapping[str, str],
) -> Wanted:
    def filled(text: str) -> str:
        return filled_in(text, values)

    arguments = (*before, find_bridge_program(bridge) or bridge.program, *map(filled, bridge.arguments))
    environment = {**around, **{name: filled(text) for name, text in bridge.environment.items()}}
    texts = {key: filled(getattr(bridge.ready, key) or "") or None for key in ("unix_socket", "file")}
    return Wanted(
        name=process,
        companion=Companion(arguments, environment, daemon=True),
        ready=Ready(**{**bridge.ready.model_dump(), **texts}),
        files={filled(name): filled(text) for name, text in bridge.files.items()},
    )
