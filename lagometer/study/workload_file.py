# SPDX-License-Identifier: Apache-2.0
"""Workload files: a graph written as YAML (docs/WORKLOADS.md describes the keys).

topics:
  image: {type: Image, payload: 900KB}
nodes:
  source: {trigger: timer, publishes: [image]}
  left:   {trigger: any, subscribes: [image], publishes: [faces], work: busy-1ms}
  right:  {trigger: any, subscribes: [image], publishes: [edges]}
  sink:   {trigger: all, subscribes: [faces, edges]}
groups: {vision: [left, right]}
chains: {faces: [image, faces]}
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lagometer.errors import BadInput
from lagometer.study.document import Entries, Tree, read_document
from lagometer.study.graph import Graph, Node, Stream
from lagometer.study.traffic import TopicSettings
from lagometer.study.values import Problems, name_parser, nearest, parsed, single
from lagometer.study.workload_groups import read_chains, read_groups, read_placements
from lagometer.study.workload_life import check_names, groups_again, read_life, replacements
from lagometer.study.workload_rules import (
    PlacedRule,
    check_first_firing,
    check_rule,
    cycle,
    read_rules,
    without_feedback,
)
from lagometer.study.workload_services import (
    Served,
    read_services,
    reliable,
    service_chains,
    with_services,
)
from lagometer.study.workload_topics import read_topics
from lagometer.units import UnitError

TOP_LEVEL_KEYS = (
    "name",
    "description",
    "topics",
    "services",
    "actions",
    "nodes",
    "groups",
    "placements",
    "chains",
)


def load_workload(path: Path) -> Graph:
    """The graph that a file describes. Raises BadInput with every problem of the file."""
    document, _ = read_document(path)
    problems = Problems(str(path))
    keys = {key.text: value for key, value in document.entries}
    for key, _value in document.entries:
        if key.text not in TOP_LEVEL_KEYS:
            problems.add(f"unknown key '{key.text}'", key.line, hint=nearest(key.text, TOP_LEVEL_KEYS))
    name = _name(keys.get("name"), path, problems)
    if "description" in keys:
        single(keys["description"], "description", problems)
    nodes = keys.get("nodes")
    if not isinstance(nodes, Entries) or not nodes.entries:
        line = nodes.line if nodes is not None else document.line
        problems.add(
            "no node is described",
            line,
            "nodes",
            "write `nodes:` and under it `source: {trigger: timer, …}`",
        )
        nodes = Entries((), None)
    placed = [
        rule
        for key, value in nodes.entries
        for rule in read_rules(key.text, key.line, value, path.parent, problems)
    ]
    problems.raise_if_any()
    node_lives = tuple(node for key, value in nodes.entries for node in read_life(key.text, value, problems))
    check_names(node_lives, nodes, problems)
    last_starts_ns = {node.again_of or node.name: node.start_ns for node in node_lives}
    for item in placed:
        check_first_firing(item, last_starts_ns[item.rule.node], problems)
    new_names = replacements(node_lives)
    placed += [
        replace(item, rule=replace(item.rule, node=new_names[item.rule.node]))
        for item in placed
        if item.rule.node in new_names
    ]
    served = with_services(placed, new_names, problems)
    problems.raise_if_any()
    graph = replace(_graph(name, node_lives, served.placed, problems), services=served.services)
    graph = _with_parts(graph, keys, served, path.parent, problems)
    problems.raise_if_any()
    return graph


def _with_parts(
    graph: Graph, keys: dict[str, Tree], served: Served, folder: Path, problems: Problems
) -> Graph:
    """The graph with its topics, groups, placements and chains."""
    published = {stream.topic for stream in graph.streams} - set(graph.service_of)
    described = read_services(keys, graph.services, problems)
    topics, contents = read_topics(keys.get("topics"), published, described, folder, problems)
    for topic in graph.service_of:
        topics[topic] = reliable(topics.get(topic, TopicSettings()))
    graph = replace(graph, topics=topics, contents=contents)
    if "groups" in keys:
        groups = read_groups(keys["groups"], graph.node_names, problems)
        graph = replace(graph, groups=groups_again(groups, graph.nodes))
    if "placements" in keys:
        placements = read_placements(keys["placements"], graph.node_names, problems)
        again = {name: groups_again(groups, graph.nodes) for name, groups in placements.items()}
        graph = replace(graph, placements=again)
    if "chains" in keys and not len(problems):
        graph = replace(graph, chains=read_chains(keys["chains"], graph, problems))
    if not len(problems):
        graph = replace(graph, chains=(*graph.chains, *service_chains(served.ways, graph, graph.chains)))
    return graph


def _name(value: Tree | None, path: Path, problems: Problems) -> str:
    parse = name_parser("a workload")
    if value is None:
        try:
            return parse(path.stem)
        except UnitError as error:
            raise BadInput(
                str(error), where=str(path), hint="rename the file, or give it a `name:`"
            ) from error
    scalar = single(value, "name", problems)
    return (parsed(scalar, "name", parse, problems) if scalar else None) or path.stem


def _graph(name: str, nodes: tuple[Node, ...], placed: list[PlacedRule], problems: Problems) -> Graph:
    rules = tuple(item.rule for item in placed)
    streams = dict.fromkeys(
        Stream(
            rule.node, topic, tuple(dict.fromkeys(other.node for other in rules if topic in other.subscribes))
        )
        for rule in rules
        for topic in rule.writes
    )
    for item in placed:
        check_rule(item, rules, problems)
    circle = cycle(rules)
    if circle:
        problems.add(
            f"the graph has a cycle: {' → '.join(circle)}",
            None,
            "nodes",
            "no message may cause itself: let a timer publish, or move the topic of one node to `uses`",
        )
    else:
        rules = without_feedback(rules)
    if not any(rule.is_source and rule.writes for rule in rules):
        problems.add(
            "nothing starts a message", None, "nodes", "give one node `trigger: timer` and no `subscribes`"
        )
    return Graph(name, nodes, tuple(streams), rules)
