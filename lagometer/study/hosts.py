# SPDX-License-Identifier: Apache-2.0
"""Hosts: places where workers run, each with one agent, and which nodes run where.

A value of the factor `hosts` names the hosts of a cell, `robot+base`; `here` means a study without hosts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any

from lagometer.study.devices import Device, read_device
from lagometer.study.document import Entries, Scalar, Tree, entry_of, is_file, read_document
from lagometer.study.graph import Graph
from lagometer.study.values import (
    Names,
    Problems,
    is_null,
    named_parts,
    nearest,
    parsed,
    scalars,
    word_parser,
)
from lagometer.units import UnitError

KEY = "hosts"
HERE = "here"
EMULATED = "netns"
SSH = "ssh"
LAUNCHERS = ("local", EMULATED, SSH)
SSH_KEYS = ("destination", "config", "path")
DEVICE = "device"
KEYS = ("launcher", *SSH_KEYS, "address", "symmetric", "drift_ppm", "before", "runs", DEVICE)
# How fast or slow a clock may run: what Ethernet and IEEE 802.1AS (B.1.1) allow an oscillator.
DRIFT_PPM = 100.0
DRIFT_PPM_MAX = 100_000.0
# Addresses of hosts that are made from namespaces. Their network is separate, so nobody else has them.
EMULATED_NETWORK = IPv4Address("10.77.0.0")
EMULATED_MAX = 254
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAMES = Names(
    key=KEY,
    a_part="a host",
    taken=(HERE, "where lagometer runs, in a study without hosts"),
    empty="says nothing of the host",
    write="launcher: local",
)


@dataclass(frozen=True)
class Host:
    """launcher: how its agent is started; address: of the link that reaches the other hosts, empty if
    unknown; symmetric: the user vouches that this link takes the same time both ways; drift_ppm: how fast or
    slow its clock may run; before: words in front of the agent's command; runs: the nodes and groups that run
    there if a cell has this host; device: what its CPUs are limited to, an approximation.

    For the launcher ssh: destination: as the user's ssh understands it, empty for the host's name; config: a
    configuration file for ssh, empty for the user's own; path: of a lagometer installation on that host,
    empty for any."""

    launcher: str = "local"
    address: str = ""
    symmetric: bool = False
    drift_ppm: float = DRIFT_PPM
    before: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    destination: str = ""
    config: str = ""
    path: str = ""
    device: Device | None = None

    @property
    def is_apart(self) -> bool:
        """Whether it is, or looks like, a different machine than the one that lagometer runs on."""
        return self.launcher in (EMULATED, SSH)

    @property
    def is_emulated(self) -> bool:
        """Whether it shares this machine's CPUs and caches but looks like a different one."""
        return self.launcher == EMULATED

    def as_json(self) -> dict[str, object]:
        """For manifest.json."""
        return {
            "launcher": self.launcher,
            "emulated": self.is_emulated,
            "address": self.address,
            "symmetric": self.symmetric,
            "drift_ppm": self.drift_ppm,
            "before": list(self.before),
            "runs": list(self.runs),
            **({key: getattr(self, key) for key in SSH_KEYS} if self.launcher == SSH else {}),
            **({DEVICE: self.device.as_json()} if self.device is not None else {}),
        }


def parse_hosts(text: str) -> str:
    """A value of the factor: `here`, or host names joined by `+`. Raises UnitError."""
    names = text.split("+")
    if any(_NAME.fullmatch(name) is None for name in names):
        raise UnitError(f"'{text}' is not a list of hosts like 'robot+base'")
    if len(set(names)) < len(names):
        raise UnitError(f"'{text}' names a host twice")
    return text


def hosts_of_study(
    value: Tree, problems: Problems, lines: dict[str, int | None], folder: Path
) -> dict[str, Host]:
    """The key `hosts` of a study: its hosts, or the name of a file that has them.

    folder: tried first for the file, before the working directory. Raises BadInput for an invalid file.
    """
    if not isinstance(value, Scalar) or is_null(value):
        return read_hosts(value, problems, lines)
    path = next((path for path in (folder / value.text, Path(value.text)) if is_file(path)), None)
    if path is None:
        message = f"the file '{value.text}' is neither in {folder} nor in the working directory"
        problems.add(message, value.line, KEY, "name a file with `hosts:`, or write the hosts under the key")
        return {}
    return hosts_of_file(path)


def hosts_of_file(path: Path) -> dict[str, Host]:
    """The hosts of a file that has nothing but `hosts:`. Raises BadInput with every problem."""
    document, _ = read_document(path)
    problems = Problems(str(path))
    for key, _ in document.entries:
        if key.text != KEY:
            problems.add(f"unknown key '{key.text}'", key.line, hint="a file of hosts has only `hosts:`")
    value = entry_of(document, KEY)
    hosts = read_hosts(value, problems, {}) if value is not None else {}
    problems.raise_if_any()
    return hosts


def read_hosts(value: Tree, problems: Problems, lines: dict[str, int | None]) -> dict[str, Host]:
    """The key `hosts`: `{name: {launcher: local, runs: [nodes and groups]}}`."""
    hosts = {
        name: _host(item, f"hosts.{name}", problems)
        for name, item in named_parts(value, _NAMES, problems, lines)
    }
    return _with_addresses(hosts, problems, lines)


def _with_addresses(
    hosts: Mapping[str, Host], problems: Problems, lines: Mapping[str, int | None]
) -> dict[str, Host]:
    """Gives emulated hosts an address, by their order in the study."""
    addressed, name_by_address = {}, {host.address: name for name, host in hosts.items() if host.address}
    free = (str(EMULATED_NETWORK + number) for number in range(1, EMULATED_MAX + 1))
    for name, host in hosts.items():
        where = f"hosts.{name}"
        if host.address and name_by_address[host.address] != name:
            message = f"{name_by_address[host.address]} has the address {host.address}, too"
            problems.add(message, lines.get(where), f"{where}.address", "give each host its own")
        if host.is_emulated and not host.address:
            address = next((candidate for candidate in free if candidate not in name_by_address), "")
            if not address:
                message = f"is more than the {EMULATED_MAX} emulated hosts that there can be"
                problems.add(message, lines.get(where), where, "use fewer hosts")
            addressed[name] = replace(host, address=address)
        else:
            addressed[name] = host
    return addressed


def _host(value: Entries, where: str, problems: Problems) -> Host:
    fields: dict[str, Any] = {}
    readers: dict[str, Callable[[str], object]] = {
        "launcher": word_parser(LAUNCHERS),
        "address": _address,
        "symmetric": _yes_or_no,
        "drift_ppm": _drift_ppm,
        "destination": _destination,
        "config": _path_here,
        "path": _path_there,
    }
    for key, item in value.entries:
        key_path = f"{where}.{key.text}"
        if key.text not in KEYS:
            problems.add(f"unknown key '{key.text}'", key.line, key_path, nearest(key.text, KEYS))
        elif key.text == DEVICE:
            fields[DEVICE] = read_device(item, key_path, problems)
        elif key.text not in readers:
            fields[key.text] = tuple(scalar.text for scalar in scalars(item, key_path, problems))
        elif not isinstance(item, Scalar):
            problems.add("takes one word", key.line, key_path, "write it behind the colon")
        elif (parsed_value := parsed(item, key_path, readers[key.text], problems)) is not None:
            fields[key.text] = parsed_value
    host = Host(**fields)
    for name in SSH_KEYS if host.launcher != SSH else ():
        if getattr(host, name):
            hint = "write `launcher: ssh`, or leave it out"
            problems.add(f"'{name}' is of the launcher ssh", _line_of(value, name), f"{where}.{name}", hint)
    if host.launcher == SSH and host.device is not None:
        message = "another machine is what it is: only a host on this one is limited to a device"
        problems.add(message, _line_of(value, DEVICE), f"{where}.{DEVICE}", "leave it out")
    return host


def _line_of(value: Entries, name: str) -> int | None:
    return next((key.line for key, _ in value.entries if key.text == name), None)


def _destination(text: str) -> str:
    if text.startswith("-") or not text or any(character.isspace() for character in text):
        raise UnitError(f"'{text}' is not a destination for ssh like 'robot' or 'pi@192.168.1.3'")
    return text


def _path_there(text: str) -> str:
    if not text.startswith(("/", "~/")):
        raise UnitError(f"'{text}' is not a path that begins with / or ~/")
    return text.rstrip("/") or "/"


def _path_here(text: str) -> str:
    return str(Path(_path_there(text)).expanduser())


def _yes_or_no(text: str) -> bool:
    if text not in ("true", "false"):
        raise UnitError(f"'{text}' is neither true nor false")
    return text == "true"


def _drift_ppm(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise UnitError(f"'{text}' is not a number of parts in a million") from error
    if not 0 < value <= DRIFT_PPM_MAX:
        raise UnitError(f"'{text}' is not between 0 and {DRIFT_PPM_MAX:,.0f}")
    return value


def _address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except AddressValueError as error:
        raise UnitError(f"'{text}' is not an address like 192.168.1.2") from error


def chosen_hosts(
    values: Sequence[object] | None,
    hosts: Mapping[str, Host],
    graphs: Mapping[str, Graph],
    problems: Problems,
    lines: Mapping[str, int | None],
) -> tuple[object, ...]:
    """The values of the factor. If a study with hosts gives none: all of its hosts, in order.

    Each node or group that a host runs must be in a workload, of the study or part, that uses the host.
    """
    check_hosts(values or (), hosts, lines.get("matrix.hosts"), problems)
    known = {name for graph in graphs.values() for name in _names_in(graph)}
    host_of: dict[str, str] = {}
    chosen = {name for value in values or hosts for name in str(value).split("+")}
    for name, host in hosts.items():
        if name not in chosen:
            continue
        where = f"hosts.{name}"
        for node_or_group in host.runs:
            if graphs and node_or_group not in known:
                message = f"no workload has a node or group '{node_or_group}'"
                problems.add(
                    message, lines.get(where), f"{where}.runs", nearest(node_or_group, sorted(known))
                )
            if host_of.setdefault(node_or_group, name) != name:
                message = f"'{node_or_group}' already runs on '{host_of[node_or_group]}'"
                problems.add(message, lines.get(where), f"{where}.runs", "a node runs on one host")
    if values is None:
        return ("+".join(hosts),)
    return tuple(values)


def check_hosts(
    values: Iterable[object],
    hosts: Mapping[str, Host],
    line: int | None,
    problems: Problems,
    key: str = "matrix.hosts",
) -> None:
    """Reports a host in values of the factor that the study does not have."""
    for value in values:
        for name in str(value).split("+"):
            if name not in hosts and value != HERE:
                hint = nearest(name, hosts) if hosts else "write it under `hosts:`"
                problems.add(f"unknown host '{name}'", line, key, hint)


def _names_in(graph: Graph) -> Iterator[str]:
    yield from graph.node_names
    yield from (group.name for groups in (graph.groups, *graph.placements.values()) for group in groups)


def host_of_nodes(
    cell_hosts: str, hosts: Mapping[str, Host], graph: Graph, placement: str = ""
) -> dict[str, str]:
    """Returns the host of each node. A node without a placement, or on a host that the cell does not have,
    runs on the first.

    placement: the cell's. Its groups come before those of the same names in other placements.
    """
    names = cell_hosts.split("+")
    placements = (graph.groups, *graph.placements.values(), graph.groups_of(placement))
    groups = {group.name: group.nodes for all_groups in placements for group in all_groups}
    host_of = dict.fromkeys(graph.node_names, names[0])
    for name in names:
        for node_or_group in hosts[name].runs if name in hosts else ():
            host_of.update(
                dict.fromkeys(
                    groups.get(node_or_group, (node_or_group,) if node_or_group in host_of else ()), name
                )
            )
    return host_of | {node.name: host_of[node.again_of] for node in graph.nodes if node.again_of}


def divided(workers: Sequence[Sequence[str]], host_of: Mapping[str, str]) -> Iterator[str]:
    """Why processes can't run: their nodes are on several hosts."""
    for nodes in workers:
        if len({host_of[node] for node in nodes}) > 1:
            where = ", ".join(f"{node} on {host_of[node]}" for node in nodes)
            yield f"one process can't be on several hosts: {where}"
