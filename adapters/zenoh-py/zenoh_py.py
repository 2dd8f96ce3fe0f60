# SPDX-License-Identifier: Apache-2.0
"""Eclipse Zenoh through its Python package `eclipse-zenoh`, peer to peer; README.md lists its limits."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import itertools
import json
import os
import socket
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zenoh

from lagometer.worker_python.adapter import (
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
    Reader,
)
from lagometer.worker_python.arrivals import Arrivals, ArrivalsWaitset

NAME = "zenoh-py"
MATCHED_SOCKET_BUFFER_BYTES = 4 << 20
CLOSING_S_MAX = 5.0
# Between hosts: below the ports that the kernel assigns, one for each trial.
SCOUTING_GROUP, SCOUTING_PORTS = "224.0.0.224", range(17_500, 18_500)
# Option: the vendor's default, the accepted values.
TRANSPORTS = {"tcp": "tcp", "unix": "unix-socket"}
CONGESTION = {"drop": zenoh.CongestionControl.DROP, "block": zenoh.CongestionControl.BLOCK}
CHANGES_DEFAULT = {
    "mode": "peer",
    "scouting/multicast/enabled": True,
    "scouting/gossip/enabled": True,
    "scouting/multicast/interface": "auto",
    "scouting/multicast/address": f"{SCOUTING_GROUP}:7446",
    "connect/endpoints": [],
    "connect/retry": {"period_init_ms": 1000, "period_max_ms": 4000, "period_increase_factor": 2},
    "listen/endpoints": ["tcp/[::]:0"],
    "transport/shared_memory/enabled": True,
}
_count = itertools.count()


def probe(options: Mapping[str, Any]) -> Probe:
    """The version of the package, which contains the same version of Zenoh."""
    _Settings("default", options)
    return Probe(importlib.metadata.version("eclipse-zenoh"), {}, {})


def open_context(configuration: ContextConfiguration) -> ZenohContext:
    """A session."""
    return ZenohContext(configuration)


class _Settings:
    """Profile and options, checked. Raises AdapterError."""

    def __init__(self, profile: str, options: Mapping[str, Any]) -> None:
        matched = profile == "matched"
        self.transport, self.congestion = "tcp", "by_reliability"
        self.express = matched
        for key, value in options.items():
            if key == "transport" and value in TRANSPORTS:
                self.transport = value
            elif key == "congestion_control" and value in ("by_reliability", *CONGESTION):
                self.congestion = value
            elif key == "express" and isinstance(value, bool):
                self.express = value or matched
            else:
                raise AdapterError(
                    f"{NAME}: option {key}: {value!r} is not known or out of bounds; known: "
                    "transport (tcp | unix), congestion_control (by_reliability | drop | block), "
                    "express (true | false)"
                )
        tcp = self.transport == "tcp"
        self.socket_buffer_bytes = MATCHED_SOCKET_BUFFER_BYTES if matched and tcp else None

    def with_buffers(self, endpoint: str) -> str:
        """An endpoint with the requested socket buffers."""
        size = self.socket_buffer_bytes
        return f"{endpoint}#so_sndbuf={size};so_rcvbuf={size}" if size else endpoint

    def congestion_control(self, reliability: str | None) -> Any:
        """What a publisher does when the queue of a link is full."""
        if self.congestion != "by_reliability":
            return CONGESTION[self.congestion]
        return CONGESTION["block" if reliability == "reliable" else "drop"]


class ZenohContext:
    """One session, a peer among peers, which find each other through files in the trial's folder."""

    def __init__(self, configuration: ContextConfiguration) -> None:
        self._settings = _Settings(configuration.profile, configuration.options)
        self._domain = configuration.domain
        self._readers: list[ZenohReader] = []
        folder = Path(configuration.runtime_directory) / str(configuration.domain) / "zenoh"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            link = configuration.network.get("address")
            own = _free_endpoint(self._settings.transport, folder, link or "127.0.0.1")
            self._entry, before = _enter(folder, own)
        except OSError as error:
            raise AdapterError(f"{NAME}: joining the peers in {folder}: {error}") from error
        self._changes: dict[str, Any] = {
            "mode": "peer",
            **_scouting(link, str(configuration.network.get("trial", ""))),
            "connect/endpoints": [] if link else [self._settings.with_buffers(each) for each in before],
            # A peer before this one may not listen yet: retry at once, not after a second.
            "connect/retry": {"period_init_ms": 5, "period_max_ms": 20, "period_increase_factor": 2},
            "listen/endpoints": [self._settings.with_buffers(own)],
            "transport/shared_memory/enabled": False,
        }
        try:
            zenoh.init_log_from_env_or("error")
            self._session: Any = zenoh.open(_configured(self._changes))
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: opening the session: {error}") from error

    def create_writer(self, endpoint: EndpointConfiguration) -> ZenohWriter:
        """Declares a publisher."""
        _refuse_transient_local(endpoint)
        return ZenohWriter(self._session, self._key(endpoint), endpoint, self._settings)

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> ZenohReader:
        """Creates a subscriber; `enable` declares it."""
        _refuse_transient_local(endpoint)
        reader = ZenohReader(self._session, self._key(endpoint), endpoint, on_data)
        self._readers.append(reader)
        return reader

    def create_client(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[ZenohQuerier, ZenohReplies]:
        """Declares a querier; each request is a separate query, with the payload as its body."""
        replies = ZenohReplies(self._session, self._key(reply), reply, on_data)
        self._readers.append(replies)
        return ZenohQuerier(self._session, self._key(request), request, self._settings, replies), replies

    def create_server(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[ZenohRequests, ZenohAnswers]:
        """Creates a queryable; `enable` declares it."""
        requests = ZenohRequests(self._session, self._key(request), request, on_data)
        self._readers.append(requests)
        return requests, ZenohAnswers(self._key(reply), reply, self._settings)

    def create_waitset(self, readers: Sequence[Reader]) -> ArrivalsWaitset:
        """Creates an object that waits for the readers' callbacks."""
        return ArrivalsWaitset([reader.arrivals for reader in readers if isinstance(reader, ZenohReader)])

    def describe(self) -> dict[str, Any]:
        """What differs from the vendor's default, also as the file that sets it."""
        settings = {
            key: {"value": value, "default": CHANGES_DEFAULT[key]}
            for key, value in self._changes.items()
            if value != CHANGES_DEFAULT[key]
        }
        nested: dict[str, Any] = {}
        for key in settings:
            place = nested
            *path, last = key.split("/")
            for part in path:
                place = place.setdefault(part, {})
            place[last] = self._changes[key]
        transport = {
            "within_process": ["process"],
            "between_processes": [TRANSPORTS[self._settings.transport]],
        }
        paste = [{"file": "zenoh.json5", "text": json.dumps(nested, indent=2)}]
        # Each writer reports which of the two applies.
        settings["transport"] = {"value": TRANSPORTS[self._settings.transport], "default": "tcp"}
        settings["congestion_control"] = {"value": self._settings.congestion, "default": "drop"}
        return {"settings": settings, "paste": paste, "transport": transport}

    def close(self) -> None:
        """Ends the session, then leaves the list of peers."""
        for reader in self._readers:
            reader.close()
        with contextlib.suppress(zenoh.ZError):
            self._session.close()
        with contextlib.suppress(OSError):
            self._entry.unlink()

    def _key(self, endpoint: EndpointConfiguration) -> str:
        return f"{self._domain}/{endpoint.topic}"


class _Buffered:
    """A writer with messages in the application's buffer until the client library copies them."""

    origin = "copied"

    def __init__(self, endpoint: EndpointConfiguration) -> None:
        self._whole = self._buffer = bytearray(endpoint.payload_bytes)

    def borrow(self, size: int) -> bytearray:
        """The application's own buffer, the same for every message of its size."""
        if len(self._buffer) != size:
            self._buffer = self._whole if len(self._whole) == size else bytearray(size)
        return self._buffer

    def counters(self) -> dict[str, int]:
        """No counters."""
        return {}


class ZenohWriter(_Buffered):
    """A publisher; `put` copies the application's buffer into the message."""

    def __init__(self, session: Any, key: str, endpoint: EndpointConfiguration, settings: _Settings) -> None:
        super().__init__(endpoint)
        self._key = key
        self._reliability = endpoint.qos.reliability
        try:
            self._publisher: Any = session.declare_publisher(
                key,
                congestion_control=settings.congestion_control(endpoint.qos.reliability),
                express=settings.express,
                reliability=(
                    zenoh.Reliability.BEST_EFFORT
                    if endpoint.qos.reliability == "best_effort"
                    else zenoh.Reliability.RELIABLE
                ),
            )
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: declaring a publisher on '{key}': {error}") from error
        self._express = settings.express

    def commit(self) -> bool:
        """Publishes. Zenoh never reports that it dropped a message."""
        try:
            self._publisher.put(self._buffer)
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: publishing on '{self._key}': {error}") from error
        return True

    def matched_readers(self) -> int:
        """Zenoh reports whether there are any, not how many."""
        return int(self._publisher.matching_status.matching)

    def describe(self) -> dict[str, Any]:
        """The settings that the publisher reports."""
        found = {
            "congestion_control": (_word(self._publisher.congestion_control), "DROP"),
            "reliability": (_word(self._publisher.reliability), "RELIABLE"),
            "express": (self._express, False),
        }
        settings = {
            key: {"value": value, "default": usual} for key, (value, usual) in found.items() if value != usual
        }
        return {"settings": settings, "paste": []}


class ZenohReader:
    """A subscriber with a callback, which the package calls on its own Python thread, one at a time."""

    def __init__(
        self, session: Any, key: str, endpoint: EndpointConfiguration, on_data: Callable[[], None]
    ) -> None:
        self._session, self._key = session, key
        self.arrivals: Arrivals[Any] = Arrivals(endpoint, on_data)
        self._subscriber: Any = None
        self._closed = False
        self._calling = threading.Lock()
        self._caller: threading.Thread | None = None

    def enable(self) -> None:
        """Declares the subscriber."""
        try:
            self._subscriber = self._session.declare_subscriber(self._key, self._on_sample)
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: declaring a subscriber on '{self._key}': {error}") from error

    def _on_sample(self, sample: Any) -> None:
        with self._calling:
            if self._caller is None:
                self._caller = threading.current_thread()
            if not self._closed:
                self.arrivals.note(sample)

    def take(self) -> list[bytes]:
        """The payloads as Python's bytes: a copy, joined if a message arrived in pieces."""
        return [sample.payload.to_bytes() for sample in self.arrivals.take()]

    def counters(self) -> dict[str, int]:
        """This queue's counts; Zenoh itself counts nothing."""
        return {"overwritten": self.arrivals.overwritten}

    def describe(self) -> dict[str, Any]:
        """The most messages that may wait."""
        depth = self.arrivals.depth
        value = depth if depth is not None else "without bound"
        return {"settings": {"queue": {"value": value, "default": "without bound"}}, "paste": []}

    def close(self) -> None:
        """Undeclares it. The package still calls with what waits in its queue, which is ignored, and its
        thread ends with it."""
        if self._subscriber is not None:
            with contextlib.suppress(zenoh.ZError):
                self._subscriber.undeclare()
        with self._calling:  # a running call has ended
            self._closed = True
        if self._caller is not None:
            self._caller.join(CLOSING_S_MAX)


class ZenohQuerier(_Buffered):
    """A client's writer of requests."""

    def __init__(
        self,
        session: Any,
        key: str,
        endpoint: EndpointConfiguration,
        settings: _Settings,
        replies: ZenohReplies,
    ) -> None:
        super().__init__(endpoint)
        self._key, self._replies = key, replies
        self._settings, self._reliability = settings, endpoint.qos.reliability
        try:
            self._querier: Any = session.declare_querier(
                key,
                congestion_control=settings.congestion_control(endpoint.qos.reliability),
                express=settings.express,
                # Otherwise a reply would wait for the end of its query.
                consolidation=zenoh.ConsolidationMode.NONE,
            )
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: declaring a querier on '{key}': {error}") from error

    def commit(self) -> bool:
        """Sends the query; one of the package's threads delivers its replies."""
        try:
            self._querier.get(handler=self._replies.note_reply, payload=self._buffer)
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: asking '{self._key}': {error}") from error
        return True

    def matched_readers(self) -> int:
        """Zenoh reports whether there is any queryable, not how many."""
        return int(self._querier.matching_status.matching)

    def describe(self) -> dict[str, Any]:
        """The requested settings; the package's querier does not report its own."""
        control = _word(self._settings.congestion_control(self._reliability))
        found = {
            "congestion_control": (control, "BLOCK"),
            "express": (self._settings.express, False),
            "consolidation": ("NONE", "AUTO"),
        }
        settings = {
            key: {"value": value, "default": usual} for key, (value, usual) in found.items() if value != usual
        }
        return {"settings": settings, "paste": []}


class ZenohReplies(ZenohReader):
    """A client's reader of replies, which arrive where each query was sent."""

    def enable(self) -> None:
        """Declares nothing: a query includes its own return path."""

    def note_reply(self, reply: Any) -> None:
        """An error is not a reply: the request stays unanswered."""
        if reply.ok is not None:
            self._on_sample(reply.ok)


class _Request(bytes):
    """A request's payload, with its query."""

    query: Any


class ZenohRequests(ZenohReader):
    """A server's reader of requests: a queryable."""

    def enable(self) -> None:
        """Declares the queryable."""
        try:
            self._subscriber = self._session.declare_queryable(self._key, self._on_sample)
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: declaring a queryable on '{self._key}': {error}") from error

    def take(self) -> list[bytes]:
        """The payloads as in a reader; each knows its query."""
        return [_request_of(query) for query in self.arrivals.take()]


class ZenohAnswers(_Buffered):
    """A server's writer of replies."""

    def __init__(self, key: str, endpoint: EndpointConfiguration, settings: _Settings) -> None:
        super().__init__(endpoint)
        self._key = key
        self._express = settings.express
        self._query: Any = None

    def answer(self, request: Any) -> None:
        """Keeps the query. Raises AdapterError if it was already answered."""
        self._query, request.query = request.query, None
        if self._query is None:
            raise AdapterError(f"{NAME}: a request on '{self._key}' is answered twice")

    def commit(self) -> bool:
        """Replies, and ends the query."""
        query, self._query = self._query, None
        try:
            query.reply(self._key, self._buffer, express=self._express)
        except zenoh.ZError as error:
            raise AdapterError(f"{NAME}: replying on '{self._key}': {error}") from error
        query.drop()
        return True

    def matched_readers(self) -> int:
        """Clients are unknown before they send a request."""
        return 0

    def describe(self) -> dict[str, Any]:
        """The settings of each reply; in congestion it behaves like its query."""
        settings = {"express": {"value": True, "default": False}} if self._express else {}
        return {"settings": settings, "paste": []}


def _request_of(query: Any) -> _Request:
    request = _Request(query.payload.to_bytes() if query.payload is not None else b"")
    request.query = query
    return request


def _refuse_transient_local(endpoint: EndpointConfiguration) -> None:
    if endpoint.qos.durability == "transient_local":
        raise AdapterError(f"{NAME}: a publisher keeps nothing for late joiners; use durability volatile")


def _word(constant: object) -> str:
    """`DROP` for `CongestionControl.DROP`: the package's enumerations have no names of their own."""
    return str(constant).rpartition(".")[2]


def _configured(changes: Mapping[str, Any]) -> Any:
    configuration = zenoh.Config()
    for key, value in changes.items():
        configuration.insert_json5(key, json.dumps(value))
    return configuration


def _scouting(link: str | None, trial: str) -> dict[str, Any]:
    """How peers find each other: between hosts by multicast on their link, separate from other trials."""
    if link is None:
        return {"scouting/multicast/enabled": False, "scouting/gossip/enabled": False}
    port = SCOUTING_PORTS[zlib.crc32(trial.encode()) % len(SCOUTING_PORTS)]
    return {"scouting/multicast/interface": link, "scouting/multicast/address": f"{SCOUTING_GROUP}:{port}"}


def _free_endpoint(transport: str, folder: Path, address: str) -> str:
    """A unique endpoint to listen at."""
    if transport == "unix":
        return f"unixsock-stream/{folder / _unique('peer')}.sock"
    with socket.socket() as listener:
        listener.bind((address, 0))
        return f"tcp/{address}:{listener.getsockname()[1]}"


def _enter(folder: Path, endpoint: str) -> tuple[Path, list[str]]:
    """Lists a peer of a domain, and returns its entry and where those before it listen. A lock makes this one
    step, so each pair has one link, whoever comes first and whoever has left meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        before: list[str] = []
        for earlier in sorted(folder.glob("member-*")):
            with contextlib.suppress(FileNotFoundError):  # its peer has just left
                before.append(earlier.read_text())
        entry = folder / _unique("member")
        entry.write_text(endpoint)
    finally:
        os.close(descriptor)
    return entry, before


def _unique(prefix: str) -> str:
    return f"{prefix}-{os.getpid()}-{next(_count)}"
