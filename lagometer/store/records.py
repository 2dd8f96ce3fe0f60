# SPDX-License-Identifier: Apache-2.0
"""The block of records a worker hands over: decoding, and encoding for tests and golden files.

docs/PROTOCOL.md, "The records block", describes the layout. A block comes from another process, perhaps one
that was killed halfway. So every number in it is checked before it is used, and any error raises
RecordsError.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lagometer.store.errors import RecordsError

MAGIC = 0x31434552_4F47414C  # "LAGOREC1", little-endian
VERSION = 6
# Version 1 has no lanes in pages, 1 and 2 no stamps, 1 to 3 no events, 1 to 4 no `callback_ns`, 1 to 5 no
# host. In these versions the words for them were zero.
VERSIONS_READ = (1, 2, 3, 4, 5, 6)
ALIGNMENT_BYTES = 64
HEADER_BYTES = 64
LANE_BYTES = 64
PAGE_HEAD_BYTES = 64
CPU_UNKNOWN = 0xFFFF
SEQUENCE_UNKNOWN = 2**64 - 1
STREAM_UNKNOWN = 2**32 - 1

KIND_SENT = 1
KIND_RECEIVED = 2
KIND_CAUSES = 3
KIND_SENT_STAMPS = 4
KIND_RECEIVED_STAMPS = 5
KIND_SENT_EVENTS = 6
KIND_RECEIVED_EVENTS = 7
KIND_NAMES = {
    KIND_SENT: "sent",
    KIND_RECEIVED: "received",
    KIND_CAUSES: "causes",
    KIND_SENT_STAMPS: "sent stamps",
    KIND_RECEIVED_STAMPS: "received stamps",
    KIND_SENT_EVENTS: "sent events",
    KIND_RECEIVED_EVENTS: "received events",
}
KINDS_OF_STAMPS = (KIND_SENT_STAMPS, KIND_RECEIVED_STAMPS)
KINDS_OF_EVENTS = (KIND_SENT_EVENTS, KIND_RECEIVED_EVENTS)
KINDS_SHARED = KINDS_OF_STAMPS + KINDS_OF_EVENTS  # lanes that several threads write to, never in pages
KINDS_OF_READERS = (KIND_RECEIVED, KIND_RECEIVED_STAMPS, KIND_RECEIVED_EVENTS)

STATUS_SENT = 0
STATUS_REJECTED = 1
STATUS_FAILED = 2

EVENT_NAMES = {1: "matched", 2: "lost", 3: "deadline_missed", 4: "incompatible_qos"}

FLAG_LANE_FULL = 1
FLAG_CORRUPTED = 1

HEADER_DTYPE = np.dtype(
    [
        ("magic", "<u8"),
        ("version", "<u4"),
        ("lane_count", "<u4"),
        ("total_bytes", "<u8"),
        ("worker", "<u4"),
        ("host", "<u4"),
        ("zeros", "<u8", (4,)),
    ]
)
LANE_DTYPE = np.dtype(
    [
        ("kind", "<u4"),
        ("node", "<u4"),
        ("endpoint", "<u4"),
        ("record_bytes", "<u4"),
        ("offset", "<u8"),
        ("capacity", "<u8"),
        ("count", "<u8"),
        ("flags", "<u4"),
        ("page_bytes", "<u4"),
        ("overflow", "<u8"),
        ("zeros", "<u4", (2,)),
    ]
)
SENT_DTYPE = np.dtype(
    [
        ("sequence", "<u8"),
        ("intended_ns", "<i8"),
        ("publish_ns", "<i8"),
        ("published_ns", "<i8"),
        ("cause_sequence", "<u8"),
        ("cause_stream", "<u4"),
        ("cause_count", "<u4"),
        ("status", "<u4"),
        ("cpu_publish", "<u2"),
        ("cpu_published", "<u2"),
        ("first_cause", "<u4"),
        ("callback_ns", "<u4"),  # 0: unknown
    ]
)
RECEIVED_DTYPE = np.dtype(
    [
        ("sequence", "<u8"),
        ("signalled_ns", "<i8"),
        ("woken_ns", "<i8"),
        ("taken_ns", "<i8"),
        ("handled_ns", "<i8"),
        ("stream", "<u4"),
        ("payload_bytes", "<u4"),
        ("flags", "<u4"),
        ("cpu_signalled", "<u2"),
        ("cpu_taken", "<u2"),
        ("middleware_sequence", "<u8"),
    ]
)
CAUSES_DTYPE = np.dtype([("sequence", "<u8"), ("stream", "<u4"), ("zero", "<u4")])
STAMP_DTYPE = np.dtype(
    [
        ("sequence", "<u8"),
        ("writer_id", "<u8"),
        ("middleware_sequence", "<u8"),
        ("source_time_ns", "<i8"),
        ("time_ns", "<i8"),
        ("stream", "<u4"),
        ("layer", "<u4"),
        ("cpu", "<u2"),
        ("zeros", "<u2", (7,)),
    ]
)
EVENT_DTYPE = np.dtype(
    [("total", "<u8"), ("time_ns", "<i8"), ("event", "<u4"), ("zero", "<u4"), ("zeros", "<u8")]
)
RECORD_DTYPES = {
    KIND_SENT: SENT_DTYPE,
    KIND_RECEIVED: RECEIVED_DTYPE,
    KIND_CAUSES: CAUSES_DTYPE,
    KIND_SENT_STAMPS: STAMP_DTYPE,
    KIND_RECEIVED_STAMPS: STAMP_DTYPE,
    KIND_SENT_EVENTS: EVENT_DTYPE,
    KIND_RECEIVED_EVENTS: EVENT_DTYPE,
}

Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class Lane:
    """The records of one endpoint, in the order in which they were written."""

    kind: int  # KIND_...
    node: int  # index of the node in the trial
    endpoint: int  # the writer's stream; for received messages, the reader's index within its node
    records: Records  # of RECORD_DTYPES[kind]; a view of the block, unless the lane was in pages
    full: bool = False  # recording stopped because the lane was full
    worker: int = 0
    host: int = 0  # the index of the worker's host among the trial's hosts
    overflow: int = 0  # of lanes that several threads write to: how many records did not fit


def decode(block: bytes | bytearray | memoryview) -> list[Lane]:
    """The lanes of a block, packed or as in the memfd. Only lanes in pages are copied; others keep it alive.

    Raises RecordsError if anything in the block contradicts the layout.
    """
    octets = np.frombuffer(block, dtype=np.uint8)
    header = _header(octets)
    total_bytes = int(header["total_bytes"])
    table_end = HEADER_BYTES + int(header["lane_count"]) * LANE_BYTES
    table = octets[HEADER_BYTES:table_end].view(LANE_DTYPE)
    lanes: list[Lane] = []
    extents: list[tuple[int, int, int]] = []
    for index, entry in enumerate(table):
        begin, end = _extent(index, entry, table_end, total_bytes)
        if end > begin:
            extents.append((begin, end, index))
        page_bytes = int(entry["page_bytes"])
        content = _unpaged(index, entry, octets[begin:end]) if page_bytes else octets[begin:end]
        kind = int(entry["kind"])
        lanes.append(
            Lane(
                kind=kind,
                node=int(entry["node"]),
                endpoint=int(entry["endpoint"]),
                records=_whole(kind, content.view(RECORD_DTYPES[kind])),
                full=bool(int(entry["flags"]) & FLAG_LANE_FULL),
                worker=int(header["worker"]),
                host=int(header["host"]),
                overflow=int(entry["overflow"]),
            )
        )
    _refuse_overlap(extents)
    _refuse_twins(lanes)
    for index, lane in enumerate(lanes):
        _check_records(index, lane)
    return lanes


def _header(octets: npt.NDArray[np.uint8]) -> np.void:
    if octets.size < HEADER_BYTES:
        raise RecordsError(f"records: {octets.size} bytes, but the header alone has {HEADER_BYTES}")
    header: np.void = octets[:HEADER_BYTES].view(HEADER_DTYPE)[0]
    magic = int(header["magic"])
    if magic == 0:
        raise RecordsError("records: no header at byte 0; the worker ended before it set up its recorder")
    if magic != MAGIC:
        raise RecordsError(f"records: magic 0x{magic:016x} at byte 0, expected 0x{MAGIC:016x}")
    version = int(header["version"])
    if version not in VERSIONS_READ:
        raise RecordsError(
            f"records: layout version {version}, this lagometer reads "
            f"{' and '.join(map(str, VERSIONS_READ))}; use matching versions"
        )
    total_bytes, lane_count = int(header["total_bytes"]), int(header["lane_count"])
    if total_bytes > octets.size:
        raise RecordsError(
            f"records: header says {total_bytes} bytes, but there are {octets.size}; the block is cut"
        )
    if HEADER_BYTES + lane_count * LANE_BYTES > total_bytes:
        raise RecordsError(f"records: a table of {lane_count} lanes does not fit into {total_bytes} bytes")
    return header


def _extent(index: int, entry: np.void, table_end: int, total_bytes: int) -> tuple[int, int]:
    """The first byte of a lane's records (or pages), and the byte after the last."""
    kind, count, capacity = int(entry["kind"]), int(entry["count"]), int(entry["capacity"])
    offset, record_bytes = int(entry["offset"]), int(entry["record_bytes"])
    if kind not in RECORD_DTYPES:
        raise RecordsError(f"records: lane {index} has unknown kind {kind}")
    expected = RECORD_DTYPES[kind].itemsize
    if record_bytes != expected:
        raise RecordsError(
            f"records: lane {index} ({KIND_NAMES[kind]}) has records of {record_bytes} bytes, not {expected}"
        )
    if count > capacity:
        raise RecordsError(f"records: lane {index} claims {count} records with room for {capacity}")
    page_bytes = int(entry["page_bytes"])
    if page_bytes:
        in_page = _records_in_page(index, page_bytes, record_bytes)
        end = offset + -(-capacity // in_page) * page_bytes
        nothing = capacity == 0
    else:
        end = offset + count * record_bytes
        nothing = count == 0
    if nothing:
        return table_end, table_end
    if offset < table_end or end > total_bytes:
        raise RecordsError(
            f"records: lane {index} lies at bytes {offset} to {end}, outside of {table_end} to {total_bytes}"
        )
    return offset, end


def _records_in_page(index: int, page_bytes: int, record_bytes: int) -> int:
    in_page = (page_bytes - PAGE_HEAD_BYTES) // record_bytes
    if page_bytes % ALIGNMENT_BYTES or in_page < 1:
        raise RecordsError(f"records: lane {index} lies in pages of {page_bytes} bytes, which hold no record")
    return in_page


def _unpaged(index: int, entry: np.void, octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The contiguous records of a lane in pages. Pages fill in order; the last may be partly filled."""
    page_bytes, record_bytes = int(entry["page_bytes"]), int(entry["record_bytes"])
    in_page = _records_in_page(index, page_bytes, record_bytes)
    pages = octets.reshape(-1, page_bytes)
    counts = pages[:, :8].copy().view("<u8")[:, 0]
    used_pages = int(np.count_nonzero(counts))
    if (
        (counts > in_page).any()
        or (counts[: max(used_pages - 1, 0)] != in_page).any()
        or counts[used_pages:].any()
    ):
        raise RecordsError(f"records: the pages of lane {index} are not filled one after another")
    total = int(counts.sum())
    if total > int(entry["capacity"]):
        raise RecordsError(
            f"records: lane {index} claims {total} records with room for {int(entry['capacity'])}"
        )
    filled = pages[:used_pages, PAGE_HEAD_BYTES : PAGE_HEAD_BYTES + in_page * record_bytes]
    return np.ascontiguousarray(filled).reshape(-1)[: total * record_bytes]


def _whole(kind: int, records: Records) -> Records:
    """Leaves out records that a thread claimed but had not written yet: their time is stored last."""
    if kind not in KINDS_SHARED or records["time_ns"].all():
        return records
    whole: Records = records[records["time_ns"] != 0]
    return whole


def _refuse_overlap(extents: list[tuple[int, int, int]]) -> None:
    extents.sort()
    for (_, end, first), (begin, _, second) in itertools.pairwise(extents):
        if begin < end:
            raise RecordsError(f"records: lanes {first} and {second} overlap at byte {begin}")


def _refuse_twins(lanes: list[Lane]) -> None:
    keys: set[tuple[int, int, int]] = set()
    for index, lane in enumerate(lanes):
        # A stream is unique in the trial, a reader only within its node.
        key = (lane.kind, lane.node if lane.kind in KINDS_OF_READERS else 0, lane.endpoint)
        if key in keys:
            raise RecordsError(
                f"records: lane {index} is a second one of kind {KIND_NAMES[lane.kind]}, "
                f"node {lane.node}, endpoint {lane.endpoint}"
            )
        keys.add(key)


def _check_records(index: int, lane: Lane) -> None:
    """Rejects what a correct worker never writes and what would otherwise lead to a wrong figure."""
    records = lane.records
    wrong: npt.NDArray[np.bool_]
    if lane.kind == KIND_SENT:
        wrong = (
            (records["status"] > STATUS_FAILED) | (records["publish_ns"] <= 0) | (records["intended_ns"] < 0)
        )
        problem = "an unknown status, or a message without a time of publishing"
    elif lane.kind == KIND_RECEIVED:
        wrong = records["taken_ns"] <= 0
        problem = "a message without a time of taking"
    elif lane.kind in KINDS_OF_STAMPS:
        wrong = (records["time_ns"] < 0) | records["zeros"].any(axis=1)
        problem = "a stamp before the machine was started, or one whose reserved words are not zero"
    elif lane.kind in KINDS_OF_EVENTS:
        wrong = (records["time_ns"] < 0) | ~np.isin(records["event"], list(EVENT_NAMES))
        wrong |= (records["zero"] != 0) | (records["zeros"] != 0)
        problem = (
            "an unknown event, or one before the machine was started or with reserved words that are not zero"
        )
    else:
        wrong = records["zero"] != 0
        problem = "a cause whose reserved word is not zero"
    if wrong.any():
        raise RecordsError(
            f"records: lane {index} ({KIND_NAMES[lane.kind]}), record {int(wrong.argmax())}: {problem}"
        )


def encode(
    lanes: Iterable[Lane],
    *,
    worker: int = 0,
    host: int = 0,
    capacity: int | None = None,
    page_bytes: int = 0,
) -> bytes:
    """A block of these lanes: packed, or (with a capacity) as in the memfd, each lane at its full capacity,
    and with `page_bytes` in pages, except for stamps and events.

    For tests and golden files; a worker writes its own.
    """
    lanes = list(lanes)
    table = np.zeros(len(lanes), dtype=LANE_DTYPE)
    position = HEADER_BYTES + LANE_BYTES * len(lanes)
    contents = []
    for entry, lane in zip(table, lanes, strict=True):
        room = max(len(lane.records), capacity or 0)
        size = RECORD_DTYPES[lane.kind].itemsize
        entry["kind"], entry["node"], entry["endpoint"] = lane.kind, lane.node, lane.endpoint
        entry["record_bytes"], entry["offset"], entry["capacity"] = size, position, room
        pages = 0 if lane.kind in KINDS_SHARED else page_bytes
        entry["page_bytes"], entry["flags"] = pages, FLAG_LANE_FULL if lane.full else 0
        entry["count"], entry["overflow"] = 0 if pages else len(lane.records), lane.overflow
        content = _paged(lane.records, room, pages) if pages else lane.records.tobytes()
        contents.append(content)
        position += -(-max(room * size, len(content)) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    header = np.zeros(1, dtype=HEADER_DTYPE)
    header["magic"], header["version"], header["worker"] = MAGIC, VERSION, worker
    header["host"], header["lane_count"], header["total_bytes"] = host, len(lanes), position
    block = bytearray(position)
    block[:HEADER_BYTES] = header.tobytes()
    block[HEADER_BYTES : HEADER_BYTES + table.nbytes] = table.tobytes()
    for entry, content in zip(table, contents, strict=True):
        block[int(entry["offset"]) : int(entry["offset"]) + len(content)] = content
    return bytes(block)


def _paged(records: Records, room: int, page_bytes: int) -> bytes:
    in_page = (page_bytes - PAGE_HEAD_BYTES) // records.dtype.itemsize
    pages = []
    for first in range(0, room, in_page):
        page_records = records[first : first + in_page]
        head = (
            len(page_records).to_bytes(8, "little").ljust(PAGE_HEAD_BYTES, b"\xaa")
        )  # the worker's own: any value
        pages.append((head + page_records.tobytes()).ljust(page_bytes, b"\0"))
    return b"".join(pages)


def make_records(kind: int, rows: Iterable[dict[str, Any]]) -> Records:
    """Records from one mapping per row; omitted fields are zero, an omitted CPU is unknown."""
    rows = list(rows)
    dtype = RECORD_DTYPES[kind]
    records = np.zeros(len(rows), dtype=dtype)
    for name in dtype.names or ():
        if name.startswith("cpu"):
            records[name] = CPU_UNKNOWN
    for record, row in zip(records, rows, strict=True):
        for name, value in row.items():
            record[name] = value
    return records
