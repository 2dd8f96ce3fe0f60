# SPDX-License-Identifier: Apache-2.0
"""Eclipse Cyclone DDS through its Python package `cyclonedds`. README.md lists what it can't do.

The types and their names are those of the adapters `cyclonedds` and `fastdds`, so that each receives what the
others send.
"""

from __future__ import annotations

import importlib.metadata
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from cyclonedds.core import (
    DDSException,
    GuardCondition,
    InstanceState,
    ReadCondition,
    SampleState,
    ViewState,
    WaitSet,
)
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, sequence, uint8
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from lagometer.worker_python.adapter import (
    TAKE_MAX,
    AdapterError,
    ContextConfiguration,
    EndpointConfiguration,
    Probe,
    Reader,
)

NAME = "cyclonedds-py"
FIXED_BYTES = (64, 1024, 65_536, 1_048_576)
ANY_STATE = SampleState.Any | ViewState.Any | InstanceState.Any
UNLIMITED = -1
LONGEST_WAIT_NS = 1 << 40  # the wait is relative; one of 18 minutes is simply restarted
DATAGRAM_BYTES_MAX = 65_500
BUFFER_BYTES_MAX = 1 << 30
BLOCKING_NS_DEFAULT = 100_000_000
# As large as a datagram may be, so that the results do not depend on how often a middleware calls the kernel.
MATCHED = {"max_message_size": 65_500, "fragment_size": 65_000, "socket_receive_buffer": 4_194_304}
# Option: the element, the vendor's default, the largest accepted value.
ELEMENTS = {
    "max_message_size": ("General/MaxMessageSize", 14_720, DATAGRAM_BYTES_MAX),
    "fragment_size": ("General/FragmentSize", 1_344, DATAGRAM_BYTES_MAX),
    "socket_receive_buffer": ("Internal/SocketReceiveBufferSize[@max]", 1_048_576, BUFFER_BYTES_MAX),
}
INTERFACE = "General/Interfaces/NetworkInterface[@address]"


def probe(options: Mapping[str, Any]) -> Probe:
    """The version of the package, which contains the same version of Cyclone DDS."""
    _settings("default", options)
    return Probe(importlib.metadata.version("cyclonedds"), {}, {})


def open_context(configuration: ContextConfiguration) -> CycloneContext:
    """A participant in a domain."""
    return CycloneContext(configuration)


class CycloneContext:
    """A participant, configured by profile and options."""

    def __init__(self, configuration: ContextConfiguration) -> None:
        self._settings = _settings(configuration.profile, configuration.options)
        # Between hosts; otherwise the library chooses.
        self._address: str | None = configuration.network.get("address")
        self._xml = _xml(self._settings, self._address)
        if configuration.domain > 230:
            raise AdapterError(f"{NAME}: domain {configuration.domain} has no UDP ports; use 0 to 230")
        try:
            # A second participant of the process finds the domain already created, with these settings.
            self._domain = _domain(configuration.domain, self._xml)
            self._participant: Any = DomainParticipant(configuration.domain)
        except DDSException as error:
            raise AdapterError(f"{NAME}: making a participant: {error}") from error
        self._topics: dict[tuple[str, str], Any] = {}
        self._readers: list[CycloneReader] = []
        self._writers: list[CycloneWriter] = []

    def create_writer(self, endpoint: EndpointConfiguration) -> CycloneWriter:
        """Creates a writer, which can send from now on."""
        writer = CycloneWriter(self._participant, self._topic(endpoint), endpoint)
        self._writers.append(writer)
        return writer

    def create_reader(self, endpoint: EndpointConfiguration, on_data: Callable[[], None]) -> CycloneReader:
        """Creates a reader; `enable` creates its entity. `on_data` is not used: there are no listeners."""
        del on_data
        if endpoint.dispatch == "listener":
            raise AdapterError(
                f"{NAME}: no listeners: the package holds the interpreter's lock while it writes, and a "
                "listener that waits for it would stand still for ever; use the waitset"
            )
        reader = CycloneReader(self._participant, self._topic(endpoint), endpoint)
        self._readers.append(reader)
        return reader

    def create_waitset(self, readers: Sequence[Reader]) -> CycloneWaitset:
        """Creates a waitset of enabled readers."""
        own = [reader for reader in readers if isinstance(reader, CycloneReader)]
        return CycloneWaitset(self._participant, own)

    def describe(self) -> dict[str, Any]:
        """What differs from the vendor's default."""
        settings: dict[str, Any] = {
            ELEMENTS[option][0]: {"value": value, "default": ELEMENTS[option][1]}
            for option, value in self._settings.items()
        }
        if self._address is not None:
            settings[INTERFACE] = {"value": self._address, "default": "chosen by the vendor"}
        paste = [{"file": "cyclonedds.xml, named by CYCLONEDDS_URI", "text": self._xml}] if self._xml else []
        # The library always reads this variable, so it is one of the effective settings.
        if not self._xml and (uri := os.environ.get("CYCLONEDDS_URI")):
            settings["CYCLONEDDS_URI"] = {"value": uri, "default": ""}
        transport = {"within_process": ["process"], "between_processes": ["udp"]}
        return {"settings": settings, "paste": paste, "transport": transport}

    def close(self) -> None:
        """Destroys everything: the package deletes an entity with its last reference."""
        for reader in self._readers:
            reader.close()
        for writer in self._writers:
            writer.close()
        self._readers.clear()
        self._writers.clear()
        self._topics.clear()
        self._participant = None

    def _topic(self, endpoint: EndpointConfiguration) -> Any:
        """One topic entity for each name and type: the package can't keep two apart."""
        kind = _type(endpoint.type, endpoint.payload_bytes)
        key = (endpoint.topic, kind.__idl_typename__)
        if key not in self._topics:
            try:
                self._topics[key] = Topic(self._participant, endpoint.topic, kind)
            except DDSException as error:
                raise AdapterError(f"{NAME}: making topic {endpoint.topic}: {error}") from error
        return self._topics[key]


class CycloneWriter:
    """Serialises the application's buffer in Python, then passes the octets to the library."""

    origin = "native"

    def __init__(self, participant: Any, topic: Any, endpoint: EndpointConfiguration) -> None:
        self._topic_name = endpoint.topic
        self._type = topic.data_type
        self._whole = bytearray(endpoint.payload_bytes)
        self._buffer = self._whole
        try:
            self._writer: Any = DataWriter(participant, topic, _qos(endpoint, writes=True))
        except DDSException as error:
            raise AdapterError(f"{NAME}: making a writer on {endpoint.topic}: {error}") from error

    def borrow(self, size: int) -> bytearray:
        """The application's own buffer, the same for every message of its size."""
        if len(self._buffer) != size:
            self._buffer = self._whole if len(self._whole) == size else bytearray(size)
        return self._buffer

    def commit(self) -> bool:
        """Creates the message object and writes it, as an application does."""
        try:
            self._writer.write(self._type(data=self._buffer))
        except DDSException as error:
            if error.code == DDSException.DDS_RETCODE_TIMEOUT:
                return False
            raise AdapterError(f"{NAME}: writing on {self._topic_name}: {error}") from error
        return True

    def matched_readers(self) -> int:
        """The library's own counts."""
        return len(self._writer.get_matched_subscriptions())

    def counters(self) -> dict[str, int]:
        """No counters."""
        return {}

    def describe(self) -> dict[str, Any]:
        """The effective quality of service, read back."""
        return _effective_qos(self._writer, reliable_by_default=True)

    def close(self) -> None:
        """Releases the entity."""
        self._writer = None


class CycloneReader:
    """Takes and deserialises in Python."""

    def __init__(self, participant: Any, topic: Any, endpoint: EndpointConfiguration) -> None:
        self._participant, self._topic, self._endpoint = participant, topic, endpoint
        self._reader: Any = None
        self.condition: Any = None

    def enable(self) -> None:
        """Creates the entity: the library's reader receives from then on."""
        try:
            self._reader = DataReader(self._participant, self._topic, _qos(self._endpoint, writes=False))
            self.condition = ReadCondition(self._reader, ANY_STATE)
        except DDSException as error:
            raise AdapterError(f"{NAME}: making a reader on {self._endpoint.topic}: {error}") from error

    def take(self) -> list[Any]:
        """The field `data` of each message: octets for type `fixed`, a list of numbers for type `bytes`."""
        samples = self._reader.take(TAKE_MAX)
        return [sample.data for sample in samples if type(sample) is not InvalidSample]

    def counters(self) -> dict[str, int]:
        """The library's own counts."""
        lost = self._reader.get_sample_lost_status()
        rejected = self._reader.get_sample_rejected_status()
        return {"lost": int(lost.total_count), "rejected": int(rejected.total_count)}

    def describe(self) -> dict[str, Any]:
        """The effective quality of service, read back."""
        return _effective_qos(self._reader, reliable_by_default=False)

    def close(self) -> None:
        """Releases the entities."""
        self.condition = self._reader = self._topic = self._participant = None


class CycloneWaitset:
    """Conditions of readers, and one that ends a wait."""

    def __init__(self, participant: Any, readers: Sequence[CycloneReader]) -> None:
        self._waitset: Any = WaitSet(participant)
        self._guard: Any = GuardCondition(participant)
        self._waitset.attach(self._guard)
        for reader in readers:
            self._waitset.attach(reader.condition)
        self._triggered = False

    def wait(self, until_ns: int | None) -> bool:
        """Returns at once while data is left untaken. The package only has relative timeouts."""
        left_ns = LONGEST_WAIT_NS
        if until_ns is not None:
            left_ns = min(max(until_ns - time.monotonic_ns(), 0), LONGEST_WAIT_NS)
        came = bool(self._waitset.wait(left_ns))
        if self._triggered:
            self._triggered = False
            self._guard.set(False)
        return came

    def trigger(self) -> None:
        """Ends one wait. In this order, so that the condition is never left set."""
        self._guard.set(True)
        self._triggered = True

    def close(self) -> None:
        """Releases the entities."""
        self._waitset = self._guard = None


def _domain(number: int, xml: str) -> Any:
    if not xml:
        return None
    try:
        return Domain(number, xml)
    except DDSException as error:
        if error.code == DDSException.DDS_RETCODE_PRECONDITION_NOT_MET:
            return None
        raise


def _settings(profile: str, options: Mapping[str, Any]) -> dict[str, int]:
    """The elements to configure. Raises AdapterError."""
    found = dict(MATCHED) if profile == "matched" else {}
    for key, value in options.items():
        if key in ELEMENTS and type(value) is int and 1 <= value <= ELEMENTS[key][2]:
            found[key] = value
        else:
            raise AdapterError(
                f"{NAME}: option {key}: {value!r} is not known or out of bounds; known: {', '.join(ELEMENTS)}"
            )
    return found


def _xml(settings: Mapping[str, int], address: str | None) -> str:
    """The configuration document; empty if nothing is configured. address: of the interface to use."""
    general = f'<Interfaces><NetworkInterface address="{address}"/></Interfaces>' if address else ""
    general += "".join(
        f"<{tag}>{settings[option]}B</{tag}>"
        for option, tag in (("max_message_size", "MaxMessageSize"), ("fragment_size", "FragmentSize"))
        if option in settings
    )
    inside = f"<General>{general}</General>" if general else ""
    if "socket_receive_buffer" in settings:
        size = settings["socket_receive_buffer"]
        inside += f'<Internal><SocketReceiveBufferSize max="{size}B"/></Internal>'
    return f'<CycloneDDS><Domain id="any">{inside}</Domain></CycloneDDS>' if inside else ""


def _type(name: str, size: int) -> Any:
    """The message class, one for each type, as in an application."""
    return _bytes_type() if name == "bytes" else _fixed_type(size)


@cache
def _bytes_type() -> Any:
    """As the vendor's IDL compiler declares it; final, without a key."""
    return final(make_idl_struct("Bytes", "lagometer::Bytes", {"data": sequence[uint8]}))


@cache
def _fixed_type(size: int) -> Any:
    """As the vendor's IDL compiler declares it; final, without a key."""
    if size not in FIXED_BYTES:
        raise AdapterError(f"{NAME}: the type fixed exists with {', '.join(map(str, FIXED_BYTES))} bytes")
    return final(make_idl_struct(f"Fixed{size}", f"lagometer::Fixed{size}", {"data": array[uint8, size]}))


def _qos(endpoint: EndpointConfiguration, *, writes: bool) -> Any:
    """The requested policies; the rest stays as the vendor ships it."""
    qos = endpoint.qos
    # CDR version 1: the older library of the adapter `cyclonedds` only understands this.
    policies: list[Any] = [Policy.DataRepresentation(use_cdrv0_representation=True)]
    if qos.reliability == "reliable":
        policies.append(Policy.Reliability.Reliable(max_blocking_time=qos.blocking_ns_max))
    elif qos.reliability == "best_effort":
        policies.append(Policy.Reliability.BestEffort)
    history = Policy.History.KeepAll if qos.history == "keep_all" else Policy.History.KeepLast(qos.depth or 1)
    if qos.history is not None or qos.depth is not None:
        policies.append(history)
    if qos.durability == "transient_local":
        policies.append(Policy.Durability.TransientLocal)
        if writes:
            policies.append(Policy.DurabilityService(0, history, UNLIMITED, UNLIMITED, UNLIMITED))
    elif qos.durability == "volatile":
        policies.append(Policy.Durability.Volatile)
    return Qos(*policies)


def _effective_qos(entity: Any, *, reliable_by_default: bool) -> dict[str, Any]:
    """The effective values where they differ from the standard's default."""
    qos = entity.get_qos()
    found: dict[str, tuple[Any, Any]] = {}
    reliable = Policy.Reliability.BestEffort not in qos
    words = {True: "RELIABLE", False: "BEST_EFFORT"}
    found["reliability"] = words[reliable], words[reliable_by_default]
    if reliable:
        found["reliability.max_blocking_time_ns"] = (
            qos[Policy.Reliability].max_blocking_time,
            BLOCKING_NS_DEFAULT,
        )
    keeps_all = Policy.History.KeepAll in qos
    found["history"] = ("KEEP_ALL" if keeps_all else "KEEP_LAST"), "KEEP_LAST"
    if not keeps_all:
        found["history.depth"] = qos[Policy.History].depth, 1
    kept = Policy.Durability.TransientLocal in qos
    found["durability"] = ("TRANSIENT_LOCAL" if kept else "VOLATILE"), "VOLATILE"
    settings = {
        key: {"value": value, "default": usual} for key, (value, usual) in found.items() if value != usual
    }
    return {"settings": settings, "paste": []}
