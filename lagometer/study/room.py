# SPDX-License-Identifier: Apache-2.0
"""The most memory that a cell's messages need: for daemons that own it and reserve it in advance."""

from __future__ import annotations

from collections.abc import Mapping

from lagometer.study.cell import Cell

MESSAGES = "messages_in_flight"
MESSAGE_BYTES = "message_room_bytes"
HEADERS_BYTES = 256  # what a middleware may add to a payload
ALIGNMENT_BYTES = 64
ROOM_BYTES_MAX = 1 << 30  # for all messages in flight
MESSAGES_MIN = 64
MANY_MESSAGES = 16_384
MANY_BYTES_MAX = 32 << 20
KEEP_ALL_DEPTH = 256  # keep_all has a limit; a daemon must support this depth
UNKNOWN_ROOM: Mapping[str, int] = {MESSAGES: 1024, MESSAGE_BYTES: 65_536 + HEADERS_BYTES}


def room_for(cell: Cell) -> Mapping[str, int]:
    """Returns how many messages can exist at once, within 1 GiB, and the bytes of each with its headers.

    A reader's queue may be full twice, before and after the middleware's own thread, in addition to a batch
    that is taken. A writer fills one message and has some in flight, or keeps some for late joiners.
    """
    messages, largest_bytes = 0, 1
    for topic, traffic in cell.traffic.items():
        depth = traffic.depth if traffic.history == "keep_last" else KEEP_ALL_DEPTH
        readers = len({rule.node for rule in cell.graph.rules if topic in rule.subscribes})
        retained = depth if traffic.durability == "transient_local" else 0
        writers = sum(stream.topic == topic for stream in cell.graph.streams)
        messages += readers * (2 * depth + 16) + writers * (8 + retained)
        largest_bytes = max(largest_bytes, traffic.payload_bytes)
    message_bytes = _with_headers(largest_bytes)
    messages_max = max(MESSAGES_MIN, ROOM_BYTES_MAX // message_bytes)
    return {MESSAGES: min(max(messages, MESSAGES_MIN), messages_max), MESSAGE_BYTES: message_bytes}


def room_of(payload_bytes: int) -> Mapping[str, int]:
    """Returns the room for payloads of this size if their number is unknown: 16,384 messages within 32 MiB,
    and at least 64."""
    message_bytes = _with_headers(payload_bytes)
    messages = max(MESSAGES_MIN, min(MANY_MESSAGES, MANY_BYTES_MAX // message_bytes))
    return {MESSAGES: messages, MESSAGE_BYTES: message_bytes}


def _with_headers(payload_bytes: int) -> int:
    return -(-payload_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + HEADERS_BYTES
