# SPDX-License-Identifier: Apache-2.0
"""The plan of one worker, as `docs/PROTOCOL.md` describes it.

These models are the only place in the code that defines the plan's form: `schema/plan.schema.json` (`python
-m lagometer.run.worker.plan_schema`) and the bounds that both workers check (`python -m
lagometer.run.worker.plan_bounds`) are generated from them. Unknown keys are refused, so a misspelt key is an
error here and not a default there. Times are nanoseconds on CLOCK_MONOTONIC, sizes are bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from lagometer.study.payload import PayloadType
from lagometer.study.policies import INSTANCES_MAX

PROTOCOL_VERSION = 1

# Bounds that no real trial reaches: a damaged plan is refused instead of running for a year.
HOUR_NS = 3_600_000_000_000
PERIOD_MIN_NS = 1_000
CAPACITY_MAX = 2**26
ITEMS_MAX = 4096
SIZES_MAX = 2**16
TEXT_CHARACTERS_MAX = 4096

Unsigned32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
Index = Annotated[int, Field(ge=0, le=2**20)]
Nanoseconds = Annotated[int, Field(ge=0, le=HOUR_NS)]
PositiveNanoseconds = Annotated[int, Field(ge=1, le=HOUR_NS)]
Period = Annotated[int, Field(ge=PERIOD_MIN_NS, le=HOUR_NS)]
Cpus = Annotated[list[Annotated[int, Field(ge=0, le=1023)]], Field(max_length=ITEMS_MAX)]
Places = Annotated[list[Unsigned32], Field(max_length=ITEMS_MAX)]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS_MAX)]
PerhapsText = Annotated[str, Field(max_length=TEXT_CHARACTERS_MAX)]
HEAP_STEP_BYTES = 16  # alignment of allocators
HEAP_OFFSET_BYTES_MAX = 4096 - HEAP_STEP_BYTES  # within a page: the kernel moves whole pages by itself
Seed = Annotated[int, Field(ge=0, le=2**64 - 1)]
PayloadBytes = Annotated[int, Field(ge=4, le=2**30)]
HeapOffset = Annotated[int, Field(ge=0, le=HEAP_OFFSET_BYTES_MAX, multiple_of=HEAP_STEP_BYTES)]


class PlanModel(BaseModel):
    """Base of every part of a plan: immutable, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Worker(PlanModel):
    """Which worker of the trial this plan is for. host_number: the index of its host in the trial."""

    index: Index
    name: Text
    host: Text = "here"
    host_number: Index = 0


class Phases(PlanModel):
    """How long each phase may last or lasts."""

    discovery_timeout_ns: PositiveNanoseconds
    warmup_ns: Nanoseconds
    measure_ns: Annotated[int, Field(ge=1, le=24 * HOUR_NS)]
    drain_ns: Nanoseconds


class Scheduling(PlanModel):
    """What the worker's threads ask the kernel for; an empty `cpus` means not pinned."""

    policy: Literal["other", "fifo"]
    priority: Annotated[int, Field(ge=0, le=99)]
    cpus: Cpus
    lock_memory: bool


class Adapter(PlanModel):
    """A middleware's adapter and how it is set up."""

    name: Text
    library: Text
    profile: Literal["default", "matched"]
    options: dict[str, Any]
    environment: dict[str, PerhapsText]
    network: dict[str, Any]


class Security(PlanModel):
    """The files that secure a participant: paths in the trial's folder (OMG DDS Security)."""

    kind: Literal["sign", "encrypt"]
    identity_ca: Text
    permissions_ca: Text
    certificate: Text
    private_key: Text
    governance: Text
    permissions: Text


class Context(PlanModel):
    """One participant in one domain; `adapter` is an index into the plan's adapters."""

    adapter: Unsigned32
    domain: Unsigned32
    name: Text
    security: Security | None = None

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialise(self)
        if self.security is None:
            del written["security"]
        return written


class Liveliness(PlanModel):
    """How a writer asserts its liveliness: by the middleware, or by its messages (manual, by topic)."""

    kind: Literal["automatic", "manual"]
    lease_ns: Annotated[int, Field(ge=1_000, le=2**62)]


class Qos(PlanModel):
    """Quality of service; a key left out means the vendor's default, so absent keys are not written."""

    reliability: Literal["best_effort", "reliable"] | None = None
    history: Literal["keep_last", "keep_all"] | None = None
    depth: Annotated[int, Field(ge=1, le=2**20)] | None = None
    durability: Literal["volatile", "transient_local"] | None = None
    deadline_ns: Annotated[int, Field(ge=1_000, le=2**62)] | None = None
    lifespan_ns: Annotated[int, Field(ge=1_000, le=2**62)] | None = None
    liveliness: Liveliness | None = None
    partition: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    instances: Annotated[int, Field(ge=1, le=INSTANCES_MAX)] | None = None

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in serialise(self).items() if value is not None}


class Endpoint(PlanModel):
    """The common part of readers and writers; `context` is an index into the plan's contexts."""

    context: Unsigned32
    topic: Text
    type: PayloadType
    payload_bytes: PayloadBytes
    capacity: Annotated[int, Field(ge=1, le=CAPACITY_MAX)]
    qos: Qos


class Reader(Endpoint):
    """A subscriber, and the numbers of the streams that it expects.

    sizes_vary: messages may be smaller than `payload_bytes`; shares_clock: all publishers of the streams
    read the same clock as this reader.
    """

    streams: Annotated[list[Index], Field(max_length=ITEMS_MAX)]
    sizes_vary: bool = False
    shares_clock: bool = False

    @model_serializer(mode="wrap")
    def _leave_out_default(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialise(self)
        for name in ("sizes_vary", "shares_clock"):
            if not written[name]:
                del written[name]
        return written


class PlainContent(PlanModel):
    """Nothing written (`any`), or zeros."""

    kind: Literal["any", "zeros"]


class RandomContent(PlanModel):
    """Bytes that don't compress."""

    kind: Literal["random"]
    seed: Seed


class RecordedContent(PlanModel):
    """The bytes of a file, repeated; the worker refuses a file with another checksum."""

    kind: Literal["recorded"]
    path: Text
    crc32: Unsigned32


AnyContent = Annotated[PlainContent | RandomContent | RecordedContent, Field(discriminator="kind")]
ANY_CONTENT = PlainContent(kind="any")


class Answers(PlanModel):
    """The requests that a writer of replies answers: one stream, received by a reader of the same node."""

    reader: Unsigned32
    stream: Index


class Writer(Endpoint):
    """A publisher: the number of its stream, unique in the trial, and how many readers it expects.

    content: None: the plan's; sizes_bytes: of message `sequence` modulo their number, at most
    `payload_bytes`; empty: always that. replied_on: it sends requests, and this reader of its node gets the
    replies; answers: it sends replies.
    """

    stream: Index
    subscribers: Annotated[int, Field(ge=0, le=2**16)]
    content: AnyContent | None = None
    sizes_bytes: Annotated[list[PayloadBytes], Field(max_length=SIZES_MAX)] = []
    replied_on: Unsigned32 | None = None
    answers: Answers | None = None

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialise(self)
        for name in ("content", "replied_on", "answers"):
            if getattr(self, name) is None:
                del written[name]
        if not self.sizes_bytes:
            del written["sizes_bytes"]
        return written


class NormalWork(PlanModel):
    """Busy times from a normal distribution around the rule's, truncated at 0."""

    kind: Literal["normal"]
    spread_ns: Nanoseconds
    seed: Seed


class LognormalWork(PlanModel):
    """Busy times from a lognormal distribution, its median the rule's."""

    kind: Literal["lognormal"]
    sigma: Annotated[float, Field(ge=0, le=10)]
    seed: Seed


class RecordedWork(PlanModel):
    """These busy times, repeated."""

    kind: Literal["recorded"]
    times_ns: Annotated[list[Nanoseconds], Field(min_length=1, max_length=SIZES_MAX)]


AnyWork = Annotated[NormalWork | LognormalWork | RecordedWork, Field(discriminator="kind")]


class Rule(PlanModel):
    """When a node acts. `readers` and `writers` are indices into the node's lists."""

    # without `work`: always `work_ns`

    readers: Places
    work_ns: Nanoseconds
    work: AnyWork | None = None

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialise(self)
        if self.work is None:
            written.pop("work", None)
        if written.get("schedule") == PERIODIC.model_dump():
            del written["schedule"]
        if written.get("uses") == []:
            del written["uses"]
        return written

    writers: Places


class Schedule(PlanModel):
    """When a timer sends; `late`: what it does with messages that are overdue by a whole spacing."""

    late: Literal["burst", "skip", "shift"] = "burst"


class PeriodicSchedule(Schedule):
    """One message each period."""

    kind: Literal["periodic"]


class PoissonSchedule(Schedule):
    """Exponential intervals, their mean the rule's period."""

    kind: Literal["poisson"]
    seed: Seed


class BurstSchedule(Schedule):
    """`messages` at once, every `messages` periods."""

    kind: Literal["burst"]
    messages: Annotated[int, Field(ge=1, le=2**20)]


class RampSchedule(Schedule):
    """The rate changes linearly from the rule's to another; `begin_ns` counts from the start."""

    kind: Literal["ramp"]
    end_period_ns: Period
    begin_ns: Nanoseconds
    duration_ns: Annotated[int, Field(ge=1, le=24 * HOUR_NS)]


class RecordedSchedule(Schedule):
    """These intervals, repeated; their mean is at least `PERIOD_MIN_NS`."""

    kind: Literal["recorded"]
    intervals_ns: Annotated[list[Nanoseconds], Field(min_length=1, max_length=2**20)]


AnySchedule = Annotated[
    PeriodicSchedule | PoissonSchedule | BurstSchedule | RampSchedule | RecordedSchedule,
    Field(discriminator="kind"),
]


PERIODIC = PeriodicSchedule(kind="periodic")


class TimerRule(Rule):
    """Sends on absolute times, whether or not earlier messages arrived (open loop)."""

    trigger: Literal["timer"]
    period_ns: Period
    offset_ns: Nanoseconds
    schedule: AnySchedule = PERIODIC


class MessageRule(Rule):
    """Acts on each message of the readers (`any`), or when each of them has a new one (`all`).

    uses: readers whose newest message is a further cause, and triggers nothing.
    """

    trigger: Literal["any", "all"]
    echo: bool = False  # with `any`: what is sent has the sequence of the message that caused it
    uses: Places = []

    @model_validator(mode="after")
    def _echoes_one_message(self) -> MessageRule:
        if self.echo and self.trigger != "any":
            raise ValueError("echo goes with the trigger any alone")
        return self


class ClosedLoopRule(Rule):
    """Sends at the start and after each message; after `timeout_ns` without one it sends again."""

    trigger: Literal["closed_loop"]
    timeout_ns: Period
    messages_max: Annotated[int, Field(ge=0, le=2**63 - 1)]


AnyRule = Annotated[TimerRule | MessageRule | ClosedLoopRule, Field(discriminator="trigger")]


class Node(PlanModel):
    """A node of the workload; `index` is its number in the trial."""

    name: Text
    index: Index
    dispatch: Literal["listener", "waitset", "poll"]
    cpus: Cpus
    readers: Annotated[list[Reader], Field(max_length=ITEMS_MAX)]
    writers: Annotated[list[Writer], Field(max_length=ITEMS_MAX)]
    rules: Annotated[list[AnyRule], Field(max_length=ITEMS_MAX)]


class Plan(PlanModel):
    """Everything that one worker does in one trial.

    start: other than `matched`, the worker sends no probes and waits for nobody; start_ns: nor does one that
    joins so long after the common start; heap_offset_bytes: how far its heap is moved; threads: with
    `per-process` one thread serves all nodes, which then have the same dispatch and CPUs.
    """

    protocol: Literal[1]
    cell: PerhapsText
    trial: Unsigned32
    standalone: bool
    worker: Worker
    phases: Phases
    scheduling: Scheduling
    runtime_directory: Text
    touch: Literal["header", "write", "read", "write+read"]
    content: AnyContent = ANY_CONTENT
    heap_offset_bytes: HeapOffset = 0
    layer_stamps: bool = False
    start: Literal["matched", "subscriber-first", "publisher-first"] = "matched"
    start_ns: Nanoseconds = 0
    threads: Literal["per-node", "per-process"] = "per-node"
    adapters: Annotated[list[Adapter], Field(min_length=1, max_length=ITEMS_MAX)]
    contexts: Annotated[list[Context], Field(min_length=1, max_length=ITEMS_MAX)]
    nodes: Annotated[list[Node], Field(min_length=1, max_length=ITEMS_MAX)]

    @model_serializer(mode="wrap")
    def _leave_out_default(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialise(self)
        if self.content == ANY_CONTENT:
            del written["content"]
        if self.heap_offset_bytes == 0:
            del written["heap_offset_bytes"]
        if not self.layer_stamps:
            del written["layer_stamps"]
        if self.start == "matched":
            del written["start"]
        if self.start_ns == 0:
            del written["start_ns"]
        if self.threads == "per-node":
            del written["threads"]
        return written

    def line(self) -> bytes:
        """Returns the plan as the one line that a worker reads first."""
        return self.model_dump_json().encode() + b"\n"
