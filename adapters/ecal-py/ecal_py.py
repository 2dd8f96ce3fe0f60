# SPDX-License-Identifier: Apache-2.0
"""Eclipse eCAL through its Python package `eclipse-ecal`; README.md lists its limits."""

# long file: an adapter in Python is one module, and this one has topics and services

from __future__ import annotations

import contextlib
import importlib.metadata
import ipaddress
import json
import os
import socket
import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ecal import nanobind_core
from ecal.core import core as older_core

from lagometer.worker_python.adapter import (
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
    Reader,
)
from lagometer.worker_python.arrivals import Arrivals, ArrivalsWaitset

Message = TypeVar("Message", bound=bytes)

NAME = "ecal-py"
MATCHED_SOCKET_BUFFER_BYTES = 4 << 20
# Layer, as named by the option `transport`: the term for it.
TRANSPORTS = {"shm": "shared-memory", "udp": "udp", "tcp": "tcp"}
REGISTRATIONS = {
    "udp": nanobind_core.LocalTransportType.UDP,
    "shm": nanobind_core.LocalTransportType.SHM,
}
SHM_LAYER = "publisher.layer.shm"
# Option: its place in eCAL's configuration, the smallest and the largest accepted value.
NUMBERS = {
    "registration_refresh_ms": ("registration.registration_refresh", 1, 4_000),
    "acknowledge_timeout_ms": (f"{SHM_LAYER}.acknowledge_timeout_ms", 0, 60_000),
    "memfile_buffer_count": (f"{SHM_LAYER}.memfile_buffer_count", 1, 64),
    "memfile_min_size_bytes": (f"{SHM_LAYER}.memfile_min_size_bytes", 1, 1 << 30),
    "memfile_reserve_percent": (f"{SHM_LAYER}.memfile_reserve_percent", 0, 1_000),
}
# A service's only method, and what its server's callback returns for a request that nobody answered.
METHOD = "call"
UNANSWERED = 1
_SERVICE_TRANSPORT = {"transport": {"within_process": ["tcp"], "between_processes": ["tcp"]}}
# What this adapter may change, and therefore reads back.
PLACES = (
    *(place for place, _, _ in NUMBERS.values()),
    f"{SHM_LAYER}.zero_copy_mode",
    *(f"{side}.layer.{layer}.enable" for side in ("publisher", "subscriber") for layer in TRANSPORTS),
    "registration.local.transport_type",
    "registration.local.shm.domain",
    "transport_layer.udp.send_buffer",
    "transport_layer.udp.receive_buffer",
    "logging.provider.file_config.path",
)


def probe(options: Mapping[str, Any]) -> Probe:
    """The version of the package, which contains the same version of eCAL."""
    _settings("default", options)
    return Probe(importlib.metadata.version("eclipse-ecal"), {}, {})


def open_context(configuration: ContextConfiguration) -> EcalContext:
    """A share in the process's only eCAL."""
    return EcalContext(configuration)


class _Settings(NamedTuple):
    """Profile and options, checked; values: the settings, by their place in eCAL's configuration."""

    transport: str
    registration: str
    values: Mapping[str, Any]
    between_hosts: bool = False

    def configuration(self, runtime_directory: str) -> Any:
        """The vendor's defaults plus the settings: no ecal.yaml is read, except our own between hosts."""
        configuration = (
            _network_mode(runtime_directory) if self.between_hosts else nanobind_core.Configuration()
        )
        for place, value in self.values.items():
            _set(configuration, place, value)
        if self.transport != "shm":
            for side in ("publisher", "subscriber"):
                for layer in TRANSPORTS:
                    _set(configuration, f"{side}.layer.{layer}.enable", layer == self.transport)
        _set(configuration, "registration.local.transport_type", REGISTRATIONS[self.registration])
        if self.registration == "shm":
            domain = f"ecal_mon_{zlib.crc32(runtime_directory.encode()):08x}"
            _set(configuration, "registration.local.shm.domain", domain)
        # Without a folder of its own, eCAL creates one in TMPDIR and leaves it, though it logs nothing there.
        _set(configuration, "logging.provider.file_config.path", runtime_directory)
        return configuration


class _Library:
    """eCAL: one for the whole process, initialised by the first context and finalised with the last."""

    def __init__(self) -> None:
        self._users = 0
        self._asked: tuple[_Settings, str] | None = None
        # Subscribers, clients and servers of contexts that were closed while others are open. Destroying one
        # while messages flow could deadlock: it holds the interpreter's lock while it waits for threads that
        # need that lock.
        self.retired: list[Any] = []

    def open(self, settings: _Settings, configuration: ContextConfiguration) -> None:
        """Raises AdapterError."""
        asked = (settings, configuration.runtime_directory)
        if self._users == 0:
            prepared = settings.configuration(configuration.runtime_directory)
            if not nanobind_core.initialize(prepared, configuration.name):
                raise AdapterError(
                    f"{NAME}: eCAL could not be set up; it is one for a whole process, perhaps in use there"
                )
            self._asked = asked
        elif asked != self._asked:
            raise AdapterError(
                f"{NAME}: eCAL is one for a whole process, and another context of it asked for other options"
            )
        self._users += 1

    def close(self) -> None:
        """Ends all of eCAL's threads with the last context."""
        self._users -= 1
        if self._users == 0:
            # The package's other module releases the interpreter's lock meanwhile. The one in use does not,
            # and would wait for threads that need that lock.
            older_core.finalize()
            self.retired.clear()


_library = _Library()


class EcalContext:
    """A share in the process's eCAL; topics belong to the whole host."""

    def __init__(self, configuration: ContextConfiguration) -> None:
        settings = _settings(configuration.profile, configuration.options)
        if "address" in configuration.network:
            settings = settings._replace(between_hosts=True)
            _refuse_within_host(settings)
        if configuration.domain != 0:
            raise AdapterError(
                f"{NAME}: eCAL has no domains within a process; leave it 0, not {configuration.domain}"
            )
        if settings.transport == "tcp" and configuration.network.get("loopback"):
            _refuse_host_name_elsewhere()
        _library.open(settings, configuration)
        self._ways = [TRANSPORTS[settings.transport]]
        if settings.between_hosts and settings.transport == "shm":
            self._ways.append(TRANSPORTS["udp"])  # to the other hosts
        self._readers: list[_Receiver[Any]] = []
        self._writers: list[EcalWriter] = []

    def create_writer(self, endpoint: EndpointConfiguration) -> EcalWriter:
        """Creates a publisher."""
        _refuse_unknown_qos(endpoint)
        writer = EcalWriter(endpoint)
        self._writers.append(writer)
        return writer

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> EcalReader:
        """Creates a subscriber, which receives from `enable` on."""
        _refuse_unknown_qos(endpoint)
        reader = EcalReader(endpoint, on_data)
        self._readers.append(reader)
        return reader

    def create_client(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[EcalRequestWriter, EcalReplies]:
        """Creates a client; each request is a separate asynchronous call."""
        for endpoint in (request, reply):
            _refuse_unknown_history(endpoint)
        replies = EcalReplies(reply, on_data)
        self._readers.append(replies)
        return EcalRequestWriter(request, replies), replies

    def create_server(
        self, request: EndpointConfiguration, reply: EndpointConfiguration, on_data: Callable[[], None]
    ) -> tuple[EcalRequests, EcalAnswers]:
        """Creates a server, which answers from `enable` on."""
        for endpoint in (request, reply):
            _refuse_unknown_history(endpoint)
        requests = EcalRequests(request, on_data)
        self._readers.append(requests)
        return requests, EcalAnswers(reply)

    def create_waitset(self, readers: Sequence[Reader]) -> ArrivalsWaitset:
        """Creates an object that waits for the readers' callbacks."""
        return ArrivalsWaitset([reader.arrivals for reader in readers if isinstance(reader, _Receiver)])

    def describe(self) -> dict[str, Any]:
        """What eCAL reports as in force and different from the vendor's default, also as its file."""
        in_force, usual = nanobind_core.get_configuration(), nanobind_core.Configuration()
        settings = {}
        for place in PLACES:
            value, default = _plain(_get(in_force, place)), _plain(_get(usual, place))
            if value != default:
                settings[place] = {"value": value, "default": default}
        layers, usual_layers = _layers(in_force), _layers(usual)
        nested: dict[str, Any] = {}
        for place, setting in settings.items():
            inner = nested
            *path, last = place.split(".")
            for part in path:
                inner = inner.setdefault(part, {})
            inner[last] = setting["value"]
        if layers != usual_layers:
            settings["layers"] = {"value": layers, "default": usual_layers}
        return {
            "settings": settings,
            "paste": [{"file": "ecal.yaml", "text": json.dumps(nested, indent=2)}],
            "transport": {"within_process": self._ways, "between_processes": self._ways},
        }

    def close(self) -> None:
        """Ends the publishers and the subscribers' callbacks, and eCAL with the last context."""
        for reader in self._readers:
            _library.retired.append(reader.retire())
        for writer in self._writers:
            writer.close()
        self._readers.clear()
        self._writers.clear()
        _library.close()


class _Buffered:
    """A writer with messages in the application's buffer. eCAL only accepts Python's bytes, so they are
    copied into that."""

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


class EcalWriter(_Buffered):
    """A publisher."""

    def __init__(self, endpoint: EndpointConfiguration) -> None:
        super().__init__(endpoint)
        self._publisher: Any = nanobind_core.Publisher(
            endpoint.topic, config=nanobind_core.get_publisher_configuration()
        )

    def commit(self) -> bool:
        """Publishes. Without a subscriber eCAL sends nothing, which does not count as an error."""
        sent = self._publisher.send(bytes(self._buffer))
        return bool(sent) or self._publisher.get_subscriber_count() == 0

    def matched_readers(self) -> int:
        """eCAL's own count."""
        return int(self._publisher.get_subscriber_count())

    def describe(self) -> dict[str, Any]:
        """Nothing beyond the context's settings."""
        return {"settings": {}, "paste": []}

    def close(self) -> None:
        """Destroys the publisher."""
        self._publisher = None


class _Receiver(ABC, Generic[Message]):
    """Delivers messages by a callback, which eCAL calls on its own threads, one at a time."""

    def __init__(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        self.arrivals: Arrivals[Message] = Arrivals(endpoint, on_data)

    def take(self) -> list[Message]:
        """The payloads as Python's bytes."""
        return self.arrivals.take()

    def counters(self) -> dict[str, int]:
        """This queue's counts; what eCAL dropped is only in its monitoring, which is not started."""
        return {"overwritten": self.arrivals.overwritten}

    def describe(self) -> dict[str, Any]:
        """The most messages that may wait."""
        return {"settings": {"queue": {"value": self.arrivals.depth, "default": "none"}}, "paste": []}

    @abstractmethod
    def retire(self) -> Any:
        """Returns the object with eCAL's callback: when this returns, no callback delivers anything more."""


class EcalReader(_Receiver[bytes]):
    """A subscriber."""

    def __init__(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        super().__init__(endpoint, on_data)
        # Here and not in `enable`: creating one while others of the process receive could deadlock.
        self._subscriber: Any = nanobind_core.Subscriber(
            endpoint.topic, config=nanobind_core.get_subscriber_configuration()
        )

    def enable(self) -> None:
        """Sets the callback; earlier messages are not kept."""
        self._subscriber.set_receive_callback(self._on_message)

    def _on_message(self, publisher: Any, datatype: Any, message: Any) -> None:
        del publisher, datatype
        self.arrivals.note(message.buffer)  # a copy: eCAL's memory is only valid during the callback

    def retire(self) -> Any:
        """Returns the subscriber, without its callback: when this returns, none is running or will run."""
        subscriber, self._subscriber = self._subscriber, None
        # Not remove_receive_callback, which waits for a callback without releasing the interpreter's lock.
        subscriber.set_receive_callback(_ignore)
        return subscriber


class EcalReplies(_Receiver[bytes]):
    """A client's reader of replies, and the client."""

    def __init__(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        super().__init__(endpoint, on_data)
        self._calling, self._closed = threading.Lock(), False
        self.client: Any = nanobind_core.ServiceClient(
            endpoint.topic, {nanobind_core.ServiceMethodInformation(METHOD)}
        )

    def enable(self) -> None:
        """Nothing to do: only requests lead to replies."""

    def on_reply(self, response: Any) -> None:
        """Called for each request. A failed or unanswered one delivers nothing."""
        if response.call_state != nanobind_core.CallState.EXECUTED or response.ret_state != 0:
            return
        with self._calling:
            if not self._closed:
                self.arrivals.note(response.response)

    def describe(self) -> dict[str, Any]:
        """eCAL's services use TCP, whatever topics use."""
        return {**super().describe(), **_SERVICE_TRANSPORT}

    def retire(self) -> Any:
        """Returns the client."""
        with self._calling:  # a running callback has ended
            self._closed = True
        return self.client


class EcalRequestWriter(_Buffered):
    """A client's writer of requests."""

    def __init__(self, endpoint: EndpointConfiguration, replies: EcalReplies) -> None:
        super().__init__(endpoint)
        self._replies = replies

    def commit(self) -> bool:
        """Calls without waiting. Without a server eCAL sends nothing, which does not count as an error."""
        client = self._replies.client
        called = client.call_with_callback_async(METHOD, bytes(self._buffer), self._replies.on_reply)
        return bool(called) or not client.is_connected()

    def matched_readers(self) -> int:
        """eCAL reports whether there is any server."""
        return int(self._replies.client.is_connected())

    def describe(self) -> dict[str, Any]:
        """eCAL's services use TCP, whatever topics use."""
        return {"settings": {}, "paste": [], **_SERVICE_TRANSPORT}


class _Request(bytes):
    """A request's payload; the thread that handles the call waits here for the reply."""

    answered: bool
    reply: tuple[int, bytes]
    done: threading.Lock


class EcalRequests(_Receiver[_Request]):
    """A server's reader of requests, and the server. eCAL passes one request at a time to the callback, which
    returns the reply."""

    def __init__(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        super().__init__(endpoint, on_data)
        self._under_way: _Request | None = None
        self._state, self._closed = threading.Lock(), False
        self._server: Any = nanobind_core.ServiceServer(endpoint.topic)

    def enable(self) -> None:
        """Sets the callback."""
        self._server.set_method_callback(nanobind_core.ServiceMethodInformation(METHOD), self._on_request)

    def _on_request(self, method: Any, payload: bytes) -> tuple[int, bytes]:
        del method
        request = _Request(payload)
        request.answered, request.reply, request.done = False, (UNANSWERED, b""), threading.Lock()
        request.done.acquire()
        with self._state:
            if self._closed:
                return request.reply
            self._under_way = request
        self.arrivals.note(request)
        request.done.acquire()
        return request.reply

    def describe(self) -> dict[str, Any]:
        """eCAL's services use TCP, whatever topics use."""
        return {**super().describe(), **_SERVICE_TRANSPORT}

    def retire(self) -> Any:
        """Returns the server, with its callback, which no longer answers anything."""
        with self._state:
            self._closed = True
            if self._under_way is not None:
                _let_go(self._under_way)
        return self._server


class EcalAnswers(_Buffered):
    """A server's writer of replies."""

    def __init__(self, endpoint: EndpointConfiguration) -> None:
        super().__init__(endpoint)
        self._topic = endpoint.topic
        self._request: _Request | None = None

    def answer(self, request: _Request) -> None:
        """Keeps the request. Raises AdapterError if it was already answered."""
        if request.answered:
            raise AdapterError(f"{NAME}: a request on '{self._topic}' is answered twice")
        request.answered, self._request = True, request

    def commit(self) -> bool:
        """Makes the callback return the reply."""
        request, self._request = self._request, None
        if request is None:
            raise AdapterError(f"{NAME}: a reply on '{self._topic}' without a request")
        request.reply = (0, bytes(self._buffer))
        _let_go(request)
        return True

    def matched_readers(self) -> int:
        """Clients are unknown before they send a request."""
        return 0

    def describe(self) -> dict[str, Any]:
        """eCAL's services use TCP, whatever topics use."""
        return {"settings": {}, "paste": [], **_SERVICE_TRANSPORT}


def _let_go(request: _Request) -> None:
    """This request's callback returns."""
    with contextlib.suppress(RuntimeError):  # it has
        request.done.release()


def _ignore(publisher: Any, datatype: Any, message: Any) -> None:
    """The callback of a subscriber that nobody uses any more."""


def _settings(profile: str, options: Mapping[str, Any]) -> _Settings:
    """Raises AdapterError."""
    transport, registration = ("udp" if profile == "matched" else "shm"), "udp"
    values: dict[str, Any] = {}
    if profile == "matched":
        for buffer in ("send_buffer", "receive_buffer"):
            values[f"transport_layer.udp.{buffer}"] = MATCHED_SOCKET_BUFFER_BYTES
    for key, value in options.items():
        if key == "transport" and value in TRANSPORTS:
            transport = value
        elif key == "registration" and value in REGISTRATIONS:
            registration = value
        elif key == "zero_copy" and isinstance(value, bool):
            values[f"{SHM_LAYER}.zero_copy_mode"] = value
        elif key in NUMBERS and type(value) is int and NUMBERS[key][1] <= value <= NUMBERS[key][2]:
            values[NUMBERS[key][0]] = value
        else:
            raise AdapterError(
                f"{NAME}: option {key}: {value!r} is not known or out of bounds; known: "
                "transport (shm | udp | tcp), registration (udp | shm), zero_copy (true | false), "
                f"{', '.join(NUMBERS)}"
            )
    return _Settings(transport, registration, values)


def _refuse_unknown_qos(endpoint: EndpointConfiguration) -> None:
    """eCAL does not guarantee delivery and keeps nothing."""
    if endpoint.qos.reliability == "reliable":
        raise AdapterError(
            f"{NAME}: eCAL guarantees no delivery; use reliability best_effort, and the option "
            "acknowledge_timeout_ms to have publishers wait for their subscribers"
        )
    _refuse_unknown_history(endpoint)


def _refuse_unknown_history(endpoint: EndpointConfiguration) -> None:
    qos = endpoint.qos
    if qos.history == "keep_all":
        raise AdapterError(f"{NAME}: eCAL does not hold a publisher back; use history keep_last")
    if qos.durability == "transient_local":
        raise AdapterError(f"{NAME}: a publisher keeps nothing for late joiners; use durability volatile")


def _refuse_host_name_elsewhere() -> None:
    """Subscribers of the layer tcp connect to the publisher's host name, which must be the loopback within a
    network namespace."""
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError as error:
        raise AdapterError(f"{NAME}: transport tcp: the host name {name} has no address: {error}") from error
    if not ipaddress.ip_address(address).is_loopback:
        raise AdapterError(
            f"{NAME}: transport tcp: eCAL connects to the host name {name}, which is {address}: that "
            "is not on the loopback; name it there in /etc/hosts, or use shm or udp"
        )


def _refuse_within_host(settings: _Settings) -> None:
    if settings.transport == "tcp":
        raise AdapterError(
            f"{NAME}: transport tcp connects to host names, which other hosts may not know; use shm or udp"
        )
    if settings.registration != "udp":
        raise AdapterError(f"{NAME}: registration {settings.registration} reaches no other host; use udp")


def _network_mode(runtime_directory: str) -> Any:
    """The vendor's defaults in mode `network`, which only a file can ask for."""
    Path(runtime_directory, "ecal.yaml").write_text("communication_mode: network\n")
    os.environ["ECAL_DATA"] = runtime_directory
    return nanobind_core.init.get_configuration()


def _get(configuration: Any, place: str) -> Any:
    for part in place.split("."):
        configuration = getattr(configuration, part)
    return configuration


def _set(configuration: Any, place: str, value: Any) -> None:
    path, _, last = place.rpartition(".")
    setattr(_get(configuration, path), last, value)


def _layers(configuration: Any) -> str:
    """The layers that publishers may use, by their names in the option `transport`."""
    return "+".join(layer for layer in TRANSPORTS if _get(configuration, f"publisher.layer.{layer}.enable"))


def _plain(value: Any) -> Any:
    """A value as JSON; for an enumeration its name in ecal.yaml."""
    return value if isinstance(value, bool | int | str) else str(value).rpartition(".")[2].lower()
