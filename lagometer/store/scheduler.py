# SPDX-License-Identifier: Apache-2.0
"""What the kernel's scheduler did during a trial: decoding, and encoding for tests (docs/PROTOCOL.md, "The
scheduler's file").

The recording may have ended halfway, so every number is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lagometer.store.errors import RecordsError

MAGIC = 0x31484353_47414C4C  # "LLAGSCH1", little-endian
VERSION = 1
HEADER_BYTES = 64
RECORD_BYTES = 32

EXCHANGE, WAKING, BORN, MOVE, LOST, NAME = 1, 2, 3, 4, 5, 6
RUNNABLE, ASLEEP, GONE, BY_THREAD, BY_INTERRUPT = 0, 1, 2, 3, 4
IDLE = 0  # the thread of an idle CPU

HEADER_DTYPE = np.dtype(
    [
        ("magic", "<u8"),
        ("version", "<u4"),
        ("record_bytes", "<u4"),
        ("records", "<u8"),
        ("overflow", "<u8"),
        ("lost", "<u8"),
        ("begin_ns", "<i8"),
        ("end_ns", "<i8"),
        ("cpus", "<u4"),
        ("zero", "<u4"),
    ]
)
RECORD_DTYPE = np.dtype(
    [
        ("time_ns", "<i8"),
        ("kind", "u1"),
        ("state", "u1"),
        ("cpu", "<u2"),
        ("thread", "<i4"),
        ("other", "<i4"),
        ("seen_as", "<i4"),
        ("target_cpu", "<i4"),
        ("zero", "<i4"),
    ]
)
NAME_AT = RECORD_DTYPE.fields["other"][1] if RECORD_DTYPE.fields is not None else 0

Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class SchedulerLog:
    """What happened between `begin_ns` and `end_ns`, in time order. Events are missing only where a record of
    the kind `LOST` says so.

    names: of threads, by the kernel's initial ids. seen_as: maps these to the ids that the agent's host
    knows. lost, overflow: samples and records that did not fit.
    """

    records: Records
    begin_ns: int
    end_ns: int
    names: Mapping[int, str] = field(default_factory=dict)
    seen_as: Mapping[int, int] = field(default_factory=dict)
    lost: int = 0
    overflow: int = 0

    def moved(self, by_ns: int) -> SchedulerLog:
        """The log on another clock, which is ahead by this much."""
        records = self.records.copy()
        records["time_ns"] += by_ns
        return replace(self, records=records, begin_ns=self.begin_ns + by_ns, end_ns=self.end_ns + by_ns)


def decode(block: bytes) -> SchedulerLog:
    """The records of a file. Raises RecordsError if anything in it contradicts the layout."""
    if len(block) < HEADER_BYTES:
        raise RecordsError(f"scheduler: {len(block)} bytes, but the header alone has {HEADER_BYTES}")
    header = np.frombuffer(block, HEADER_DTYPE, 1)[0]
    layout = int(header["magic"]), int(header["version"]), int(header["record_bytes"])
    if layout != (MAGIC, VERSION, RECORD_BYTES):
        raise RecordsError(
            f"scheduler: magic 0x{layout[0]:016x}, version {layout[1]}, records of {layout[2]} bytes; "
            "expected "
            f"0x{MAGIC:016x}, {VERSION}, {RECORD_BYTES}: use matching versions"
        )
    count, present = int(header["records"]), (len(block) - HEADER_BYTES) // RECORD_BYTES
    if count > present:
        raise RecordsError(f"scheduler: {count} records are claimed, and {present} are there")
    begin_ns, end_ns = int(header["begin_ns"]), int(header["end_ns"])
    if not 0 < begin_ns <= end_ns:
        raise RecordsError(f"scheduler: {begin_ns} to {end_ns} is not a valid time range")
    records = np.frombuffer(block, RECORD_DTYPE, count, HEADER_BYTES)
    _refuse_damage(records)
    names = records[records["kind"] == NAME]
    others = records[records["kind"] != NAME]
    exchanges = others[others["kind"] == EXCHANGE]
    renumbered = exchanges[exchanges["seen_as"] > 0]
    return SchedulerLog(
        records=others[np.argsort(others["time_ns"], kind="stable")],
        begin_ns=begin_ns,
        end_ns=end_ns,
        names={int(record["thread"]): _name(record) for record in names},
        seen_as=dict(zip(renumbered["thread"].tolist(), renumbered["seen_as"].tolist(), strict=True)),
        lost=int(header["lost"]),
        overflow=int(header["overflow"]),
    )


def _refuse_damage(records: Records) -> None:
    kinds = records["kind"]
    if ((kinds < EXCHANGE) | (kinds > NAME)).any():
        raise RecordsError(f"scheduler: a record of the kind {int(kinds[(kinds < 1) | (kinds > NAME)][0])}")
    if (records["time_ns"] <= 0).any():
        raise RecordsError("scheduler: a record has no time")
    if (records["thread"] < 0).any():
        raise RecordsError("scheduler: a thread has a negative number")
    if (records["state"] > BY_INTERRUPT).any():
        raise RecordsError("scheduler: a record has a state that does not exist")


def _name(record: np.void) -> str:
    return record.tobytes()[NAME_AT:].split(b"\0", 1)[0].decode(errors="replace")


def encode(
    events: Sequence[Mapping[str, int]],
    begin_ns: int,
    end_ns: int,
    names: Mapping[int, str] | None = None,
    *,
    lost: int = 0,
    overflow: int = 0,
) -> bytes:
    """A file with these events, given by the fields of a record, for tests; omitted values are zero. Threads
    are seen under their own ids, unless `seen_as` says otherwise."""
    records = np.zeros(len(events) + len(names or {}), RECORD_DTYPE)
    for place, (thread, name) in enumerate((names or {}).items()):
        records[place]["time_ns"], records[place]["kind"], records[place]["thread"] = begin_ns, NAME, thread
        octets = records[place : place + 1].view(np.uint8)
        octets[NAME_AT : NAME_AT + len(name)] = np.frombuffer(name.encode(), np.uint8)
    for place, event in enumerate(events, start=len(names or {})):
        for key, value in {"seen_as": event.get("thread", 0), **event}.items():
            records[place][key] = value
    header = np.zeros(1, HEADER_DTYPE)
    header["magic"], header["version"], header["record_bytes"] = MAGIC, VERSION, RECORD_BYTES
    header["records"], header["lost"], header["overflow"] = len(records), lost, overflow
    header["begin_ns"], header["end_ns"], header["cpus"] = begin_ns, end_ns, 1
    return header.tobytes() + records.tobytes()
