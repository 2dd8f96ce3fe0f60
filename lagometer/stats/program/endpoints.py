# SPDX-License-Identifier: Apache-2.0
"""Who writes and who reads: the writers and readers of programs, as their probes saw them being created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lagometer.store import probes
from lagometer.store.probes import ProbeLog, Records

UNKNOWN_TOPIC = "?"  # of a writer or reader whose creation was not seen
# The middleware's own topics, which announce other endpoints to an application.
OWN_TYPES = ("org::eclipse::cyclonedds::builtin::",)
# Fast DDS hands out a topic, and a reader made from it uses a part of that object.
TOPIC_OBJECT_BYTES = 512
FOREVER_NS = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Qos:
    """The settings in force for a writer or reader, as its middleware reports them."""

    reliability: str
    history: str
    depth: int
    durability: str

    def __str__(self) -> str:
        history = f"{self.history} {self.depth}" if self.history == "keep_last" else self.history
        return f"{self.reliability}, {history}, {self.durability}"


@dataclass(frozen=True)
class Endpoint:
    """A writer or reader of a program. program: its index. object: as in its calls, from since_ns until
    until_ns; after it was destroyed, another one may have the same. guid: may be empty. qos: reliability,
    history, depth and durability; None if they were not seen. by_rmw: of ROS 2 over middleware whose calls
    the probe does not know."""

    program: int
    object: int
    writes: bool
    topic: str = UNKNOWN_TOPIC
    type: str = ""
    guid: bytes = b""
    qos: Qos | None = None
    since_ns: int = 0
    until_ns: int = FOREVER_NS
    by_rmw: bool = False

    @property
    def call(self) -> int:
        """The kind of the calls that write to it or take from it."""
        if self.by_rmw:
            return probes.RMW_PUBLISH if self.writes else probes.RMW_TAKE
        return probes.API_WRITE if self.writes else probes.API_TAKE

    def calls(self, log: ProbeLog) -> npt.NDArray[np.bool_]:
        """Which calls wrote to it or took from it."""
        begin_ns = log.calls["begin_ns"]
        own = (log.calls["call"] == self.call) & (log.calls["object"] == self.object)
        found: npt.NDArray[np.bool_] = own & (begin_ns >= self.since_ns) & (begin_ns < self.until_ns)
        return found


def endpoints_of(log: ProbeLog, program: int) -> list[Endpoint]:
    """The writers and readers that were used or created, in the order in which they were."""
    kinds = log.calls["call"]
    endpoints: dict[tuple[bool, int], Endpoint] = {}
    former: list[Endpoint] = []
    internal: set[tuple[bool, int]] = set()
    topics: dict[int, tuple[str, str]] = {}
    declared = np.isin(kinds, (probes.DECLARE_TOPIC, probes.DECLARE_WRITER, probes.DECLARE_READER))
    for index in np.flatnonzero(declared).tolist():
        call, keys = log.calls[index], log.keys[log.owners == index]
        name, type_ = probes.text_of(log, index, 0), probes.text_of(log, index, 1)
        if call["call"] == probes.DECLARE_TOPIC:
            topics[int(call["object"])] = (name, type_)
            continue
        if int(call["connection"]):
            name, type_ = _topic_at(topics, int(call["connection"]))
        key = (call["call"] == probes.DECLARE_WRITER, int(call["object"]))
        if type_.startswith(OWN_TYPES):
            internal.add(key)
            continue
        since_ns = _end_former(endpoints, former, key, int(call["begin_ns"]))
        endpoints[key] = Endpoint(
            program, key[1], key[0], name or UNKNOWN_TOPIC, type_, _guid(keys), _qos(log, index), since_ns
        )
    for kind, writes in ((probes.API_WRITE, True), (probes.API_TAKE, False)):
        for number in np.unique(log.calls["object"][kinds == kind]).tolist():
            if (writes, number) not in internal:
                endpoints.setdefault((writes, number), Endpoint(program, number, writes))
    return [*former, *endpoints.values()] or _endpoints_of_ros2(log, program)


def _endpoints_of_ros2(log: ProbeLog, program: int) -> list[Endpoint]:
    """The publishers and subscriptions of ROS 2, if its messages have a time: from Jazzy on."""
    kinds = log.calls["call"]
    endpoints: dict[tuple[bool, int], Endpoint] = {}
    former: list[Endpoint] = []
    if not log.calls["result"][kinds == probes.RMW_PUBLISH].all():
        return []
    for kind, writes in ((probes.ROS2_PUBLISHER, True), (probes.ROS2_SUBSCRIPTION, False)):
        for index in np.flatnonzero(kinds == kind).tolist():
            number = int(log.calls["object"][index])
            topic = probes.text_of(log, index, 0) or UNKNOWN_TOPIC
            begin_ns = int(log.calls["begin_ns"][index])
            since_ns = _end_former(endpoints, former, (writes, number), begin_ns)
            endpoints[writes, number] = Endpoint(
                program, number, writes, topic, since_ns=since_ns, by_rmw=True
            )
    return [*former, *endpoints.values()]


def _end_former(
    endpoints: Mapping[tuple[bool, int], Endpoint],
    former: list[Endpoint],
    key: tuple[bool, int],
    begin_ns: int,
) -> int:
    """Ends the endpoint that had the same object before, if any. Returns since when the new one has it."""
    if key not in endpoints:
        return 0
    former.append(replace(endpoints[key], until_ns=begin_ns))
    return begin_ns


def names_of(programs: Sequence[Sequence[str]]) -> list[str]:
    """The name of each program: its ROS node's, its script's, or its own; numbered if several are equal."""
    counts: dict[str, int] = {}
    names = []
    for words in programs:
        name = _name(words)
        counts[name] = counts.get(name, 0) + 1
        names.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return names


def _name(words: Sequence[str]) -> str:
    if not words:
        return "program"
    for word in words:
        if word.startswith(("__node:=", "__name:=")):  # of ROS 2, of ROS 1
            return word.partition(":=")[2]
    name = _last_part(words[0])
    if name.startswith(("python", "sh", "bash", "dash", "perl", "ruby", "node")):
        file = next((word for word in words[1:] if not word.startswith("-") or word == "-c"), name)
        name = name if file == "-c" else _last_part(file)  # an inline script has no name
    return name or "program"


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _guid(keys: Records) -> bytes:
    endpoint = keys[keys["kind"] == probes.ENDPOINT]
    return bytes(endpoint[0]["writer"]) if len(endpoint) else b""


def _qos(log: ProbeLog, call: int) -> Qos | None:
    words = probes.text_of(log, call, 2).split()
    if len(words) != 4 or not words[2].removeprefix("-").isdecimal():
        return None
    return Qos(words[0], words[1], int(words[2]), words[3])


def _topic_at(topics: Mapping[int, tuple[str, str]], address: int) -> tuple[str, str]:
    """The topic at this address, or the topic whose object contains it."""
    below = max((start for start in topics if start <= address), default=None)
    if below is None or address - below > TOPIC_OBJECT_BYTES:
        return UNKNOWN_TOPIC, ""
    return topics[below]
