# SPDX-License-Identifier: Apache-2.0
"""On which thread of which process a message was: the rows of its timeline, and its stays on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import polars as pl

from lagometer.stats.trial.hops import Hop
from lagometer.stats.trial.scheduling import ACROSS, BRIDGE, COMPUTATION, IDLE, QUEUE
from lagometer.stats.trial.way import NODE_THREAD, THREAD_NAME_MAX, UNATTRIBUTED
from lagometer.summary.way_data import RanDuring, Stay, StayShare, WayRow

COMMUNICATION = "communication"

Measured = tuple[str, int, int, int, int]  # layer, begin_ns, end_ns, begin_thread, end_thread


class Threads:
    """The threads of a trial's workers, from its line in the journal."""

    def __init__(self, journal: Mapping[str, Any]) -> None:
        workers = journal.get("threads")
        self._names: dict[tuple[str, int], str] = {}
        for worker, threads in workers.items() if isinstance(workers, dict) else ():
            for thread in threads:
                self._names[str(worker), int(thread["tid"])] = str(thread["name"])

    def of_node(self, node: str) -> WayRow:
        """The thread of a node; without a number if no thread has its name, or several do."""
        name = f"{NODE_THREAD}{node}"[:THREAD_NAME_MAX]
        matching = [key for key, thread_name in self._names.items() if thread_name == name]
        same_worker = [key for key in matching if key[0] == node]
        matching = same_worker if len(same_worker) == 1 else matching
        if len(matching) != 1:
            return WayRow(worker=None, thread=f"{NODE_THREAD}{node}", number=None)
        worker, number = matching[0]
        return WayRow(worker=worker, thread=name, number=number)

    def numbered(self, number: int, workers: Sequence[str | None]) -> WayRow:
        """A thread by its number, in the first of these workers that has it. Hosts may share numbers."""
        for worker in workers:
            if worker is not None and (worker, number) in self._names:
                return WayRow(worker=worker, thread=self._names[worker, number], number=number)
        return WayRow(
            worker=None, thread=f"thread {number}" if number else "not known", number=number or None
        )


class Layered:
    """The layers of a trial's messages, if they were measured. frame: as `LAYERS_SCHEMA`."""

    def __init__(self, frame: pl.DataFrame | None) -> None:
        self._frame = frame

    @cached_property
    def _found(self) -> Mapping[tuple[str, int], list[Measured]]:
        by_message: dict[tuple[str, int], list[Measured]] = {}
        if self._frame is not None:
            for edge, sequence, *stay in self._frame.sort("begin_ns", maintain_order=True).iter_rows():
                by_message.setdefault((edge, sequence), []).append(tuple(stay))
        return by_message

    def of(self, hop: Hop) -> Sequence[Measured]:
        """The layers of a message on an edge; none unless they cover publish to taken."""
        stays = self._found.get((hop.edge, hop.sequence), [])
        at_ns = hop.publish_ns
        for _, begin_ns, end_ns, *_ in stays:
            if begin_ns != at_ns:
                return ()
            at_ns = end_ns
        return stays if at_ns == hop.taken_ns else ()


class Shares:
    """The scheduler data for the layers of a trial, if they were recorded. frame: as `SCHEDULER_SCHEMA`."""

    def __init__(self, frame: pl.DataFrame | None) -> None:
        self._frame = frame

    @cached_property
    def _found(self) -> Mapping[tuple[str, int, str, int], int]:
        keys = ("edge", "sequence", "layer", "begin_ns")
        rows = self._frame.select(keys).iter_rows() if self._frame is not None else ()
        return {key: place for place, key in enumerate(rows)}

    def of(self, hop: Hop, layer: str, span_ns: tuple[int, int]) -> StayShare | None:
        """The share for a message's stay in a layer, or in a node."""
        place = self._found.get((hop.edge, hop.sequence, layer, span_ns[0]))
        if place is None or self._frame is None:
            return None
        row = self._frame.row(place, named=True)
        if row["end_ns"] != span_ns[1]:  # it caused several messages
            return None
        times = {name: row[name] for name in ("asleep_ns", "waiting_ns", "running_ns")}
        return StayShare(**times, instead=[RanDuring(**ran) for ran in row["instead"]])


class Stays:
    """The stays of one message, built up from its start at `begin_ns`."""

    def __init__(self, threads: Threads, shares: Shares, begin_ns: int) -> None:
        self._threads, self._shares, self._begin_ns = threads, shares, begin_ns
        self.rows: list[WayRow] = []
        self.stays: list[Stay] = []

    def under_way(self, hop: Hop, measured: Sequence[Measured]) -> None:
        """Adds the stays from publish to taken."""
        sender, receiver = self._threads.of_node(hop.sender), self._threads.of_node(hop.receiver)
        if not measured:
            self._add(COMMUNICATION, hop, (hop.publish_ns, hop.taken_ns), sender, receiver)
            return
        side = (sender.worker, receiver.worker)
        for layer, begin_ns, end_ns, begin_thread, end_thread in measured:
            first = self._threads.numbered(begin_thread, side)
            if layer in ACROSS:
                side = (receiver.worker, sender.worker)
            last = self._threads.numbered(end_thread, side)
            self._add(layer, hop, (begin_ns, end_ns), first, last)

    def in_bridge(self, taken: Hop, published: Hop) -> None:
        """Adds the stay in a bridge between domains or adapters: the message is still on its way there."""
        row, span_ns = self._threads.of_node(taken.receiver), (taken.taken_ns, published.publish_ns)
        # Older campaigns recorded the scheduler's share there like that of any other node.
        self._add(BRIDGE, taken, span_ns, row, row, recorded_as=(BRIDGE, COMPUTATION))

    def in_node(self, taken: Hop, published: Hop) -> None:
        """Adds the stays from when a node took a message until it published the next one of the chain."""
        row = self._threads.of_node(taken.receiver)
        handled_ns, begun_ns = taken.handled_ns, published.begun_ns
        begin_ns, end_ns = taken.taken_ns, published.publish_ns
        if taken.started_ns is not None and begin_ns < taken.started_ns <= end_ns:
            self._add(QUEUE, taken, (begin_ns, taken.started_ns), row, row)
            begin_ns = taken.started_ns
        if handled_ns is not None and begun_ns is not None and begin_ns <= handled_ns < begun_ns <= end_ns:
            self._add(COMPUTATION, taken, (begin_ns, handled_ns), row, row)
            self._add(IDLE, taken, (handled_ns, begun_ns), row, row)
            begin_ns = begun_ns
        self._add(COMPUTATION, taken, (begin_ns, end_ns), row, row)

    def unknown(self, edge: str, sequence: int, end_ns: int) -> None:
        """Adds the whole time of a message whose way was not found."""
        row = self._number(self._threads.numbered(0, ()))
        end_ns -= self._begin_ns
        self.stays.append(
            Stay(
                layer=UNATTRIBUTED,
                edge=edge,
                sequence=sequence,
                begin_ns=0,
                end_ns=end_ns,
                row=row,
                end_row=row,
            )
        )

    def _add(
        self,
        layer: str,
        hop: Hop,
        span_ns: tuple[int, int],
        first: WayRow,
        last: WayRow,
        recorded_as: Sequence[str] = (),
    ) -> None:
        begin_ns, end_ns = (time_ns - self._begin_ns for time_ns in span_ns)
        if begin_ns == end_ns:
            return
        recorded = (self._shares.of(hop, name, span_ns) for name in recorded_as or (layer,))
        self.stays.append(
            Stay(
                layer=layer,
                edge=hop.edge,
                sequence=hop.sequence,
                begin_ns=begin_ns,
                end_ns=end_ns,
                row=self._number(first),
                end_row=self._number(last),
                scheduler=next((share for share in recorded if share is not None), None),
            )
        )

    def _number(self, row: WayRow) -> int:
        if row not in self.rows:
            self.rows.append(row)
        return self.rows.index(row)
