# SPDX-License-Identifier: Apache-2.0
"""Why a bridge can't carry the topics of a cell: reasons to exclude it."""

from __future__ import annotations

from collections.abc import Iterator

from lagometer.study.bridges import BridgeProgram, Lack, why_missing
from lagometer.study.cell import Cell
from lagometer.study.daemons import option_values
from lagometer.study.hosts import SSH
from lagometer.study.surroundings import Surroundings
from lagometer.study.traffic import Traffic


def not_bridged(cell: Cell, surroundings: Surroundings) -> Iterator[str]:
    """Why this cell's bridge can't do its work here; yields nothing without a bridge."""
    bridge = cell.bridge
    if bridge is None:
        return
    if not cell.across:
        yield _nothing_to_carry(cell, bridge)
        return
    if (missing := why_missing(bridge)) is not None:
        yield missing
    ends = list(_ends(cell, bridge))
    yield from ends
    yield from _around(cell, bridge, surroundings)
    if not ends:
        yield from _places(cell, bridge, surroundings)
    for topic, traffic in cell.across.items():
        if topic in cell.graph.service_of:
            yield f"a request and its reply don't pass bridge {bridge.name}"
        for name in traffic.adapters:
            yield from _of_adapter(bridge, name, traffic, cell, surroundings)
        for lack in bridge.lacks:
            if _is_hit(lack, traffic, cell):
                yield f"bridge {bridge.name} does not carry topic '{topic}': {lack.sentence}"


def _nothing_to_carry(cell: Cell, bridge: BridgeProgram) -> str:
    topic, graph = next(iter(cell.traffic)), cell.graph.name
    if bridge.sides is None:
        return (
            f"no topic of {graph} goes to another domain, so bridge {bridge.name} has nothing to carry: give "
            f"topics two, such as `{topic}: {{domain: 5+10}}`"
        )
    (here, *_), (there, *_) = bridge.sides
    return (
        f"no topic of {graph} goes between {_sides(bridge)}, so bridge {bridge.name} has nothing to carry: "
        f"give topics both, such as `{topic}: {{adapter: {here}+{there}}}`"
    )


def _sides(bridge: BridgeProgram) -> str:
    return " and ".join(" or ".join(side) for side in bridge.sides or ())


def _ends(cell: Cell, bridge: BridgeProgram) -> Iterator[str]:
    """What the bridge joins, against where its topics are published and read."""
    if bridge.sides is None:
        domains = {domain for traffic in cell.across.values() for domain in traffic.domains}
        if len(domains) > 2:
            yield f"bridge {bridge.name} joins two domains, and the topics across need {len(domains)}"
        return
    for topic, traffic in cell.across.items():
        if cell.sides_of(traffic) is None:
            ends = f"{traffic.publisher_adapter} to {traffic.subscriber_adapter}"
            yield f"bridge {bridge.name} joins {_sides(bridge)}, and topic '{topic}' goes from {ends}"
    for on_side in cell.domains_on_sides:
        if len(on_side) > 1:
            many = " and ".join(map(str, on_side))
            yield f"bridge {bridge.name} is in one domain on each side, not in {many}"


def _around(cell: Cell, bridge: BridgeProgram, surroundings: Surroundings) -> Iterator[str]:
    """What the cell asks for beside its topics."""
    if secured := [topic for topic, traffic in cell.across.items() if traffic.security != "none"]:
        yield f"bridge {bridge.name} has no certificate: set `security: none` for {', '.join(secured)}"
    if surroundings.layers:
        # The middleware's numbers of messages differ between both sides, so they say nothing together.
        yield f"layers can't be followed across bridge {bridge.name}: set `layers: off`"


def _places(cell: Cell, bridge: BridgeProgram, surroundings: Surroundings) -> Iterator[str]:
    """Where its processes would run."""
    for name in dict.fromkeys(cell.bridge_hosts):
        host = surroundings.hosts.get(name)
        if host is not None and host.launcher == SSH:
            yield f"bridge {bridge.name} starts on this machine alone, and would run on {name}, another one"
    for name in cell.hosts if len(cell.hosts) > 1 else ():
        host = surroundings.hosts.get(name)
        if host is not None and not host.address:
            yield f"bridge {bridge.name} needs the address of each host: give {name} its `address`"


def _of_adapter(
    bridge: BridgeProgram, name: str, traffic: Traffic, cell: Cell, surroundings: Surroundings
) -> Iterator[str]:
    carried = bridge.adapters.get(name)
    if carried is None:
        yield f"bridge {bridge.name} carries no topics of {name}: {bridge.otherwise}"
        return
    if carried.types and traffic.type not in carried.types:
        offered = ", ".join(carried.types)
        yield (
            f"bridge {bridge.name} carries no {traffic.type} of {name}, only {offered}: {bridge.otherwise}"
        )
    adapter = surroundings.adapters[name]
    values = option_values(adapter, cell.options, cell.factors.profile)
    for key, offered_values in carried.options.items():
        value = values.get(key)
        if value not in offered_values:
            written = " or ".join("none" if each is None else str(each).lower() for each in offered_values)
            yield f"bridge {bridge.name} finds {name} only with {key} {written}, and it is {value}"


def _is_hit(lack: Lack, traffic: Traffic, cell: Cell) -> bool:
    if lack.adapters and not set(lack.adapters) & set(traffic.adapters):
        return False
    if lack.setting in ("reliability", "history", "durability"):
        return getattr(traffic, lack.setting) in lack.values
    if lack.setting == "payload":
        return traffic.payload_bytes > (lack.above or 0)
    if lack.setting == "rate":
        return cell.factors.rate_hz > (lack.above or 0)
    return lack.setting in traffic.policies
