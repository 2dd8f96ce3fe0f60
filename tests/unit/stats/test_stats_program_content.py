# SPDX-License-Identifier: Apache-2.0
"""Programs of zenoh-c: a message is known by its content, if only one message can have been meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lagometer.stats.program.edges import Programs, programs_of
from lagometer.stats.program.realtime import ClockPair, RealtimeClock
from lagometer.store import probes
from lagometer.store.probes import ProbeLog, decode, encode

CLOCK = RealtimeClock(ClockPair(0, 0, 100), ClockPair(10**10, 10**10, 100))
PUBLISHER, SUBSCRIBER = 0x111, 1
SIZE = 40

Call = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]


def with_content(kind: int, object_: int, begin_ns: int, end_ns: int, content: int) -> Call:
    key = {"kind": probes.CONTENT, "sequence": content, "payload_bytes": SIZE}
    return {"call": kind, "begin_ns": begin_ns, "end_ns": end_ns, "object": object_}, [key]


def put(begin_ns: int, content: int) -> Call:
    return with_content(probes.API_WRITE, PUBLISHER, begin_ns, begin_ns + 100, content)


def got(at_ns: int, content: int) -> Call:
    return with_content(probes.API_TAKE, SUBSCRIBER, at_ns, at_ns, content)


def declared(kind: int, number: int, key: str) -> Call:
    text = {"text": 0, "bytes": len(key), "characters": key.encode().ljust(46, b"\0")}
    return {"call": kind, "begin_ns": 1, "end_ns": 2, "object": number}, [text]


def program(name: str, calls: list[Call]) -> ProbeLog:
    return decode(encode({7: calls}, process=1, program=[f"/usr/bin/{name}"]))


def between(puts: list[Call], gets: list[Call], *others: ProbeLog) -> Programs:
    pub = program("pub", [declared(probes.DECLARE_WRITER, PUBLISHER, "robot/pose"), *puts])
    sub = program("sub", [declared(probes.DECLARE_READER, SUBSCRIBER, "robot/*"), *gets])
    return programs_of([pub, sub, *others], CLOCK)


def outcomes(programs: Programs) -> list[tuple[int, str]]:
    (edge,) = programs.edges
    return list(edge.samples.select("sequence", "outcome").iter_rows())


def test_messages_that_differ_are_known_whatever_their_order() -> None:
    found = between([put(1_000, 0xA), put(1_200, 0xB), put(1_400, 0xC)], [got(2_000, 0xB), got(2_100, 0xA)])
    (edge,) = found.edges
    assert (edge.name, edge.begins, edge.ends) == ("pub→sub robot/pose", "publish", "callback")
    assert edge.samples.select("sequence", "publish_ns", "taken_ns").rows() == [
        (0, 1_000, 2_100),
        (1, 1_200, 2_000),
    ]
    assert edge.samples["payload_bytes"].to_list() == [SIZE, SIZE]
    assert (found.strange, found.ambiguous) == (0, 0)


def test_messages_that_are_alike_are_known_if_each_arrives_before_the_next() -> None:
    times = range(1_000, 6_000, 1_000)
    found = between([put(at, 0xA) for at in times], [got(at + 500, 0xA) for at in times])
    assert found.edges[0].samples["taken_ns"].to_list() == [at + 500 for at in times]
    assert found.ambiguous == 0


def test_what_was_put_again_before_it_arrived_is_ambiguous_and_not_lost() -> None:
    puts = [put(at, content) for at, content in ((1_000, 0xB), (2_000, 0xA), (2_100, 0xA), (5_000, 0xC))]
    found = between(puts, [got(1_500, 0xB), got(3_000, 0xA), got(3_100, 0xA), got(5_500, 0xC)])
    assert found.ambiguous == 2 and found.strange == 0
    assert outcomes(found) == [(0, "delivered"), (3, "delivered")]


def test_what_nobody_got_in_between_is_lost() -> None:
    puts = [put(1_000 * number, number) for number in range(1, 6)]
    found = between(puts, [got(1_500, 1), got(4_500, 4), got(5_500, 5)])
    assert [outcome for _, outcome in outcomes(found)] == [
        "delivered",
        *("lost", "lost"),
        *("delivered", "delivered"),
    ]


def test_one_that_two_programs_put_is_ambiguous() -> None:
    other = program("other", [declared(probes.DECLARE_WRITER, PUBLISHER, "robot/pose"), put(1_100, 0xA)])
    found = between([put(1_000, 0xA), put(3_000, 0xB)], [got(2_000, 0xA), got(3_500, 0xB)], other)
    assert found.ambiguous == 1
    assert outcomes(found) == [(1, "delivered")]


def test_one_that_no_probed_program_put_is_counted() -> None:
    found = between([put(3_000, 0xA)], [got(2_000, 0xA)])  # it came before
    assert (found.strange, list(found.edges)) == (1, [])
