# SPDX-License-Identifier: Apache-2.0
"""A worker's plan, typed. docs/PROTOCOL.md and schema/plan.schema.json describe its JSON form.

Written by hand like the C++ worker's reader, because the models of `lagometer.run` need packages that a
worker must not load. The bounds for both are generated from those models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from lagometer.worker_python import plan_bounds
from lagometer.worker_python.adapter import Qos
from lagometer.worker_python.fields import Fields, PlanError, refuse
from lagometer.worker_python.plan_bounds import INTERVAL_MEAN_MIN_NS, NESTING_LEVELS_MAX
from lagometer.worker_python.qos import read_qos
from lagometer.worker_python.schedule import SchedulePlan, WorkPlan

STARTS = ("matched", "subscriber-first", "publisher-first")


@dataclass(frozen=True)
class ContentPlan:
    """What fills payloads: any, zeros, random, recorded."""

    kind: str = "any"
    seed: int = 0
    path: str = ""
    crc32: int = 0


@dataclass(frozen=True)
class EndpointPlan:
    """A reader or a writer.

    streams: those that a reader expects; sizes_vary: its messages may be smaller than payload_bytes;
    shares_clock: its publishers read the same clock as this worker. stream: a writer's number; content:
    None for the plan's; sizes_bytes: the size of message `sequence` is at that index modulo the length,
    empty for payload_bytes; replied_on: it sends requests, and this reader of the node receives the
    replies; answers: it sends replies to the requests on this reader, from this stream.
    """

    context: int
    topic: str
    type: str
    payload_bytes: int
    capacity: int
    qos: Qos
    streams: tuple[int, ...] = ()
    stream: int = 0
    sizes_vary: bool = False
    shares_clock: bool = False
    content: ContentPlan | None = None
    sizes_bytes: tuple[int, ...] = ()
    replied_on: int | None = None
    answers: tuple[int, int] | None = None


@dataclass(frozen=True)
class RulePlan:
    """When a node acts. readers, uses and writers are indices into the node's lists. uses: readers whose
    newest message is a further cause and triggers nothing."""

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
    uses: tuple[int, ...] = ()


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
    """One participant; adapter: an index into the plan's adapters; security: sign, encrypt, empty for
    none."""

    adapter: int
    domain: int
    name: str
    security: str = ""


@dataclass(frozen=True)
class SchedulingPlan:
    """What the worker's threads request from the kernel."""

    fifo: bool
    priority: int
    cpus: tuple[int, ...]
    lock_memory: bool


@dataclass(frozen=True)
class Plan:
    """Everything that one worker does in one trial. one_thread: one thread serves all nodes."""

    standalone: bool
    worker: int
    host_number: int
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
    layer_stamps: bool
    matching: bool
    one_thread: bool
    adapters: tuple[AdapterPlan, ...]
    contexts: tuple[ContextPlan, ...]
    nodes: tuple[NodePlan, ...]


def parse_plan(line: bytes) -> Plan:
    """Returns the plan in one line of JSON. Raises PlanError, which names the place of the problem."""
    plan = Fields(_document(line), "")
    plan.integer("protocol", plan_bounds.Plan.PROTOCOL)
    plan.text("cell", plan_bounds.Plan.CELL_CHARACTERS)
    plan.integer("trial", plan_bounds.Plan.TRIAL)
    standalone = plan.boolean("standalone")
    worker = plan.part("worker")
    index = worker.integer("index", plan_bounds.Worker.INDEX)
    worker.text("name", plan_bounds.Worker.NAME_CHARACTERS)
    if worker.has("host"):
        worker.text("host", plan_bounds.Worker.HOST_CHARACTERS)
    host_number = 0
    if worker.has("host_number"):
        host_number = worker.integer("host_number", plan_bounds.Worker.HOST_NUMBER)
    worker.finish()
    phases = plan.part("phases")
    discovery_timeout_ns = phases.integer("discovery_timeout_ns", plan_bounds.Phases.DISCOVERY_TIMEOUT_NS)
    warmup_ns = phases.integer("warmup_ns", plan_bounds.Phases.WARMUP_NS)
    measure_ns = phases.integer("measure_ns", plan_bounds.Phases.MEASURE_NS)
    drain_ns = phases.integer("drain_ns", plan_bounds.Phases.DRAIN_NS)
    phases.finish()
    scheduling = _scheduling(plan.part("scheduling"))
    runtime_directory = plan.text("runtime_directory", plan_bounds.Plan.RUNTIME_DIRECTORY_CHARACTERS)
    touch = plan.word("touch", "header", "write", "read", "write+read")
    content = _content(plan.part("content")) if plan.has("content") else ContentPlan()
    heap_offset_bytes = 0
    if plan.has("heap_offset_bytes"):
        heap_offset_bytes = plan.integer("heap_offset_bytes", plan_bounds.Plan.HEAP_OFFSET_BYTES)
    layer_stamps = plan.boolean("layer_stamps") if plan.has("layer_stamps") else False
    matching = not plan.has("start") or plan.word("start", *STARTS) == STARTS[0]
    if plan.has("start_ns"):
        matching = plan.integer("start_ns", plan_bounds.Plan.START_NS) == 0 and matching
    one_thread = plan.has("threads") and plan.word("threads", "per-node", "per-process") == "per-process"
    adapters = tuple(_adapter(adapter) for adapter in plan.parts("adapters", plan_bounds.Plan.ADAPTERS_ITEMS))
    parts = plan.parts("contexts", plan_bounds.Plan.CONTEXTS_ITEMS)
    contexts = tuple(_context(context, len(adapters)) for context in parts)
    nodes = tuple(_node(node, len(contexts)) for node in plan.parts("nodes", plan_bounds.Plan.NODES_ITEMS))
    plan.finish()
    _refuse_twins(nodes)
    if one_thread:
        _refuse_unlike(nodes)
    return Plan(
        standalone=standalone,
        worker=index,
        host_number=host_number,
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
        layer_stamps=layer_stamps,
        matching=matching,
        one_thread=one_thread,
        adapters=adapters,
        contexts=contexts,
        nodes=nodes,
    )


def _document(line: bytes) -> object:
    try:
        document: object = json.loads(line.decode(), parse_constant=_no_number)
    except RecursionError:
        refuse("", f"is nested more than {NESTING_LEVELS_MAX} levels deep")
    except ValueError as error:
        raise PlanError(f"plan: is not JSON: {error}") from None
    level = [document]
    for _ in range(NESTING_LEVELS_MAX + 1):
        level = [
            value
            for element in level
            if isinstance(element, (dict, list))
            for value in (element.values() if isinstance(element, dict) else element)
        ]
        if not level:
            return document
    refuse("", f"is nested more than {NESTING_LEVELS_MAX} levels deep")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _scheduling(part: Fields) -> SchedulingPlan:
    fifo = part.word("policy", "other", "fifo") == "fifo"
    priority = part.integer("priority", plan_bounds.Scheduling.PRIORITY)
    if fifo and priority == 0:
        refuse(part.path_of("priority"), "is 0; FIFO needs 1 … 99")
    cpus = part.integers("cpus", plan_bounds.Scheduling.CPUS_ITEMS, plan_bounds.Scheduling.CPUS)
    lock_memory = part.boolean("lock_memory")
    part.finish()
    return SchedulingPlan(fifo, priority, cpus, lock_memory)


def _content(part: Fields) -> ContentPlan:
    kind = part.word("kind", "any", "zeros", "random", "recorded")
    content = ContentPlan(kind)
    if kind == "random":
        content = ContentPlan(kind, seed=part.integer("seed", plan_bounds.RandomContent.SEED))
    if kind == "recorded":
        path = part.text("path", plan_bounds.RecordedContent.PATH_CHARACTERS)
        crc32 = part.integer("crc32", plan_bounds.RecordedContent.CRC32)
        content = ContentPlan(kind, path=path, crc32=crc32)
    part.finish()
    return content


def _adapter(part: Fields) -> AdapterPlan:
    name = part.text("name", plan_bounds.Adapter.NAME_CHARACTERS)
    library = part.text("library", plan_bounds.Adapter.LIBRARY_CHARACTERS)
    profile = part.word("profile", "default", "matched")
    options, network = part.mapping("options"), part.mapping("network")
    variables = part.part("environment")
    environment = {}
    for key in part.mapping("environment"):
        if not key or "=" in key or "\0" in key:
            refuse(variables.path_of(key), "is not the name of a variable")
        environment[key] = variables.text(key, plan_bounds.Adapter.ENVIRONMENT_CHARACTERS)
    part.finish()
    return AdapterPlan(name, library, profile, options, network, environment)


def _context(part: Fields, adapters: int) -> ContextPlan:
    context = ContextPlan(
        adapter=part.place("adapter", adapters),
        domain=part.integer("domain", plan_bounds.Context.DOMAIN),
        name=part.text("name", plan_bounds.Context.NAME_CHARACTERS),
    )
    if part.has("security"):
        context = replace(context, security=_security(part.part("security")))
    part.finish()
    return context


def _security(part: Fields) -> str:
    kind = part.word("kind", "sign", "encrypt")
    for file in ("identity_ca", "permissions_ca", "certificate", "private_key", "governance", "permissions"):
        part.text(file, getattr(plan_bounds.Security, f"{file.upper()}_CHARACTERS"))
    part.finish()
    return kind


def _node(part: Fields, contexts: int) -> NodePlan:
    bounds = plan_bounds.Node
    name = part.text("name", bounds.NAME_CHARACTERS)
    index = part.integer("index", bounds.INDEX)
    dispatch = part.word("dispatch", "poll", "waitset", "listener")
    cpus = part.integers("cpus", bounds.CPUS_ITEMS, bounds.CPUS)
    readers = tuple(_reader(reader, contexts) for reader in part.parts("readers", bounds.READERS_ITEMS))
    writers = tuple(
        _writer(writer, contexts, readers) for writer in part.parts("writers", bounds.WRITERS_ITEMS)
    )
    rules = tuple(_rule(rule, len(readers), writers) for rule in part.parts("rules", bounds.RULES_ITEMS))
    part.finish()
    return NodePlan(name, index, dispatch, cpus, readers, writers, rules)


def _reader(part: Fields, contexts: int) -> EndpointPlan:
    endpoint = _endpoint(part, contexts)
    streams = part.integers("streams", plan_bounds.Reader.STREAMS_ITEMS, plan_bounds.Reader.STREAMS)
    varying = part.boolean("sizes_vary") if part.has("sizes_vary") else False
    shares_clock = part.boolean("shares_clock") if part.has("shares_clock") else False
    part.finish()
    return replace(endpoint, streams=streams, sizes_vary=varying, shares_clock=shares_clock)


def _writer(part: Fields, contexts: int, readers: Sequence[EndpointPlan]) -> EndpointPlan:
    endpoint = _endpoint(part, contexts)
    endpoint = replace(endpoint, stream=part.integer("stream", plan_bounds.Writer.STREAM))
    part.integer("subscribers", plan_bounds.Writer.SUBSCRIBERS)
    endpoint = _with_service(part, _with_payloads(part, endpoint), readers)
    part.finish()
    return endpoint


def _with_service(part: Fields, writer: EndpointPlan, readers: Sequence[EndpointPlan]) -> EndpointPlan:
    """Returns a writer of requests or replies with the reader of its node that belongs to it."""
    if part.has("replied_on"):
        writer = replace(writer, replied_on=_other_end(part, "replied_on", writer, readers))
    if part.has("answers"):
        if writer.replied_on is not None:
            refuse(part.path_of("answers"), "conflicts with replied_on: a writer sends requests or replies")
        answers = part.part("answers")
        place = _other_end(answers, "reader", writer, readers)
        writer = replace(writer, answers=(place, answers.integer("stream", plan_bounds.Answers.STREAM)))
        answers.finish()
    return writer


def _other_end(part: Fields, key: str, writer: EndpointPlan, readers: Sequence[EndpointPlan]) -> int:
    place = part.place(key, len(readers))
    if (readers[place].topic, readers[place].context) != (writer.topic, writer.context):
        problem = "is a reader of another topic or context: both ends of a service must have the same"
        refuse(part.path_of(key), problem)
    return place


def _endpoint(part: Fields, contexts: int) -> EndpointPlan:
    context = part.place("context", contexts)
    topic = part.text("topic", plan_bounds.Endpoint.TOPIC_CHARACTERS)
    kind = part.word("type", "bytes", "fixed")
    payload_bytes = part.integer("payload_bytes", plan_bounds.Endpoint.PAYLOAD_BYTES)
    capacity = part.integer("capacity", plan_bounds.Endpoint.CAPACITY)
    qos = read_qos(part.part("qos"))
    return EndpointPlan(context, topic, kind, payload_bytes, capacity, qos)


def _with_payloads(part: Fields, writer: EndpointPlan) -> EndpointPlan:
    """Returns a writer with the content and the sizes of its messages, if they are not all alike."""
    if part.has("content"):
        writer = replace(writer, content=_content(part.part("content")))
    if part.has("sizes_bytes"):
        bounds = plan_bounds.Writer
        sizes = part.integers("sizes_bytes", bounds.SIZES_BYTES_ITEMS, bounds.SIZES_BYTES)
        for index, size in enumerate(sizes):
            if size > writer.payload_bytes:
                problem = f"is {size}, larger than payload_bytes or no size of the type {writer.type}"
                refuse(f"{part.path_of('sizes_bytes')}[{index}]", problem)
        writer = replace(writer, sizes_bytes=sizes)
    return writer


def _rule(part: Fields, readers: int, writers: Sequence[EndpointPlan]) -> RulePlan:
    trigger = part.word("trigger", "timer", "any", "all", "closed_loop")
    reader_places = part.places("readers", plan_bounds.Rule.READERS_ITEMS, readers)
    writer_places = part.places("writers", plan_bounds.Rule.WRITERS_ITEMS, len(writers))
    for answers in (writers[place].answers for place in writer_places):
        if answers is not None and (trigger != "any" or reader_places != (answers[0],)):
            problem = (
                "has a writer of replies: such a rule has the trigger any, and the reader of the requests"
            )
            refuse(part.path_of("writers"), problem)
    work_ns = part.integer("work_ns", plan_bounds.Rule.WORK_NS)
    work = _work(part.part("work")) if part.has("work") else WorkPlan()
    schedule = SchedulePlan()
    period_ns = offset_ns = timeout_ns = messages_max = 0
    if trigger == "timer":
        period_ns = part.integer("period_ns", plan_bounds.TimerRule.PERIOD_NS)
        offset_ns = part.integer("offset_ns", plan_bounds.TimerRule.OFFSET_NS)
        if part.has("schedule"):
            schedule = _schedule(part.part("schedule"))
    elif not reader_places:
        refuse(part.path_of("readers"), "is empty: only a timer fires without a message")
    if trigger == "closed_loop":
        timeout_ns = part.integer("timeout_ns", plan_bounds.ClosedLoopRule.TIMEOUT_NS)
        messages_max = part.integer("messages_max", plan_bounds.ClosedLoopRule.MESSAGES_MAX)
        if not writer_places:
            refuse(part.path_of("writers"), "is empty: a closed loop sends")
    echo = part.boolean("echo") if part.has("echo") else False
    if echo and trigger != "any":
        refuse(part.path_of("echo"), "goes with the trigger any alone")
    uses = part.places("uses", plan_bounds.MessageRule.USES_ITEMS, readers) if part.has("uses") else ()
    if uses and trigger not in ("any", "all"):
        refuse(part.path_of("uses"), "goes with the triggers any and all alone")
    part.finish()
    return RulePlan(
        trigger,
        reader_places,
        writer_places,
        work_ns,
        work,
        schedule,
        period_ns,
        offset_ns,
        timeout_ns,
        messages_max,
        echo,
        uses,
    )


def _work(part: Fields) -> WorkPlan:
    work = WorkPlan(part.word("kind", "normal", "lognormal", "recorded"))
    if work.kind == "recorded":
        bounds = plan_bounds.RecordedWork
        times_ns = part.integers("times_ns", bounds.TIMES_NS_ITEMS, bounds.TIMES_NS)
        work = replace(work, times_ns=times_ns)
    elif work.kind == "normal":
        work = replace(work, spread_ns=part.integer("spread_ns", plan_bounds.NormalWork.SPREAD_NS))
        work = replace(work, seed=part.integer("seed", plan_bounds.NormalWork.SEED))
    else:
        work = replace(work, sigma=part.number("sigma", plan_bounds.LognormalWork.SIGMA))
        work = replace(work, seed=part.integer("seed", plan_bounds.LognormalWork.SEED))
    part.finish()
    return work


def _schedule(part: Fields) -> SchedulePlan:
    kind = part.word("kind", "periodic", "poisson", "burst", "ramp", "recorded")
    late = part.word("late", "burst", "skip", "shift") if part.has("late") else "burst"
    schedule = SchedulePlan(kind, late)
    if kind == "poisson":
        schedule = SchedulePlan(kind, late, seed=part.integer("seed", plan_bounds.PoissonSchedule.SEED))
    elif kind == "burst":
        schedule = SchedulePlan(
            kind, late, messages=part.integer("messages", plan_bounds.BurstSchedule.MESSAGES)
        )
    elif kind == "ramp":
        schedule = SchedulePlan(
            kind,
            late,
            end_period_ns=part.integer("end_period_ns", plan_bounds.RampSchedule.END_PERIOD_NS),
            begin_ns=part.integer("begin_ns", plan_bounds.RampSchedule.BEGIN_NS),
            duration_ns=part.integer("duration_ns", plan_bounds.RampSchedule.DURATION_NS),
        )
    elif kind == "recorded":
        bounds = plan_bounds.RecordedSchedule
        intervals_ns = part.integers("intervals_ns", bounds.INTERVALS_NS_ITEMS, bounds.INTERVALS_NS)
        if sum(intervals_ns) // len(intervals_ns) < INTERVAL_MEAN_MIN_NS:
            refuse(part.path_of("intervals_ns"), f"must have a mean of {INTERVAL_MEAN_MIN_NS} ns or more")
        schedule = SchedulePlan(kind, late, intervals_ns=intervals_ns)
    part.finish()
    return schedule


def _refuse_twins(nodes: tuple[NodePlan, ...]) -> None:
    """These numbers identify records: if two were equal, one message would be mistaken for another."""
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


def _refuse_unlike(nodes: tuple[NodePlan, ...]) -> None:
    """A thread that serves all nodes does so with one dispatch and on one set of CPUs."""
    problem = "differs from that of nodes[0], which is served by the same thread"
    for at, node in enumerate(nodes):
        if node.dispatch != nodes[0].dispatch:
            refuse(f"nodes[{at}].dispatch", problem)
        if node.cpus != nodes[0].cpus:
            refuse(f"nodes[{at}].cpus", problem)
