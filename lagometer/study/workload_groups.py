# SPDX-License-Identifier: Apache-2.0
"""The groups, placements and chains of a workload file: nodes that belong together, and paths with a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lagometer.study.document import Entries, Items, Tree
from lagometer.study.factors import FACTORS_BY_NAME, PRIORITY_MAX
from lagometer.study.graph import PLACEMENTS, Chain, Edge, Graph, Group, processes_of
from lagometer.study.values import Problems, count_between, name_parser, nearest, parsed, scalars, single

GROUP_KEYS = ("nodes", "cpus", "scheduling", "priority")
RESERVED = "end-to-end"
WAYS_MAX = 1000  # paths that are examined to find the one that a chain means


def read_placements(value: Tree, nodes: Sequence[str], problems: Problems) -> dict[str, tuple[Group, ...]]:
    """The key `placements`: `{name: {group: [nodes], …}}`, each like the key `groups`."""
    if not isinstance(value, Entries):
        problems.add("has no placements under it", value.line, "placements", "write `split: {a: [camera]}`")
        return {}
    placements = {}
    for key, item in value.entries:
        where = f"placements.{key.text}"
        if parsed(key, where, name_parser("a placement"), problems) is None:
            continue
        if key.text in PLACEMENTS or processes_of(key.text):
            problems.add(f"'{key.text}' is a placement that every study has", key.line, where, "rename it")
        placements[key.text] = read_groups(item, nodes, problems, where)
    return placements


def check_placements(
    values: Iterable[object],
    graphs: Mapping[str, Graph],
    line: int | None,
    problems: Problems,
    key: str = "matrix.placement",
) -> None:
    """Reports a placement, written under a key, that none of the workloads has."""
    known = [*PLACEMENTS, *dict.fromkeys(name for graph in graphs.values() for name in graph.placements)]
    for value in map(str, values):
        if value not in known and processes_of(value) is None:
            problems.add(f"unknown value '{value}'; {nearest(value, known)}", line, key)


def read_groups(
    value: Tree, nodes: Sequence[str], problems: Problems, place: str = "groups"
) -> tuple[Group, ...]:
    """The key `groups`: `{name: [nodes]}`, or `{name: {nodes: […], cpus: …, scheduling: …, priority: …}}`.

    place: of the key, for messages.
    """
    if not isinstance(value, Entries):
        problems.add("has no groups under it", value.line, place, "write `sensing: [camera, lidar]`")
        return ()
    groups: list[Group] = []
    for key, item in value.entries:
        where = f"{place}.{key.text}"
        if parsed(key, where, name_parser("a group"), problems) is None:
            continue
        group, problem_count = Group(key.text, ()), len(problems)
        entries = item.entries if isinstance(item, Entries) else ((replace(key, text="nodes"), item),)
        for setting, setting_value in entries:
            key_path = f"{where}.{setting.text}" if isinstance(item, Entries) else where
            if setting.text not in GROUP_KEYS:
                problems.add(
                    f"unknown key '{setting.text}'", setting.line, where, nearest(setting.text, GROUP_KEYS)
                )
            elif setting.text == "nodes":
                group = replace(group, nodes=_members(setting_value, key_path, nodes, groups, problems))
            else:
                scalar = single(setting_value, key_path, problems)
                parse = (
                    count_between(1, PRIORITY_MAX)
                    if setting.text == "priority"
                    else FACTORS_BY_NAME[setting.text].parse
                )
                if scalar is not None:
                    group = replace(group, **{setting.text: parsed(scalar, key_path, parse, problems)})  # type: ignore[arg-type]
        if not group.nodes and len(problems) == problem_count:
            problems.add("has no nodes", key.line, where, "list them")
        groups.append(group)
    return tuple(groups)


def _members(
    value: Tree, where: str, nodes: Sequence[str], groups: Sequence[Group], problems: Problems
) -> tuple[str, ...]:
    members: list[str] = []
    for scalar in scalars(value, where, problems):
        group_name = next((group.name for group in groups if scalar.text in group.nodes), None)
        if scalar.text not in nodes:
            problems.add(f"no node '{scalar.text}'", scalar.line, where, nearest(scalar.text, nodes))
        elif group_name is not None or scalar.text in members:
            message = (
                f"the node '{scalar.text}' is in the group {group_name} already"
                if group_name
                else "names a node twice"
            )
            problems.add(message, scalar.line, where, "a node is in one group")
        else:
            members.append(scalar.text)
    return tuple(members)


def read_chains(value: Tree, graph: Graph, problems: Problems) -> tuple[Chain, ...]:
    """The key `chains`: `{name: [topics and nodes, in the order in which data passes them]}`."""
    if not isinstance(value, Entries):
        problems.add("has no chains under it", value.line, "chains", "write `name: [topic, …]`")
        return ()
    chains = []
    for key, item in value.entries:
        where = f"chains.{key.text}"
        if parsed(key, where, name_parser("a chain"), problems) is None:
            continue
        if key.text == RESERVED:
            problems.add(f"'{RESERVED}' is the name of what all sinks take", key.line, where, "rename it")
        waypoints = scalars(item, where, problems) if isinstance(item, Items) else ()
        if not waypoints:
            problems.add("is not a list of topics and nodes", key.line, where, "write `[points, pose]`")
            continue
        edges = _edges(tuple(scalar.text for scalar in waypoints), graph, item.line, where, problems)
        if edges:
            chains.append(Chain(key.text, tuple(edge.name for edge in edges)))
    return tuple(chains)


def _edges(
    items: tuple[str, ...], graph: Graph, line: int | None, where: str, problems: Problems
) -> tuple[Edge, ...]:
    """The only path through these topics and nodes in turn; empty after adding a problem."""
    topics = {stream.topic for stream in graph.streams}
    known = {*topics, *graph.node_names}
    for item in items:
        if item not in known:
            problems.add(f"neither a topic nor a node: '{item}'", line, where, nearest(item, sorted(known)))
            return ()
        if item in topics and item in graph.node_names:
            problems.add(f"'{item}' is both a topic and a node", line, where, "rename one of them")
            return ()
    ways = []
    for way in _ways(items, topics, graph):
        ways.append(way)
        if len(ways) > WAYS_MAX:
            break
    if len(ways) == 1:
        return ways[0]
    if not ways:
        problems.add(
            f"no data goes along {' → '.join(items)}", line, where, "each topic must lead to the next"
        )
        return ()
    shown = " or ".join(
        " → ".join((way[0].publisher, *(edge.subscriber for edge in way))) for way in ways[:2]
    )
    problems.add(
        f"{len(ways)} ways go along {' → '.join(items)}: {shown}, …", line, where, "name a node, too"
    )
    return ()


def _ways(items: tuple[str, ...], topics: set[str], graph: Graph) -> Iterator[tuple[Edge, ...]]:
    """All paths: two nodes in a row have an edge between them, a topic is one edge."""
    steps: list[tuple[str | None, str | None, str | None]] = []  # publisher, topic, subscriber; each if named
    previous: str | None = None
    for index, item in enumerate(items):
        following = items[index + 1] if index + 1 < len(items) else None
        if item in topics:
            steps.append((previous, item, following if following not in topics else None))
            previous = None
        else:
            if previous is not None:
                steps.append((previous, None, item))
            previous = item
    return _follow(steps, None, graph.edges(), graph) if steps else iter(())


def _follow(
    steps: Sequence[tuple[str | None, str | None, str | None]],
    last: Edge | None,
    edges: Sequence[Edge],
    graph: Graph,
) -> Iterator[tuple[Edge, ...]]:
    if not steps:
        yield ()
        return
    publisher, topic, subscriber = steps[0]
    for edge in edges:
        if publisher not in (None, edge.publisher) or topic not in (None, edge.topic):
            continue
        if subscriber not in (None, edge.subscriber) or (last is not None and not _leads(last, edge, graph)):
            continue
        for rest in _follow(steps[1:], edge, edges, graph):
            yield (edge, *rest)


def _leads(preceding: Edge, following: Edge, graph: Graph) -> bool:
    """Whether messages on the first edge may cause those on the second."""
    if following.stream in graph.answered:
        return preceding.stream == graph.answered[following.stream]
    return preceding.subscriber == following.publisher and any(
        preceding.topic in rule.subscribes and following.topic in rule.writes
        for rule in graph.rules_of(preceding.subscriber)
    )
