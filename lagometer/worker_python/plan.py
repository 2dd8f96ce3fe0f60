# SPDX-License-Identifier: Apache-2.0
"""A worker's plan, typed. Its JSON form is described in docs/PROTOCOL.md and schema/plan.schema.json.

Written by hand like the reader of the worker in C++, and with its bounds: the models of `lagometer.run` need
packages that a worker must not load.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lagometer.worker_python.adapter import Qos
from lagometer.worker_python.fields import Fields, PlanError, refuse
from lagometer.worker_python.schedule import SchedulePlan, WorkPlan

HOUR_NS = 3_600_000_000_000
PERIOD_MIN_NS = 1_000
PAYLOAD_BYTES_MAX = 1 << 30
CAPACITY_MAX = 1 << 26
INTERVALS_MAX = 1 << 20
INDEX_MAX = 1 << 20
UNSIGNED_32_MAX = (1 << 32) - 1
UNSIGNED_64_MAX = (1 << 64) - 1
DEPTH_MAX = 32
HEAP_STEP_BYTES = 16
HEAP_OFFSET_BYTES_MAX = 4096 - HEAP_STEP_BYTES


@dataclass(frozen=True)
class EndpointPlan:
    """A reader (streams: those it expects) or a writer (stream: its number)."""

    context: int
    topic: str
    type: str
    payload_bytes: int
    capacity: int
    qos: Qos
    streams: tuple[int, ...] = ()
    stream: int = 0


@dataclass(frozen=True)
class RulePlan:
    """When a node acts; readers and writers are places in the node's lists."""

    trigger: str
    readers: tuple[int, ...]
    writers: tuple[int, ...]
    work_ns: int
    work: WorkPlan
    schedule: SchedulePlan
    period_ns: int = 0
    offset_ns: int = 0
    timeout_ns: int = 0
    messages_max: int = 0
    echo: bool = False


@dataclass(frozen=True)
class NodePlan:
    """A node; index: its number in the trial."""

    name: str
    index: int
    dispatch: str
    cpus: tuple[int, ...]
    readers: tuple[EndpointPlan, ...]
    writers: tuple[EndpointPlan, ...]
    rules: tuple[RulePlan, ...]


@dataclass(frozen=True)
class AdapterPlan:
    """An adapter and how it is set up."""

    name: str
    library: str
    profile: str
    options: Mapping[str, Any]
    network: Mapping[str, Any]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ContextPlan:
    """One participant; adapter: a place in the plan's adapters."""

    adapter: int
    domain: int
    name: str


@dataclass(frozen=True)
class SchedulingPlan:
    """What the worker's threads ask the kernel for."""

    fifo: bool
    priority: int
    cpus: tuple[int, ...]
    lock_memory: bool


@dataclass(frozen=True)
class ContentPlan:
    """What payloads are filled with: any, zeros, random, recorded."""

    kind: str = "any"
    seed: int = 0
    path: str = ""
    crc32: int = 0


@dataclass(frozen=True)
class Plan:
    """Everything that one worker is to do in one trial."""

    standalone: bool
    worker: int
    discovery_timeout_ns: int
    warmup_ns: int
    measure_ns: int
    drain_ns: int
    scheduling: SchedulingPlan
    runtime_directory: str
    touch_write: bool
    touch_read: bool
    content: ContentPlan
    heap_offset_bytes: int
    adapters: tuple[AdapterPlan, ...]
    contexts: tuple[ContextPlan, ...]
    nodes: tuple[NodePlan, ...]


def parse_plan(line: bytes) -> Plan:
    """Returns the plan in one line of JSON. Raises PlanError, which names the place."""
    plan = Fields(_document(line), "")
    plan.integer("protocol", 1, 1)
    plan.text("cell")
    plan.integer("trial", 0, UNSIGNED_32_MAX)
    standalone = plan.boolean("standalone")
    worker = plan.part("worker")
    index = worker.integer("index", 0, INDEX_MAX)
    worker.filled_text("name")
    worker.finish()
    phases = plan.part("phases")
    discovery_timeout_ns = phases.integer("discovery_timeout_ns", 1, HOUR_NS)
    warmup_ns = phases.integer("warmup_ns", 0, HOUR_NS)
    measure_ns = phases.integer("measure_ns", 1, 24 * HOUR_NS)
    drain_ns = phases.integer("drain_ns", 0, HOUR_NS)
    phases.finish()
    scheduling = _scheduling(plan.part("scheduling"))
    runtime_directory = plan.filled_text("runtime_directory")
    touch = plan.word("touch", "header", "write", "read", "write+read")
    content = _content(plan.part("content")) if plan.has("content") else ContentPlan()
    heap_offset_bytes = _heap_offset_bytes(plan) if plan.has("heap_offset_bytes") else 0
    adapters = tuple(_adapter(each) for each in plan.parts("adapters", least=1))
    contexts = tuple(_context(each, len(adapters)) for each in plan.parts("contexts", least=1))
    nodes = tuple(_node(each, len(contexts)) for each in plan.parts("nodes", least=1))
    plan.finish()
    _refuse_twins(nodes)
    return Plan(
        standalone=standalone,
        worker=index,
        discovery_timeout_ns=discovery_timeout_ns,
        warmup_ns=warmup_ns,
        measure_ns=measure_ns,
        drain_ns=drain_ns,
        scheduling=scheduling,
        runtime_directory=runtime_directory,
        touch_write=touch in ("write", "write+read"),
        touch_read=touch in ("read", "write+read"),
        content=content,
        heap_offset_bytes=heap_offset_bytes,
        adapters=adapters,
        contexts=contexts,
        nodes=nodes,
    )


def _document(line: bytes) -> object:
    try:
        document: object = json.loads(line.decode(), parse_constant=_no_number)
    except RecursionError:
        refuse("", f"is nested more than {DEPTH_MAX} levels deep")
    except ValueError as error:
        raise PlanError(f"plan: is not JSON: {error}") from None
    level = [document]
    for _ in range(DEPTH_MAX + 1):
        level = [
            value
            for each in level
            if isinstance(each, (dict, list))
            for value in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return document
    refuse("", f"is nested more than {DEPTH_MAX} levels deep")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _heap_offset_bytes(plan: Fields) -> int:
    bytes_ = plan.integer("heap_offset_bytes", 0, HEAP_OFFSET_BYTES_MAX)
    if bytes_ % HEAP_STEP_BYTES:
        refuse(plan.path_of("heap_offset_bytes"), f"is no multiple of {HEAP_STEP_BYTES}")
    return bytes_


def _scheduling(part: Fields) -> SchedulingPlan:
    fifo = part.word("policy", "other", "fifo") == "fifo"
    priority = part.integer("priority", 0, 99)
    if fifo and priority == 0:
        refuse(part.path_of("priority"), "is 0; FIFO needs 1 … 99")
    cpus, lock_memory = part.integers("cpus", 0, 1023), part.boolean("lock_memory")
    part.finish()
    return SchedulingPlan(fifo, priority, cpus, lock_memory)


def _content(part: Fields) -> ContentPlan:
    kind = part.word("kind", "any", "zeros", "random", "recorded")
    content = ContentPlan(kind)
    if kind == "random":
        content = ContentPlan(kind, seed=part.integer("seed", 0, UNSIGNED_64_MAX))
    if kind == "recorded":
        path = part.filled_text("path")
        content = ContentPlan(kind, path=path, crc32=part.integer("crc32", 0, UNSIGNED_32_MAX))
    part.finish()
    return content


def _adapter(part: Fields) -> AdapterPlan:
    name, library = part.filled_text("name"), part.filled_text("library")
    profile = part.word("profile", "default", "matched")
    options, network = part.mapping("options"), part.mapping("network")
    variables = part.part("environment")
    environment = {}
    for key in part.mapping("environment"):
        if not key or "=" in key or "\0" in key:
            refuse(variables.path_of(key), "is no name of a variable")
        environment[key] = variables.text(key)
    part.finish()
    return AdapterPlan(name, library, profile, options, network, environment)


def _context(part: Fields, adapters: int) -> ContextPlan:
    context = ContextPlan(
        adapter=part.integer("adapter", 0, adapters - 1),
        domain=part.integer("domain", 0, UNSIGNED_32_MAX),
        name=part.filled_text("name"),
    )
    part.finish()
    return context


def _node(part: Fields, contexts: int) -> NodePlan:
    name = part.filled_text("name")
    index = part.integer("index", 0, INDEX_MAX)
    dispatch = part.word("dispatch", "poll", "waitset", "listener")
    cpus = part.integers("cpus", 0, 1023)
    readers = tuple(_endpoint(each, contexts, reads=True) for each in part.parts("readers"))
    writers = tuple(_endpoint(each, contexts, reads=False) for each in part.parts("writers"))
    rules = tuple(_rule(each, len(readers), len(writers)) for each in part.parts("rules"))
    part.finish()
    return NodePlan(name, index, dispatch, cpus, readers, writers, rules)


def _endpoint(part: Fields, contexts: int, *, reads: bool) -> EndpointPlan:
    context = part.integer("context", 0, contexts - 1)
    topic = part.filled_text("topic")
    kind = part.word("type", "bytes", "fixed")
    payload_bytes = part.integer("payload_bytes", 16, PAYLOAD_BYTES_MAX)
    capacity = part.integer("capacity", 1, CAPACITY_MAX)
    qos = _qos(part.part("qos"))
    streams: tuple[int, ...] = ()
    stream = 0
    if reads:
        streams = part.integers("streams", 0, INDEX_MAX)
    else:
        stream = part.integer("stream", 0, INDEX_MAX)
        part.integer("subscribers", 0, 1 << 16)
    part.finish()
    return EndpointPlan(context, topic, kind, payload_bytes, capacity, qos, streams, stream)


def _qos(part: Fields) -> Qos:
    reliability = part.word("reliability", "best_effort", "reliable") if part.has("reliability") else None
    history = part.word("history", "keep_last", "keep_all") if part.has("history") else None
    depth = part.integer("depth", 1, 1 << 20) if part.has("depth") else None
    durability = part.word("durability", "volatile", "transient_local") if part.has("durability") else None
    part.finish()
    return Qos(reliability, history, depth, durability)


def _rule(part: Fields, readers: int, writers: int) -> RulePlan:
    trigger = part.word("trigger", "timer", "any", "all", "closed_loop")
    read, written = part.places("readers", readers), part.places("writers", writers)
    work_ns = part.integer("work_ns", 0, HOUR_NS)
    work = _work(part.part("work")) if part.has("work") else WorkPlan()
    schedule = SchedulePlan()
    period_ns = offset_ns = timeout_ns = messages_max = 0
    if trigger == "timer":
        period_ns = part.integer("period_ns", PERIOD_MIN_NS, HOUR_NS)
        offset_ns = part.integer("offset_ns", 0, HOUR_NS)
        if part.has("schedule"):
            schedule = _schedule(part.part("schedule"))
    elif not read:
        refuse(part.path_of("readers"), "is empty: only a timer fires without a message")
    if trigger == "closed_loop":
        timeout_ns = part.integer("timeout_ns", PERIOD_MIN_NS, HOUR_NS)
        messages_max = part.integer("messages_max", 0, (1 << 63) - 1)
        if not written:
            refuse(part.path_of("writers"), "is empty: a closed loop sends")
    echo = part.boolean("echo") if part.has("echo") else False
    if echo and trigger != "any":
        refuse(part.path_of("echo"), "goes with the trigger any alone")
    part.finish()
    return RulePlan(
        trigger, read, written, work_ns, work, schedule, period_ns, offset_ns, timeout_ns, messages_max, echo
    )


def _work(part: Fields) -> WorkPlan:
    kind = part.word("kind", "normal", "lognormal")
    spread_ns = part.integer("spread_ns", 0, HOUR_NS) if kind == "normal" else 0
    sigma = part.number("sigma", 0.0, 10.0) if kind == "lognormal" else 0.0
    seed = part.integer("seed", 0, UNSIGNED_64_MAX)
    part.finish()
    return WorkPlan(kind, spread_ns, sigma, seed)


def _schedule(part: Fields) -> SchedulePlan:
    kind = part.word("kind", "periodic", "poisson", "burst", "ramp", "recorded")
    late = part.word("late", "burst", "skip", "shift") if part.has("late") else "burst"
    schedule = SchedulePlan(kind, late)
    if kind == "poisson":
        schedule = SchedulePlan(kind, late, seed=part.integer("seed", 0, UNSIGNED_64_MAX))
    elif kind == "burst":
        schedule = SchedulePlan(kind, late, messages=part.integer("messages", 1, 1 << 20))
    elif kind == "ramp":
        schedule = SchedulePlan(
            kind,
            late,
            end_period_ns=part.integer("end_period_ns", PERIOD_MIN_NS, HOUR_NS),
            begin_ns=part.integer("begin_ns", 0, HOUR_NS),
            duration_ns=part.integer("duration_ns", 1, 24 * HOUR_NS),
        )
    elif kind == "recorded":
        intervals_ns = part.integers("intervals_ns", 0, HOUR_NS, most=INTERVALS_MAX)
        if not intervals_ns or sum(intervals_ns) // len(intervals_ns) < PERIOD_MIN_NS:
            refuse(part.path_of("intervals_ns"), f"must have a mean of {PERIOD_MIN_NS} ns or more")
        schedule = SchedulePlan(kind, late, intervals_ns=intervals_ns)
    part.finish()
    return schedule


def _refuse_twins(nodes: tuple[NodePlan, ...]) -> None:
    """Records are told apart by these numbers: with two alike, a message would be taken for another."""
    indices: set[int] = set()
    streams: set[int] = set()
    for at, node in enumerate(nodes):
        if node.index in indices:
            refuse(f"nodes[{at}].index", f"another node has {node.index} too")
        indices.add(node.index)
        for place, writer in enumerate(node.writers):
            if writer.stream in streams:
                refuse(f"nodes[{at}].writers[{place}].stream", f"another writer has {writer.stream} too")
            streams.add(writer.stream)
