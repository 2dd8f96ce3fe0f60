# SPDX-License-Identifier: Apache-2.0
"""A workload as a graph: nodes, the streams between them, and the rules that make nodes publish.

The graph does not map nodes to processes, hosts and CPUs (that is *placement*), so the same graph runs
everywhere. It may name groups of nodes that a placement keeps together.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from lagometer.study.load_shape import ContentFile, WorkSpread
from lagometer.study.schedule import PERIODIC, Schedule
from lagometer.study.traffic import TopicSettings

Trigger = Literal["timer", "any", "all", "closed_loop"]
TRIGGERS: tuple[Trigger, ...] = ("timer", "any", "all", "closed_loop")


BY_GROUPS = "groups"
PLACEMENTS = ("process-per-node", "single-process", BY_GROUPS)  # those that every study knows
_SO_MANY = re.compile(r"processes-([1-9][0-9]{0,4})")  # and this one, with a number


def processes_of(placement: str) -> int | None:
    """The number of processes that a placement such as `processes-50` asks for; None for any other."""
    match = _SO_MANY.fullmatch(placement)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Node:
    """A node. Its name is unique in the graph; its index is its place in `Graph.nodes`.

    start_ns: how long after the common start it joins; 0: it exists before. stop_ns: when it leaves; 0: it
    stays to the end. again_of: the node that it replaces after a restart.
    """

    name: str
    start_ns: int = 0
    stop_ns: int = 0
    again_of: str = ""


@dataclass(frozen=True)
class Stream:
    """One publisher on one topic; its number, unique in the trial, is its place in `Graph.streams`."""

    publisher: str
    topic: str
    subscribers: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """When a node does its work and publishes.

    trigger: `timer` (each period; `reads` are only causes: the newest message of each), `any` (each message
    on one of `reads`), `all` (when each of `reads` has a new one), `closed_loop` (at the start and after each
    message). reads, writes: topics. A rule that writes nothing is a sink. uses: topics that are state: their
    newest message is a further cause, and triggers nothing. work_ns: busy time per firing; None follows the
    study's factor `work`, which applies only to relays. period_ns: of a timer; None follows the study's
    factor `rate`. offset_ns: of a timer's first firing. jitter_ns: of a timer: each firing is late by up to
    this, drawn evenly. schedule: of a timer that follows the rate; spread: of the work, None for a constant.
    step: distinguishes rules of a node that write the same topics, so that each draws its own values.
    """

    node: str
    trigger: Trigger
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    work_ns: int | None = None
    period_ns: int | None = None
    offset_ns: int = 0
    schedule: Schedule = PERIODIC
    spread: WorkSpread | None = None
    uses: tuple[str, ...] = ()
    jitter_ns: int = 0
    step: int = 0

    @property
    def subscribes(self) -> tuple[str, ...]:
        """All topics that the node must subscribe to for this rule."""
        return (*self.reads, *self.uses)

    @property
    def is_relay(self) -> bool:
        """Whether it publishes because it received."""
        return self.trigger in ("any", "all") and bool(self.writes)

    @property
    def is_source(self) -> bool:
        """Whether chains begin here: it publishes without a message as its cause."""
        return self.trigger == "closed_loop" or (self.trigger == "timer" and not self.reads)


@dataclass(frozen=True)
class Edge:
    """A stream seen by one subscriber. stream: its number in the graph; name: as in docs/FORMAT.md."""

    name: str
    stream: int
    publisher: str
    subscriber: str
    topic: str


@dataclass(frozen=True)
class Service:
    """Requests of clients, and a server's reply to each; its topics are those of the graph.

    name: the service's name in the middleware; servers: the node that serves it and, if that restarts, the
    node that then replaces it; clients: nodes, in order.
    """

    name: str
    servers: tuple[str, ...]
    clients: tuple[str, ...]

    @property
    def request(self) -> str:
        """The topic of all clients' requests."""
        return f"{self.name}.request"

    def reply(self, client: str) -> str:
        """The topic of the replies to one client."""
        return f"{self.name}.reply" + (f".{client}" if len(self.clients) > 1 else "")


@dataclass(frozen=True)
class Group:
    """Nodes that a placement puts into one process.

    cpus, scheduling, priority: as in the factors of these names; None follows the study.
    """

    name: str
    nodes: tuple[str, ...]
    cpus: str | None = None
    scheduling: Literal["other", "fifo"] | None = None
    priority: int | None = None


@dataclass(frozen=True)
class Chain:
    """A named path through the graph. edges: their names; each edge begins where the previous one ends."""

    name: str
    edges: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """A workload's nodes, streams and rules, in the order of their numbers.

    topics: settings of the topics that have their own; contents: files that fill their payloads; groups,
    chains: as named in the workload's file; placements: further groups, by the name of their placement;
    services: those whose requests and replies are topics here.
    """

    name: str
    nodes: tuple[Node, ...]
    streams: tuple[Stream, ...]
    rules: tuple[Rule, ...]
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)
    contents: Mapping[str, ContentFile] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    placements: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)
    chains: tuple[Chain, ...] = ()
    services: tuple[Service, ...] = ()

    def groups_of(self, placement: str) -> tuple[Group, ...]:
        """The groups of a placement; none for one process, or a process for each node."""
        count = processes_of(placement)
        if count is None:
            return self.groups if placement == BY_GROUPS else self.placements.get(placement, ())
        names, all_nodes = self.node_names, len(self.nodes)
        count = min(count, all_nodes)
        ends = [place * all_nodes // count for place in range(count + 1)]
        return tuple(
            Group(f"process-{place}", names[begin:end])
            for place, (begin, end) in enumerate(itertools.pairwise(ends), 1)
        )

    def lacks_placement(self, placement: str) -> str:
        """Why there is no such placement of these nodes; empty if there is one."""
        if placement == BY_GROUPS and not self.groups:
            return f"{self.name} has no groups"
        count = processes_of(placement)
        if count is not None:
            few = f"{self.name} has {len(self.nodes)} nodes, too few for {count} processes"
            return few if count > len(self.nodes) else ""
        known = placement in PLACEMENTS or placement in self.placements
        return "" if known else f"{self.name} has no placement '{placement}'"

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names, in index order."""
        return tuple(node.name for node in self.nodes)

    @property
    def closed_loop(self) -> bool:
        """Whether a rule waits for an answer before it publishes again; then the graph has no rate."""
        return any(rule.trigger == "closed_loop" for rule in self.rules)

    def answers(self, rule: Rule) -> bool:
        """Whether the rule forwards a closed loop's message back towards that loop. The loop recognises an
        answer by the number of the message that it sent."""
        sent, awaited = self._looped
        return rule.trigger == "any" and bool(sent & set(rule.reads)) and bool(awaited & set(rule.writes))

    @cached_property
    def _looped(self) -> tuple[frozenset[str], frozenset[str]]:
        """The topics that closed loops' messages reach, and those from which they return to the loops."""
        loops = [rule for rule in self.rules if rule.trigger == "closed_loop"]
        passing = [rule for rule in self.rules if rule.trigger == "any"] if loops else []
        sent = {topic for loop in loops for topic in loop.writes}
        awaited = {topic for loop in loops for topic in loop.reads}
        for _ in passing:
            topic_count = len(sent) + len(awaited)
            sent |= {topic for rule in passing if sent & set(rule.reads) for topic in rule.writes}
            awaited |= {topic for rule in passing if awaited & set(rule.writes) for topic in rule.reads}
            if len(sent) + len(awaited) == topic_count:
                break
        return frozenset(sent), frozenset(awaited)

    @property
    def follows_rate(self) -> bool:
        """Whether the study's factor `rate` paces at least one timer. For an unresolved graph."""
        return any(rule.trigger == "timer" and rule.period_ns is None for rule in self.rules)

    @property
    def follows_work(self) -> bool:
        """Whether the study's factor `work` applies to at least one relay. For an unresolved graph."""
        return any(rule.is_relay and rule.work_ns is None for rule in self.rules)

    def start_ns(self, name: str) -> int:
        """When a node joins. Raises ValueError."""
        return self.nodes[self.node_index(name)].start_ns

    def stop_ns(self, name: str) -> int:
        """When a node leaves; 0: it stays. Raises ValueError."""
        return self.nodes[self.node_index(name)].stop_ns

    def node_index(self, name: str) -> int:
        """The index of the node with this name. Raises ValueError."""
        if name not in self._lookup.nodes:
            raise ValueError(f"{self.name} has no node {name}")
        return self._lookup.nodes[name]

    def rules_of(self, node: str) -> tuple[Rule, ...]:
        """The rules of one node, in order."""
        return self._lookup.rules.get(node, ())

    def stream_number(self, publisher: str, topic: str) -> int:
        """The number of this publisher's stream on this topic. Raises KeyError."""
        if (publisher, topic) not in self._lookup.streams:
            raise KeyError(f"{publisher} does not publish {topic}")
        return self._lookup.streams[publisher, topic]

    def streams_on(self, topic: str) -> tuple[int, ...]:
        """The numbers of all streams on a topic, which its subscribers receive."""
        return self._lookup.topics.get(topic, ())

    def edges(self) -> tuple[Edge, ...]:
        """Every (stream, subscriber), named `publisher→subscriber`, followed by `:topic` where that name is
        not unique."""
        return self._edges

    @cached_property
    def service_of(self) -> Mapping[str, Service]:
        """Topic → its service, for topics of services."""
        service_by_topic = {}
        for service in self.services:
            service_by_topic[service.request] = service
            service_by_topic.update(dict.fromkeys(map(service.reply, service.clients), service))
        return service_by_topic

    @cached_property
    def answered(self) -> Mapping[int, int]:
        """Stream of replies → the stream of the requests that they answer."""
        return {
            self.stream_number(server, service.reply(client)): self.stream_number(client, service.request)
            for service in self.services
            for server in service.servers
            for client in service.clients
        }

    @cached_property
    def _edges(self) -> tuple[Edge, ...]:
        pairs = [
            (number, publication, receiver)
            for number, publication in enumerate(self.streams)
            for receiver in publication.subscribers
        ]
        plain = Counter(f"{stream.publisher}→{subscriber}" for _, stream, subscriber in pairs)
        edges = []
        for number, stream, subscriber in pairs:
            name = f"{stream.publisher}→{subscriber}"
            name = name if plain[name] == 1 else f"{name}:{stream.topic}"
            edges.append(Edge(name, number, stream.publisher, subscriber, stream.topic))
        return tuple(edges)

    @cached_property
    def _lookup(self) -> _Lookup:
        """Indexes for lookups that large graphs make for every node, built once."""
        rules: dict[str, list[Rule]] = {}
        for rule in self.rules:
            rules.setdefault(rule.node, []).append(rule)
        topics: dict[str, list[int]] = {}
        streams: dict[tuple[str, str], int] = {}
        for number, stream in enumerate(self.streams):
            topics.setdefault(stream.topic, []).append(number)
            streams.setdefault((stream.publisher, stream.topic), number)
        return _Lookup(
            nodes={node.name: index for index, node in enumerate(self.nodes)},
            rules={node: tuple(node_rules) for node, node_rules in rules.items()},
            streams=streams,
            topics={topic: tuple(numbers) for topic, numbers in topics.items()},
        )

    def source_streams(self) -> frozenset[int]:
        """The numbers of the streams on which chains begin (their roots)."""
        return frozenset(
            self.stream_number(rule.node, topic)
            for rule in self.rules
            if rule.is_source
            for topic in rule.writes
        )

    def sink_edges(self) -> frozenset[str]:
        """The names of the edges where chains end: a rule that publishes nothing reads them, or the rule that
        closes a loop."""
        ends = {
            (rule.node, topic)
            for rule in self.rules
            if rule.trigger == "closed_loop" or not rule.writes
            for topic in rule.reads
        }
        return frozenset(edge.name for edge in self.edges() if (edge.subscriber, edge.topic) in ends)

    def resolved(
        self,
        period_ns: int,
        work_ns: int,
        schedule: Schedule = PERIODIC,
        spread: WorkSpread | None = None,
    ) -> Graph:
        """The same graph with rate and work filled in: no rule's work and no timer's period is None."""
        rules = (_resolve(rule, period_ns, work_ns, schedule, spread) for rule in self.rules)
        return replace(self, rules=tuple(rules))


@dataclass(frozen=True)
class _Lookup:
    """nodes: name → index; rules: node → its rules; streams: (publisher, topic) → number; topics: topic →
    numbers of its streams."""

    nodes: Mapping[str, int]
    rules: Mapping[str, tuple[Rule, ...]]
    streams: Mapping[tuple[str, str], int]
    topics: Mapping[str, tuple[int, ...]]


def _resolve(rule: Rule, period_ns: int, work_ns: int, schedule: Schedule, spread: WorkSpread | None) -> Rule:
    if rule.work_ns is None:
        works = rule.is_relay and work_ns > 0
        rule = replace(rule, work_ns=work_ns if works else 0, spread=spread if works else None)
    if rule.trigger == "timer" and rule.period_ns is None:
        if schedule.recording is not None:
            period_ns = round(schedule.recording.mean_ns)
        rule = replace(rule, period_ns=period_ns, schedule=schedule)
    return rule
