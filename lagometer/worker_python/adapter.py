# SPDX-License-Identifier: Apache-2.0
"""What an adapter in Python is: a module, named by `library` in its `adapter.json`, with two functions.

    probe(options) -> Probe            which client library this is; starts nothing
    open_context(configuration) -> Context   one participant in one domain

An adapter uses this file, arrivals.py and its client library, and nothing else of lagometer. What it can't do
it refuses with `AdapterError` and a sentence, and declares in its sidecar; it never does something else
instead.
Nothing of an object is called from two threads at once, but for `Waitset.trigger`. An adapter may have
threads of its own, which `Context.close` ends and waits for; one that dies of an exception fails the trial.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

MODULES = "lagometer_adapter_"  # an adapter's module is called this and the stem of its file
TAKE_MAX = 8  # payloads that one take() gives at most; fewer: there is no more


class AdapterError(Exception):
    """What was wrong, where, and what to do."""


class AdapterMissing(AdapterError):
    """The module could not be loaded."""


@dataclass(frozen=True)
class ContextConfiguration:
    """profile: `default` (as the vendor ships it) or `matched`; options: those that a study sets, without
    the interpreter's; network: what lagometer knows better, such as `loopback` and the number of `peers`;
    runtime_directory: a folder that all processes of a trial share and that goes with it, for an
    adapter's own files; make folders in it with exist_ok, since every process does."""

    domain: int
    name: str
    profile: str
    options: Mapping[str, Any]
    network: Mapping[str, Any]
    runtime_directory: str


@dataclass(frozen=True)
class Qos:
    """Quality of service; None: the vendor's default. others: policies asked for that no adapter in Python
    has; blocking_ns_max: the longest that a reliable writer may wait for room."""

    reliability: str | None = None
    history: str | None = None
    depth: int | None = None
    durability: str | None = None
    others: tuple[str, ...] = ()
    blocking_ns_max: int = 1_000_000_000


@dataclass(frozen=True)
class EndpointConfiguration:
    """A publisher or a subscriber. type: `bytes` (any length up to payload_bytes) or `fixed`."""

    topic: str
    type: str
    payload_bytes: int
    qos: Qos
    dispatch: str = ""


@dataclass(frozen=True)
class Probe:
    """version: of the client library; abilities, limits: as in the sidecar, but found out here and now."""

    version: str
    abilities: Mapping[str, Any]
    limits: Mapping[str, Any]


class Writer(Protocol):
    """One publisher. origin: whose memory `borrow` shows (`loaned`, `native`, `copied`)."""

    origin: str

    def borrow(self, size: int) -> bytearray | memoryview:
        """Returns where a payload of so many bytes is to be written; the caller's until `commit`."""

    def commit(self) -> bool:
        """Publishes what was borrowed last. True: accepted, also if it may still be lost on the way; False:
        not accepted now, and gone. Anything else, such as None, is refused."""

    def matched_readers(self) -> int:
        """How many readers the client library knows, 0 if it can't tell. Asked before each probe, so that a
        library which finds readers only if asked looks for them here."""

    def counters(self) -> dict[str, int]:
        """What the middleware can tell of lost, rejected, overwritten, deadline_missed, resent."""

    def describe(self) -> dict[str, Any]:
        """Effective settings: {"settings": {NAME: {"value": …, "default": …}}, "paste": [{"file": …,
        "text": …}]}, and if known "observed" and "transport"; docs/ADAPTERS.md says what belongs there."""


class Reader(Protocol):
    """One subscriber."""

    def enable(self) -> None:
        """Nothing arrives before."""

    def take(self) -> Sequence[Any]:
        """Returns up to TAKE_MAX payloads, the oldest first, as the client library gives them: each something
        that can be sliced into numbers from 0 to 255. An empty list if there is none. Never waits."""

    def counters(self) -> dict[str, int]:
        """As of a writer."""

    def describe(self) -> dict[str, Any]:
        """As of a writer."""


class ReplyWriter(Writer, Protocol):
    """A server's writer of replies."""

    def answer(self, request: Any) -> None:
        """What is borrowed and committed next answers this request, as the reader's `take` gave it."""


@runtime_checkable
class Services(Protocol):
    """Of a context, where the client library itself has request and reply. A client and a server are a writer
    and a reader, which are used like others. A client gets the replies to its own requests alone, and several
    of its requests may be under way."""

    def create_client(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[Writer, Reader]:
        """Makes a writer of requests, and the reader of their replies."""

    def create_server(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[Reader, ReplyWriter]:
        """Makes a reader of requests, and the writer of replies."""


class Waitset(Protocol):
    """What one thread can block on until one of its readers has data."""

    def wait(self, until_ns: int | None) -> bool:
        """Waits for data, `trigger` or this time on CLOCK_MONOTONIC (None: for ever); False: nothing came."""

    def trigger(self) -> None:
        """Ends one wait, present or next. From any thread."""

    def close(self) -> None:
        """Gives it back, before its readers are."""


class Context(Protocol):
    """One participant; everything else lives in it."""

    def create_writer(self, endpoint: EndpointConfiguration) -> Writer:
        """Makes a publisher."""

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> Reader:
        """Makes a subscriber; with the dispatch `listener` it calls `on_data` on the client's own thread,
        never twice at once."""

    def create_waitset(self, readers: Sequence[Reader]) -> Waitset:
        """Makes a waitset of readers that are enabled."""

    def describe(self) -> dict[str, Any]:
        """As of a writer."""

    def close(self) -> None:
        """Destroys the readers and writers, and itself; no callback runs afterwards."""


@dataclass(frozen=True)
class Adapter:
    """An adapter's module, loaded."""

    name: str
    probe: Callable[[Mapping[str, Any]], Probe]
    open_context: Callable[[ContextConfiguration], Context]


def load(name: str, library: str) -> Adapter:
    """Loads the module in the file `library`. Raises AdapterMissing."""
    if not library.endswith(".py"):
        raise AdapterMissing(f"adapter {name}: {library} is no Python module; it is for lagometer-worker")
    if not Path(library).is_file():
        raise AdapterMissing(f"adapter {name}: {library} is not there; run `make setup`")
    specification = importlib.util.spec_from_file_location(MODULES + Path(library).stem, library)
    if specification is None or specification.loader is None:
        raise AdapterMissing(f"adapter {name}: {library} can't be loaded")
    module: ModuleType = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
        return Adapter(name, module.probe, module.open_context)
    except ModuleNotFoundError as error:
        raise AdapterMissing(
            f"adapter {name}: {told(error)}; a client library of lagometer's own adapters comes with "
            "requirements/clients.txt (`make bench ADAPTERS=all`)"
        ) from error
    except Exception as error:
        raise AdapterMissing(f"adapter {name}: {library}: {told(error)}") from error


def probed(adapter: Adapter, options: Mapping[str, Any]) -> Probe:
    """What its probe says. Raises AdapterError."""
    found: object = adapter.probe(options)
    if not isinstance(found, Probe):
        raise AdapterError(f"probe gave {found!r}; it must give Probe(version, abilities, limits)")
    return found


def accepted(answer: object) -> bool:
    """What `commit` says; one that forgets to say it would have all its messages count as rejected. Raises
    AdapterError."""
    if not isinstance(answer, bool):
        raise AdapterError(f"commit gave {answer!r}; it must give True (accepted) or False (gone)")
    return answer


def told(error: BaseException) -> str:
    """An adapter's error as its author needs it: of an unexpected one also where in the adapter it arose."""
    if isinstance(error, AdapterError):
        return str(error) or type(error).__name__
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    places = [
        f"{Path(frame.f_code.co_filename).name}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).startswith(MODULES)
    ]
    return f"{said} ({places[-1]})" if places else said
