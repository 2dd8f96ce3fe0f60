# SPDX-License-Identifier: Apache-2.0
"""The nodes of a workload file: the rules that each follows, and whether they fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lagometer.study.distribution import Distribution, read_distribution
from lagometer.study.document import Entries, Items, Tree
from lagometer.study.factors import WORK_NS_MAX, parse_work_ns
from lagometer.study.graph import Rule
from lagometer.study.load_shape import WorkSpread
from lagometer.study.values import (
    Problems,
    count_between,
    name_parser,
    nearest,
    parsed,
    scalars,
    single,
    word_parser,
)
from lagometer.study.workload_life import LATEST_START_NS, OF_NODES, parse_start_ns
from lagometer.units import UnitError, parse_duration_ns, parse_rate_hz

OF_TIMERS = ("rate", "offset", "jitter")
OF_SERVICES = ("requests", "service")
OF_ACTIONS = ("goals", "action", "feedback")
RULE_KEYS = (
    *("trigger", "subscribes", "uses", "publishes", "work"),
    *OF_TIMERS,
    *OF_SERVICES,
    *OF_ACTIONS,
)
NODE_KEYS = ("rules", *OF_NODES, *RULE_KEYS)
# A closed loop exists only as a built-in (pingpong): end-to-end is not defined in any other loop.
TRIGGERS = ("timer", "any", "all", "request", "reply", "goal", "result")
NAMED_BY = {"request": "service", "reply": "service", "goal": "action", "result": "action"}
STEPS_MAX = 100
_TOPICS = {"subscribes": "reads", "uses": "uses", "publishes": "writes"}
_NAMES = {"requests": "a service", "goals": "an action"}


@dataclass(frozen=True)
class PlacedRule:
    """A rule, and its place in the file.

    requests, goals: services and actions that the rule sends a request or a goal to; side: `request`,
    `reply`, `goal` or `result` if one of these triggers it; service, action: of that trigger; steps: of a
    goal, each of which ends with feedback; replies: it answers the request; made: by lagometer, so that a
    topic may be in several rules.
    """

    rule: Rule
    line: int | None
    key: str
    requests: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    side: str = ""
    service: str = ""
    action: str = ""
    steps: int = 0
    replies: bool = True
    made: bool = False


def read_rules(
    node: str, line: int | None, value: Tree, folder: Path, problems: Problems
) -> list[PlacedRule]:
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
        return [_rule(node, value, key, NODE_KEYS, folder, problems)]
    if len([key for key, _ in value.entries if key.text not in OF_NODES]) > 1:
        problems.add(
            "has `rules` and keys of a single rule beside it", value.line, key, "move them into `rules`"
        )
    if isinstance(listed, Items) and not listed.items:
        problems.add("is an empty list", listed.line, f"{key}.rules", "write `- trigger: …` for each rule")
        return []
    if not isinstance(listed, Items) or not all(isinstance(item, Entries) for item in listed.items):
        problems.add("is not a list of rules", listed.line, f"{key}.rules", "write `- trigger: …` for each")
        return []
    return [
        _rule(node, item, f"{key}.rules[{index}]", RULE_KEYS, folder, problems)
        for index, item in enumerate(listed.items)
        if isinstance(item, Entries)
    ]


def _rule(
    node: str, value: Entries, key: str, valid: tuple[str, ...], folder: Path, problems: Problems
) -> PlacedRule:
    rule = Rule(node, "any")
    placed = PlacedRule(rule, value.line, key)
    key_names = set()
    for entry, item in value.entries:
        key_names.add(entry.text)
        path = f"{key}.{entry.text}"
        if entry.text in OF_NODES and valid is NODE_KEYS:
            continue  # read_life
        if entry.text in _TOPICS:
            rule = replace(rule, **{_TOPICS[entry.text]: _topics(item, path, problems)})  # type: ignore[arg-type]
        elif entry.text in _NAMES:
            names = _names(item, path, _NAMES[entry.text], problems)
            placed = replace(placed, **{entry.text: names})  # type: ignore[arg-type]
        elif entry.text in _OF_PLACED:
            scalar = single(item, path, problems)
            field, parse = _OF_PLACED[entry.text]
            parsed_value = parsed(scalar, path, parse, problems) if scalar else None
            if parsed_value is not None:
                placed = replace(placed, **{field: parsed_value})  # type: ignore[arg-type]
        elif entry.text == "work" and isinstance(item, Entries):
            distribution = read_distribution(item, path, _busy_ns, folder, problems)
            rule = _with_work(rule, distribution) if distribution is not None else rule
        elif entry.text in _SINGLE:
            scalar = single(item, path, problems)
            field, parse = _SINGLE[entry.text]
            parsed_value = parsed(scalar, path, parse, problems) if scalar else None
            if parsed_value is not None:
                rule = replace(rule, **{field: parsed_value})  # type: ignore[arg-type]
        else:
            problems.add(f"unknown key '{entry.text}'", entry.line, key, nearest(entry.text, valid))
    if rule.trigger in NAMED_BY:
        placed, rule = replace(placed, side=rule.trigger), replace(rule, trigger="any")
    placed = replace(placed, rule=rule)
    if "trigger" not in key_names:
        problems.add("has no trigger", value.line, key, f"write `trigger:` and one of {', '.join(TRIGGERS)}")
    elif rule.trigger != "timer" and set(OF_TIMERS) & key_names:
        timer_keys = " or ".join(f"`{name}`" for name in OF_TIMERS if name in key_names)
        problems.add(f"has {timer_keys}, which only a timer has", value.line, key)
    if rule.jitter_ns and rule.period_ns is not None and rule.jitter_ns > rule.period_ns:
        problems.add("has a jitter longer than its period", value.line, key)
    _check_side(placed, key_names, problems)
    return placed


def _check_side(placed: PlacedRule, key_names: set[str], problems: Problems) -> None:
    """Reports keys that a rule of a service or an action lacks, and keys that it must not have."""
    wanted = NAMED_BY.get(placed.side)
    if wanted is not None and wanted not in key_names:
        message, hint = f"does not say of which {wanted}", f"write `{wanted}: NAME`"
        problems.add(message, placed.line, placed.key, hint)
    for name in sorted({"service", "action"} & key_names - {wanted}):
        triggers = " or ".join(side for side, key in NAMED_BY.items() if key == name)
        problems.add(f"has `{name}`, which goes with the trigger {triggers}", placed.line, placed.key)
    if "feedback" in key_names and placed.side != "goal":
        problems.add("has `feedback`, which goes with the trigger goal", placed.line, placed.key)
    if placed.side and placed.rule.reads:
        message, hint = "has `subscribes` beside what triggers it", "use `uses`, or another rule of the node"
        problems.add(message, placed.line, placed.key, hint)


def _with_work(rule: Rule, distribution: Distribution) -> Rule:
    """The rule with busy times from a distribution; `work_ns` is its centre, or the largest of a list."""
    centre_ns = round(distribution.centre)
    if distribution.kind == "normal":
        return replace(
            rule, work_ns=centre_ns, spread=WorkSpread("normal", spread_ns=round(distribution.spread))
        )
    if distribution.kind == "lognormal":
        return replace(rule, work_ns=centre_ns, spread=WorkSpread("lognormal", sigma=distribution.spread))
    times_ns = distribution.draw(f"work/{rule.node}")
    return replace(rule, work_ns=max(times_ns), spread=WorkSpread("recorded", times_ns=times_ns))


def _topics(value: Tree, key: str, problems: Problems) -> tuple[str, ...]:
    return _names(value, key, "a topic", problems)


def _names(value: Tree, key: str, kind: str, problems: Problems) -> tuple[str, ...]:
    parse = name_parser(kind)
    parsed_names = [parsed(scalar, key, parse, problems) for scalar in scalars(value, key, problems)]
    names = tuple(name for name in parsed_names if name is not None)
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.add(f"names the {kind.split()[-1]} '{name}' twice", value.line, key)
    return names


def _period_ns(text: str) -> int:
    rate_hz = parse_rate_hz(text)
    if not 0.001 <= rate_hz <= 1e6:
        raise UnitError(f"'{text}' is not between 0.001 Hz and 1 MHz")
    return round(1e9 / rate_hz)


def _busy_ns(text: str) -> int:
    busy_ns = parse_duration_ns(text)
    if busy_ns > WORK_NS_MAX:
        raise UnitError(f"'{text}' is longer than 60 s")
    return busy_ns


_SINGLE: dict[str, tuple[str, Callable[[str], object]]] = {
    "trigger": ("trigger", word_parser(TRIGGERS)),
    "work": ("work_ns", parse_work_ns),
    "rate": ("period_ns", _period_ns),
    "offset": ("offset_ns", parse_start_ns),
    "jitter": ("jitter_ns", parse_duration_ns),
}


def _steps(text: str) -> int:
    steps = count_between(0, STEPS_MAX)(text)
    assert isinstance(steps, int)
    return steps


_OF_PLACED: dict[str, tuple[str, Callable[[str], object]]] = {
    "service": ("service", name_parser("a service")),
    "action": ("action", name_parser("an action")),
    "feedback": ("steps", _steps),
}


def check_rule(placed: PlacedRule, rules: tuple[Rule, ...], problems: Problems) -> None:
    """Reports how a rule contradicts the others."""
    rule = placed.rule
    published = {topic for other in rules for topic in other.writes}
    subscribed = {topic for other in rules for topic in other.subscribes}
    if rule.trigger in ("any", "all") and not rule.reads:
        problems.add(f"the trigger {rule.trigger} needs topics to subscribe to", placed.line, placed.key)
    if rule.trigger == "timer" and not rule.writes:
        problems.add(f"the trigger {rule.trigger} needs topics to publish", placed.line, placed.key)
    for topic in rule.subscribes:
        if topic not in published:
            message, hint = f"no node publishes the topic '{topic}'", nearest(topic, sorted(published))
            problems.add(message, placed.line, placed.key, hint)
    for topic in rule.writes:
        if topic not in subscribed:
            problems.add(f"no node subscribes to the topic '{topic}'", placed.line, placed.key)
        if topic in rule.subscribes:
            problems.add(f"publishes the topic '{topic}' that it subscribes to", placed.line, placed.key)
    for topic in sorted(set(rule.reads) & set(rule.uses)):
        problems.add(f"both subscribes to '{topic}' and uses it", placed.line, placed.key, "keep one")
    if placed.made:
        return
    same_node = [other for other in rules if other.node == rule.node and other is not rule]
    topics = {*rule.subscribes, *rule.writes}
    for topic in sorted(
        {topic for other in same_node for topic in (*other.subscribes, *other.writes)} & topics
    ):
        problems.add(f"uses the topic '{topic}' in two rules of one node", placed.line, placed.key)


def check_first_firing(placed: PlacedRule, start_ns: int, problems: Problems) -> None:
    """Reports a timer that first fires later than a plan can say; start_ns: when its node joins, or joins
    again."""
    if placed.rule.trigger == "timer" and start_ns + placed.rule.offset_ns > LATEST_START_NS:
        message = "its timer first fires later than 1h after the start"
        hint = "its `offset` counts from when the node joins: shorten it, or `start` or `restart`"
        problems.add(message, placed.line, placed.key, hint)


def cycle(rules: tuple[Rule, ...]) -> list[str]:
    """The nodes of one cycle in which a message would cause the next one forever, or nothing.

    A timer breaks a cycle, and so does a topic that is only used: the returning message triggers neither.
    Iterative, since a graph may be deeper than Python's stack.
    """
    relays = [rule for rule in rules if rule.reads and rule.writes and rule.trigger != "timer"]
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


def without_feedback(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules; where a timer reads its own consequences, these topics move to `uses`.

    Otherwise the path from a message back to the root of its chain would never end.
    """
    adjusted = list(rules)
    for index, rule in enumerate(adjusted):
        if rule.trigger != "timer" or not rule.reads:
            continue
        consequences, grows = set(rule.writes), True
        while grows:
            further = {
                topic for other in adjusted if consequences & set(other.reads) for topic in other.writes
            }
            grows = not further <= consequences
            consequences |= further
        back = tuple(topic for topic in rule.reads if topic in consequences)
        reads = tuple(topic for topic in rule.reads if topic not in consequences)
        adjusted[index] = replace(rule, reads=reads, uses=(*rule.uses, *back))
    return tuple(adjusted)
