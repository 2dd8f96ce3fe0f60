# SPDX-License-Identifier: Apache-2.0
"""Which calls sent and received each message of a stream, determined from the bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lagometer.stats.trial.calls import Call, Carried, Message, Process, Sample, Stream
from lagometer.store import probes


@dataclass(frozen=True)
class Route:
    """The calls that sent a message and those that received it, each in the order of their return.

    A fragment may be sent again, and a message may be sent to each of several receivers.
    """

    sent: Sequence[Carried]
    received: Sequence[Carried]

    def first(self, publish_ns: int) -> Carried | None:
        """The first call that sent a byte of the message."""
        sent = [carried for carried in self.sent if carried.call.end_ns >= publish_ns]
        return min(sent, key=_begin, default=None)

    def completed(self, taken_ns: int) -> Carried | None:
        """The call that brought the last byte; None if not all bytes were seen arriving before the take."""
        missing: set[int] | None = None
        for carried in self.received:
            if carried.call.end_ns > taken_ns:
                return None
            if not carried.fragments:
                return carried
            if missing is None:
                missing = set(range(1, carried.all_fragments + 1))
            missing -= set(carried.fragments)
            if not missing:
                return carried
        return None

    def last_for(self, received: Carried | None) -> Call | None:
        """The last call that sent what this call received."""
        if received is None:
            return None
        sent = [
            carried
            for carried in self.sent
            if carried.call.begin_ns < received.call.end_ns and carried.fragments == received.fragments
        ]
        return max(sent, key=_begin).call if sent else None


def routes(
    sender: Process | None,
    receiver: Process | None,
    stream: int,
    known: dict[Sample, Message],
    size_of: Callable[[int], int] | None = None,
) -> Mapping[Message, Route]:
    """By message, its route from one process to another. size_of: payload bytes, by sequence."""
    sent = sender.carried(probes.SEND, known) if sender is not None else {}
    received = receiver.carried(probes.RECEIVE, known) if receiver is not None else {}
    by_message = {
        message: Route(sent.get(message, []), received.get(message, []))
        for message in {*sent, *received}
        if message[0] == stream
    }
    if by_message or sender is None or receiver is None:
        return by_message
    return _over_streams(sender, receiver, stream, size_of)


def _over_streams(
    sender: Process, receiver: Process, stream: int, size_of: Callable[[int], int] | None
) -> Mapping[Message, Route]:
    """The same for byte streams, which have no message borders: by how many bytes went before."""
    pair = _matching(sender.streams(probes.SEND), receiver.streams(probes.RECEIVE), stream)
    if pair is None:
        return {}
    by_message = {}
    sent, received, is_one = pair
    extents = sent.extents(size_of)
    received_extents = extents if is_one else received.extents(size_of)
    for message, (begin, end) in extents.items():
        sending_calls = [sent.call_with(begin), sent.call_with(end - 1)]
        receiving_call = (
            received.call_with(received_extents[message][1] - 1) if message in received_extents else None
        )
        by_message[message] = Route(
            [Carried(call) for call in sending_calls if call is not None],
            [Carried(receiving_call)] if receiving_call is not None else [],
        )
    return by_message


def _matching(
    sent: Mapping[tuple[int, int], Stream], received: Mapping[tuple[int, int], Stream], stream: int
) -> tuple[Stream, Stream, bool] | None:
    """The sockets a stream is sent and received on, and whether they are the two ends of one connection; with
    a broker in between they are not. None if several match."""
    senders = {key: socket for key, socket in sent.items() if _carries(socket, stream)}
    pairs = [
        (ours, theirs)
        for (_, connection), ours in senders.items()
        for (_, other), theirs in received.items()
        if (connection == other if connection and other else _carries(theirs, stream))
    ]
    if len(pairs) == 1:
        return pairs[0][0], pairs[0][1], True
    receivers = [socket for socket in received.values() if _carries(socket, stream)]
    if not pairs and len(senders) == len(receivers) == 1:
        return next(iter(senders.values())), receivers[0], False
    return None


def _carries(socket: Stream, stream: int) -> bool:
    return any(message[0] == stream for message in socket.begins)


def _begin(carried: Carried) -> int:
    return carried.call.begin_ns
