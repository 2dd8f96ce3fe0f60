# SPDX-License-Identifier: Apache-2.0
"""Eclipse eCAL through its Python package `eclipse-ecal`, on one host; its limits are in README.md."""

from __future__ import annotations

import importlib.metadata
import ipaddress
import json
import socket
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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

NAME = "ecal-py"
MATCHED_SOCKET_BUFFER_BYTES = 4 << 20
# Layer, as the option `transport` names it: the word for what it is.
TRANSPORTS = {"shm": "shared-memory", "udp": "udp", "tcp": "tcp"}
REGISTRATIONS = {
    "udp": nanobind_core.LocalTransportType.UDP,
    "shm": nanobind_core.LocalTransportType.SHM,
}
SHM_LAYER = "publisher.layer.shm"
# Option: its place in eCAL's configuration, the least and the most that is accepted.
NUMBERS = {
    "registration_refresh_ms": ("registration.registration_refresh", 1, 4_000),
    "acknowledge_timeout_ms": (f"{SHM_LAYER}.acknowledge_timeout_ms", 0, 60_000),
    "memfile_buffer_count": (f"{SHM_LAYER}.memfile_buffer_count", 1, 64),
    "memfile_min_size_bytes": (f"{SHM_LAYER}.memfile_min_size_bytes", 1, 1 << 30),
    "memfile_reserve_percent": (f"{SHM_LAYER}.memfile_reserve_percent", 0, 1_000),
}
# What this adapter may change, and so what is read back.
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
    """The version of the package, which brings eCAL of the same version."""
    _settings("default", options)
    return Probe(importlib.metadata.version("eclipse-ecal"), {}, {})


def open_context(configuration: ContextConfiguration) -> EcalContext:
    """A share in the process's one eCAL."""
    return EcalContext(configuration)


class _Settings(NamedTuple):
    """Profile and options, checked; values: what is set, by its place in eCAL's configuration."""

    transport: str
    registration: str
    values: Mapping[str, Any]

    def configuration(self, runtime_directory: str) -> Any:
        """The vendor's defaults with what is set: no ecal.yaml is read."""
        configuration = nanobind_core.Configuration()
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
        # Without a folder for it, eCAL makes one in TMPDIR and leaves it, though it writes no log there.
        _set(configuration, "logging.provider.file_config.path", runtime_directory)
        return configuration


class _Library:
    """eCAL: one for the whole process, set up by the first context and given back with the last."""

    def __init__(self) -> None:
        self._users = 0
        self._asked: tuple[_Settings, str] | None = None
        # Subscribers of contexts that are closed while others are open. To destroy one while messages flow
        # could lock up: that holds the interpreter's lock while it waits for threads that want it.
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
            # The package's other module gives the interpreter's lock away meanwhile; the one in use does
            # not, and would wait for threads that want it.
            older_core.finalize()
            self.retired.clear()


_library = _Library()


class EcalContext:
    """A share in the process's eCAL; topics are those of the whole host."""

    def __init__(self, configuration: ContextConfiguration) -> None:
        settings = _settings(configuration.profile, configuration.options)
        if configuration.domain != 0:
            raise AdapterError(
                f"{NAME}: eCAL has no domains within a process; leave it 0, not {configuration.domain}"
            )
        if settings.transport == "tcp" and configuration.network.get("loopback"):
            _refuse_host_name_elsewhere()
        _library.open(settings, configuration)
        self._transport = settings.transport
        self._readers: list[EcalReader] = []
        self._writers: list[EcalWriter] = []

    def create_writer(self, endpoint: EndpointConfiguration) -> EcalWriter:
        """Makes a publisher."""
        _refuse_unknown_qos(endpoint)
        writer = EcalWriter(endpoint)
        self._writers.append(writer)
        return writer

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> EcalReader:
        """Makes a subscriber, which is heard from `enable` on."""
        _refuse_unknown_qos(endpoint)
        reader = EcalReader(endpoint, on_data)
        self._readers.append(reader)
        return reader

    def create_waitset(self, readers: Sequence[Reader]) -> ArrivalsWaitset:
        """Makes something to wait on for the readers' callbacks."""
        return ArrivalsWaitset([reader.arrivals for reader in readers if isinstance(reader, EcalReader)])

    def describe(self) -> dict[str, Any]:
        """What is in force and differs from the vendor's default, both as eCAL says, and as its file."""
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
        way = [TRANSPORTS[self._transport]]
        return {
            "settings": settings,
            "paste": [{"file": "ecal.yaml", "text": json.dumps(nested, indent=2)}],
            "transport": {"within_process": way, "between_processes": way},
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


class EcalWriter:
    """A publisher. `send` takes Python's bytes alone: the application's buffer is copied into such, too."""

    origin = "copied"

    def __init__(self, endpoint: EndpointConfiguration) -> None:
        self._whole = self._buffer = bytearray(endpoint.payload_bytes)
        self._publisher: Any = nanobind_core.Publisher(
            endpoint.topic, config=nanobind_core.get_publisher_configuration()
        )

    def borrow(self, size: int) -> bytearray:
        """The application's own buffer, the same for every message of its size."""
        if len(self._buffer) != size:
            self._buffer = self._whole if len(self._whole) == size else bytearray(size)
        return self._buffer

    def commit(self) -> bool:
        """Publishes. Without a subscriber eCAL sends nothing, which is no fault of the message."""
        sent = self._publisher.send(bytes(self._buffer))
        return bool(sent) or self._publisher.get_subscriber_count() == 0

    def matched_readers(self) -> int:
        """As eCAL counts them."""
        return int(self._publisher.get_subscriber_count())

    def counters(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Nothing beyond the context's settings."""
        return {"settings": {}, "paste": []}

    def close(self) -> None:
        """Destroys the publisher."""
        self._publisher = None


class EcalReader:
    """A subscriber with a callback, which eCAL calls on its own threads, one at a time."""

    def __init__(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> None:
        self.arrivals: Arrivals[bytes] = Arrivals(endpoint, on_data)
        # Here and not in `enable`: to create one while others of the process receive could lock up.
        self._subscriber: Any = nanobind_core.Subscriber(
            endpoint.topic, config=nanobind_core.get_subscriber_configuration()
        )

    def enable(self) -> None:
        """Sets the callback; what comes before is not kept."""
        self._subscriber.set_receive_callback(self._on_message)

    def _on_message(self, publisher: Any, datatype: Any, message: Any) -> None:
        del publisher, datatype
        self.arrivals.note(message.buffer)  # a copy: eCAL's memory is the message's during the callback alone

    def take(self) -> list[bytes]:
        """The payloads as Python's bytes."""
        return self.arrivals.take()

    def counters(self) -> dict[str, int]:
        """Of this queue; what eCAL dropped is only in its monitoring, which is not started."""
        return {"overwritten": self.arrivals.overwritten}

    def describe(self) -> dict[str, Any]:
        """How many messages wait at most."""
        return {"settings": {"queue": {"value": self.arrivals.depth, "default": "none"}}, "paste": []}

    def retire(self) -> Any:
        """Returns the subscriber, without its callback: when this returns, none runs and none will."""
        subscriber, self._subscriber = self._subscriber, None
        # Not remove_receive_callback, which keeps the interpreter's lock from a callback that it waits for.
        subscriber.set_receive_callback(_ignore)
        return subscriber


def _ignore(publisher: Any, datatype: Any, message: Any) -> None:
    """The callback of a subscriber that nobody has any more."""


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
    """eCAL promises no delivery and keeps nothing."""
    qos = endpoint.qos
    if qos.reliability == "reliable":
        raise AdapterError(
            f"{NAME}: eCAL guarantees no delivery; use reliability best_effort, and the option "
            "acknowledge_timeout_ms to have publishers wait for their subscribers"
        )
    if qos.history == "keep_all":
        raise AdapterError(f"{NAME}: eCAL does not hold a publisher back; use history keep_last")
    if qos.durability == "transient_local":
        raise AdapterError(f"{NAME}: a publisher keeps nothing for late joiners; use durability volatile")


def _refuse_host_name_elsewhere() -> None:
    """Subscribers of the layer tcp connect to the publisher's host name: within a network of its own that
    must be the loopback."""
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
    """A value as JSON has it; of an enumeration its word as ecal.yaml has it."""
    return value if isinstance(value, bool | int | str) else str(value).rpartition(".")[2].lower()
