# SPDX-License-Identifier: Apache-2.0
"""When the nodes of a workload file join and leave.

A node that restarts is two nodes: one that leaves, and one with the same rules that joins in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lagometer.study.document import Entries, Tree
from lagometer.study.graph import Group, Node
from lagometer.study.values import Problems, parsed, single
from lagometer.units import UnitError, parse_duration_ns

# A worker's plan has no later times of a node's joining and of a timer's first firing.
LATEST_START_NS = 3600 * 10**9
AGAIN = "-again"  # suffix of the name of a node, or group, after a restart
OF_NODES = ("start", "stop", "restart")


def parse_start_ns(text: str) -> int:
    """A time after the common start, an hour at most. Raises UnitError."""
    start_ns = parse_duration_ns(text)
    if start_ns > LATEST_START_NS:
        raise UnitError(f"'{text}' is later than 1h after the start")
    return start_ns


def read_life(node: str, value: Tree, problems: Problems) -> tuple[Node, ...]:
    """The node with the times at which it joins and leaves and, if it restarts, the node that replaces it."""
    entries = value.entries if isinstance(value, Entries) else ()
    times = {}
    for key, item in entries:
        if key.text in OF_NODES:
            key_path = f"nodes.{node}.{key.text}"
            scalar = single(item, key_path, problems)
            parse = parse_duration_ns if key.text == "stop" else parse_start_ns
            times[key.text] = (parsed(scalar, key_path, parse, problems) if scalar else None) or 0
    start_ns, stop_ns, restart_ns = (times.get(name, 0) for name in OF_NODES)
    if "stop" in times and stop_ns <= start_ns:
        problems.add("leaves before it joins", value.line, f"nodes.{node}", "give `stop` a later time")
    if "restart" not in times:
        return (Node(node, start_ns, stop_ns),)
    if restart_ns <= start_ns or ("stop" in times and restart_ns >= stop_ns):
        message = "restarts while it is not there"
        problems.add(
            message, value.line, f"nodes.{node}", "give `restart` a time after `start`, before `stop`"
        )
    return Node(node, start_ns, restart_ns), Node(node + AGAIN, restart_ns, stop_ns, again_of=node)


def check_names(nodes: Sequence[Node], described: Entries, problems: Problems) -> None:
    """Reports a node that has the name of a restarted one."""
    restarted = {node.name for node in nodes if node.again_of}
    for key, _ in described.entries:
        if key.text in restarted:
            message = f"'{key.text}' is the name of a node that restarts, when it comes again"
            problems.add(message, key.line, f"nodes.{key.text}", "choose another name")


def replacements(nodes: Sequence[Node]) -> Mapping[str, str]:
    """Each node that restarts, and the name under which it comes again."""
    return {node.again_of: node.name for node in nodes if node.again_of}


def groups_again(groups: Sequence[Group], nodes: Sequence[Node]) -> tuple[Group, ...]:
    """The groups; after each, a group for those of its nodes that restart."""
    new_names = replacements(nodes)
    result: list[Group] = []
    for group in groups:
        result.append(group)
        members = tuple(new_names[node] for node in group.nodes if node in new_names)
        if members:
            result.append(replace(group, name=group.name + AGAIN, nodes=members))
    return tuple(result)
