# SPDX-License-Identifier: Apache-2.0
"""Turns a cell into the plans of its workers: which endpoints each node has, and the room for records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from lagometer.run.launchers.isolation import PRIVATE_RUNTIME_DIRECTORY
from lagometer.run.worker.plan import (
    CAPACITY_MAX,
    HEAP_OFFSET_BYTES_MAX,
    HEAP_STEP_BYTES,
    Adapter,
    AnyRule,
    AnySchedule,
    BurstSchedule,
    ClosedLoopRule,
    Context,
    LognormalWork,
    MessageRule,
    Node,
    NormalWork,
    PeriodicSchedule,
    Phases,
    PlainContent,
    Plan,
    PoissonSchedule,
    Qos,
    RampSchedule,
    RandomContent,
    Reader,
    RecordedContent,
    RecordedSchedule,
    Scheduling,
    TimerRule,
    Worker,
    Writer,
)
from lagometer.study.adapter import Adapter as BuiltAdapter
from lagometer.study.adapters import available_cpus
from lagometer.study.cell import Cell
from lagometer.study.daemons import daemons_in_use, filled_in, option_values
from lagometer.study.graph import Graph, Rule
from lagometer.study.schedule import RECORDED
from lagometer.study.schema import Study

CLOSED_LOOP_TIMEOUT_NS = 1_000_000_000
CLOSED_LOOP_RATE_MAX_HZ = 400_000.0  # for the size of the recorder; a faster loop stops when it is full
CLOSED_LOOP_CAPACITY_MAX = 1_000_000
CAPACITY_MARGIN = 1.5
CAPACITY_MORE = 1_000  # bursts, probes, resent messages
RECORD_BYTES = 64
STAMPS_PER_MESSAGE = 4  # records beside the message's own on each side, where layers are stamped
RECORDS_BYTES_MAX = 1 << 30  # of all workers of a trial together
NS_PER_S = 1_000_000_000


def worker_plans(
    study: Study,
    cell: Cell,
    trial: int,
    adapters: Mapping[str, BuiltAdapter],
    standalone: bool = False,
    runtime_directory: str = PRIVATE_RUNTIME_DIRECTORY,
) -> list[Plan]:
    """Returns one plan for each worker of the cell, in the order of `cell.workers`."""
    layout = _Layout(study, cell, trial, adapters)
    return [layout.plan(index, standalone, runtime_directory) for index in range(len(cell.workers))]


def topics_read(graph: Graph, node: str) -> list[str]:
    """Returns the topics that a node subscribes to; the place in the list is the reader's index."""
    return list(dict.fromkeys(topic for rule in graph.rules_of(node) for topic in rule.reads))


def topics_written(graph: Graph, node: str) -> list[str]:
    """Returns the topics that a node publishes on; the place in the list is the writer's index."""
    return list(dict.fromkeys(topic for rule in graph.rules_of(node) for topic in rule.writes))


def stream_rates_hz(graph: Graph) -> dict[int, float]:
    """Returns how often each stream can send at most, following the rules from the timers on.

    A cycle would grow for ever, so the walk ends after as many rounds as there are nodes.
    """
    rates = dict.fromkeys(range(len(graph.streams)), 0.0)
    for _ in graph.nodes:
        updated = dict.fromkeys(rates, 0.0)
        for rule in graph.rules:
            rate_hz = _rule_rate_hz(graph, rule, rates)
            for topic in rule.writes:
                updated[graph.stream_number(rule.node, topic)] += rate_hz
        if updated == rates:
            break
        rates = updated
    return rates


def _rule_rate_hz(graph: Graph, rule: Rule, rates: Mapping[int, float]) -> float:
    if rule.trigger == "timer":
        assert rule.period_ns is not None, "a cell's graph is resolved"
        return NS_PER_S / min(rule.period_ns, rule.schedule.end_period_ns or rule.period_ns)
    inputs = [sum(rates[stream] for stream in graph.streams_on(topic)) for topic in rule.reads]
    return min(inputs, default=0.0) if rule.trigger == "all" else sum(inputs)


class _Layout:
    """What all plans of one cell share."""

    def __init__(self, study: Study, cell: Cell, trial: int, adapters: Mapping[str, BuiltAdapter]) -> None:
        self._study = study
        self._trial = trial
        self._cell = cell
        self._graph = cell.graph
        self._adapters = adapters
        self._capacities = self._stream_capacities()

    def plan(self, index: int, standalone: bool, runtime_directory: str) -> Plan:
        """Returns the plan of the worker with this index."""
        factors, nodes = self._cell.factors, self._cell.workers[index]
        name = nodes[0] if len(nodes) == 1 else f"worker-{index}"
        used = self._adapters_used(nodes)
        return Plan(
            protocol=1,
            cell=self._cell.id,
            trial=self._trial,
            standalone=standalone,
            worker=Worker(index=index, name=name),
            phases=Phases(
                discovery_timeout_ns=self._study.discovery_timeout_ns,
                warmup_ns=self._study.warmup_ns,
                measure_ns=self._study.duration_ns,
                drain_ns=self._study.drain_ns,
            ),
            scheduling=Scheduling(
                policy=factors.scheduling,
                priority=self._study.priority if factors.scheduling == "fifo" else 0,
                cpus=list(self._cell.worker_cpus(index, available_cpus())),
                lock_memory=True,
            ),
            runtime_directory=runtime_directory,
            touch=factors.touch,
            content=self._content(),
            heap_offset_bytes=self._heap_offset_bytes(index),
            layer_stamps=self._study.layer_stamps,
            adapters=[self._adapter(adapter, runtime_directory) for adapter in used],
            contexts=[
                Context(adapter=place, domain=factors.domain, name=name) for place, _ in enumerate(used)
            ],
            nodes=[self._node(node, used) for node in nodes],
        )

    def _adapters_used(self, nodes: tuple[str, ...]) -> list[str]:
        """Returns the adapters that the nodes need; one context of each is made, in this order."""
        factors, used = self._cell.factors, []
        if any(topics_written(self._graph, node) for node in nodes):
            used.append(factors.publisher_adapter)
        if any(topics_read(self._graph, node) for node in nodes):
            used.append(factors.subscriber_adapter)
        return list(dict.fromkeys(used))

    def _adapter(self, name: str, runtime_directory: str) -> Adapter:
        built = self._adapters[name]
        private = self._cell.factors.network == "private"
        participants = sum(len(self._adapters_used(nodes)) for nodes in self._cell.workers)
        return Adapter(
            name=name,
            library=str(built.library),
            profile=self._cell.factors.profile,
            options={**self._cell.options.get(name, {}), **built.fixed_options},
            environment=self._environment(built, runtime_directory),
            network={"loopback": True, "peers": participants} if private else {},
        )

    def _environment(self, built: BuiltAdapter, runtime_directory: str) -> dict[str, str]:
        """Returns the sidecar's variables, and those by which the workers find their daemons."""
        found = dict(built.sidecar.environment)
        options, profile = self._cell.options, self._cell.factors.profile
        values = option_values(built, options, profile)
        for daemon in daemons_in_use(built, options, profile):
            found |= {
                name: filled_in(text, values, runtime_directory) for name, text in daemon.environment.items()
            }
        return {**found, **self._cell.environment}

    def _node(self, name: str, used: list[str]) -> Node:
        graph, factors = self._graph, self._cell.factors
        reads, writes = topics_read(graph, name), topics_written(graph, name)
        return Node(
            name=name,
            index=graph.node_index(name),
            dispatch=factors.dispatch,
            cpus=[],
            readers=[self._reader(topic, used) for topic in reads],
            writers=[self._writer(name, topic, used) for topic in writes],
            rules=[self._rule(rule, reads, writes) for rule in graph.rules_of(name)],
        )

    def _reader(self, topic: str, used: list[str]) -> Reader:
        factors, streams = self._cell.factors, self._graph.streams_on(topic)
        return Reader(
            context=used.index(factors.subscriber_adapter),
            topic=f"lagometer/{topic}",
            type=factors.type,
            payload_bytes=factors.payload_bytes,
            capacity=min(sum(self._capacities[stream] for stream in streams), CAPACITY_MAX),
            qos=self._qos(),
            streams=list(streams),
        )

    def _writer(self, node: str, topic: str, used: list[str]) -> Writer:
        factors, stream = self._cell.factors, self._graph.stream_number(node, topic)
        return Writer(
            context=used.index(factors.publisher_adapter),
            topic=f"lagometer/{topic}",
            type=factors.type,
            payload_bytes=factors.payload_bytes,
            capacity=self._capacities[stream],
            qos=self._qos(),
            stream=stream,
            subscribers=len(self._graph.streams[stream].subscribers),
        )

    def _qos(self) -> Qos:
        factors = self._cell.factors
        return Qos(
            reliability=factors.reliability,
            history=factors.history,
            depth=factors.depth if factors.history == "keep_last" else None,
            durability=factors.durability,
        )

    def _stream_capacities(self) -> dict[int, int]:
        """Returns how many records each stream gets room for, kept within the memory of a trial."""
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
        records = 1 + STAMPS_PER_MESSAGE if study.layer_stamps else 1
        needed = sum(
            RECORD_BYTES * records * lanes[stream] * capacity for stream, capacity in capacities.items()
        )
        share = min(1.0, RECORDS_BYTES_MAX / needed) if needed else 1.0
        return {
            stream: max(1, min(CAPACITY_MAX, int(capacity * share)))
            for stream, capacity in capacities.items()
        }

    def _rule(self, rule: Rule, reads: list[str], writes: list[str]) -> AnyRule:
        """Returns a rule with indices into its node's readers and writers in place of topics."""
        readers = [reads.index(topic) for topic in rule.reads]
        writers = [writes.index(topic) for topic in rule.writes]
        assert rule.work_ns is not None, "a cell's graph is resolved"
        if rule.trigger == "timer":
            assert rule.period_ns is not None, "a cell's graph is resolved"
            return TimerRule(
                trigger="timer",
                period_ns=rule.period_ns,
                offset_ns=rule.offset_ns,
                schedule=self._schedule(rule),
                readers=readers,
                work_ns=rule.work_ns,
                work=self._work(rule),
                writers=writers,
            )
        if rule.trigger == "closed_loop":
            return ClosedLoopRule(
                trigger="closed_loop",
                timeout_ns=CLOSED_LOOP_TIMEOUT_NS,
                messages_max=0,
                readers=readers,
                work_ns=rule.work_ns,
                work=self._work(rule),
                writers=writers,
            )
        echo = self._graph.answers(rule)
        return MessageRule(
            trigger=rule.trigger,
            echo=echo,
            readers=readers,
            work_ns=rule.work_ns,
            work=self._work(rule),
            writers=writers,
        )

    def _schedule(self, rule: Rule) -> AnySchedule:
        schedule, late, study = rule.schedule, self._cell.factors.late, self._study
        if schedule.kind == "poisson":
            return PoissonSchedule(kind="poisson", late=late, seed=self._seed("schedule", rule))
        if schedule.kind == "burst":
            return BurstSchedule(kind="burst", late=late, messages=schedule.messages)
        if schedule.kind == "ramp":
            assert schedule.end_period_ns is not None, "a ramp has an end"
            return RampSchedule(
                kind="ramp",
                late=late,
                end_period_ns=schedule.end_period_ns,
                begin_ns=study.warmup_ns,
                duration_ns=study.duration_ns,
            )
        if schedule.kind == "recorded":
            assert schedule.recording is not None, "a recorded schedule has its recording"
            return RecordedSchedule(
                kind="recorded", late=late, intervals_ns=list(schedule.recording.intervals_ns)
            )
        return PeriodicSchedule(kind="periodic", late=late)

    def _work(self, rule: Rule) -> NormalWork | LognormalWork | None:
        spread = rule.spread
        if spread is None:
            return None
        seed = self._seed("work", rule)
        if spread.kind == "normal":
            return NormalWork(kind="normal", spread_ns=spread.spread_ns, seed=seed)
        return LognormalWork(kind="lognormal", sigma=spread.sigma, seed=seed)

    def _content(self) -> PlainContent | RandomContent | RecordedContent:
        content = self._cell.factors.content
        if content == "random":
            return RandomContent(kind="random", seed=self._study.seed)
        if content.startswith(RECORDED):
            file = self._study.contents[content.removeprefix(RECORDED)]
            return RecordedContent(kind="recorded", path=str(file.path), crc32=file.crc32)
        return PlainContent(kind="zeros" if content == "zeros" else "any")

    def _seed(self, purpose: str, rule: Rule) -> int:
        """Returns a seed of the rule's own: the same in every cell of the study, another in every trial.

        So cells that are compared meet the same arrivals, and trials are not copies of each other.
        """
        streams = [self._graph.stream_number(rule.node, topic) for topic in rule.writes]
        return _drawn(f"{self._study.seed}/{self._trial}/{purpose}/{rule.node}/{streams}")

    def _heap_offset_bytes(self, worker: int) -> int:
        """Returns how far the worker's heap is moved: another draw for each worker, trial and cell.

        Where in a page a buffer begins decides how fast it is copied, and would be the same in all trials.
        """
        steps = HEAP_OFFSET_BYTES_MAX // HEAP_STEP_BYTES + 1
        drawn = _drawn(f"{self._study.seed}/{self._trial}/heap/{self._cell.id}/{worker}")
        return drawn % steps * HEAP_STEP_BYTES


def _drawn(text: str) -> int:
    """Returns 64 bits that the text decides, evenly spread."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _most_at_once(graph: Graph) -> int:
    return sum(rule.schedule.messages for rule in graph.rules if rule.schedule.messages > 1)
