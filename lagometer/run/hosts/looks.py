# SPDX-License-Identifier: Apache-2.0
"""Checks the hosts of a study before any measurement: each host, and the way between each pair."""

from __future__ import annotations

import itertools
import json
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lagometer.installation import worker_command
from lagometer.run.hosts.base import HostError
from lagometer.run.hosts.launchers import Launchers
from lagometer.run.hosts.link import AgentLink, ClockOffset
from lagometer.run.hosts.opening import open_all
from lagometer.study import Adapter
from lagometer.study.hosts import Host

LOOK_S = 20.0
ASK_S = 10.0
PORTS = (20_000, 60_000)


@dataclass(frozen=True)
class HostLook:
    """One host. unreachable: why nothing else is known about it; clock: its offset from ours; facts: the
    agent's report; libraries: for each adapter, the hashes here and there."""

    name: str
    host: Host
    unreachable: str | None = None
    hello: Mapping[str, Any] = field(default_factory=dict)
    clock: ClockOffset = field(default_factory=ClockOffset)
    facts: Mapping[str, Any] = field(default_factory=dict)
    libraries: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class WayLook:
    """The way from one host to another and back. wrong: why it can't be checked; round_trips_ns: of datagrams
    that came back; sent: the number of datagrams; path_mtu: the largest packet that passes in one piece;
    large_arrives: whether a fragmented packet passes; multicast: whether it arrives at the other end;
    cast_wrong: why the sender could not send it."""

    sender: str
    receiver: str
    wrong: str | None = None
    round_trips_ns: tuple[int, ...] = ()
    sent: int = 0
    path_mtu: int | None = None
    large_arrives: bool | None = None
    multicast: bool = False
    cast_wrong: str | None = None


def look_at(
    hosts: Mapping[str, Host], adapters: Mapping[str, Adapter]
) -> tuple[tuple[HostLook, ...], tuple[WayLook, ...]]:
    """Starts an agent on each host, and queries them all. adapters: those that should work there. Raises
    SetupMissing."""
    launchers = Launchers([adapter.library for adapter in adapters.values()])
    links = [AgentLink(name, launchers.of(name, host)) for name, host in hosts.items()]
    try:
        open_all(links)
        looks = [_host(link, hosts[link.name], adapters) for link in links]
        open_links = {link.name: link for link in links if link.is_open}
        return tuple(looks), tuple(_ways(looks, open_links))
    finally:
        for link in links:
            link.close()
        launchers.close()


def _host(link: AgentLink, host: Host, adapters: Mapping[str, Adapter]) -> HostLook:
    if link.unreachable is not None:
        return HostLook(link.name, host, link.unreachable)
    try:
        link.open()
        probes = {name: probe_words(link, adapter) for name, adapter in adapters.items()}
        look = {"command": "look", "address": host.address, "probes": probes}
        facts = link.ask(look, "looked", LOOK_S)["facts"]
        hashes = link.hashes(_there(link, adapter) for adapter in adapters.values())
        libraries = {
            name: (_hash_here(adapter), hashes[_there(link, adapter)]) for name, adapter in adapters.items()
        }
        return HostLook(link.name, host, None, link.hello, link.offset(), facts, libraries)
    except HostError as error:
        return HostLook(link.name, host, str(error))


def probe_words(link: AgentLink, adapter: Adapter) -> list[str]:
    """Returns the command that loads an adapter on an open link's host, in the surroundings that it needs."""
    variables = dict(adapter.sidecar.environment)
    if adapter.sidecar.preload:
        variables["LD_PRELOAD"] = ":".join(map(link.there, adapter.sidecar.preload))
    before = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
    worker = map(link.there, worker_command(adapter.sidecar.worker))
    return [*before, *worker, "--probe", _there(link, adapter)]


def complaint(result: Mapping[str, Any]) -> str:
    """Returns why a program that the agent tried has failed, in words; empty if it said nothing."""
    said = str(result["said"])
    try:
        answer = json.loads(said)
    except ValueError:
        answer = None
    if isinstance(answer, Mapping) and isinstance(answer.get("error"), str):
        said = answer["error"]
    code = result["code"]
    if isinstance(code, int) and code < 0 and not result.get("late"):
        return f"it died of signal {-code}{f': {said}' if said else ''}"
    return said


def _there(link: AgentLink, adapter: Adapter) -> str:
    return link.there(str(adapter.library))


def _hash_here(adapter: Adapter) -> str | None:
    from lagometer.agent.serving import hash_of

    return hash_of(str(adapter.library))


def _ways(looks: Sequence[HostLook], links: Mapping[str, AgentLink]) -> list[WayLook]:
    """Checks the way between each pair of hosts that have an address."""
    pairs = list(itertools.permutations([host_look for host_look in looks if host_look.name in links], 2))
    ends: dict[str, tuple[int, str | None]] = {}
    port = random.randint(*PORTS)
    for look in looks:
        if look.name in links and look.host.address:
            ends[look.name] = _listen(links[look.name], look.host.address, port)
        elif look.name in links:
            ends[look.name] = 0, "it has no `address`"
    return [_way(one, other, links, ends) for one, other in pairs]


def _listen(link: AgentLink, address: str, port: int) -> tuple[int, str | None]:
    try:
        answer = link.ask({"command": "listen", "address": address, "port": port}, "listening", ASK_S)
    except HostError as error:
        return 0, str(error)
    return int(answer["port"]), answer["wrong"]


def _way(
    one: HostLook,
    other: HostLook,
    links: Mapping[str, AgentLink],
    ends: Mapping[str, tuple[int, str | None]],
) -> WayLook:
    for look in (one, other):
        if ends[look.name][1]:
            return WayLook(one.name, other.name, f"{look.name}: {ends[look.name][1]}")
    sender, receiver = links[one.name], links[other.name]
    mtu = int((one.facts.get("link") or {}).get("mtu") or 1500)
    peer = {"address": other.host.address, "port": ends[other.name][0], "mtu": mtu}
    word = secrets.token_hex(8)
    try:
        answer = sender.ask({"command": "ask", **peer}, "asked", ASK_S)
        cast_wrong = sender.ask({"command": "cast", "word": word}, "cast", ASK_S)["wrong"]
        # One more round trip: by its end the cast has arrived, too, if its way is as fast.
        sender.ask({"command": "ask", **peer}, "asked", ASK_S)
        heard_words = receiver.ask({"command": "heard"}, "heard", ASK_S)["words"]
    except HostError as error:
        return WayLook(one.name, other.name, str(error))
    trips = answer["round_trips_ns"]
    return WayLook(
        one.name,
        other.name,
        round_trips_ns=tuple(trip for trip in trips if trip is not None),
        sent=len(trips),
        path_mtu=answer["path_mtu"],
        large_arrives=answer["large_arrives"],
        multicast=word in heard_words,
        cast_wrong=cast_wrong,
    )
