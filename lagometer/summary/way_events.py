# SPDX-License-Identifier: Apache-2.0
"""The single calls and scheduler states on the rows of a message's timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from lagometer.store.timelines import CALL
from lagometer.summary.way_data import RanInstead, WayCall, WayRow, WayState, WokenBy

Message = tuple[str, int, int, int]  # edge, sequence, publish_ns, taken_ns


@dataclass
class MessageEvents:
    """What is known of one message. left_out: calls and states that were not kept."""

    calls: list[WayCall] = field(default_factory=list)
    states: list[WayState] = field(default_factory=list)
    left_out: int = 0


class Events:
    """The calls and states of a trial's chosen messages. frame: as `TIMELINES_SCHEMA`."""

    def __init__(self, frame: pl.DataFrame | None) -> None:
        self._frame = frame

    @cached_property
    def _found(self) -> Mapping[Message, list[dict[str, Any]]]:
        by_message: dict[Message, list[dict[str, Any]]] = {}
        for row in self._frame.iter_rows(named=True) if self._frame is not None else ():
            message = (row["edge"], row["sequence"], row["publish_ns"], row["taken_ns"])
            by_message.setdefault(message, []).append(row)
        return by_message

    def of(self, message: Message, rows: Sequence[WayRow]) -> MessageEvents:
        """Those of a message on these rows, in the order of time."""
        events = MessageEvents()
        for row in self._found.get(message, ()):
            events.left_out = row["left_out"]
            place = _place(rows, row["worker"], row["thread"])
            if place is None:
                continue
            begin_ns, end_ns = row["begin_ns"] - message[2], row["end_ns"] - message[2]
            common = {"row": place, "begin_ns": begin_ns, "end_ns": end_ns}
            if row["kind"] == CALL:
                events.calls.append(WayCall(**common, name=row["name"], bytes=row["bytes"]))
                continue
            woken_by = WokenBy(**row["woken_by"]) if row["woken_by"] is not None else None
            instead = [_ran(ran, message[2]) for ran in row["instead"]]
            state = {"state": row["name"], "cpu": row["cpu"], "instead": instead, "woken_by": woken_by}
            events.states.append(WayState(**common, **state))
        events.calls.sort(key=lambda call: (call.begin_ns, -call.end_ns))
        events.states.sort(key=lambda state: (state.row, state.begin_ns))
        return events


def _ran(ran: Mapping[str, Any], publish_ns: int) -> RanInstead:
    times = {name: ran[name] - publish_ns for name in ("begin_ns", "end_ns")}
    return RanInstead(**{**ran, **times})


def _place(rows: Sequence[WayRow], worker: str, number: int) -> int | None:
    """The row of a thread. A row without a process is that of a thread that started late."""
    for name in (worker, None):
        for place, row in enumerate(rows):
            if (row.worker, row.number) == (name, number):
                return place
    return None
