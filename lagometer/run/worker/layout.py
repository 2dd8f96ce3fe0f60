# SPDX-License-Identifier: Apache-2.0
"""Turns a cell into the plans of its workers: the endpoints of each node, and the room for records."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lagometer.agent.isolation import PRIVATE_RUNTIME_DIRECTORY
from lagometer.run.companions.identities import AUTHORITY, FOLDER, Identity
from lagometer.run.worker.plan import (
    CAPACITY_MAX,
    HEAP_OFFSET_BYTES_MAX,
    HEAP_STEP_BYTES,
    Adapter,
    Answers,
    AnyContent,
    Context,
    Liveliness,
    Node,
    Phases,
    PlainContent,
    Plan,
    Qos,
    RandomContent,
    Reader,
    RecordedContent,
    Scheduling,
    Security,
    Worker,
    Writer,
)
from lagometer.run.worker.rules import drawn, plan_rule
from lagometer.study.adapter import Adapter as BuiltAdapter
from lagometer.study.adapters import available_cpus
from lagometer.study.cell import Cell
from lagometer.study.daemons import daemons_in_use, filled_in, option_values, service_address
from lagometer.study.graph import Graph, Rule
from lagometer.study.hosts import HERE
from lagometer.study.policies import NONE, liveliness_of
from lagometer.study.schedule import RECORDED
from lagometer.study.schema import Study
from lagometer.study.traffic import SecurityKind, Traffic

CLOSED_LOOP_RATE_MAX_HZ = 400_000.0  # for the recorder's size; a faster loop stops when it is full
CLOSED_LOOP_CAPACITY_MAX = 1_000_000
CAPACITY_MARGIN = 1.5
CAPACITY_MORE = 1_000  # bursts, probes, resent messages
RECORD_BYTES = 64
STAMPS_PER_MESSAGE = 4  # records in addition to the message's own on each side, if layers are stamped
RECORDS_BYTES_MAX = 1 << 30  # of all workers of a trial together
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Place:
    """The properties of a host that its workers' plans depend on. cpus: those that may be used; there:
    returns the path on the host of a file of this installation; shares_clock: it reads this machine's
    clock."""

    runtime_directory: str
    cpus: tuple[int, ...]
    there: Callable[[str], str] = str
    shares_clock: bool = False


def worker_plans(
    study: Study,
    cell: Cell,
    trial: int,
    adapters: Mapping[str, BuiltAdapter],
    standalone: bool = False,
    places: Mapping[str, Place] | None = None,
) -> list[Plan]:
    """Returns one plan for each worker of the cell, in the order of `cell.workers`.

    places: by host; a missing host is like this one, in a private machine.
    """
    layout = _Layout(study, cell, trial, adapters, places or {}, standalone)
    return [layout.plan(index) for index in range(len(cell.workers))]


def topics_read(graph: Graph, node: str) -> list[str]:
    """Returns the topics that a node subscribes to. The place in the list is the reader's index."""
    return list(dict.fromkeys(topic for rule in graph.rules_of(node) for topic in rule.subscribes))


def topics_written(graph: Graph, node: str) -> list[str]:
    """Returns the topics that a node publishes on. The place in the list is the writer's index."""
    return list(dict.fromkeys(topic for rule in graph.rules_of(node) for topic in rule.writes))


def stream_rates_hz(graph: Graph) -> dict[int, float]:
    """Returns the highest rate of each stream, following the rules from the timers.

    Rates in a cycle would grow forever, so the walk ends after as many rounds as there are nodes.
    """
    rates = dict.fromkeys(range(len(graph.streams)), 0.0)
    written = [tuple(graph.stream_number(rule.node, topic) for topic in rule.writes) for rule in graph.rules]
    readers: dict[int, set[int]] = {stream: set() for stream in rates}
    writers: dict[int, list[int]] = {stream: [] for stream in rates}
    for place, rule in enumerate(graph.rules):
        for stream in written[place]:
            writers[stream].append(place)
        for stream in (stream for topic in rule.reads for stream in graph.streams_on(topic)):
            readers[stream].add(place)
    previous_hz = [0.0] * len(graph.rules)
    stale = set(range(len(graph.rules)))  # rules whose inputs have changed
    for _ in graph.nodes:
        new_rates_hz = {place: _rule_rate_hz(graph, graph.rules[place], rates) for place in sorted(stale)}
        changed = {
            stream
            for place in new_rates_hz
            if new_rates_hz[place] != previous_hz[place]
            for stream in written[place]
        }
        for place, rate_hz in new_rates_hz.items():
            previous_hz[place] = rate_hz
        for stream in changed:
            rates[stream] = sum(previous_hz[place] for place in writers[stream])
            if stream in graph.answered:  # one reply to each request of its own client
                rates[stream] = rates[graph.answered[stream]]
        stale = {place for stream in changed for place in readers[stream]}
        if not stale:
            break
    return rates


def _rule_rate_hz(graph: Graph, rule: Rule, rates: Mapping[int, float]) -> float:
    if rule.trigger == "timer":
        assert rule.period_ns is not None, "a cell's graph is resolved"
        return NS_PER_S / min(rule.period_ns, rule.schedule.end_period_ns or rule.period_ns)
    inputs = [sum(rates[stream] for stream in graph.streams_on(topic)) for topic in rule.reads]
    return min(inputs, default=0.0) if rule.trigger == "all" else sum(inputs)


@dataclass(frozen=True)
class _Participant:
    """One context of a worker. node: its only user; empty: the nodes of the worker share it."""

    adapter: str
    domain: int
    security: SecurityKind
    node: str


class _Layout:
    """What all plans of one cell share."""

    def __init__(
        self,
        study: Study,
        cell: Cell,
        trial: int,
        adapters: Mapping[str, BuiltAdapter],
        places: Mapping[str, Place],
        standalone: bool,
    ) -> None:
        self._places = places
        self._standalone = standalone
        self._token = secrets.token_hex(8)  # others may measure on the same link
        self._study = study
        self._trial = trial
        self._cell = cell
        self._graph = cell.graph
        self._adapters = adapters
        self._capacities = self._stream_capacities()
        # A bridge has one in each domain.
        self._participants = sum(len(self._contexts(nodes)) for nodes in cell.workers) + 2 * bool(cell.bridge)

    def plan(self, index: int) -> Plan:
        """Returns the plan of the worker with this index."""
        cell, nodes = self._cell, self._cell.workers[index]
        host = cell.worker_host(index)
        place = self._place(host)
        contexts = self._contexts(nodes)
        used_adapters = list(dict.fromkeys(participant.adapter for participant in contexts))
        name, scheduling, group = cell.worker_name(index), cell.worker_scheduling(index), cell.groups[index]
        priority = (group.priority if group is not None else None) or self._study.priority
        return Plan(
            protocol=1,
            cell=cell.id,
            trial=self._trial,
            standalone=self._standalone,
            worker=Worker(index=index, name=name, host=host, host_number=cell.hosts.index(host)),
            phases=self._phases(cell.worker_stop_ns(index)),
            scheduling=Scheduling(
                policy=scheduling,
                priority=priority if scheduling == "fifo" else 0,
                cpus=list(cell.worker_cpus(index, place.cpus)),
                lock_memory=True,
            ),
            runtime_directory=place.runtime_directory,
            touch=cell.factors.touch,
            content=self._content(cell.factors.content),
            heap_offset_bytes=self._heap_offset_bytes(index),
            layer_stamps=self._study.layers,
            start=cell.factors.start,
            start_ns=cell.worker_start_ns(index),
            threads=cell.factors.threads if len(nodes) > 1 else "per-node",
            adapters=[self._adapter(adapter, place, host) for adapter in used_adapters],
            contexts=[
                Context(
                    adapter=used_adapters.index(participant.adapter),
                    domain=participant.domain,
                    name=participant.node or name,
                    security=_security(participant, index, number, place.runtime_directory),
                )
                for number, participant in enumerate(contexts)
            ],
            nodes=[self._node(node, contexts) for node in nodes],
        )

    def _place(self, host: str) -> Place:
        return self._places.get(host) or Place(PRIVATE_RUNTIME_DIRECTORY, available_cpus(), shares_clock=True)

    def _phases(self, stop_ns: int) -> Phases:
        """Returns the phases of a worker. A worker that leaves has shorter ones, and is done after them."""
        study = self._study
        phases = Phases(
            discovery_timeout_ns=study.discovery_ns(self._cell),
            warmup_ns=study.warmup_ns,
            measure_ns=study.duration_ns,
            drain_ns=study.drain_ns,
        )
        if stop_ns == 0 or stop_ns >= study.trial_ns():
            return phases
        warmup_ns = min(study.warmup_ns, stop_ns - 1)
        measure_ns = min(study.duration_ns, stop_ns - warmup_ns)
        shorter = {
            "warmup_ns": warmup_ns,
            "measure_ns": measure_ns,
            "drain_ns": stop_ns - warmup_ns - measure_ns,
        }
        return phases.model_copy(update=shorter)

    def _contexts(self, nodes: tuple[str, ...]) -> list[_Participant]:
        """Returns the participants that the nodes of one worker need, in the order of their creation."""
        participants: list[_Participant] = []
        for node in nodes:
            participants += [self._publisher(node, topic) for topic in topics_written(self._graph, node)]
        for node in nodes:
            participants += [self._subscriber(node, topic) for topic in topics_read(self._graph, node)]
        return list(dict.fromkeys(participants))

    def _publisher(self, node: str, topic: str) -> _Participant:
        traffic = self._cell.traffic[topic]
        return _Participant(traffic.publisher_adapter, traffic.domain, traffic.security, self._own(node))

    def _subscriber(self, node: str, topic: str) -> _Participant:
        traffic = self._cell.traffic[topic]
        return _Participant(
            traffic.subscriber_adapter, traffic.subscriber_domain, traffic.security, self._own(node)
        )

    def _own(self, node: str) -> str:
        return node if self._cell.factors.participants == "per-node" else ""

    def _adapter(self, name: str, place: Place, host: str) -> Adapter:
        built = self._adapters[name]
        fixed = {
            key: place.there(value) if isinstance(value, str) else value
            for key, value in built.fixed_options.items()
        }
        return Adapter(
            name=name,
            library=place.there(str(built.library)),
            profile=self._cell.factors.profile,
            options={**self._cell.options.get(name, {}), **fixed},
            environment=self._environment(built, place.runtime_directory),
            network=self._network(host),
        )

    def _network(self, host: str) -> dict[str, object]:
        """Returns what an adapter needs to know about the network; empty if the middleware finds out
        itself."""
        if self._cell.factors.network == "private":
            return {"loopback": True, "peers": self._participants}
        addresses = [
            self._study.hosts[name].address for name in self._cell.hosts if name in self._study.hosts
        ]
        if len(self._cell.hosts) < 2 or len(addresses) < len(self._cell.hosts) or "" in addresses:
            return {}
        return {"address": self._study.hosts[host].address, "hosts": addresses, "trial": self._token}

    def _environment(self, built: BuiltAdapter, runtime_directory: str) -> dict[str, str]:
        """Returns the sidecar's variables, and those that tell the workers where their daemons are."""
        variables = dict(built.sidecar.environment)
        options, profile = self._cell.options, self._cell.factors.profile
        values = option_values(built, options, profile)
        address = service_address(self._cell, self._study.hosts)
        for daemon in daemons_in_use(built, options, profile):
            variables |= {
                name: filled_in(text, values, runtime_directory, address)
                for name, text in daemon.environment.items()
            }
        return {**variables, **self._cell.environment}

    def _node(self, name: str, contexts: list[_Participant]) -> Node:
        graph = self._graph
        reads, writes = topics_read(graph, name), topics_written(graph, name)
        return Node(
            name=name,
            index=graph.node_index(name),
            dispatch=self._cell.factors.dispatch,
            cpus=[],
            readers=[self._reader(name, topic, contexts) for topic in reads],
            writers=[self._writer(name, topic, contexts) for topic in writes],
            rules=[
                plan_rule(self._study, self._cell, self._trial, self._from_its_start(rule), reads, writes)
                for rule in graph.rules_of(name)
            ],
        )

    def _reader(self, node: str, topic: str, contexts: list[_Participant]) -> Reader:
        traffic, graph = self._cell.traffic[topic], self._graph
        streams = graph.streams_on(topic)
        return Reader(
            context=contexts.index(self._subscriber(node, topic)),
            topic=self._name(topic),
            type=traffic.type,
            payload_bytes=traffic.payload_bytes,
            capacity=min(sum(self._capacities[stream] for stream in streams), CAPACITY_MAX),
            qos=_qos(traffic),
            streams=[stream for stream in streams if self._is_awaited(node, stream)],
            sizes_vary=bool(traffic.sizes_bytes),
            shares_clock=all(self._share_clock(graph.streams[stream].publisher, node) for stream in streams),
        )

    def _writer(self, node: str, topic: str, contexts: list[_Participant]) -> Writer:
        traffic, stream = self._cell.traffic[topic], self._graph.stream_number(node, topic)
        service = self._graph.service_of.get(topic)
        replied_on, answers = None, None
        if service is not None and node in service.servers:
            place = topics_read(self._graph, node).index(service.request)
            answers = Answers(reader=place, stream=self._graph.answered[stream])
        elif service is not None:
            replied_on = topics_read(self._graph, node).index(service.reply(node))
        return Writer(
            context=contexts.index(self._publisher(node, topic)),
            topic=self._name(topic),
            type=traffic.type,
            payload_bytes=traffic.payload_bytes,
            capacity=self._capacities[stream],
            qos=_qos(traffic),
            stream=stream,
            subscribers=len(self._graph.streams[stream].subscribers),
            content=self._content(traffic.content) if traffic.content != self._cell.factors.content else None,
            sizes_bytes=list(traffic.sizes_bytes),
            replied_on=replied_on,
            answers=answers,
        )

    def _name(self, topic: str) -> str:
        """Returns the middleware's name for a topic, or for the service that it belongs to."""
        service = self._graph.service_of.get(topic)
        return f"lagometer/{topic if service is None else service.name}"

    def _from_its_start(self, rule: Rule) -> Rule:
        """Returns a rule whose timer begins when its node joins."""
        start_ns = self._graph.start_ns(rule.node)
        return replace(rule, offset_ns=rule.offset_ns + start_ns) if rule.trigger == "timer" else rule

    def _is_awaited(self, node: str, stream: int) -> bool:
        """Whether a reader of the node waits for this stream to match. It does not wait for a publisher that
        joins later."""
        publisher = self._graph.streams[stream].publisher
        return self._graph.start_ns(publisher) <= self._graph.start_ns(node)

    def _share_clock(self, publisher: str, node: str) -> bool:
        """Whether both nodes read the same clock. A standalone worker may run anywhere."""
        hosts = {self._cell.host_of.get(name, HERE) for name in (publisher, node)}
        same = len(hosts) == 1 or all(self._place(host).shares_clock for host in hosts)
        return same and not self._standalone

    def _content(self, content: str) -> AnyContent:
        if content == "random":
            return RandomContent(kind="random", seed=self._study.seed)
        if content.startswith(RECORDED):
            name = content.removeprefix(RECORDED)
            file = self._graph.contents.get(name) or self._study.contents[name]
            return RecordedContent(kind="recorded", path=str(file.path), crc32=file.crc32)
        return PlainContent(kind="zeros" if content == "zeros" else "any")

    def _stream_capacities(self) -> dict[int, int]:
        """Returns for how many records each stream gets room, within the memory limit of a trial."""
        study, graph = self._study, self._graph
        total_s = (study.warmup_ns + study.duration_ns + study.drain_ns) / NS_PER_S
        if graph.closed_loop:
            most = min(CLOSED_LOOP_CAPACITY_MAX, int(CLOSED_LOOP_RATE_MAX_HZ * total_s) + CAPACITY_MORE)
            capacities = dict.fromkeys(range(len(graph.streams)), most)
        else:
            capacities = {
                stream: int(rate_hz * total_s * CAPACITY_MARGIN) + CAPACITY_MORE + _most_at_once(graph)
                for stream, rate_hz in stream_rates_hz(graph).items()
            }
        lanes = {number: 1 + len(stream.subscribers) for number, stream in enumerate(graph.streams)}
        records = 1 + STAMPS_PER_MESSAGE if study.layers else 1
        needed = sum(
            RECORD_BYTES * records * lanes[stream] * capacity for stream, capacity in capacities.items()
        )
        share = min(1.0, RECORDS_BYTES_MAX / needed) if needed else 1.0
        return {
            stream: max(1, min(CAPACITY_MAX, int(capacity * share)))
            for stream, capacity in capacities.items()
        }

    def _heap_offset_bytes(self, worker: int) -> int:
        """Returns how far the worker's heap is moved: a different draw for each worker, trial and cell.

        The start of a buffer within its page decides how fast it is copied. Otherwise it would be the same in
        all trials.
        """
        steps = HEAP_OFFSET_BYTES_MAX // HEAP_STEP_BYTES + 1
        bits = drawn(f"{self._study.seed}/{self._trial}/heap/{self._cell.id}/{worker}")
        return bits % steps * HEAP_STEP_BYTES


def _security(participant: _Participant, worker: int, place: int, folder: str) -> Security | None:
    """Returns the files of a participant, which is at this place among its worker's; None without
    security."""
    kind = participant.security
    if kind == "none":
        return None
    identity = Identity(worker, place, kind, participant.domain)
    return Security(
        kind=kind,
        identity_ca=f"{folder}/{FOLDER}/{AUTHORITY}",
        permissions_ca=f"{folder}/{FOLDER}/{AUTHORITY}",
        certificate=f"{folder}/{identity.certificate}",
        private_key=f"{folder}/{identity.private_key}",
        governance=f"{folder}/{identity.governance}",
        permissions=f"{folder}/{identity.permissions}",
    )


def _qos(traffic: Traffic) -> Qos:
    liveliness = liveliness_of(traffic.liveliness)
    return Qos(
        reliability=traffic.reliability,
        history=traffic.history,
        depth=traffic.depth if traffic.history == "keep_last" else None,
        durability=traffic.durability,
        deadline_ns=traffic.deadline_period_ns or None,
        lifespan_ns=traffic.lifespan_ns or None,
        liveliness=None if liveliness is None else Liveliness(kind=liveliness[0], lease_ns=liveliness[1]),
        partition=None if traffic.partition == NONE else traffic.partition,
        instances=traffic.instances or None,
    )


def _most_at_once(graph: Graph) -> int:
    return sum(rule.schedule.messages for rule in graph.rules if rule.schedule.messages > 1)
