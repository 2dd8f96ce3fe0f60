# SPDX-License-Identifier: Apache-2.0
"""Records blocks: the golden file, both forms, and every way in which a block can be wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.store import records as rec
from lagometer.store.errors import RecordsError
from tests.fixtures.small_trial import SmallTrial, pipeline

GOLDEN = Path(__file__).parents[2] / "golden"


def two_node_block(capacity: int | None = None, page_bytes: int = 0) -> bytes:
    trial, _, _ = pipeline(messages=5)
    return rec.encode(trial.lanes(), worker=3, capacity=capacity, page_bytes=page_bytes)


def as_rows(lanes: list[rec.Lane]) -> list[dict[str, object]]:
    return [
        {
            "kind": rec.KIND_NAMES[lane.kind],
            "node": lane.node,
            "endpoint": lane.endpoint,
            "full": lane.full,
            "worker": lane.worker,
            **({"host": lane.host} if lane.host else {}),
            **({"overflow": lane.overflow} if lane.overflow else {}),
            "records": [
                {
                    name: value.tolist() if isinstance(value, np.ndarray) else value
                    for name, value in zip(lane.records.dtype.names or (), row.tolist(), strict=True)
                }
                for row in lane.records
            ],
        }
        for lane in lanes
    ]


def golden_lanes() -> list[rec.Lane]:
    """One lane of each kind, every field with a value of its own."""
    trial = SmallTrial()
    edge = trial.edge(7, "left", "right", reader=2)
    trial.send(7, 0, 1_000, intended_ns=900, cpu_publish=1, cpu_published=2)
    trial.send(7, 1, 2_000, causes=((4, 11), (5, 12)), status=1)
    trial.take(
        edge, 0, 1_500, signalled_ns=1_200, woken_ns=1_300, cpu_signalled=3, middleware_sequence=99, flags=1
    )
    return trial.lanes()


def golden_lanes_with_stamps() -> list[rec.Lane]:
    """The same, and stamps of layers on both sides; one of them is known by its key alone."""
    known = {"writer_id": 21, "middleware_sequence": 22, "source_time_ns": 23}
    sent = [
        {"sequence": 0, "stream": 7, "layer": 2, "time_ns": 1_010, "cpu": 1, **known},
        {"sequence": 0, "stream": 7, "layer": 2 | 1 << 31, "time_ns": 1_090, "cpu": 2, **known},
        {"sequence": rec.SEQUENCE_UNKNOWN, "stream": 7, "layer": 4_098, "time_ns": 1_050, **known},
    ]
    received = [{"sequence": 0, "stream": 7, "layer": 5, "time_ns": 1_490, "cpu": 3, **known}]
    return [
        *golden_lanes(),
        rec.Lane(4, 0, 7, rec.make_records(rec.KIND_SENT_STAMPS, sent), overflow=12),
        rec.Lane(5, 1, 2, rec.make_records(rec.KIND_RECEIVED_STAMPS, received)),
    ]


def golden_lanes_with_events() -> list[rec.Lane]:
    """The same, and what the middleware reported of both sides."""
    sent = [{"event": 1, "total": 1, "time_ns": 500}, {"event": 3, "total": 2, "time_ns": 1_700}]
    received = [{"event": 2, "total": 9, "time_ns": 1_600}]
    return [
        *golden_lanes_with_stamps(),
        rec.Lane(6, 0, 7, rec.make_records(rec.KIND_SENT_EVENTS, sent), overflow=3),
        rec.Lane(7, 1, 2, rec.make_records(rec.KIND_RECEIVED_EVENTS, received)),
    ]


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("records-v1.bin", "records-v1.json"),
        ("records-v2.bin", "records-v1.json"),
        ("records-v2-pages.bin", "records-v1.json"),
        ("records-v3.bin", "records-v3.json"),
        ("records-v3-pages.bin", "records-v3.json"),
        ("records-v4.bin", "records-v4.json"),
        ("records-v4-pages.bin", "records-v4.json"),
        ("records-v5.bin", "records-v5.json"),
        ("records-v5-pages.bin", "records-v5.json"),
        ("records-v6.bin", "records-v6.json"),
        ("records-v6-pages.bin", "records-v6.json"),
    ],
)
def test_golden_blocks_decode_to_the_json_beside_them(name: str, beside: str) -> None:
    block = (GOLDEN / name).read_bytes()
    expected = json.loads((GOLDEN / beside).read_text())
    for lane in expected:
        for row in lane["records"] if lane["kind"] == "sent" else ():
            row.setdefault("callback_ns", 0)  # not known before version 5
    assert as_rows(rec.decode(block)) == expected


def test_golden_blocks_are_what_is_written() -> None:
    lanes = golden_lanes_with_events()
    lanes[0].records["callback_ns"] = (70, 2**32 - 1)
    assert rec.encode(lanes, worker=6, host=2) == (GOLDEN / "records-v6.bin").read_bytes()
    paged = rec.encode(lanes, worker=6, host=2, capacity=3, page_bytes=192)
    assert paged == (GOLDEN / "records-v6-pages.bin").read_bytes()


def test_layout_sizes_are_those_of_the_protocol() -> None:
    assert rec.HEADER_DTYPE.itemsize == rec.LANE_DTYPE.itemsize == 64
    assert rec.SENT_DTYPE.itemsize == rec.RECEIVED_DTYPE.itemsize == 64
    assert rec.CAUSES_DTYPE.itemsize == 16
    assert rec.MAGIC.to_bytes(8, "little") == b"LAGOREC1"


@pytest.mark.parametrize(
    ("capacity", "page_bytes"), [(None, 0), (4096, 0), (5, 4096), (4096, 4096), (5, 128), (6, 192), (9, 256)]
)
def test_packed_and_mapped_forms_say_the_same(capacity: int | None, page_bytes: int) -> None:
    lanes = rec.decode(two_node_block(capacity, page_bytes))
    assert as_rows(lanes) == as_rows(rec.decode(two_node_block()))
    assert [len(lane.records) for lane in lanes] == [5, 5, 5, 5]


def test_nothing_is_copied() -> None:
    block = bytearray(two_node_block())
    assert all(not lane.records.flags.owndata for lane in rec.decode(block))


def changed(field: str, value: int, lane: int | None = None) -> bytes:
    """The block with one field of its header or of a lane's entry changed."""
    block = bytearray(two_node_block())
    dtype, offset = (rec.HEADER_DTYPE, 0) if lane is None else (rec.LANE_DTYPE, 64 + 64 * lane)
    entry = np.frombuffer(block, dtype=dtype, count=1, offset=offset)
    entry[field] = value
    return bytes(block)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b"", "header alone"),
        (b"\0" * 64, "ended before it set up"),
        (b"x" * 200, "magic"),
        (changed("version", 7), "layout version 7"),
        (changed("page_bytes", 64, lane=0), "hold no record"),
        (changed("page_bytes", 4097, lane=0), "hold no record"),
        (changed("page_bytes", 2**31, lane=0), "lies at bytes"),
        (changed("lane_count", 2**32 - 1), "does not fit"),
        (changed("total_bytes", 2**63), "is cut"),
        (changed("total_bytes", 100), "does not fit"),
        (changed("kind", 9, lane=1), "lane 1 has unknown kind 9"),
        (changed("record_bytes", 0, lane=0), "records of 0 bytes"),
        (changed("count", 2**62, lane=0), "with room for"),
        (changed("offset", 2**63, lane=0), "lies at bytes"),
        (changed("offset", 0, lane=0), "lies at bytes"),
        (changed("endpoint", 1, lane=0), "second one of kind sent"),
        (two_node_block()[:-1], "is cut"),
    ],
)
def test_a_wrong_block_is_refused_by_name(block: bytes, message: str) -> None:
    with pytest.raises(RecordsError, match=message):
        rec.decode(block)


def test_overlapping_lanes_are_refused() -> None:
    block = bytearray(two_node_block())
    table = np.frombuffer(block, dtype=rec.LANE_DTYPE, count=4, offset=64)
    table["offset"][1] = table["offset"][0]
    with pytest.raises(RecordsError, match="lanes 0 and 1 overlap"):
        rec.decode(block)


@pytest.mark.parametrize(
    ("page", "count", "message"),
    [
        (0, 1, "not filled one after another"),
        (0, 3, "not filled one after another"),
        (1, 0, "not filled one after another"),
        (3, 2, "not filled one after another"),
        (2, 2, "claims 6 records with room for 5"),
        (0, 2**63, "not filled one after another"),
    ],
)
def test_pages_that_contradict_their_counts_are_refused(page: int, count: int, message: str) -> None:
    block = bytearray(two_node_block(capacity=7 if page == 3 else 5, page_bytes=192))  # two records a page
    offset = int(np.frombuffer(block, dtype=rec.LANE_DTYPE, count=1, offset=64)["offset"][0])
    np.frombuffer(block, dtype="<u8", count=1, offset=offset + 192 * page)[0] = count
    with pytest.raises(RecordsError, match=message):
        rec.decode(block)


@pytest.mark.parametrize(("field", "value"), [("status", 3), ("publish_ns", 0), ("intended_ns", -1)])
def test_impossible_sent_records_are_refused(field: str, value: int) -> None:
    trial, _, _ = pipeline(messages=3)
    lanes = trial.lanes()
    lanes[0].records[field][1] = value
    with pytest.raises(RecordsError, match="record 1"):
        rec.decode(rec.encode(lanes))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_never_crash(block: bytes) -> None:
    with pytest.raises(RecordsError):
        rec.decode(block)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([(None, 0), (16, 0), (16, 192)]))
def test_corrupted_blocks_give_an_error_or_lanes_within_the_block(
    seed: int, changes: int, form: tuple[int | None, int]
) -> None:
    generator = random.Random(seed)
    block = bytearray(two_node_block(*form))
    reach = generator.choice([64, 64 * 5, len(block)])
    for _ in range(changes):
        block[generator.randrange(reach)] = generator.choice(
            [0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)]
        )
    if generator.random() < 0.2:
        del block[generator.randrange(len(block)) :]
    try:
        lanes = rec.decode(block)
    except RecordsError:
        return
    assert sum(lane.records.nbytes for lane in lanes) <= len(block)
