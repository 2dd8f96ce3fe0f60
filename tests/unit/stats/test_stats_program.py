# SPDX-License-Identifier: Apache-2.0
"""Programs under the probe: which message a reader took, what is lost, and what nobody can say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.program.edges import Programs, programs_of
from lagometer.stats.program.endpoints import UNKNOWN_TOPIC, Qos, endpoints_of, names_of
from lagometer.stats.program.realtime import ClockPair, RealtimeClock
from lagometer.store import probes
from lagometer.store.probes import ProbeLog, decode, encode

SINCE_1970_NS = 1_700_000_000_000_000_000
ERROR_NS = 100
CLOCK = RealtimeClock(
    ClockPair(0, SINCE_1970_NS, ERROR_NS), ClockPair(10**10, SINCE_1970_NS + 10**10, ERROR_NS)
)
WRITER, READER = 0x111, 0x222
GUID = bytes(range(16))
OTHER = bytes(range(16, 32))
MAIN, NETWORK = 7, 8  # threads

Call = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]


def texts(*values: str) -> list[Mapping[str, Any]]:
    return [
        {"text": number, "bytes": len(part), "characters": part.ljust(46, b"\0")}
        for number, value in enumerate(values)
        for part in [value.encode()[at : at + 46] for at in range(0, len(value), 46)]
    ]


def declared(
    kind: int,
    number: int,
    topic: str = "rt/chatter",
    type_: str = "String",
    guid: bytes = GUID,
    **more: int,
) -> Call:
    endpoint = {"kind": probes.ENDPOINT, "writer": guid}
    return (
        {"call": kind, "begin_ns": 1, "end_ns": 2, "object": number, **more},
        [endpoint, *texts(topic, type_)],
    )


def wrote(begin_ns: int, end_ns: int, number: int = WRITER, given_ns: int = 0) -> Call:
    return (
        {
            "call": probes.API_WRITE,
            "begin_ns": begin_ns,
            "end_ns": end_ns,
            "object": number,
            "connection": given_ns,
        },
        [],
    )


def took(end_ns: int, *stamped_ns: int, number: int = READER, writer: bytes = bytes(16)) -> Call:
    """writer: the GUID that the middleware reports; zeros: none."""
    keys = [{"kind": probes.TAKEN, "number": SINCE_1970_NS + each, "writer": writer} for each in stamped_ns]
    return {"call": probes.API_TAKE, "begin_ns": end_ns - 5, "end_ns": end_ns, "object": number}, keys


def moved(kind: int, begin_ns: int, end_ns: int, number: int, stamped_ns: int, payload_bytes: int) -> Call:
    key = {
        "kind": probes.DATA,
        "writer": GUID,
        "number": number,
        "stream": probes.STREAM_IS_TIME,
        "sequence": SINCE_1970_NS + stamped_ns,
        "payload_bytes": payload_bytes,
    }
    return {"call": kind, "begin_ns": begin_ns, "end_ns": end_ns, "descriptor": 3}, [key]


def program(calls: Iterable[Call], name: str, **of_threads: list[Call]) -> ProbeLog:
    threads = {MAIN: list(calls), **{int(thread[1:]): each for thread, each in of_threads.items()}}
    return decode(encode(threads, process=1, program=[f"/usr/bin/{name}"]))


def pair(
    writes: Sequence[Call],
    takes: Sequence[Call],
    topic: str = "rt/chatter",
    clock: RealtimeClock = CLOCK,
    **more: Any,
) -> Programs:
    talker = program([declared(probes.DECLARE_WRITER, WRITER, topic), *writes], "talker")
    listener = program([declared(probes.DECLARE_READER, READER, topic), *takes], "listener")
    return programs_of([talker, listener], clock, **more)


def test_a_message_is_the_one_that_was_being_written_at_the_time_that_it_bears() -> None:
    found = pair(
        [wrote(1_000, 2_000), wrote(11_000, 12_000), wrote(21_000, 22_000)],
        [took(3_000, 1_500), took(13_500, 11_001), took(29_000, 21_999)],
    )
    (edge,) = found.edges
    assert (edge.name, edge.writer.topic, edge.writer.type) == (
        "talker→listener /chatter",
        "rt/chatter",
        "String",
    )
    assert edge.samples["sequence"].to_list() == [0, 1, 2]
    assert (edge.samples["taken_ns"] - edge.samples["publish_ns"]).to_list() == [2_000, 2_500, 8_000]
    assert (edge.figures["n"], edge.figures["lost"]) == (3, 0)
    assert edge.figures["rate_achieved_hz"] == 1e9 * 2 / 20_000
    assert (found.strange, found.ambiguous) == (0, 0)


def test_what_is_missing_between_the_first_and_the_last_that_came_is_lost() -> None:
    writes = [wrote(at, at + 10) for at in range(1_000, 8_000, 1_000)]
    (edge,) = pair(writes, [took(2_500, 2_005), took(5_500, 5_005)]).edges
    assert edge.samples["sequence"].to_list() == [1, 2, 3, 4]
    assert edge.samples["outcome"].to_list() == ["delivered", "lost", "lost", "delivered"]
    assert (edge.figures["n"], edge.figures["lost"], edge.figures["sent"]) == (2, 2, 4)


def test_a_time_that_two_writings_may_have_given_says_nothing() -> None:
    # Two threads write at once.
    talker = program(
        [declared(probes.DECLARE_WRITER, WRITER), wrote(1_000, 5_000), wrote(9_000, 9_500)],
        "talker",
        t9=[wrote(2_000, 4_000)],
    )
    listener = program(
        [declared(probes.DECLARE_READER, READER), took(8_000, 3_000), took(9_900, 9_100)], "listener"
    )
    found = programs_of([talker, listener], CLOCK)
    assert found.ambiguous == 1
    assert found.edges[0].samples["publish_ns"].to_list() == [9_000]


def test_what_may_be_among_the_ambiguous_ones_is_not_called_lost() -> None:
    talker = program(
        [
            declared(probes.DECLARE_WRITER, WRITER),
            wrote(1_000, 1_500),
            wrote(2_000, 5_000),
            wrote(9_000, 9_500),
        ],
        "talker",
        t9=[wrote(3_000, 4_000)],
    )
    takes = [took(1_900, 1_200), took(8_000, 3_500), took(8_500, 3_600), took(9_900, 9_100)]
    listener = program([declared(probes.DECLARE_READER, READER), *takes], "listener")
    found = programs_of([talker, listener], CLOCK)
    assert found.ambiguous == 2
    assert found.edges[0].samples["outcome"].to_list() == ["delivered", "delivered"]


@pytest.mark.parametrize("warmup_ns", [0, 25_000_000])
def test_the_rate_counts_messages_that_nobody_can_tell_apart(warmup_ns: int) -> None:
    """As two that have one time, such as two frames of one exposure."""
    writes, takes = [], []
    for number in range(21):
        at = 10_000_000 * (number + 1)
        stamped_ns = 1_000 * (number if number in (0, 19, 20) else 100 + (number - 1) // 2)
        writes.append(wrote(at, at + 5_000, given_ns=SINCE_1970_NS + stamped_ns))
        takes.append(took(at + 100_000, stamped_ns))
    found = pair(writes, takes, warmup_ns=warmup_ns)
    (edge,) = found.edges
    assert (found.ambiguous, edge.samples.height, edge.figures["lost"]) == (18, 3, 0)
    assert edge.figures["rate_achieved_hz"] == 100.0


def test_near_its_border_a_time_belongs_to_two_writings() -> None:
    """The two clocks are known to ERROR_NS alone."""
    writes = [wrote(1_000, 2_000), wrote(2_050, 3_000)]
    assert pair(writes, [took(4_000, 2_020)]).ambiguous == 1
    assert pair(writes, [took(4_000, 1_500)]).ambiguous == 0


def test_a_message_from_elsewhere_is_counted_and_belongs_to_no_edge() -> None:
    found = pair([wrote(1_000, 2_000)], [took(9_000, 7_000)])
    assert (found.strange, list(found.edges)) == (1, [])


def test_a_time_that_the_application_gave_is_known_exactly() -> None:
    """However long before the writing it was, and however close the next one is."""
    given = [SINCE_1970_NS + at for at in (100, 160)]
    writes = [wrote(1_000, 1_100, given_ns=given[0]), wrote(1_101, 1_200, given_ns=given[1])]
    (edge,) = pair(writes, [took(3_000, 100), took(3_500, 161)]).edges
    assert edge.samples["publish_ns"].to_list() == [1_000, 1_101]


def test_a_time_that_was_seen_going_out_is_known_exactly_with_its_size() -> None:
    writer = [declared(probes.DECLARE_WRITER, WRITER)]
    for at, number in ((1_000, 1), (1_050, 2)):
        writer += [moved(probes.SEND, at + 20, at + 30, number, at + 500, 104), wrote(at, at + 40)]
    reader = [declared(probes.DECLARE_READER, READER), took(3_000, 1_500), took(3_600, 1_550)]
    came = [
        moved(probes.RECEIVE, 900, 1_700, 1, 1_500, 104),
        moved(probes.RECEIVE, 1_750, 1_800, 2, 1_550, 104),
    ]
    found = programs_of([program(writer, "talker"), program(reader, "listener", t8=came)], CLOCK)
    (edge,) = found.edges
    assert edge.samples["publish_ns"].to_list() == [1_000, 1_050]
    assert edge.samples["payload_bytes"].to_list() == [104, 104]
    assert edge.followed == 2
    spent = edge.layers.with_columns((pl.col("end_ns") - pl.col("begin_ns")).alias("ns"))
    first = spent.filter(pl.col("sequence") == 0)
    assert dict(first.select(pl.col("layer").cast(pl.String()), "ns").iter_rows()) == {
        "send_path": 20,
        "transport": 680,
        "unattributed": 1_295,
        "take": 5,
    }


@pytest.mark.parametrize(("at", "given"), [(10, False), (-200, True)])
def test_messages_that_wait_for_a_full_packet_belong_to_their_own_writes(at: int, given: bool) -> None:
    """Write batching: the third call sends what all three wrote. It had the first one's time, also where the
    program gives the times, such as rmw_cyclonedds_cpp before it writes: then the time lies in no call."""
    begins_ns = (1_000, 2_000, 3_000)
    sent = [moved(probes.SEND, 3_020, 3_030, number + 1, ns + at, 104) for number, ns in enumerate(begins_ns)]
    wrote_ns = [wrote(ns, ns + 40, given_ns=(SINCE_1970_NS + ns + at) * given) for ns in begins_ns]
    writer = [declared(probes.DECLARE_WRITER, WRITER), *wrote_ns]
    writer[-1:-1] = [({**sent[0][0]}, [key for _, keys in sent for key in keys])]
    taken = took(5_000, *(ns + at for ns in begins_ns))
    reader = [declared(probes.DECLARE_READER, READER), taken]
    found = programs_of([program(writer, "talker"), program(reader, "listener")], CLOCK)
    (edge,) = found.edges
    assert (found.strange, found.ambiguous) == (0, 0)
    assert edge.samples["publish_ns"].to_list() == [1_000, 2_000, 3_000]
    assert edge.samples["outcome"].unique().to_list() == ["delivered"]


def echoes(answered_by: bytes, asked_by: bytes) -> Programs:
    """Two programs on one topic; the second answers each message with the time of what it answers."""
    answer, answered = SINCE_1970_NS + 1_010, 0x333
    asking = [declared(probes.DECLARE_WRITER, WRITER), declared(probes.DECLARE_READER, READER)]
    asking += [wrote(1_000, 1_050, given_ns=answer), took(4_000, 1_010, writer=answered_by)]
    answering = [
        declared(probes.DECLARE_WRITER, answered, guid=OTHER),
        declared(probes.DECLARE_READER, READER),
    ]
    answering += [took(2_000, 1_010, writer=asked_by), wrote(3_000, 3_050, answered, given_ns=answer)]
    return programs_of([program(asking, "asks"), program(answering, "answers")], CLOCK)


def test_an_echo_that_keeps_the_time_is_told_by_who_wrote_it() -> None:
    found = echoes(OTHER, GUID)
    assert (found.strange, found.ambiguous) == (0, 0)
    taken_ns = {
        each.name: each.samples.filter(outcome="delivered")["taken_ns"].to_list() for each in found.edges
    }
    assert sorted(taken_ns.values()) == [[2_000], [4_000]], taken_ns


def test_without_a_writer_an_echo_stays_ambiguous_and_one_of_a_stranger_is_from_elsewhere() -> None:
    assert echoes(bytes(16), bytes(16)).ambiguous == 2
    assert echoes(bytes(range(1, 17)), GUID).strange == 1


def test_what_a_reader_takes_twice_is_a_duplicate() -> None:
    (edge,) = pair(
        [wrote(1_000, 2_000), wrote(5_000, 6_000)], [took(3_000, 1_500, 1_500), took(7_000, 5_500)]
    ).edges
    assert sorted(edge.samples["outcome"].to_list()) == ["delivered", "delivered", "duplicate"]
    assert (edge.figures["n"], edge.figures["duplicated"]) == (2, 1)


def test_only_one_topic_is_looked_at_where_both_are_known() -> None:
    talker = program([declared(probes.DECLARE_WRITER, WRITER, "rt/other"), wrote(1_000, 2_000)], "talker")
    listener = program([declared(probes.DECLARE_READER, READER), took(3_000, 1_500)], "listener")
    found = programs_of([talker, listener], CLOCK)
    assert (found.strange, list(found.edges)) == (1, [])


def test_a_writer_that_was_not_seen_being_made_is_heard_by_its_times() -> None:
    listener = program([declared(probes.DECLARE_READER, READER), took(3_000, 1_500)], "listener")
    (edge,) = programs_of([program([wrote(1_000, 2_000)], "talker"), listener], CLOCK).edges
    assert (edge.name, edge.writer.topic) == (f"talker→listener {UNKNOWN_TOPIC}", UNKNOWN_TOPIC)


def test_a_topic_object_names_its_writers_and_readers() -> None:
    """Fast DDS: of a reader the probe sees a part of the topic's object."""
    topic = {"call": probes.DECLARE_TOPIC, "begin_ns": 1, "end_ns": 2, "object": 0x5000}
    made = [(topic, texts("rt/" + "x" * 90, "Type"))]
    for kind, number, at in (
        (probes.DECLARE_WRITER, WRITER, 0x5000),
        (probes.DECLARE_READER, READER, 0x5028),
    ):
        call = {"call": kind, "begin_ns": 3, "end_ns": 4, "object": number, "connection": at}
        made.append((call, [{"kind": probes.ENDPOINT, "writer": GUID}]))
    (edge,) = programs_of([program([*made, wrote(1_000, 2_000), took(3_000, 1_500)], "both")], CLOCK).edges
    assert edge.name == f"both→both /{'x' * 90}"


def test_the_middlewares_own_topics_are_left_out() -> None:
    type_ = "org::eclipse::cyclonedds::builtin::DCPSParticipant"
    log = program(
        [declared(probes.DECLARE_READER, READER, "DCPSParticipant", type_), took(3_000, 1_500)], "one"
    )
    found = programs_of([log], CLOCK)
    assert (list(found.endpoints), found.strange) == ([], 0)


def test_the_warm_up_counts_nowhere() -> None:
    writes = [wrote(at, at + 10) for at in range(1_000, 8_000, 1_000)]
    takes = [took(at + 500, at + 5) for at in range(1_000, 8_000, 1_000)]
    (edge,) = pair(writes, takes, warmup_ns=2_500).edges
    assert (edge.figures["n"], edge.samples["phase"].to_list().count("warmup")) == (4, 3)
    assert sorted(edge.measured_layers["sequence"].unique()) == [3, 4, 5, 6]
    assert edge.layers["sequence"].n_unique() == 7  # the file has all


def set_by(step_ns: int) -> RealtimeClock:
    """A clock that somebody set meanwhile."""
    return RealtimeClock(CLOCK.begin, replace(CLOCK.end, realtime_ns=CLOCK.end.realtime_ns + step_ns))


@pytest.mark.parametrize(
    ("step_ns", "was_set", "margin_ns", "found_ns"),
    [(0, False, 100, [500]), (-150, False, 250, [500]), (40_000, True, 100, [500, -39_500])],
)
def test_a_clock_is_known_to_be_set_if_the_readings_are_not_that_wrong(
    step_ns: int, was_set: bool, margin_ns: int, found_ns: list[int]
) -> None:
    """Time services make both clocks faster or slower alike: then nothing changes between them."""
    clock = set_by(step_ns)
    assert (clock.was_set, clock.margin_ns) == (was_set, margin_ns)
    found = clock.to_monotonic(np.array([SINCE_1970_NS + 500]))
    assert [int(each[0]) for each in found] == found_ns


@pytest.mark.parametrize("step_ns", [0, 150, 100_000, -100_000, 800_000, -800_000, 900_000])
def test_if_the_clock_is_set_no_message_is_taken_for_another(step_ns: int) -> None:
    """After half of the messages, which come every 400 µs and arrive after 60. Those of before and after are
    alike if it is set by a multiple of the period, and left out."""
    writes, takes = [], []
    for number in range(1, 101):
        at = number * 400_000
        writes.append(wrote(at, at + 10_000))
        takes.append(took(at + 60_000, at + 5_000 + (step_ns if number > 50 else 0)))
    found = pair(writes, takes, clock=set_by(step_ns))
    (edge,) = found.edges
    latencies = edge.samples["taken_ns"] - edge.samples["publish_ns"]
    assert set(latencies.to_list()) == {60_000}
    assert (found.strange, edge.figures["lost"]) == (0, 0)
    assert edge.figures["n"] == 100 - found.ambiguous
    assert (found.ambiguous > 0) == (abs(step_ns) == 800_000)


def test_messages_that_wait_for_a_full_packet_are_told_apart_by_a_clock_that_was_set() -> None:
    begins_ns, step_ns = (1_000, 2_000, 3_000), 5_000
    stamped_ns = [at + 10 + step_ns for at in begins_ns]
    sent = [moved(probes.SEND, 3_020, 3_030, number + 1, at, 104) for number, at in enumerate(stamped_ns)]
    writes: list[Call] = [wrote(at, at + 40) for at in begins_ns]
    writes[-1:-1] = [(sent[0][0], [key for _, keys in sent for key in keys])]
    found = pair(writes, [took(9_000, *stamped_ns)], clock=set_by(step_ns))
    (edge,) = found.edges
    assert (found.strange, found.ambiguous) == (0, 0)
    assert edge.samples["publish_ns"].to_list() == [1_000, 2_000, 3_000]


def test_programs_are_called_by_their_node_their_script_or_their_name() -> None:
    lines = (
        ["/usr/bin/talker"],
        ["/usr/bin/python3", "-u", "/opt/ros/bin/listener"],
        ["talker", "--ros-args", "-r", "__node:=front"],
        ["talker"],
        ["/bin/sh", "-c", "ip link set lo up; talker & listener"],
        [],
    )
    assert names_of(lines) == ["talker", "listener", "front", "talker-2", "sh", "program"]


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=40),
    st.lists(st.booleans(), min_size=40, max_size=40),
    st.integers(0, 3_000),
)
def test_every_message_is_delivered_or_lost_once(gaps: list[int], came: list[bool], late_ns: int) -> None:
    begins = np.cumsum([gap * 1_000 for gap in gaps]).tolist()
    kept = [at for at, comes in zip(begins, came, strict=False) if comes]
    found = pair([wrote(at, at + 500) for at in begins], [took(at + 600 + late_ns, at + 250) for at in kept])
    assert (found.strange, found.ambiguous) == (0, 0)
    if not kept:
        assert not found.edges
        return
    samples = found.edges[0].samples
    delivered = samples.filter(pl.col("outcome") == "delivered")
    assert delivered["publish_ns"].to_list() == kept
    assert samples["publish_ns"].to_list() == [at for at in begins if kept[0] <= at <= kept[-1]]


def stamp(kind: int, at_ns: int) -> Call:
    return {"call": kind, "begin_ns": at_ns, "end_ns": at_ns + 1}, []


def of_ros2(times_ns: Sequence[int], called_back: Sequence[int]) -> Programs:
    """Messages of ROS 2, published 50 ns before their write; some reach a callback 60 ns after their take."""
    writes, takes = [], []
    for at in times_ns:
        writes += [stamp(probes.RCLCPP_PUBLISH, at - 50), wrote(at, at + 500)]
        takes.append(took(at + 2_000, at + 250))
        if at in called_back:
            takes.append(stamp(probes.CALLBACK_START, at + 2_060))
    return pair(writes, takes)


def test_a_message_of_ros2_is_under_way_from_its_publishing_to_its_callback() -> None:
    (edge,) = of_ros2([10_000, 20_000], [10_000, 20_000]).edges
    assert (edge.begins, edge.ends) == ("rclcpp_publish", "callback_start")
    assert edge.samples["publish_ns"].to_list() == [9_950, 19_950]
    assert edge.samples["taken_ns"].to_list() == [12_060, 22_060]
    spent = edge.layers.with_columns((pl.col("end_ns") - pl.col("begin_ns")).alias("ns"))
    assert spent["ns"].sum() == 2 * 2_110


@pytest.mark.parametrize("executes", [True, False])
def test_the_callback_of_a_timer_gets_no_reply(executes: bool) -> None:
    """A client looks at the answer of each call before its timer calls again; rclcpp stamps no callback that
    gets a reply. An executor that stamps nothing says of the timer's callback nothing else either."""
    answers, node = [], []
    for at in range(100_000, 600_000, 100_000):
        node += [stamp(probes.EXECUTOR_EXECUTE, at)] * executes
        node += [stamp(probes.CALLBACK_START, at + 1_000), stamp(probes.CALLBACK_END, at + 3_000)]
        if at < 500_000:
            answers.append(wrote(at + 6_000, at + 7_000))
            node += [*[stamp(probes.EXECUTOR_EXECUTE, at + 10_000)] * executes, took(at + 11_000, at + 6_500)]
    topics = ["rr/addReply", "rt/fibonacci/_action/feedback", *["rt/generic"] * executes]
    for topic in topics:
        (edge,) = pair(answers, node, topic=topic).edges
        assert edge.ends == "take"
        assert set((edge.samples["taken_ns"] - edge.samples["publish_ns"]).to_list()) == {5_000}


def test_what_a_callback_takes_itself_ends_at_the_take() -> None:
    """The next callback is that of the timer again."""
    writes, node = [], []
    for at in range(100_000, 600_000, 100_000):
        node.append(stamp(probes.CALLBACK_START, at))
        if at < 500_000:
            writes.append(wrote(at - 6_000, at - 5_000))
            node.append(took(at + 1_000, at - 5_500))
        node.append(stamp(probes.CALLBACK_END, at + 3_000))
    (edge,) = pair(writes, node).edges
    assert edge.ends == "take"
    assert set((edge.samples["taken_ns"] - edge.samples["publish_ns"]).to_list()) == {7_000}


@pytest.mark.parametrize("called_back", [[10_000], [20_000], []])
def test_an_edge_has_one_view_of_all_its_messages(called_back: list[int]) -> None:
    """One that is dropped before its callback, or is the last before the end, leaves them all at the take."""
    (edge,) = of_ros2([10_000, 20_000], called_back).edges
    assert (edge.begins, edge.ends) == ("rclcpp_publish", "take")
    assert edge.samples["taken_ns"].to_list() == [12_000, 22_000]


def test_a_publishing_belongs_to_the_next_write_alone() -> None:
    """What is written without rclcpp, such as a reply of a service, has none."""
    writes = [stamp(probes.RCLCPP_PUBLISH, 900), wrote(1_000, 2_000), wrote(11_000, 12_000)]
    (edge,) = pair(writes, [took(3_000, 1_500), took(13_500, 11_001)]).edges
    assert (edge.begins, edge.samples["publish_ns"].to_list()) == ("write", [1_000, 11_000])


def test_the_qos_of_a_writer_is_read_and_what_is_none_is_not_seen() -> None:
    said = ("rt/chatter", "String", "reliable keep_last 10 volatile")
    log = decode(
        encode(
            {
                MAIN: [
                    (declared(probes.DECLARE_WRITER, WRITER)[0], texts(*said)),
                    (declared(probes.DECLARE_READER, READER)[0], texts("rt/chatter", "String", "reliable ?")),
                ]
            }
        )
    )
    writer, reader = endpoints_of(log, 0)
    assert writer.qos == Qos("reliable", "keep_last", 10, "volatile")
    assert str(writer.qos) == "reliable, keep_last 10, volatile"
    assert reader.qos is None
