# SPDX-License-Identifier: Apache-2.0
"""Request and reply in a workload file: services, and actions, which consist of services and a topic.

A service becomes topics of the graph: `NAME.request`, to the server, and `NAME.reply` to each client, with
the client's name appended if there are several. An action is a service `NAME.goal`, which answers at once; a
service `NAME.result`, whose server executes the goal; and a topic `NAME.feedback`.

A server that restarts is two nodes, which both serve: first one, then the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lagometer.study.document import Entries, Tree
from lagometer.study.graph import Chain, Graph, Rule, Service
from lagometer.study.traffic import TopicSettings
from lagometer.study.values import Problems, nearest
from lagometer.study.workload_life import AGAIN
from lagometer.study.workload_rules import PlacedRule

SIDES = ("request", "reply")
PARTS = ("goal", "feedback", "result")


@dataclass(frozen=True)
class Way:
    """What one client asks one server, and the answer. name: of the chain; topics: in order."""

    name: str
    client: str
    server: str
    topics: tuple[str, ...]


@dataclass(frozen=True)
class Served:
    """The result of resolving services: rules that use only topics, the services, and for each client and
    server of each service the topics of its request and reply."""

    placed: list[PlacedRule]
    services: tuple[Service, ...]
    ways: tuple[Way, ...]


def with_services(
    placed_rules: Sequence[PlacedRule], new_names: Mapping[str, str], problems: Problems
) -> Served:
    """The rules with topics instead of services and actions; reports contradictions.

    new_names: of the nodes that restart, by the name that each had before.
    """
    problem_count = len(problems)
    former_names = {new: former for former, new in new_names.items()}
    rules, ways = _without_actions(list(placed_rules), former_names, problems)
    names = list(
        dict.fromkeys(
            name
            for placed_rule in rules
            for name in (*placed_rule.requests, *([placed_rule.service] if placed_rule.side else []))
        )
    )
    candidates = [_service(name, rules, former_names, problems) for name in names]
    if len(problems) > problem_count:
        return Served([], (), ())
    services = tuple(service for service in candidates if service is not None)
    plain_rules = [_plain(placed_rule, services) for placed_rule in rules]
    plain_rules += _implied(services, rules)
    of_actions = {topic.rpartition(".")[0] for way in ways for topic in way.topics}
    ways += [
        Way(
            _way_name(service.name, server, client if len(service.clients) > 1 else "", former_names),
            client,
            server,
            (service.request, service.reply(client)),
        )
        for service in services
        if service.name not in of_actions
        for server in service.servers
        for client in service.clients
    ]
    return Served(plain_rules, services, tuple(ways))


def _way_name(name: str, server: str, client: str, former_names: Mapping[str, str]) -> str:
    """The name of a chain: that of the service or action, marked if the server has restarted."""
    return name + (AGAIN if server in former_names else "") + (f".{client}" if client else "")


def _former(nodes: Iterable[str], former_names: Mapping[str, str]) -> list[str]:
    """The nodes as the file names them, each once."""
    return list(dict.fromkeys(former_names.get(node, node) for node in nodes))


def _service(
    name: str, rules: Sequence[PlacedRule], former_names: Mapping[str, str], problems: Problems
) -> Service | None:
    """A service with its server and clients; None after adding a problem."""
    clients = tuple(
        dict.fromkeys(placed_rule.rule.node for placed_rule in rules if name in placed_rule.requests)
    )
    serving = [
        placed_rule for placed_rule in rules if placed_rule.side == "request" and placed_rule.service == name
    ]
    awaiting = [
        placed_rule for placed_rule in rules if placed_rule.side == "reply" and placed_rule.service == name
    ]
    servers = list(dict.fromkeys(placed_rule.rule.node for placed_rule in serving))
    described = _former(servers, former_names)
    for placed_rule in serving[:1] if not clients else []:
        problems.add(
            f"no node requests the service '{name}'",
            placed_rule.line,
            placed_rule.key,
            f"write `requests: [{name}]`",
        )
    for placed_rule in [item for item in rules if name in item.requests][:1] if not servers else []:
        served = sorted({item.service for item in rules if item.side == "request"})
        hint = nearest(name, served) if served else f"write `trigger: request` and `service: {name}`"
        problems.add(f"no node serves '{name}'", placed_rule.line, placed_rule.key, hint)
    if len(described) > 1:
        message = f"the service '{name}' has the servers {', '.join(described)}"
        problems.add(message, serving[1].line, serving[1].key, "a service has one")
    for placed_rule in awaiting:
        if placed_rule.rule.node not in clients:
            message = f"waits for replies of '{name}', which it does not request"
            problems.add(
                message,
                placed_rule.line,
                placed_rule.key,
                f"write `requests: [{name}]` in another rule of the node",
            )
    if set(servers) & set(clients):
        problems.add(f"requests its own service '{name}'", serving[0].line, serving[0].key)
    return Service(name, tuple(servers), clients) if len(described) == 1 and clients else None


def _plain(placed: PlacedRule, services: Sequence[Service]) -> PlacedRule:
    """A rule with topics instead of services."""
    rule, by_name = placed.rule, {service.name: service for service in services}
    requests = tuple(by_name[name].request for name in placed.requests)
    if placed.side == "request":
        service = by_name[placed.service]
        replies = tuple(map(service.reply, service.clients)) if placed.replies else ()
        rule = replace(rule, reads=(service.request,), writes=(*rule.writes, *requests, *replies))
    elif placed.side == "reply":
        reply = by_name[placed.service].reply(rule.node)
        rule = replace(rule, reads=(reply,), writes=(*rule.writes, *requests))
    else:
        rule = replace(rule, writes=(*rule.writes, *requests))
    return replace(placed, rule=rule)


def _implied(services: Sequence[Service], rules: Sequence[PlacedRule]) -> Iterator[PlacedRule]:
    """If a client has no rule for the replies, they end at the client."""
    for service in services:
        for client in service.clients:
            if not any(
                placed_rule.side == "reply"
                and placed_rule.service == service.name
                and placed_rule.rule.node == client
                for placed_rule in rules
            ):
                rule = Rule(client, "any", reads=(service.reply(client),))
                yield PlacedRule(rule, None, f"nodes.{client}")


def _without_actions(
    placed_rules: list[PlacedRule], former_names: Mapping[str, str], problems: Problems
) -> tuple[list[PlacedRule], list[Way]]:
    """The rules with services instead of actions, and the paths from each action's goals to their results."""
    names = list(
        dict.fromkeys(
            name
            for placed_rule in placed_rules
            for name in (*placed_rule.goals, *([placed_rule.action] if placed_rule.action else []))
        )
    )
    ways: list[Way] = []
    for name in names:
        serving = [
            placed_rule
            for placed_rule in placed_rules
            if placed_rule.side == "goal" and placed_rule.action == name
        ]
        clients = list(
            dict.fromkeys(placed_rule.rule.node for placed_rule in placed_rules if name in placed_rule.goals)
        )
        servers = list(dict.fromkeys(placed_rule.rule.node for placed_rule in serving))
        if len(_former(servers, former_names)) != 1 or len(serving) > len(servers) or not clients:
            _note_action(name, serving, placed_rules, problems)
            continue
        ways += [way for server in servers for way in _ways_of(name, server, clients, former_names)]
        placed_rules = [
            *(step for placed_rule in placed_rules for step in _as_services(placed_rule, name)),
            *_client_rules(name, clients, serving[0]),
        ]
    return placed_rules, ways


def _note_action(
    name: str,
    serving: Sequence[PlacedRule],
    placed_rules: Sequence[PlacedRule],
    problems: Problems,
) -> None:
    if len(serving) > 1:
        message, hint, at = f"the action '{name}' has several servers", "an action has one", serving[1]
    elif not serving:
        message, hint = f"no node serves the action '{name}'", f"write `trigger: goal` and `action: {name}`"
        at = next(
            placed_rule
            for placed_rule in placed_rules
            if name in placed_rule.goals or placed_rule.action == name
        )
    else:
        message, hint, at = f"no node sends goals to '{name}'", f"write `goals: [{name}]`", serving[0]
    problems.add(message, at.line, at.key, hint)


def _as_services(placed: PlacedRule, name: str) -> Iterator[PlacedRule]:
    """One rule with the action `name` as services. A server executes a goal in steps, each of which ends with
    feedback; the last step's result is the reply."""
    if name in placed.goals:
        goals = tuple(goal for goal in placed.goals if goal != name)
        placed = replace(placed, goals=goals, requests=(*placed.requests, f"{name}.goal"))
    if placed.action != name:
        yield placed
        return
    plain = replace(placed, side="reply" if placed.side == "result" else "request", action="", steps=0)
    if placed.side == "result":
        yield replace(plain, service=f"{name}.result")
        return
    rule, result = placed.rule, replace(plain, service=f"{name}.result", made=True)
    accepted = replace(rule, writes=(), uses=(), work_ns=0, spread=None)
    yield replace(plain, service=f"{name}.goal", rule=accepted, requests=())
    step = replace(rule, writes=(f"{name}.feedback",), uses=())
    for number in range(placed.steps):
        yield replace(result, rule=replace(step, step=number), requests=(), replies=False)
    yield replace(result, rule=replace(rule, work_ns=0, spread=None) if placed.steps else rule)


def _client_rules(name: str, clients: Sequence[str], server: PlacedRule) -> Iterator[PlacedRule]:
    """A client requests the result of a goal once the goal is accepted, and takes the feedback."""
    for client in clients:
        template = PlacedRule(Rule(client, "any", work_ns=0), None, f"nodes.{client}")
        yield replace(template, side="reply", service=f"{name}.goal", requests=(f"{name}.result",), made=True)
        if server.steps:
            yield replace(template, rule=Rule(client, "any", reads=(f"{name}.feedback",)), made=True)


def _ways_of(
    name: str, server: str, clients: Sequence[str], former_names: Mapping[str, str]
) -> Iterator[Way]:
    for client in clients:
        suffix = f".{client}" if len(clients) > 1 else ""
        topics = (
            f"{name}.goal.request",
            f"{name}.goal.reply{suffix}",
            f"{name}.result.request",
            f"{name}.result.reply{suffix}",
        )
        yield Way(_way_name(name, server, suffix[1:], former_names), client, server, topics)


def service_chains(ways: Sequence[Way], graph: Graph, file_chains: Sequence[Chain]) -> tuple[Chain, ...]:
    """A chain for each path of a request and its reply, unless the file gives that name to its own chain."""
    names = {chain.name for chain in file_chains}
    between = {(edge.topic, edge.publisher, edge.subscriber): edge.name for edge in graph.edges()}
    return tuple(
        Chain(
            way.name,
            tuple(
                between.get((topic, way.client, way.server)) or between[topic, way.server, way.client]
                for topic in way.topics
            ),
        )
        for way in ways
        if way.name not in names
    )


def read_services(
    keys: dict[str, Tree], services: Sequence[Service], problems: Problems
) -> Iterator[tuple[str, str, Entries]]:
    """The settings of each topic in the keys `services` and `actions`: its name, its place, its settings."""
    by_name = {service.name: service for service in services}
    actions = {name.removesuffix(".goal") for name in by_name if name.endswith(".goal")}
    for key, valid, known in (
        ("services", SIDES, {name for name in by_name if name.rpartition(".")[0] not in actions}),
        ("actions", PARTS, actions),
    ):
        value = keys.get(key)
        if value is None:
            continue
        if not isinstance(value, Entries):
            problems.add(f"has no {key} under it", value.line, key, f"write `plan: {{{valid[0]}: {{…}}}}`")
            continue
        for entry, item in value.entries:
            where = f"{key}.{entry.text}"
            if entry.text not in known:
                message = f"no node has to do with '{entry.text}'"
                problems.add(message, entry.line, key, nearest(entry.text, sorted(known)))
            elif not isinstance(item, Entries):
                problems.add("says nothing of it", entry.line, where, f"write one of {', '.join(valid)}")
            else:
                yield from _parts(entry.text, item, where, valid, by_name, problems)


def _parts(
    name: str,
    value: Entries,
    where: str,
    valid: Sequence[str],
    services: dict[str, Service],
    problems: Problems,
) -> Iterator[tuple[str, str, Entries]]:
    for entry, item in value.entries:
        key_path = f"{where}.{entry.text}"
        if entry.text not in valid:
            problems.add(f"unknown key '{entry.text}'", entry.line, where, nearest(entry.text, valid))
        elif not isinstance(item, Entries):
            problems.add("says nothing of the messages", entry.line, key_path, "write `{payload: 1KB}`")
        else:
            for topic in _topics_of(name, entry.text, services):
                yield topic, key_path, item


def _topics_of(name: str, part: str, services: dict[str, Service]) -> tuple[str, ...]:
    if part == "feedback":
        return (f"{name}.feedback",)
    if part == "goal":
        return (services[f"{name}.goal"].request,)
    service = services[f"{name}.result"] if part == "result" else services[name]
    return (service.request,) if part == "request" else tuple(map(service.reply, service.clients))


def reliable(settings: TopicSettings) -> TopicSettings:
    """Requests and replies are reliable, as in every middleware that has them, unless the file sets it."""
    return settings if settings.reliability is not None else replace(settings, reliability="reliable")
