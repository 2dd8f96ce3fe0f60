# SPDX-License-Identifier: Apache-2.0
"""What a probe in a process wrote: decoding, and encoding for tests (docs/PROTOCOL.md, "The probe's file").

The file comes from a process that may have been killed halfway, so every number is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lagometer.store.errors import RecordsError

MAGIC = 0x31424F52_50474C4C  # "LLGPROB1", little-endian
VERSION = 3
HEADER_BYTES = 4096
RECORD_BYTES = 64
PROGRAM_AT = 64  # in the header
STREAM_UNKNOWN = 2**32 - 1
STREAM_IS_TIME = 2**32 - 2  # the sequence is the writer's time, CLOCK_REALTIME

SEND, RECEIVE, WAIT, BLOCK, NOTIFY, DRAINED = 1, 2, 3, 4, 5, 6
API_WRITE, API_TAKE, API_WAIT = 16, 17, 18
DECLARE_TOPIC, DECLARE_WRITER, DECLARE_READER = 32, 33, 34
# As ROS 2's trace functions report it.
ROS2, ROS2_NODE, ROS2_PUBLISHER, ROS2_SUBSCRIPTION = 48, 49, 50, 51
RCLCPP_PUBLISH, RCL_PUBLISH, RMW_PUBLISH = 64, 65, 66
RMW_TAKE, RCL_TAKE, RCLCPP_TAKE, CALLBACK_START, CALLBACK_END = 67, 68, 69, 70, 71
EXECUTOR_EXECUTE, RCLCPP_INTRA_PUBLISH = 74, 75
ROS1_RECEIVED = 80

BY_ENVELOPE, DATA, DATA_FRAGMENT, HEARTBEAT, ACKNOWLEDGEMENT, GAP = 1, 2, 3, 4, 5, 6
TAKEN, ENDPOINT, TEXT, BUFFER, CONTENT = 7, 8, 9, 10, 11
CARRYING = (BY_ENVELOPE, DATA, DATA_FRAGMENT)

HEADER_DTYPE = np.dtype(
    [
        ("magic", "<u8"),
        ("version", "<u4"),
        ("chunk_bytes", "<u4"),
        ("chunks", "<u4"),
        ("chunks_in_use", "<u4"),
        ("overflow", "<u8"),
        ("process", "<u4"),
        ("program_bytes", "<u4"),
    ]
)
CHUNK_DTYPE = np.dtype([("thread", "<u4"), ("count", "<u4"), ("name", "S16"), ("zeros", "V40")])
CALL_DTYPE = np.dtype(
    [
        ("begin_ns", "<i8"),
        ("end_ns", "<i8"),
        ("call", "<u2"),
        ("cpu_begin", "<u2"),
        ("cpu_end", "<u2"),
        ("keys", "<u2"),
        ("descriptor", "<i4"),
        ("plain", "<i4"),
        ("result", "<i8"),
        ("object", "<u8"),
        ("connection", "<u8"),
        ("is_stream", "<u8"),
    ]
)
KEY_DTYPE = np.dtype(
    [
        ("zero", "<i8"),
        ("writer", "V16"),  # the GUID
        ("number", "<i8"),
        ("first_fragment", "<u4"),
        ("fragments", "<u4"),
        ("fragments_all", "<u4"),
        ("stream", "<u4"),
        ("sequence", "<u8"),
        ("kind", "u1"),
        ("zeros", "V3"),
        ("payload_bytes", "<u4"),
    ]
)
TEXT_DTYPE = np.dtype(
    [
        ("zero", "<i8"),
        ("text", "u1"),
        ("bytes", "u1"),
        ("characters", "V46"),
        ("kind", "u1"),
        ("zeros", "V7"),
    ]
)

Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class ProbeLog:
    """The calls of one process, in the order of their return.

    threads, names: the id and name of each call's thread. keys: what calls carried. owners: the call of each
    key. overflow: records that did not fit. process, program: its id, its name and arguments.
    """

    calls: Records
    threads: npt.NDArray[np.uint32]
    names: Mapping[int, str]
    keys: Records
    owners: npt.NDArray[np.int64]
    overflow: int = 0
    process: int = 0
    program: tuple[str, ...] = ()


def read_used(path: Path) -> bytes:
    """The used part of a probe's file; the file may still grow. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return head
        header = np.frombuffer(head, HEADER_DTYPE, 1)[0]
        chunk_count = min(int(header["chunks_in_use"]), int(header["chunks"]))
        return head + file.read(chunk_count * int(header["chunk_bytes"]))


def decode(block: bytes) -> ProbeLog:
    """The calls in a probe's file. Raises RecordsError if anything in it contradicts the layout."""
    octets = np.frombuffer(block, dtype=np.uint8)
    if octets.size < HEADER_BYTES:
        raise RecordsError(f"probe: {octets.size} bytes, but the header alone has {HEADER_BYTES}")
    header = octets[: HEADER_DTYPE.itemsize].view(HEADER_DTYPE)[0]
    if int(header["magic"]) != MAGIC or int(header["version"]) != VERSION:
        raise RecordsError(
            f"probe: magic 0x{int(header['magic']):016x}, version {int(header['version'])}; expected "
            f"0x{MAGIC:016x}, {VERSION}: use matching versions"
        )
    chunk_bytes = int(header["chunk_bytes"])
    if chunk_bytes < 2 * RECORD_BYTES or chunk_bytes % RECORD_BYTES:
        raise RecordsError(f"probe: chunks of {chunk_bytes} bytes")
    chunks = octets[HEADER_BYTES:]
    if chunks.size % chunk_bytes or chunks.size // chunk_bytes > int(header["chunks"]):
        raise RecordsError(f"probe: {chunks.size} bytes are not whole chunks of {chunk_bytes} bytes")
    program_bytes = min(int(header["program_bytes"]), HEADER_BYTES - PROGRAM_AT)
    words = block[PROGRAM_AT : PROGRAM_AT + program_bytes].rstrip(b"\0").split(b"\0")
    program = tuple(word.decode(errors="replace") for word in words) if program_bytes else ()
    log = _joined(chunks.reshape(-1, chunk_bytes), int(header["overflow"]))
    return replace(log, process=int(header["process"]), program=program)


def _joined(chunks: npt.NDArray[np.uint8], overflow: int) -> ProbeLog:
    calls, threads, keys, owners = [], [], [], []
    names: dict[int, str] = {}
    total = 0
    for index, chunk in enumerate(chunks):
        head = chunk[:RECORD_BYTES].view(CHUNK_DTYPE)[0]
        count = int(head["count"])
        if count > chunk.size // RECORD_BYTES - 1:
            raise RecordsError(f"probe: chunk {index} claims {count} records")
        records = chunk[RECORD_BYTES : (1 + count) * RECORD_BYTES]
        call_rows = records.view(CALL_DTYPE)
        is_call = call_rows["begin_ns"] != 0
        owner = np.cumsum(is_call) - 1
        own_calls, own_keys = call_rows[is_call], records.view(KEY_DTYPE)[~is_call]
        own_owners = owner[~is_call]
        key_counts = np.bincount(own_owners[own_owners >= 0], minlength=len(own_calls))
        if (own_owners < 0).any() or (key_counts != own_calls["keys"]).any():
            raise RecordsError(f"probe: chunk {index} has keys of no call, or lacks some")
        if (own_calls["end_ns"] < own_calls["begin_ns"]).any() or (own_calls["begin_ns"] < 0).any():
            raise RecordsError(f"probe: chunk {index} has a call that ends before it begins")
        calls.append(own_calls)
        threads.append(np.full(len(own_calls), head["thread"], dtype=np.uint32))
        keys.append(own_keys)
        owners.append(own_owners + total)
        names[int(head["thread"])] = bytes(head["name"]).decode(errors="replace")
        total += len(own_calls)
    return _in_order(calls, threads, names, keys, owners, overflow)


def _in_order(
    calls: list[Records],
    threads: list[npt.NDArray[np.uint32]],
    names: Mapping[int, str],
    keys: list[Records],
    owners: list[npt.NDArray[np.int64]],
    overflow: int,
) -> ProbeLog:
    all_calls = np.concatenate([np.zeros(0, CALL_DTYPE), *calls])
    order = np.argsort(all_calls["end_ns"], kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    key_owners = np.concatenate([np.zeros(0, np.int64), *owners]).astype(np.int64)
    key_order = np.argsort(place[key_owners], kind="stable")
    return ProbeLog(
        all_calls[order],
        np.concatenate([np.zeros(0, np.uint32), *threads])[order],
        names,
        np.concatenate([np.zeros(0, KEY_DTYPE), *keys])[key_order],
        place[key_owners][key_order],
        overflow,
    )


def text_of(log: ProbeLog, call: int, number: int) -> str:
    """One of a call's texts, by its number; empty if the call has none."""
    pieces = log.keys[log.owners == call].view(TEXT_DTYPE)
    pieces = pieces[(pieces["kind"] == TEXT) & (pieces["text"] == number)]
    return b"".join(bytes(piece["characters"])[: int(piece["bytes"])] for piece in pieces).decode(
        errors="replace"
    )


@dataclass(frozen=True)
class Ros2:
    """A program's ROS 2: its distribution (None: nothing is stamped, for the reason in `refused`), the
    version of its tracetools (None: unknown) and the names of its nodes."""

    distribution: str | None
    version: str | None
    refused: str | None
    nodes: tuple[str, ...] = ()


def ros2_of(log: ProbeLog) -> Ros2 | None:
    """None: no library with ROS 2's trace functions was called."""
    ros2_calls = np.flatnonzero(log.calls["call"] == ROS2).tolist()
    if not ros2_calls:
        return None
    distribution, version, refused = (text_of(log, ros2_calls[0], number) or None for number in range(3))
    node_calls = np.flatnonzero(log.calls["call"] == ROS2_NODE).tolist()
    names = [(text_of(log, call, 1).rstrip("/"), text_of(log, call, 0)) for call in node_calls]
    return Ros2(distribution, version, refused, tuple(f"{space}/{name}" for space, name in names))


def encode(
    threads: Mapping[int, Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]],
    names: Mapping[int, str] | None = None,
    *,
    chunk_bytes: int = 65536,
    overflow: int = 0,
    process: int = 0,
    program: Sequence[str] = (),
) -> bytes:
    """A probe's file with these threads' calls, each with its keys, for tests; omitted values are zero.

    A key with `text` is a piece of a text: `text` (which one), `bytes`, `characters`.
    """
    header = np.zeros(1, HEADER_DTYPE)
    header["magic"], header["version"], header["chunk_bytes"] = MAGIC, VERSION, chunk_bytes
    header["chunks"] = header["chunks_in_use"] = len(threads)
    header["overflow"] = overflow
    words = b"".join(word.encode() + b"\0" for word in program)
    header["process"], header["program_bytes"] = process, len(words)
    block = (header.tobytes().ljust(PROGRAM_AT, b"\0") + words).ljust(HEADER_BYTES, b"\0")
    for thread, calls in threads.items():
        head = np.zeros(1, CHUNK_DTYPE)
        content = b""
        for call, keys in calls:
            content += _record(CALL_DTYPE, {"descriptor": -1, **call, "keys": len(keys)})
            for key in keys:
                piece = {"stream": STREAM_UNKNOWN, **key}
                content += (
                    _record(TEXT_DTYPE, {"kind": TEXT, **key}) if "text" in key else _record(KEY_DTYPE, piece)
                )
        head["thread"], head["count"] = thread, len(content) // RECORD_BYTES
        head["name"] = (names or {}).get(thread, "").encode()
        block += (head.tobytes() + content).ljust(chunk_bytes, b"\0")
    return block


def _record(dtype: np.dtype[np.void], values: Mapping[str, Any]) -> bytes:
    record = np.zeros(1, dtype)
    for name, value in values.items():
        record[name] = np.void(value) if isinstance(value, bytes) else value
    return record.tobytes()
