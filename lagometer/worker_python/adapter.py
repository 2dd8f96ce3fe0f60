# SPDX-License-Identifier: Apache-2.0
"""The interface of an adapter in Python: a module, named by `library` in its `adapter.json`, with two
functions.

    probe(options) -> Probe            which client library this is; starts nothing
    open_context(configuration) -> Context   one participant in one domain

An adapter uses this file, arrivals.py and its client library, and nothing else of lagometer. If it can't do
something, it raises `AdapterError` with a sentence and declares that in its sidecar; it never does
something else instead.
The worker never calls an object from two threads at once, except `Waitset.trigger`. An adapter may have its
own threads, which `Context.close` ends and joins. If one of them dies of an exception, the trial fails.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

MODULES = "lagometer_adapter_"  # prefix of an adapter's module name; the stem of its file follows
TAKE_MAX = 8  # maximum number of payloads per take(); fewer: there is no more


class AdapterError(Exception):
    """The message says what was wrong, where, and how to fix it."""


class AdapterMissing(AdapterError):
    """The module could not be loaded."""


@dataclass(frozen=True)
class ContextConfiguration:
    """profile: `default` (as the vendor ships it) or `matched`; options: those that a study sets, without the
    interpreter's; network: what lagometer knows about it, such as `loopback` and the number of `peers`;
    runtime_directory: a folder for an adapter's own files. All processes of a trial share it, and it is
    removed with the trial. Make folders in it with exist_ok, because every process does."""

    domain: int
    name: str
    profile: str
    options: Mapping[str, Any]
    network: Mapping[str, Any]
    runtime_directory: str


@dataclass(frozen=True)
class Qos:
    """Quality of service; None: the vendor's default. others: requested policies that no adapter in Python
    supports; the worker has refused them before an adapter is asked.

    blocking_ns_max: how long a reliable writer may wait for room."""

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
    """version: of the client library; abilities, limits: as in the sidecar, but determined at run time."""

    version: str
    abilities: Mapping[str, Any]
    limits: Mapping[str, Any]


class Writer(Protocol):
    """One publisher. origin: the owner of the memory that `borrow` returns (`loaned`, `native`, `copied`)."""

    origin: str

    def borrow(self, size: int) -> bytearray | memoryview:
        """Returns a buffer for a payload of this size. The caller owns it until `commit`."""

    def commit(self) -> bool:
        """Publishes the last borrowed buffer. True: accepted, even if it may still be lost on the way; False:
        not accepted now, and dropped. Anything else, such as None, is an error."""

    def matched_readers(self) -> int | None:
        """Returns how many readers the client library knows; None if it can't tell, as with multicast or a
        broker. The worker asks before each probe, so a library that finds readers only on request looks for
        them here."""

    def counters(self) -> dict[str, int]:
        """Returns the middleware's counters, as far as it has them.

        `lost`: dropped by this side, as far as it knows (no room at the writer; at the reader what the kernel
        or the library dropped). `overwritten`: pushed out of a keep_last queue. `rejected`,
        `deadline_missed`, `resent`: as the library counts them. The worker itself counts each False of
        `commit`.
        """

    def describe(self) -> dict[str, Any]:
        """Returns the effective settings: {"settings": {NAME: {"value": …, "default": …}}, "paste": [{"file":
        …, "text": …}]}, and if known "observed" and "transport"; see docs/ADAPTERS.md."""


class Reader(Protocol):
    """One subscriber."""

    def enable(self) -> None:
        """Starts reception. Nothing arrives before."""

    def take(self) -> Sequence[Any]:
        """Returns up to TAKE_MAX payloads, the oldest first, as the client library provides them: slicing a
        payload must give numbers from 0 to 255. Returns an empty list if there is no payload. Never waits."""

    def counters(self) -> dict[str, int]:
        """See Writer."""

    def describe(self) -> dict[str, Any]:
        """See Writer."""


class ReplyWriter(Writer, Protocol):
    """A server's writer of replies."""

    def answer(self, request: Any) -> None:
        """The next borrowed and committed buffer answers this request, as returned by the reader's `take`."""


@runtime_checkable
class Services(Protocol):
    """Implemented by a context if the client library itself supports request and reply. A client and a server
    are a writer and a reader, used like others. A client receives only the replies to its own requests, and
    may have several requests in flight."""

    def create_client(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[Writer, Reader]:
        """Makes a writer of requests, and the reader of their replies."""

    def create_server(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[Reader, ReplyWriter]:
        """Makes a reader of requests, and the writer of replies."""


class Waitset(Protocol):
    """Lets one thread block until one of its readers has data."""

    def wait(self, until_ns: int | None) -> bool:
        """Waits for data, `trigger` or this time on CLOCK_MONOTONIC (None: forever). False: no data."""

    def trigger(self) -> None:
        """Ends the current or the next wait. May be called from any thread."""

    def close(self) -> None:
        """Releases it; called before its readers are closed."""


class Context(Protocol):
    """One participant. It owns everything else."""

    def create_writer(self, endpoint: EndpointConfiguration) -> Writer:
        """Makes a publisher."""

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> Reader:
        """Makes a subscriber. With the dispatch `listener` it calls `on_data` on the client library's own
        thread, never twice at once."""

    def create_waitset(self, readers: Sequence[Reader]) -> Waitset:
        """Makes a waitset for enabled readers."""

    def describe(self) -> dict[str, Any]:
        """See Writer."""

    def close(self) -> None:
        """Destroys the readers and writers, and itself. No callback runs afterwards."""


@dataclass(frozen=True)
class Adapter:
    """A loaded adapter module."""

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
    """Returns the result of the adapter's probe. Raises AdapterError."""
    found: object = adapter.probe(options)
    if not isinstance(found, Probe):
        raise AdapterError(f"probe returned {found!r}; it must return Probe(version, abilities, limits)")
    return found


def accepted(answer: object) -> bool:
    """Checks the result of `commit`: without a result, all messages would count as rejected. Raises
    AdapterError."""
    if not isinstance(answer, bool):
        raise AdapterError(f"commit returned {answer!r}; it must return True (accepted) or False (rejected)")
    return answer


def told(error: BaseException) -> str:
    """Returns an adapter's error for its author. For an unexpected error, it includes where in the adapter it
    occurred."""
    if isinstance(error, AdapterError):
        return str(error) or type(error).__name__
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    places = [
        f"{Path(frame.f_code.co_filename).name}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).startswith(MODULES)
    ]
    return f"{said} ({places[-1]})" if places else said
