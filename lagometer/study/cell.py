# SPDX-License-Identifier: Apache-2.0
"""A cell: one point of a study's matrix, with everything needed to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from lagometer.study.bridges import BridgeProgram
from lagometer.study.forwarding import bridged_pairs
from lagometer.study.graph import Edge, Graph, Group
from lagometer.study.hosts import HERE
from lagometer.study.links import Link
from lagometer.study.payload import PayloadType
from lagometer.study.sidecar import OptionValue
from lagometer.study.traffic import SecurityKind, Traffic

# What findings look at even if the study does not set it.
DEFAULTED = ("payload_bytes", "type", "reliability", "history", "depth", "durability", "profile")


@dataclass(frozen=True)
class Factors:
    """The value of every factor in one cell; a factor that the study does not set has its default.

    docs/WORKLOADS.md explains each. adapter: a name, or `publisher+subscriber`; rate_hz: of the timers that
    follow the study's rate; schedule: of the same timers, in its canonical spelling; work_ns: busy time of
    each relay; work_spread, content: in their canonical spelling; cpus: `any`, `spread` or numbers like
    `0,1`.
    """

    adapter: str
    workload: str
    work_ns: int = 0
    work_spread: str = "none"
    payload_bytes: int = 64
    content: str = "any"
    type: PayloadType = "bytes"
    rate_hz: float = 100.0
    schedule: str = "periodic"
    late: Literal["burst", "skip", "shift"] = "burst"
    reliability: Literal["best_effort", "reliable"] = "best_effort"
    history: Literal["keep_last", "keep_all"] = "keep_last"
    depth: int = 16
    durability: Literal["volatile", "transient_local"] = "volatile"
    deadline_period_ns: int = 0
    lifespan_ns: int = 0
    liveliness: str = "none"
    partition: str = "none"
    instances: int = 0
    dispatch: Literal["listener", "waitset", "poll"] = "waitset"
    touch: Literal["header", "write", "read", "write+read"] = "write+read"
    profile: Literal["default", "matched"] = "default"
    placement: str = "process-per-node"
    participants: Literal["per-process", "per-node"] = "per-process"
    threads: Literal["per-node", "per-process"] = "per-node"
    start: Literal["matched", "subscriber-first", "publisher-first"] = "matched"
    scheduling: Literal["other", "fifo"] = "other"
    cpus: str = "any"
    network: Literal["private", "host"] = "private"
    domain: int = 0
    bridge: str = "none"
    security: SecurityKind = "none"
    interference: str = "none"
    tuning: Literal["none", "latency"] = "none"
    hosts: str = "here"
    link: str = "none"
    variant: str = "none"
    part: str = "none"

    @property
    def publisher_adapter(self) -> str:
        """The adapter of publishers, except on topics that name their own."""
        return self.adapter.split("+")[0]

    @property
    def subscriber_adapter(self) -> str:
        """The adapter of subscribers, except on topics that name their own."""
        return self.adapter.split("+")[-1]

    def traffic(self) -> Traffic:
        """What a topic carries if it has no settings of its own."""
        return Traffic(
            adapter=self.adapter,
            domain=self.domain,
            type=self.type,
            content=self.content,
            payload_bytes=self.payload_bytes,
            reliability=self.reliability,
            history=self.history,
            depth=self.depth,
            durability=self.durability,
            deadline_period_ns=self.deadline_period_ns,
            lifespan_ns=self.lifespan_ns,
            liveliness=self.liveliness,
            partition=self.partition,
            instances=self.instances,
            security=self.security,
        )


@dataclass(frozen=True)
class Cell:
    """One point of the matrix.

    id: unique in the study, the folder name under `samples/`; named: the fields of `factors` that the study
    varies or sets; graph: the workload with rate and work filled in; workers: for each worker (a process),
    its nodes' names; traffic: what each topic of the graph carries; groups: each worker's group in the
    workload, None if it has none; options: adapter → option → value, the variant's over the study's;
    environment: variables that the variant sets for the workers; host_of: node → host, each `here` without
    hosts; link: emulated between the hosts, or on the loopback of one host, None for none; bridge: the
    program that carries topics to another domain, None for none.
    """

    id: str
    factors: Factors
    named: tuple[str, ...]
    graph: Graph
    workers: tuple[tuple[str, ...], ...]
    traffic: Mapping[str, Traffic]
    groups: tuple[Group | None, ...]
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    host_of: Mapping[str, str] = field(default_factory=dict)
    link: Link | None = None
    bridge: BridgeProgram | None = None

    def columns(self) -> dict[str, object]:
        """The factors as the columns of cells.parquet: null where the study neither varies nor sets one.

        `adapter` lists the adapters that the topics use, joined by `,` if they differ: only a cell's own
        messages can make it a floor, or its middleware the fastest.
        """
        values = {
            field: getattr(self.factors, field) if field in self.named else None
            for field in Factors.__dataclass_fields__
        }
        return {
            **values,
            "adapter": ",".join(dict.fromkeys(traffic.adapter for traffic in self.traffic.values())),
        }

    def defaults(self) -> dict[str, object]:
        """What the cell's topics carry by default: the factors of `DEFAULTED` that the study does not set."""
        return {name: getattr(self.factors, name) for name in DEFAULTED if name not in self.named}

    @property
    def adapters(self) -> tuple[str, ...]:
        """All adapters that the cell uses, publishers first."""
        names = [traffic.publisher_adapter for traffic in self.traffic.values()]
        names += [traffic.subscriber_adapter for traffic in self.traffic.values()]
        return tuple(dict.fromkeys(names))

    def worker_name(self, worker: int) -> str:
        """A worker's name: that of its group, of its only node, or its number."""
        group, nodes = self.groups[worker], self.workers[worker]
        if group is not None:
            return group.name
        return nodes[0] if len(nodes) == 1 else f"worker-{worker}"

    @property
    def bridges(self) -> dict[str, str]:
        """The nodes that forward messages to another domain or adapter, and the worker that each is in."""
        edges = {edge.name: edge for edge in self.graph.edges()}
        nodes = {edges[taken].subscriber for taken, _ in self.forwarding}
        return {
            node: self.worker_name(worker)
            for worker, in_worker in enumerate(self.workers)
            for node in in_worker
            if node in nodes
        }

    def forwards(self, taken: Edge, published: Edge) -> bool:
        """Whether the node between two edges is a bridge for their messages: it takes them on one side, and
        passes them on at once to another domain or adapter."""
        rules = [
            rule
            for rule in self.graph.rules_of(taken.subscriber)
            if taken.topic in rule.subscribes and published.topic in rule.writes
        ]
        into, out_of = self.traffic[taken.topic], self.traffic[published.topic]
        here = (into.subscriber_adapter, into.subscriber_domain)
        crosses = here != (out_of.publisher_adapter, out_of.domain)
        at_once = all(rule.is_relay and taken.topic in rule.reads for rule in rules)
        return bool(rules) and crosses and at_once

    @cached_property
    def forwarding(self) -> list[tuple[str, str]]:
        """The edges between which a bridge is, by name: its messages of the first go on as those of the
        second. A node that only turns the messages of a round trip round is no bridge."""
        topics = self.traffic.values()
        if len({(topic.adapter, domain) for topic in topics for domain in topic.domains}) < 2:
            return []
        pairs = bridged_pairs(self.graph, self.forwards)
        return [(taken.name, published.name) for taken, published in pairs]

    @property
    def across(self) -> dict[str, Traffic]:
        """The topics that a bridge carries to another domain or middleware."""
        return {
            topic: traffic
            for topic, traffic in self.traffic.items()
            if traffic.domain_across is not None or self.sides_of(traffic) is not None
        }

    def sides_of(self, traffic: Traffic) -> tuple[int, int] | None:
        """On which side of the cell's bridge a topic is published and on which it is read, 0 or 1; None
        unless the bridge joins two middlewares, and the topic has both."""
        if self.bridge is None:
            return None
        return self.bridge.place_on_sides(traffic.publisher_adapter, traffic.subscriber_adapter)

    @property
    def domains_on_sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The domains that the topics across have on either side of a bridge that joins two middlewares."""
        found: tuple[set[int], set[int]] = (set(), set())
        for traffic in self.across.values():
            if (places := self.sides_of(traffic)) is not None:
                found[places[0]].add(traffic.domain)
                found[places[1]].add(traffic.subscriber_domain)
        return tuple(sorted(found[0])), tuple(sorted(found[1]))

    @property
    def edges_across(self) -> tuple[Edge, ...]:
        """The edges of these topics."""
        across = self.across
        return tuple(edge for edge in self.graph.edges() if edge.topic in across) if across else ()

    @property
    def domains_across(self) -> tuple[int, int]:
        """The two domains that the bridge joins, the lower one first; of a bridge that joins two middlewares,
        that on its first side and that on its second. Raises ValueError if they are not two."""
        if self.bridge is not None and self.bridge.sides is not None:
            (first,), (second,) = self.domains_on_sides
        else:
            first, second = sorted({domain for traffic in self.across.values() for domain in traffic.domains})
        return first, second

    @property
    def bridge_hosts(self) -> tuple[str, ...]:
        """The host of each process of the bridge: next to a node of its domain, or, if it is one process, the
        first, where the daemons of adapters are, too."""
        if self.bridge is None:
            return ()
        if self.bridge.processes == "one":
            return self.hosts[:1]
        return tuple(map(self._domain_host, self.domains_across))

    def _domain_host(self, domain: int) -> str:
        """The host of the first node that a bridged topic has in a domain."""
        nodes = [
            node
            for edge in self.edges_across
            for node, where in (
                (edge.publisher, self.traffic[edge.topic].domain),
                (edge.subscriber, self.traffic[edge.topic].subscriber_domain),
            )
            if where == domain
        ]
        return self.host_of.get(nodes[0], HERE) if nodes else HERE

    def worker_host(self, worker: int) -> str:
        """The host that a worker runs on, which is the host of its nodes."""
        return self.host_of.get(self.workers[worker][0], HERE)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that have workers."""
        return tuple(dict.fromkeys(self.worker_host(worker) for worker in range(len(self.workers))))

    def worker_cpus(self, worker: int, available: tuple[int, ...]) -> tuple[int, ...]:
        """The CPUs that a worker is pinned to, empty for none; `available`: those that this process
        may use."""
        group = self.groups[worker]
        cpus = group.cpus if group is not None and group.cpus is not None else self.factors.cpus
        if cpus == "any":
            return ()
        if cpus == "spread":
            return (available[worker % len(available)],)
        return tuple(int(cpu) for cpu in cpus.split(","))

    def worker_start_ns(self, worker: int) -> int:
        """How long after the common start a worker joins; its nodes join together."""
        return max(self.graph.start_ns(node) for node in self.workers[worker])

    def worker_stop_ns(self, worker: int) -> int:
        """How long after the common start a worker leaves; its nodes leave together. 0: it stays."""
        return max(self.graph.stop_ns(node) for node in self.workers[worker])

    def worker_scheduling(self, worker: int) -> Literal["other", "fifo"]:
        """The scheduling policy of a worker's threads."""
        group = self.groups[worker]
        return group.scheduling if group is not None and group.scheduling else self.factors.scheduling


@dataclass(frozen=True)
class Excluded:
    """A combination that cannot exist, or that the study excludes, and why.

    instead: options of `lagometer measure` that bring it within its adapters' declared limits.
    """

    cell: str
    reason: str
    instead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expansion:
    """What a study contains on this machine: the cells to run, and the excluded ones."""

    cells: tuple[Cell, ...]
    excluded: tuple[Excluded, ...]
