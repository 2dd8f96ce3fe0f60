# SPDX-License-Identifier: Apache-2.0
"""Evaluates the checks of hosts: a verdict for each check, and the fix (docs/methodology/machine.md)."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterator

from lagometer.run.hosts.looks import HostLook, WayLook, complaint
from lagometer.stats.verdict.health import SOCKET_BYTES_WANTED, Finding
from lagometer.units import duration_text, signed_duration_text, span_text

ETHERNET_MTU = 1500
BUFFERS = ("net.core.rmem_max", "net.core.wmem_max")


def host_findings(look: HostLook) -> list[Finding]:
    """Returns all checks of one host."""
    if look.unreachable is not None:
        lost = "no worker can run there"
        return [Finding("reachable", "fail", look.unreachable, lost, "see above: the words say what to do")]
    hello = look.hello
    identity = f"{hello.get('host')}, {hello.get('machine')}, lagometer {hello.get('version')} as here"
    return [
        Finding("reachable", "ok", identity),
        *_adapters(look),
        _clock(look),
        _synchronisation(look),
        _link(look),
        _buffers(look),
        _firewall(look),
    ]


def _adapters(look: HostLook) -> Iterator[Finding]:
    broken, differ = [], []
    for name, probe in look.facts.get("probes", {}).items():
        if probe["code"] != 0:
            broken.append(f"{name}: {complaint(probe)}")
        elif look.libraries[name][0] != look.libraries[name][1]:
            differ.append(name)
    good = len(look.libraries) - len(broken) - len(differ)
    observation = "; ".join([*([f"{good} work as here"] if good else []), *broken])
    if broken:
        fix = "install the missing packages that are named: the same versions as here"
        yield Finding("adapters", "fail", observation, "cells with these adapters fail there", fix)
    elif look.libraries:
        yield Finding("adapters", "ok", observation or "all are there")
    if differ:
        observation = f"another build of {', '.join(differ)}"
        spoils = "different builds behave like different middleware: don't compare their figures"
        fix = "install the same lagometer there, or leave `path` out to have it copied"
        if (machine := look.hello.get("machine")) != platform.machine():
            observation += f", for {machine}"
            fix = f"install the same versions there: what is built for {platform.machine()} can't run there"
        yield Finding("same-builds", "warn", observation, spoils, fix)


def _clock(look: HostLook) -> Finding:
    if look.clock.same:
        return Finding("clock", "ok", "the clock of this machine: one-way latency is exact")
    bound = duration_text(look.clock.bound_ns)
    observation = f"a clock of its own; its offset is known to {bound} over the agent's link"
    spoils = "one-way latency to this host has no bound, so it is not given"
    fix = "give the host the `address` of its link to the others (docs/methodology/clocks.md)"
    if not look.host.address:
        return Finding("clock", "warn", f"{observation}; no `address` for the exchange", spoils, fix)
    return Finding("clock", "ok", f"{observation}; trials exchange time stamps by {look.host.address}")


def _synchronisation(look: HostLook) -> Finding:
    clock = look.facts.get("clock", {})
    pulled_ppm, services = clock.get("pulled_ppm"), clock.get("services") or []
    words = [", ".join(services) or "no service seen"]
    if clock.get("synchronised") is not None:
        words.append("synchronised" if clock["synchronised"] else "not synchronised")
    if pulled_ppm is not None:
        words.append(f"made {pulled_ppm:+.1f} ppm faster")
    for name in ("chrony", "ptp"):
        if clock.get(name):
            text = f"{name}: {signed_duration_text(clock[name]['offset_ns'])} from its source"
            if clock[name].get("bound_ns") is not None:
                text += f", within {duration_text(clock[name]['bound_ns'])} by its own word"
            words.append(text)
    observation = "; ".join(words)
    if pulled_ppm is None:
        return Finding("synchronisation", "unknown", observation)
    if abs(pulled_ppm) > look.host.drift_ppm:
        spoils = "the clock drifts by more than `drift_ppm`: the bound of one-way figures grows"
        return Finding(
            "synchronisation", "warn", observation, spoils, "wait until it has settled (chronyc tracking)"
        )
    return Finding("synchronisation", "ok", observation)


def _link(look: HostLook) -> Finding:
    address, link = look.host.address, look.facts.get("link")
    if not address:
        spoils = "middleware chooses an interface by itself; udp and tcp can't leave the host"
        return Finding("link", "warn", "no `address`", spoils, "name the address of the link to measure")
    if link is None:
        spoils = "nothing can bind to it, so trials fail"
        return Finding(
            "link", "fail", f"no interface has {address}", spoils, "`ip address` there shows those it has"
        )
    speed = f"{link['speed_mbit']} Mbit/s" if link["speed_mbit"] else "speed unknown"
    observation = f"{link['name']}: {speed}, MTU {link['mtu']}{', wireless' if link['wireless'] else ''}"
    if link["wireless"]:
        spoils = "other stations, retries and power saving change the latency"
        return Finding(
            "link", "warn", observation, spoils, f"use a cable, or `iw dev {link['name']} set power_save off`"
        )
    return Finding("link", "ok", observation)


def _buffers(look: HostLook) -> Finding:
    settings = look.facts.get("settings", {})
    known = {name: settings[name] for name in BUFFERS if name in settings}
    observation = ", ".join(f"{name} {value >> 10} KiB" for name, value in known.items())
    small = [name for name, value in known.items() if value < SOCKET_BYTES_WANTED]
    if not known:
        return Finding("udp-buffers", "unknown", "cannot be read there")
    if small:
        fix = "sysctl -w " + " ".join(f"{name}={SOCKET_BYTES_WANTED}" for name in small)
        return Finding("udp-buffers", "warn", observation, "large messages are lost in full buffers", fix)
    return Finding("udp-buffers", "ok", observation)


def _firewall(look: HostLook) -> Finding:
    firewall = look.facts.get("firewall")
    if firewall is None:
        return Finding("firewall", "unknown", "its rules can be read by root with nft or iptables alone")
    if firewall["refusing"]:
        observation = f"{firewall['refusing']} rules or policies that drop or reject ({firewall['by']})"
        fix = "let UDP and TCP of the other hosts through, or take them off for the measurement"
        return Finding("firewall", "warn", observation, "discovery and fragments may not come through", fix)
    return Finding("firewall", "ok", "no rule refuses anything" if firewall["lines"] else "no rules")


def way_findings(way: WayLook) -> list[Finding]:
    """Returns all checks of the way from one host to another."""
    if way.wrong is not None:
        fix = "give each host the `address` of the link that joins them"
        return [Finding("way", "fail", way.wrong, "nothing is known of it", fix)]
    if not way.round_trips_ns:
        spoils = "no message goes this way"
        fix = "check cable, addresses and netmasks, routes and firewalls of both"
        return [Finding("round-trip", "fail", "no datagram came back", spoils, fix)]
    return [_round_trip(way), _path(way), _large(way), _multicast(way)]


def _round_trip(way: WayLook) -> Finding:
    trips = way.round_trips_ns
    observation = f"{span_text(min(trips), max(trips))}, median {duration_text(statistics.median(trips))}"
    lost = way.sent - len(trips)
    if lost:
        fix = "find what loses packets: cable, Wi-Fi, a busy host"
        return Finding(
            "round-trip", "warn", f"{observation}; {lost} of {way.sent} lost", "messages are lost", fix
        )
    return Finding("round-trip", "ok", observation)


def _path(way: WayLook) -> Finding:
    if way.path_mtu is None:
        spoils = "packets of no usual size come through"
        return Finding(
            "path-mtu", "fail", "not even 576 bytes in one piece", spoils, "check the MTU on the way"
        )
    observation = f"{way.path_mtu} bytes in one piece"
    if way.path_mtu < ETHERNET_MTU:
        spoils = "larger packets are fragmented or lost on the way"
        fix = f"set the MTU of both interfaces to {way.path_mtu}, or raise it on the way"
        return Finding("path-mtu", "warn", observation, spoils, fix)
    return Finding("path-mtu", "ok", observation)


def _large(way: WayLook) -> Finding:
    if way.large_arrives:
        return Finding("fragments", "ok", "a datagram of 60 kB arrives")
    spoils = "DDS sends messages of up to 64 kB as one datagram: these are lost"
    fix = "let fragments through the firewall; see net.ipv4.ipfrag_high_thresh"
    return Finding("fragments", "fail", "a datagram of 60 kB does not arrive", spoils, fix)


def _multicast(way: WayLook) -> Finding:
    if way.multicast:
        return Finding("multicast", "ok", "arrives")
    spoils = "DDS finds no participant by multicast"
    if way.cast_wrong:
        observation = f"{way.sender} can't send it: {way.cast_wrong}"
        fix = "let 224.0.0.0/4 out there (`nft list ruleset`), or name peers in the middleware's own file"
        return Finding("multicast", "fail", observation, spoils, fix)
    fix = (
        "let 224.0.0.0/4 and IGMP through, turn IGMP snooping off or have a querier, add a route for "
        "224.0.0.0/4; or name peers in the middleware's own file"
    )
    return Finding("multicast", "fail", "does not arrive", spoils, fix)
