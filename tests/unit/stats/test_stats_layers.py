# SPDX-License-Identifier: Apache-2.0
"""Stamps of layers and the messages that they belong to: joined by the middleware's key, in any order."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.trial.layers import LAYER_END, LayerStamps, layer_stamps, match
from lagometer.store import records as rec
from lagometer.store.records import Lane
from tests.fixtures.small_trial import SmallTrial

WRITE, TAKE, VENDOR = 2, 5, 4096
WRITERS = (0xA, 0xB)  # of streams 0 and 1, which one reader hears


def key(stream: int, sequence: int, by_time: bool = False) -> dict[str, int]:
    """Both writers count alike and may send at the same time, so that only the writer tells them apart."""
    value = 1_000 + sequence
    told = {"source_time_ns": value} if by_time else {"middleware_sequence": value}
    return {"writer_id": WRITERS[stream], **told}


def stamp(stream: int, sequence: int, layer: int, time_ns: int, **more: int) -> dict[str, int]:
    return {"stream": stream, "sequence": sequence, "layer": layer, "time_ns": time_ns, **more}


def alone(layer: int, time_ns: int, stream: int = rec.STREAM_UNKNOWN, **more: int) -> dict[str, int]:
    return stamp(stream, rec.SEQUENCE_UNKNOWN, layer, time_ns, **more)


def trial() -> SmallTrial:
    built = SmallTrial()
    built.edge(0, "left", "sink")
    built.edge(1, "right", "sink")
    return built


def joined(
    sent: dict[int, list[dict[str, int]]], received: list[dict[str, int]], overflow: int = 0
) -> LayerStamps:
    sink = trial().edges[0].receiver_node
    lanes = [
        Lane(rec.KIND_SENT_STAMPS, 0, stream, rec.make_records(rec.KIND_SENT_STAMPS, rows))
        for stream, rows in sent.items()
    ]
    records = rec.make_records(rec.KIND_RECEIVED_STAMPS, received)
    lanes.append(Lane(rec.KIND_RECEIVED_STAMPS, sink, 0, records, overflow=overflow))
    found = layer_stamps(rec.decode(rec.encode(lanes)), trial().facts({0, 1}, {"sink"}))
    assert found is not None
    return found


def test_without_lanes_of_stamps_nobody_asked() -> None:
    built = trial()
    assert layer_stamps(built.lanes(), built.facts({0, 1}, {"sink"})) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_every_message_finds_its_own_senders_stamps(seed: int, by_time: bool, asynchronous: bool) -> None:
    """Of two writers whose numbers collide; some messages are lost, some taken twice, all in any order."""
    draw = random.Random(seed)
    sent: dict[int, list[dict[str, int]]] = {0: [], 1: []}
    received: list[dict[str, int]] = []
    taken: dict[int, set[int]] = {0: set(), 1: set()}
    for stream in (0, 1):
        for number in range(draw.randrange(1, 30)):
            known = key(stream, number, by_time)
            sent[stream].append(stamp(stream, number, 0, 5, **known))  # the key alone
            time_ns = 10_000 * (stream + 1) + number
            of_thread = alone(WRITE, time_ns, stream, **known)
            sent[stream].append(of_thread if asynchronous else stamp(stream, number, WRITE, time_ns, **known))
            for _ in range(draw.choice([0, 1, 1, 1, 2])):
                taken[stream].add(number)
                received.append(stamp(stream, number, TAKE, 50_000 + number, **known))
        draw.shuffle(sent[stream])
    draw.shuffle(received)
    found = joined(sent, received)
    assert found.counts.strange == found.counts.unknown == found.counts.unmatched == 0
    assert found.counts.joined == found.counts.received == sum(map(len, taken.values()))
    for stream, edge in ((0, "left→sink"), (1, "right→sink")):
        rows = found.frame.filter((pl.col("edge") == edge) & (pl.col("side") == "sender"))
        times = dict(zip(rows["sequence"], rows["time_ns"], strict=True))
        assert times == {number: 10_000 * (stream + 1) + number for number in range(len(sent[stream]) // 2)}
        takes = found.frame.filter((pl.col("edge") == edge) & (pl.col("side") == "receiver"))
        assert set(takes["sequence"]) == taken[stream]


def test_a_key_that_says_another_message_than_the_envelope_is_counted_and_left_out() -> None:
    sent = {0: [stamp(0, n, WRITE, 10 + n, **key(0, n)) for n in range(3)]}
    received = [stamp(0, n, TAKE, 100 + n, **key(0, n)) for n in (0, 2)]
    received.append(stamp(0, 1, TAKE, 101, **key(0, 2)))
    found = joined(sent, received)
    assert (found.counts.joined, found.counts.strange) == (2, 1)
    assert sorted(set(found.frame["sequence"])) == [0, 2]
    assert any("have another's key" in warning for warning in found.counts.warnings())


def test_a_key_of_several_messages_joins_none_of_them() -> None:
    same = key(0, 7, by_time=True)
    sent = {0: [stamp(0, n, WRITE, 10 + n, **same) for n in range(2)] + [alone(VENDOR, 12, 0, **same)]}
    found = joined(sent, [stamp(0, 0, TAKE, 100, **same)])
    assert (found.counts.ambiguous, found.counts.unknown, found.counts.unmatched) == (1, 1, 1)
    assert found.counts.joined == 0
    assert "vendor-0" not in found.frame["layer"].to_list()


def test_messages_without_a_key_are_told() -> None:
    sent = {0: [stamp(0, n, WRITE, 10 + n, **key(0, n)) for n in range(2)]}
    found = joined(sent, [stamp(0, 0, TAKE, 100), stamp(0, 1, TAKE, 101, **key(0, 1))])
    assert (found.counts.received, found.counts.joined, found.counts.unknown) == (2, 1, 1)
    assert found.frame.height == 4  # they lie in the records of their own messages


@pytest.mark.parametrize("keyed", ["neither", "sender", "reader"])
def test_a_side_without_any_keys_is_no_fault_of_its_messages(keyed: str) -> None:
    """As of ROS 1, which has none, and of a callback that gets nothing but the message."""
    theirs, ours = (key(0, 0) if keyed == side else {} for side in ("sender", "reader"))
    other = {1: [stamp(1, 0, WRITE, 11, **key(1, 0))]}  # of another middleware
    taken = [stamp(0, 0, TAKE, 100, **ours), stamp(1, 0, TAKE, 101, **key(1, 0))]
    found = joined({0: [stamp(0, 0, WRITE, 10, **theirs)], **other}, taken)
    assert (found.counts.received, found.counts.joined, found.counts.unknown) == (2, 1, 0)
    assert not list(found.counts.warnings())
    assert found.frame.height == 4


def test_keys_whose_sender_left_no_stamps_at_all_are_told() -> None:
    found = joined({1: [stamp(1, 0, WRITE, 11, **key(1, 0))]}, [stamp(0, 0, TAKE, 100, **key(0, 0))])
    assert (found.counts.received, found.counts.unknown) == (1, 1)


def test_stamps_by_sequence_alone_belong_to_the_endpoints_own_writer() -> None:
    known = {stream: key(stream, 0) for stream in (0, 1)}
    sent = {stream: [stamp(stream, 0, 0, 5, **known[stream])] for stream in (0, 1)}
    for stream in (0, 1):
        sent[stream].append(alone(VENDOR + 3, 20 + stream, stream, middleware_sequence=1_000))
    received = [stamp(stream, 0, 0, 100, **known[stream]) for stream in (0, 1)]
    received.append(alone(3, 90, middleware_sequence=1_000))  # either writer's: the reader hears both
    found = joined(sent, received)
    assert found.frame.rows() == [
        ("left→sink", 0, "sender", "vendor-3", False, 20, None),
        ("right→sink", 0, "sender", "vendor-3", False, 21, None),
    ]
    assert found.counts.unmatched == 1


def test_stamps_of_nobodys_message_and_lost_room_are_counted() -> None:
    sent = {0: [stamp(0, 0, WRITE, 10, cpu=3, **key(0, 0)), alone(WRITE | LAYER_END, 11, 0, **key(0, 9))]}
    found = joined(sent, [stamp(0, 0, TAKE | LAYER_END, 100, **key(0, 0))], overflow=4)
    assert (found.counts.recorded, found.counts.unmatched, found.counts.overflow) == (3, 1, 4)
    assert found.frame.rows() == [
        ("left→sink", 0, "sender", "write", False, 10, 3),
        ("left→sink", 0, "receiver", "take", True, 100, None),
    ]
    assert len(list(found.counts.warnings())) == 2


def test_a_stamp_that_was_claimed_and_not_written_is_none() -> None:
    records = rec.make_records(rec.KIND_SENT_STAMPS, [stamp(0, 0, WRITE, 10), stamp(0, 1, WRITE, 0)])
    (lane,) = rec.decode(rec.encode([Lane(rec.KIND_SENT_STAMPS, 0, 0, records)]))
    assert lane.records["sequence"].tolist() == [0]


@pytest.mark.parametrize(("field", "value"), [("time_ns", -1), ("zeros", 1)])
def test_impossible_stamps_are_refused(field: str, value: int) -> None:
    records = rec.make_records(rec.KIND_RECEIVED_STAMPS, [stamp(0, 0, TAKE, 10)])
    records[field] = value
    with pytest.raises(rec.RecordsError, match="record 0"):
        rec.decode(rec.encode([Lane(rec.KIND_RECEIVED_STAMPS, 1, 0, records)]))


def test_a_key_joins_across_processes_whatever_the_order() -> None:
    columns = ("stream", "sequence", "writer_id", "middleware_sequence", "source_time_ns")
    sent = pl.DataFrame([(0, 4, 9, 1, 0), (0, 5, 9, 2, 0)], schema=columns, orient="row")
    received = sent.reverse().with_columns(lane=0)
    found = match(sent, received)
    assert found.count("joined") == 2
    assert match(sent, received.with_columns(sequence=pl.lit(4))).count("strange") == 1
    assert replace(found, ambiguous=1).ambiguous == 1
