# SPDX-License-Identifier: Apache-2.0
"""Programs of roscpp: a message is known by where its bytes lie, and by those before it on its connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from lagometer.stats.program.edges import Programs, programs_of
from lagometer.stats.program.realtime import ClockPair, RealtimeClock
from lagometer.store import probes
from lagometer.store.probes import ProbeLog, decode, encode

CLOCK = RealtimeClock(ClockPair(0, 0, 100), ClockPair(10**10, 10**10, 100))
PUBLISHER, QUEUE = 0x111, 0x222
MAIN, POLL = 7, 8  # threads
CONNECTION, HEADER_BYTES = 0xC0, 200  # bytes of the handshake, before the first message
BYTES = 104  # of a message with its length

Call = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]


def call(
    kind: int, begin_ns: int, end_ns: int, address: int | None = None, size: int = 0, **more: int
) -> Call:
    keys = [] if address is None else [{"kind": probes.BUFFER, "number": address, "payload_bytes": size}]
    return {"call": kind, "begin_ns": begin_ns, "end_ns": end_ns, **more}, keys


def published(begin_ns: int, address: int, size: int = BYTES, publisher: int = PUBLISHER) -> Call:
    return call(probes.API_WRITE, begin_ns, begin_ns + 100, address, size, object=publisher)


def moved(
    kind: int, begin_ns: int, before: int, size: int, address: int, connection: int = CONNECTION
) -> Call:
    stream = {"descriptor": 5, "is_stream": 1, "connection": connection, "object": before, "result": size}
    return call(kind, begin_ns, begin_ns + 50, address, **stream)


def arrived(begin_ns: int, deserialiser: int, address: int, size: int = BYTES - 4) -> Call:
    return call(probes.ROS1_RECEIVED, begin_ns, begin_ns + 10, address, size, object=deserialiser)


def took(end_ns: int, deserialiser: int, queue: int = QUEUE) -> Call:
    return call(probes.API_TAKE, end_ns - 20, end_ns, object=queue, connection=deserialiser)


def declared(kind: int, number: int, begin_ns: int = 1, topic: str = "/numbers") -> Call:
    texts = [
        {"text": index, "bytes": len(text), "characters": text.ljust(46, b"\0")}
        for index, text in enumerate((topic.encode(), b"std_msgs/String"))
    ]
    return {"call": kind, "begin_ns": begin_ns, "end_ns": begin_ns + 1, "object": number}, texts


def program(name: str, main: list[Call], poll: list[Call]) -> ProbeLog:
    return decode(encode({MAIN: main, POLL: poll}, process=1, program=[f"/usr/bin/{name}"]))


def talker(main: list[Call], poll: list[Call]) -> ProbeLog:
    return program("talker", [declared(probes.DECLARE_WRITER, PUBLISHER), *main], poll)


def listener(main: list[Call], poll: list[Call]) -> ProbeLog:
    return program("listener", [declared(probes.DECLARE_READER, QUEUE), *main], poll)


def sent(number: int, begin_ns: int, address: int) -> Call:
    return moved(probes.SEND, begin_ns, HEADER_BYTES + number * BYTES, BYTES, address)


def received(number: int, begin_ns: int, address: int) -> list[Call]:
    """The length, then the message."""
    before = HEADER_BYTES + number * BYTES
    return [
        moved(probes.RECEIVE, begin_ns, before, 4, 0x10),
        moved(probes.RECEIVE, begin_ns + 60, before + 4, BYTES - 4, address),
    ]


def found(talks: ProbeLog, listens: ProbeLog) -> Programs:
    return programs_of([talks, listens], CLOCK)


def ways(programs: Programs) -> list[tuple[int, int, int]]:
    """Each delivered message: its sequence, when it was published, and when it was taken."""
    (edge,) = programs.edges
    came = edge.samples.filter(pl.col("outcome") == "delivered")
    return list(came.select("sequence", "publish_ns", "taken_ns").iter_rows())


def test_a_message_is_followed_from_its_buffer_to_the_deserialiser() -> None:
    talks = talker(
        [published(1_000, 0xA0), published(5_000, 0xA1)], [sent(0, 1_200, 0xA0), sent(1, 5_200, 0xA1)]
    )
    listens = listener(
        [took(2_000, 0xD0), took(6_000, 0xD1)],
        [
            *received(0, 1_300, 0xB0),
            arrived(1_500, 0xD0, 0xB0),
            *received(1, 5_300, 0xB1),
            arrived(5_500, 0xD1, 0xB1),
        ],
    )
    programs = found(talks, listens)
    (edge,) = programs.edges
    assert (edge.name, edge.writer.type) == ("talker→listener /numbers", "std_msgs/String")
    assert (edge.begins, edge.ends) == ("publish", "callback")
    assert ways(programs) == [(0, 1_000, 2_000), (1, 5_000, 6_000)]
    assert edge.samples["payload_bytes"].to_list() == [BYTES - 4] * 2
    assert edge.followed == 2
    layers = edge.layers.filter(pl.col("sequence") == 0)
    assert (layers["end_ns"] - layers["begin_ns"]).sum() == 1_000
    assert layers.row(-1, named=True)["layer"] == "take"
    assert (programs.strange, programs.ambiguous) == (0, 0)


def test_a_buffer_that_is_used_again_belongs_to_the_last_one_that_was_published_in_it() -> None:
    """The second message of the same content lies where the first lay, and is sent by the same connection."""
    talks = talker(
        [published(1_000, 0xA0), published(5_000, 0xA0)], [sent(0, 1_200, 0xA0), sent(1, 5_200, 0xA0)]
    )
    listens = listener(
        [took(7_000, 0xD0), took(7_500, 0xD1)],
        [
            *received(0, 1_300, 0xB0),
            arrived(1_500, 0xD0, 0xB0),
            *received(1, 5_300, 0xB0),
            arrived(5_500, 0xD1, 0xB0),
        ],
    )
    assert ways(found(talks, listens)) == [(0, 1_000, 7_000), (1, 5_000, 7_500)]


def test_what_the_publishers_or_the_subscribers_queue_dropped_is_lost() -> None:
    # 1 was never sent; 3 arrived, and 4 took its place in the subscriber's queue.
    talks = talker(
        [published(1_000 * (1 + number), 0xA0 + number) for number in range(6)],
        [
            sent(place, 1_000 * (1 + number) + 200, 0xA0 + number)
            for place, number in enumerate((0, 2, 3, 4, 5))
        ],
    )
    poll, main = [], []
    for place, number in enumerate((0, 2, 3, 4, 5)):
        at = 1_000 * (1 + number) + 300
        poll += [*received(place, at, 0xB0), arrived(at + 150, 0xD0 + number, 0xB0)]
        main += [took(at + 500, 0xD0 + number)] if number != 3 else []
    programs = found(talks, listener(main, poll))
    (edge,) = programs.edges
    assert edge.samples["outcome"].to_list() == [
        *("delivered", "lost", "delivered"),
        *("lost", "delivered", "delivered"),
    ]
    assert [sequence for sequence, _, _ in ways(programs)] == [0, 2, 4, 5]


def test_a_message_in_several_pieces_ends_with_its_last_byte() -> None:
    whole = HEADER_BYTES
    talks = talker(
        [published(1_000, 0xA0)],
        [
            moved(probes.SEND, 1_200, whole, 60, 0xA0),
            moved(probes.SEND, 1_400, whole + 60, BYTES - 60, 0xA0 + 60),
        ],
    )
    listens = listener(
        [took(3_000, 0xD0)],
        [
            moved(probes.RECEIVE, 1_300, whole, 4, 0x10),
            moved(probes.RECEIVE, 1_360, whole + 4, 56, 0xB0),
            moved(probes.RECEIVE, 1_500, whole + 60, BYTES - 60, 0xB0 + 56),
            arrived(1_600, 0xD0, 0xB0),
        ],
    )
    (edge,) = found(talks, listens).edges
    layers = edge.layers.with_columns(pl.col("layer").cast(pl.String))
    send = layers.filter(pl.col("layer") == "send").row(0, named=True)
    assert (send["begin_ns"], send["end_ns"]) == (1_200, 1_400)
    transport = layers.filter(pl.col("layer") == "transport").row(0, named=True)
    assert transport["begin_ns"] == 1_400


def test_an_empty_message_follows_its_length() -> None:
    talks = talker([published(1_000, 0xA0, 4)], [moved(probes.SEND, 1_200, HEADER_BYTES, 4, 0xA0)])
    listens = listener(
        [took(2_000, 0xD0)],
        [moved(probes.RECEIVE, 1_300, HEADER_BYTES, 4, 0x10), arrived(1_500, 0xD0, 0xB0, 0)],
    )
    programs = found(talks, listens)
    assert ways(programs) == [(0, 1_000, 2_000)]
    assert programs.edges[0].samples["payload_bytes"].to_list() == [0]


def both(*of_poll: Call, main: Sequence[Call]) -> Programs:
    """A program that publishes and subscribes; its thread that receives also hands over."""
    declarations = [declared(probes.DECLARE_WRITER, PUBLISHER), declared(probes.DECLARE_READER, QUEUE)]
    return programs_of([program("both", [*declarations, *main], list(of_poll))], CLOCK)


def test_within_a_process_the_deserialiser_gets_the_publishers_buffer() -> None:
    programs = both(
        arrived(1_500, 0xD0, 0xA0, BYTES),
        arrived(3_500, 0xD0, 0xA0, BYTES),
        main=[published(1_000, 0xA0), took(2_000, 0xD0), published(3_000, 0xA0), took(4_000, 0xD0)],
    )
    assert programs.edges[0].name == "both→both /numbers"
    assert ways(programs) == [(0, 1_000, 2_000), (1, 3_000, 4_000)]


def test_a_buffer_is_what_was_last_put_into_it() -> None:
    """The program receives a message of another program into memory that it had published from."""
    programs = both(
        *received(0, 5_000, 0xA0),
        arrived(5_500, 0xD0, 0xA0),
        main=[published(1_000, 0xA0), took(6_000, 0xD0)],
    )
    assert (programs.strange, list(programs.edges)) == (1, [])


def object_at(made: Call) -> Call:
    """The same, of a message that was not serialised."""
    fields, (key,) = made
    return fields, [{**key, "first_fragment": 1, "payload_bytes": 0}]


def test_a_message_that_is_published_again_before_it_arrives_is_ambiguous() -> None:
    times = (1_000, 2_000, 3_000, 3_100, 5_000)
    arrivals = (1_500, 2_500, 3_500, 3_550, 5_500)
    programs = both(
        *(object_at(arrived(at, 0xD0 + number, 0xA0)) for number, at in enumerate(arrivals)),
        main=[
            *(object_at(published(at, 0xA0)) for at in times),
            *(took(6_000 + 100 * number, 0xD0 + number) for number in range(5)),
        ],
    )
    assert [sequence for sequence, _, _ in ways(programs)] == [0, 1, 4]
    assert (programs.ambiguous, programs.strange) == (2, 0)


@pytest.mark.parametrize("connection", [CONNECTION + 1, 0])
def test_a_message_of_a_program_that_was_not_probed_is_counted_and_belongs_to_no_edge(
    connection: int,
) -> None:
    talks = talker([published(1_000, 0xA0)], [sent(0, 1_200, 0xA0)])
    body = moved(probes.RECEIVE, 1_400, HEADER_BYTES + 4, BYTES - 4, 0xB0, connection)
    listens = listener([took(2_000, 0xD0)], [body, arrived(1_500, 0xD0, 0xB0)])
    programs = found(talks, listens)
    assert (programs.strange, list(programs.edges)) == (1, [])


def test_two_subscribers_in_a_program_share_a_message() -> None:
    other = QUEUE + 1
    talks = talker([published(1_000, 0xA0)], [sent(0, 1_200, 0xA0)])
    listens = listener(
        [declared(probes.DECLARE_READER, other, 2), took(2_000, 0xD0), took(2_500, 0xD0, other)],
        [*received(0, 1_300, 0xB0), arrived(1_500, 0xD0, 0xB0)],
    )
    edges = {edge.name: edge.samples["taken_ns"].to_list() for edge in found(talks, listens).edges}
    assert edges == {"talker→listener /numbers": [2_000], "talker→listener /numbers (2)": [2_500]}


def test_a_subscriber_in_the_place_of_one_that_is_gone_is_another_one() -> None:
    talks = program(
        "talker",
        [
            declared(probes.DECLARE_WRITER, PUBLISHER),
            declared(probes.DECLARE_WRITER, PUBLISHER + 1, 2, "/letters"),
            published(1_000, 0xA0),
            published(5_000, 0xA1, publisher=PUBLISHER + 1),
        ],
        [sent(0, 1_200, 0xA0), moved(probes.SEND, 5_200, 300, BYTES, 0xA1, 0xC1)],
    )
    listens = listener(
        [took(2_000, 0xD0), declared(probes.DECLARE_READER, QUEUE, 3_000, "/letters"), took(6_000, 0xD1)],
        [
            *received(0, 1_300, 0xB0),
            arrived(1_500, 0xD0, 0xB0),
            moved(probes.RECEIVE, 5_360, 304, BYTES - 4, 0xB1, 0xC1),
            arrived(5_500, 0xD1, 0xB1),
        ],
    )
    edges = {edge.name: edge.reader.topic for edge in found(talks, listens).edges}
    assert edges == {"talker→listener /numbers": "/numbers", "talker→listener /letters": "/letters"}
