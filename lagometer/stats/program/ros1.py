# SPDX-License-Identifier: Apache-2.0
"""Which message is which in programs of roscpp, the client library of ROS 1: by where its bytes lie.

ROS 1 stamps no time on its messages. But the buffer that `publish` fills is the one that `send` gets, later
and on another thread, and it is not freed before. Likewise `recv` fills the buffer that the message's
deserialiser gets. In between, a message is known by its connection and the number of bytes before it. Within
a process the deserialiser gets the publisher's buffer, or the message itself. Nothing is guessed: a message
without such a way is one that no probed program wrote, and one that was published again before it arrived may
be either.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lagometer.stats.program.messages import Joined, Taken, Takes, Writes
from lagometer.stats.trial.calls import Carried, Message, Process, Stream
from lagometer.stats.trial.routes import Route
from lagometer.store import probes
from lagometer.store.probes import ProbeLog

LENGTH_BYTES = 4  # before each message on a connection of TCPROS

Place = tuple[int, int]  # a connection, and how many of its bytes precede a message's body


@dataclass(frozen=True)
class Published:
    """One call that published. address: of the serialised message, or of one that was not serialised."""

    begin_ns: int
    address: int
    is_object: bool
    message: Message


@dataclass(frozen=True)
class Arrival:
    """One message that got a deserialiser. message: None if no probed program published it, or if it may be
    `several`. place: None if it did not leave its process."""

    begin_ns: int
    message: Message | None = None
    place: Place | None = None
    several: tuple[Message, ...] = ()


@dataclass
class Ros1:
    """The messages of all programs of roscpp. Create it with `ros1_of`.

    streams: of the publishers. sizes: payload bytes of each message. arrivals: by program and deserialiser,
    in order of time. places: by program and subscriber, where the messages that it took had been received.
    """

    processes: Sequence[Process]
    streams: frozenset[int]
    sizes: dict[Message, int] = field(default_factory=dict)
    senders: dict[int, int] = field(default_factory=dict)  # the program that sends, by connection
    arrivals: dict[tuple[int, int], list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    places: dict[tuple[int, int], dict[Message, Place]] = field(default_factory=lambda: defaultdict(dict))
    _known: dict[tuple[int, int], Mapping[int, Stream]] = field(default_factory=dict)

    def join(self, takes: Takes) -> Joined:
        """Finds the publisher's message for each message that a subscriber took."""
        endpoint, found = takes.endpoint, defaultdict[int, list[tuple[int, int]]](list)
        strange = ambiguous = 0
        unsure = defaultdict[int, set[int]](set)
        for index, deserialiser in enumerate(takes.deserialisers.tolist()):
            arrival = _last(self.arrivals[endpoint.program, deserialiser], int(takes.begin_ns[index]))
            if arrival is None or arrival.message is None:
                several = arrival.several if arrival is not None else ()
                strange, ambiguous = strange + (not several), ambiguous + bool(several)
                for stream, sequence in several:
                    unsure[stream].add(sequence)
                continue
            stream, sequence = arrival.message
            found[stream].append((sequence, index))
            if arrival.place is not None:
                self.places[endpoint.program, endpoint.object][arrival.message] = arrival.place
        by_stream = {}
        for stream, pairs in found.items():
            sequences, indices = np.array(pairs, dtype=np.int64).T
            by_stream[stream] = Taken(sequences, takes.taken_ns[indices], takes.cpus[indices])
        return Joined(endpoint, by_stream, strange, ambiguous, unsure)

    def routes(self, joined: Joined, stream: int) -> Mapping[Message, Route]:
        """By message, the calls that sent and received it. Empty within a process."""
        program = joined.endpoint.program
        places = self.places.get((program, joined.endpoint.object), {})
        by_message = {}
        for message, (connection, offset) in places.items():
            sent = self._stream(self.senders[connection], probes.SEND, connection)
            received = self._stream(program, probes.RECEIVE, connection)
            if message[0] != stream or sent is None or received is None:
                continue
            last = offset + self.sizes[message] - 1
            sending = (sent.call_with(offset - LENGTH_BYTES), sent.call_with(last))
            receiving = received.call_with(last)
            by_message[message] = Route(
                [Carried(call) for call in sending if call is not None],
                [Carried(receiving)] if receiving is not None else [],
            )
        return by_message

    def _stream(self, program: int, kind: int, connection: int) -> Stream | None:
        return self._streams(program, kind).get(connection)

    def _streams(self, program: int, kind: int) -> Mapping[int, Stream]:
        known = self._known.get((program, kind))
        if known is None:
            streams = self.processes[program].streams(kind)
            known = {connection: stream for (_, connection), stream in streams.items()}
            self._known[program, kind] = known
        return known


def ros1_of(writes: Sequence[Writes], logs: Sequence[ProbeLog], processes: Sequence[Process]) -> Ros1:
    """Follows all messages of roscpp."""
    sizes: dict[Message, int] = {}
    published = [_published(writes, program, log, sizes) for program, log in enumerate(logs)]
    streams = frozenset(call.message[0] for calls in published for call in calls)
    found = Ros1(processes, streams, sizes)
    sent: dict[Place, Message] = {}
    for program, (log, calls) in enumerate(zip(logs, published, strict=True)):
        for place, message in _sent(log, calls):
            if sent.setdefault(place, message) == message:
                found.senders[place[0]] = program
    for program, (log, calls) in enumerate(zip(logs, published, strict=True)):
        for deserialiser, arrival in _arrivals(log, calls, sent):
            found.arrivals[program, deserialiser].append(arrival)
    return found


def _published(
    writes: Sequence[Writes], program: int, log: ProbeLog, sizes: dict[Message, int]
) -> list[Published]:
    """What a program published, in the order of the calls' entry; adds the sizes."""
    keys, owners = _buffers(log, probes.API_WRITE)
    buffers = dict(zip(owners.tolist(), keys, strict=True))
    calls = []
    for writer in writes:
        if writer.endpoint.program != program:
            continue
        for sequence, index in enumerate(writer.indices.tolist()):
            if index not in buffers:
                break  # of another middleware
            message = (writer.stream, sequence)
            call, key = log.calls[index], buffers[index]
            is_object = bool(key["first_fragment"])
            calls.append(Published(int(call["begin_ns"]), int(key["number"]), is_object, message))
            if int(key["payload_bytes"]) >= LENGTH_BYTES:
                sizes[message] = int(key["payload_bytes"]) - LENGTH_BYTES
    return sorted(calls, key=_begin)


def _sent(log: ProbeLog, published: Sequence[Published]) -> Iterator[tuple[Place, Message]]:
    """Where on a connection the body of each message begins that was sent."""
    buffers = _by_address(published, is_object=False)
    keys, owners = _buffers(log, probes.SEND)
    for key, owner in zip(keys, owners.tolist(), strict=True):
        call = log.calls[owner]
        source = _last_begun(buffers.get(int(key["number"]), []), int(call["begin_ns"]))
        if source is not None and int(call["connection"]):
            yield (int(call["connection"]), int(call["object"]) + LENGTH_BYTES), source.message


def _arrivals(
    log: ProbeLog, published: Sequence[Published], sent: Mapping[Place, Message]
) -> Iterator[tuple[int, Arrival]]:
    """Each message that got a deserialiser, with the deserialiser's number, in order of time."""
    received = _received(log)
    buffers, objects = _by_address(published, is_object=False), _by_address(published, is_object=True)
    used: dict[int, int] = defaultdict(int)  # by address, how many of the objects there have arrived
    keys, owners = _buffers(log, probes.ROS1_RECEIVED)
    for key, owner in zip(keys, owners.tolist(), strict=True):
        call, address = log.calls[owner], int(key["number"])
        begin_ns, deserialiser = int(call["begin_ns"]), int(call["object"])
        if key["first_fragment"]:
            at = objects.get(address, [])
            until = bisect_right(at, begin_ns, key=_begin)
            candidates = tuple(each.message for each in at[used[address] : until])
            if not candidates and until:  # it was among the last several
                candidates = (at[until - 1].message,)
                yield deserialiser, Arrival(begin_ns, several=candidates)
                continue
            used[address] = until
            message = candidates[0] if len(candidates) == 1 else None
            yield deserialiser, Arrival(begin_ns, message, several=candidates)
            continue
        own = _last_begun(buffers.get(address, []), begin_ns)
        found = received.place(int(log.threads[owner]), address, int(key["payload_bytes"]), begin_ns)
        if own is not None and (found is None or found[0] < own.begin_ns):
            yield deserialiser, Arrival(begin_ns, own.message)
        elif found is not None and found[1] in sent:
            yield deserialiser, Arrival(begin_ns, sent[found[1]], found[1])
        else:
            yield deserialiser, Arrival(begin_ns)


def _by_address(published: Sequence[Published], *, is_object: bool) -> Mapping[int, list[Published]]:
    by_address: dict[int, list[Published]] = defaultdict(list)
    for call in published:
        if call.address and call.is_object == is_object:  # without an address nobody subscribed
            by_address[call.address].append(call)
    return by_address


@dataclass(frozen=True)
class _Received:
    """The calls that received bytes: by thread and address of the first byte, and by thread, each with the
    times of their return."""

    at: Mapping[tuple[int, int], list[tuple[int, Place]]]
    ends: Mapping[int, list[tuple[int, Place]]]

    def place(self, thread: int, address: int, size: int, until_ns: int) -> tuple[int, Place] | None:
        """When a thread had received the beginning of a message's body, and where that is. A body without
        bytes is not received by any call, but follows its length."""
        calls = self.at.get((thread, address), []) if size else self.ends.get(thread, [])
        index = bisect_right(calls, until_ns, key=_when) - 1
        return calls[index] if index >= 0 else None


def _received(log: ProbeLog) -> _Received:
    at: dict[tuple[int, int], list[tuple[int, Place]]] = defaultdict(list)
    ends: dict[int, list[tuple[int, Place]]] = defaultdict(list)
    keys, owners = _buffers(log, probes.RECEIVE)
    for key, owner in zip(keys, owners.tolist(), strict=True):
        call, thread = log.calls[owner], int(log.threads[owner])
        connection, before, end_ns = int(call["connection"]), int(call["object"]), int(call["end_ns"])
        if connection:
            at[thread, int(key["number"])].append((end_ns, (connection, before)))
            ends[thread].append((end_ns, (connection, before + int(call["result"]))))
    return _Received(at, ends)


def _buffers(log: ProbeLog, kind: int) -> tuple[probes.Records, np.ndarray]:
    """The addresses that calls of a kind had, and the calls, in the order of their return."""
    chosen = (log.keys["kind"] == probes.BUFFER) & (log.calls["call"] == kind)[log.owners]
    return log.keys[chosen], log.owners[chosen]


def _last_begun(calls: Sequence[Published], at_ns: int) -> Published | None:
    place = bisect_right(calls, at_ns, key=_begin) - 1
    return calls[place] if place >= 0 else None


def _last(arrivals: Sequence[Arrival], at_ns: int) -> Arrival | None:
    place = bisect_right(arrivals, at_ns, key=_arrived) - 1
    return arrivals[place] if place >= 0 else None


def _begin(call: Published) -> int:
    return call.begin_ns


def _arrived(arrival: Arrival) -> int:
    return arrival.begin_ns


def _when(call: tuple[int, Place]) -> int:
    return call[0]
