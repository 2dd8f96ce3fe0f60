# SPDX-License-Identifier: Apache-2.0
"""Workload files: a graph written as YAML (docs/WORKLOADS.md describes the keys).

nodes:
  source: {trigger: timer, publishes: [image]}
  left:   {trigger: any, subscribes: [image], publishes: [faces], work: busy-1ms}
  right:  {trigger: any, subscribes: [image], publishes: [edges]}
  sink:   {trigger: all, subscribes: [faces, edges]}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lagometer.errors import BadInput
from lagometer.study.document import Entries, Items, Tree, read_document
from lagometer.study.factors import parse_work_ns
from lagometer.study.graph import Graph, Node, Rule, Stream
from lagometer.study.values import (
    Problems,
    name_parser,
    nearest,
    parsed,
    scalars,
    single,
    word_parser,
)
from lagometer.units import UnitError, parse_duration_ns, parse_rate_hz

TOP_LEVEL_KEYS = ("name", "description", "nodes")
RULE_KEYS = ("trigger", "subscribes", "publishes", "work", "rate", "offset")
NODE_KEYS = ("rules", *RULE_KEYS)
# A closed loop is only built in (pingpong): what end-to-end means in any other loop is not settled.
TRIGGERS = ("timer", "any", "all")


@dataclass(frozen=True)
class _Placed:
    """A rule and the line it stands on."""

    rule: Rule
    line: int | None
    key: str


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
    placed = [rule for key, value in nodes.entries for rule in _rules(key.text, key.line, value, problems)]
    problems.raise_if_any()
    graph = _graph(name, tuple(key.text for key, _ in nodes.entries), placed, problems)
    problems.raise_if_any()
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


def _rules(node: str, line: int | None, value: Tree, problems: Problems) -> list[_Placed]:
    """The rules of one node: its own keys are one rule, or `rules` lists several."""
    key = f"nodes.{node}"
    try:
        name_parser("a node")(node)
    except UnitError as error:
        problems.add(str(error), line, key)
    if not isinstance(value, Entries):
        problems.add(
            "is not a node", value.line, key, "write its keys under it: trigger, subscribes, publishes, …"
        )
        return []
    listed = {entry.text: item for entry, item in value.entries}.get("rules")
    if listed is None:
        return [_rule(node, value, key, NODE_KEYS, problems)]
    if len(value.entries) > 1:
        problems.add(
            "has `rules` and keys of a single rule beside it", value.line, key, "move them into `rules`"
        )
    if not isinstance(listed, Items) or not all(isinstance(item, Entries) for item in listed.items):
        problems.add("is not a list of rules", listed.line, f"{key}.rules", "write `- trigger: …` for each")
        return []
    return [
        _rule(node, item, f"{key}.rules[{index}]", RULE_KEYS, problems)
        for index, item in enumerate(listed.items)
        if isinstance(item, Entries)
    ]


def _rule(node: str, value: Entries, key: str, valid: tuple[str, ...], problems: Problems) -> _Placed:
    rule = Rule(node, "any")
    seen = set()
    for entry, item in value.entries:
        seen.add(entry.text)
        path = f"{key}.{entry.text}"
        if entry.text in ("subscribes", "publishes"):
            topics = _topics(item, path, problems)
            rule = replace(rule, reads=topics) if entry.text == "subscribes" else replace(rule, writes=topics)
        elif entry.text in _SINGLE:
            scalar = single(item, path, problems)
            field, parse = _SINGLE[entry.text]
            found = parsed(scalar, path, parse, problems) if scalar else None
            if found is not None:
                rule = replace(rule, **{field: found})  # type: ignore[arg-type]
        else:
            problems.add(f"unknown key '{entry.text}'", entry.line, key, nearest(entry.text, valid))
    if "trigger" not in seen:
        problems.add("has no trigger", value.line, key, f"write `trigger:` and one of {', '.join(TRIGGERS)}")
    elif rule.trigger != "timer" and {"rate", "offset"} & seen:
        problems.add("has `rate` or `offset`, which only a timer has", value.line, key)
    return _Placed(rule, value.line, key)


def _topics(value: Tree, key: str, problems: Problems) -> tuple[str, ...]:
    parse = name_parser("a topic")
    found = [parsed(scalar, key, parse, problems) for scalar in scalars(value, key, problems)]
    topics = tuple(topic for topic in found if topic is not None)
    for topic in sorted({topic for topic in topics if topics.count(topic) > 1}):
        problems.add(f"names the topic '{topic}' twice", value.line, key)
    return topics


def _period_ns(text: str) -> int:
    rate_hz = parse_rate_hz(text)
    if not 0.001 <= rate_hz <= 1e6:
        raise UnitError(f"'{text}' is not between 0.001 Hz and 1 MHz")
    return round(1e9 / rate_hz)


_SINGLE: dict[str, tuple[str, Callable[[str], object]]] = {
    "trigger": ("trigger", word_parser(TRIGGERS)),
    "work": ("work_ns", parse_work_ns),
    "rate": ("period_ns", _period_ns),
    "offset": ("offset_ns", parse_duration_ns),
}


def _graph(name: str, nodes: tuple[str, ...], placed: list[_Placed], problems: Problems) -> Graph:
    rules = tuple(item.rule for item in placed)
    streams = tuple(
        Stream(rule.node, topic, tuple(dict.fromkeys(other.node for other in rules if topic in other.reads)))
        for rule in rules
        for topic in rule.writes
    )
    for item in placed:
        _check_rule(item, rules, problems)
    sources = [rule for rule in rules if rule.is_source and rule.writes]
    if not sources:
        problems.add(
            "nothing starts a message", None, "nodes", "give one node `trigger: timer` and no `subscribes`"
        )
    cycle = _cycle(rules)
    if cycle:
        problems.add(
            f"the graph has a cycle: {' → '.join(cycle)}",
            None,
            "nodes",
            "no message may lead back to a node that it came from",
        )
    return Graph(name, tuple(Node(node) for node in nodes), streams, rules)


def _check_rule(item: _Placed, rules: tuple[Rule, ...], problems: Problems) -> None:
    rule = item.rule
    published = {topic for other in rules for topic in other.writes}
    subscribed = {topic for other in rules for topic in other.reads}
    if rule.trigger in ("any", "all") and not rule.reads:
        problems.add(f"the trigger {rule.trigger} needs topics to subscribe to", item.line, item.key)
    if rule.trigger == "timer" and not rule.writes:
        problems.add(f"the trigger {rule.trigger} needs topics to publish", item.line, item.key)
    for topic in rule.reads:
        if topic not in published:
            problems.add(
                f"no node publishes the topic '{topic}'",
                item.line,
                item.key,
                nearest(topic, sorted(published)),
            )
    for topic in rule.writes:
        if topic not in subscribed:
            problems.add(f"no node subscribes to the topic '{topic}'", item.line, item.key)
        if topic in rule.reads:
            problems.add(f"publishes the topic '{topic}' that it subscribes to", item.line, item.key)
    same_node = [other for other in rules if other.node == rule.node and other is not rule]
    shared = {topic for other in same_node for topic in (*other.reads, *other.writes)} & {
        *rule.reads,
        *rule.writes,
    }
    for topic in sorted(shared):
        problems.add(f"uses the topic '{topic}' in two rules of one node", item.line, item.key)


def _cycle(rules: tuple[Rule, ...]) -> list[str]:
    """The nodes of one circle, or nothing. Iterative, since a graph may be deeper than Python's stack."""
    relays = [rule for rule in rules if rule.reads and rule.writes]
    finished: set[int] = set()
    for start in range(len(relays)):
        path: list[int] = []
        stack = [(start, False)]
        while stack:
            index, leaving = stack.pop()
            if leaving:
                path.pop()
                finished.add(index)
                continue
            if index in path:
                return [relays[i].node for i in [*path[path.index(index) :], index]]
            if index in finished:
                continue
            path.append(index)
            stack.append((index, True))
            stack.extend(
                (i, False) for i, rule in enumerate(relays) if set(rule.reads) & set(relays[index].writes)
            )
    return []
