# SPDX-License-Identifier: Apache-2.0
"""What a worker writes on its standard output: one model for each event of docs/PROTOCOL.md.

Unknown keys are ignored, so a newer worker may report more. A missing or wrong key is a protocol error.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

LINE_QUOTED_CHARACTERS = 200


class ProtocolError(Exception):
    """A worker wrote something that the protocol does not know. The message quotes it."""


class Message(BaseModel):
    """Base of all messages of a worker."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Hello(Message):
    """The worker read and accepted the plan."""

    event: Literal["hello"]
    protocol: int
    worker: int
    pid: int
    version: str


class AdapterInUse(Message):
    """An adapter that the worker has loaded."""

    name: str
    version: int | str | None = None
    library_version: str | None = None


class Ready(Message):
    """Everything is created and enabled; `settings`: the effective settings of the objects."""

    event: Literal["ready"]
    adapters: list[AdapterInUse] = []
    settings: list[dict[str, Any]] = []
    scheduling: dict[str, Any] = {}
    warnings: list[str] = []


class Matched(Message):
    """Every reader got a probe from every stream that it expects."""

    event: Literal["matched"]
    elapsed_ns: int


class ContextSwitches(Message):
    """Of the whole process, in the measure phase."""

    voluntary: int = 0
    involuntary: int = 0


class Incompatible(Message):
    """An endpoint met others with an incompatible quality of service.

    policy: the last incompatible one, empty if the middleware doesn't report it; value: its value on this
    side.
    """

    event: Literal["incompatible"]
    node: str
    side: Literal["writer", "reader"]
    topic: str
    total: int = 1
    policy: str = ""
    value: str = ""


class EventCount(Message):
    """How often the middleware reported an event of an endpoint: in total, and in the measure phase."""

    total: int
    measured: int = 0


class WriterDone(Message):
    """What happened to one writer's messages."""

    node: int
    stream: int
    sent: int
    rejected: int = 0
    resent_after_timeout: int = 0
    recorder_full: bool = False
    origin: str = "copied"
    counters: dict[str, int] = {}
    due: int | None = None
    skipped: int = 0
    shift_ns: int = 0
    events: dict[str, EventCount] = {}


class ReaderDone(Message):
    """What one reader received."""

    node: int
    reader: int
    received: int
    corrupted: int = 0
    recorder_full: bool = False
    counters: dict[str, int] = {}
    events: dict[str, EventCount] = {}


class Done(Message):
    """The drain is over."""

    event: Literal["done"]
    at_ns: int
    measure_begin_ns: int
    measure_end_ns: int
    drain_end_ns: int
    cpu_ns: int = 0
    context_switches: ContextSwitches = ContextSwitches()
    resident_bytes_max: int = 0
    threads: list[dict[str, Any]] = []
    writers: list[WriterDone] = []
    readers: list[ReaderDone] = []
    warnings: list[str] = []


class Records(Message):
    """The raw block of records follows."""

    event: Literal["records"]
    bytes: Annotated[int, Field(ge=0)]
    crc32: Annotated[str, Field(pattern="^[0-9a-f]{8}$")]


class Bye(Message):
    """The worker has destroyed its objects."""

    event: Literal["bye"]


class Counted(Message):
    """How many readers a publisher counts."""

    node: str
    topic: str
    stream: int
    readers: int


class Failed(Message):
    """Replaces all later messages: why this worker can't continue; `missing` names what it waited for,
    `counted` what its publishers counted, if the worker says that."""

    event: Literal["failed"]
    phase: str = ""
    reason: str
    message: str = ""
    missing: list[Any] = []
    counted: list[Counted] = []


AnyMessage = Hello | Ready | Incompatible | Matched | Done | Records | Bye | Failed
_MESSAGE: TypeAdapter[AnyMessage] = TypeAdapter(Annotated[AnyMessage, Field(discriminator="event")])


def parse(line: bytes) -> AnyMessage:
    """Returns the message in one line; raises `ProtocolError` with the line quoted."""
    try:
        value = json.loads(line)
        return _MESSAGE.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProtocolError(f"{first['msg']} at {where or 'the top'} in the line {quoted(line)}") from None
    except (ValueError, RecursionError):
        raise ProtocolError(f"a line that is not JSON: {quoted(line)}") from None


def quoted(line: bytes) -> str:
    """Returns a line for people: shortened, with control characters escaped."""
    text = line.decode(errors="replace")
    more = "…" if len(text) > LINE_QUOTED_CHARACTERS else ""
    return repr(text[:LINE_QUOTED_CHARACTERS]) + more
