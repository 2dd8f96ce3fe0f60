# SPDX-License-Identifier: Apache-2.0
"""Messages as a trace for Perfetto's viewer: a track for each thread, a slice for each stay in a layer.

A process of the trace is one of a trial. In addition, each trial has a track with one slice for each message,
from publish to taken. The stays of a message share a flow id, so the viewer draws arrows from thread to
thread. Times are those of the campaign's clock (CLOCK_MONOTONIC). The trace has its own process and thread
numbers, since those of two trials may be the same; a thread's name ends with its real one.

The viewer needs the slices of a track to nest. If two overlap, as hand-overs of two messages may, the second
is on a further track below the thread's.

A chosen message also has the calls and the scheduler states of its threads, if they were recorded. A call
lies within the stay in which it was made; if it reaches beyond the stay, it is on a track `calls of` the
thread. The states are on a track `scheduler of` it; within a wait for a CPU lies what ran there instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_MONOTONIC,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.tables import trials
from lagometer.store.format import PARTIAL, keep_file
from lagometer.store.reader import Campaign
from lagometer.summary.way_data import MessageWay, Stay, WayCall, WayRow, WayState
from lagometer.summary.ways import all_ways, cell_ways
from lagometer.units import duration_text

SUFFIX = ".perfetto-trace"
SEQUENCE_ID = 1  # all packets come from one writer


def write_chosen(campaign: Campaign, directory: Path) -> list[Path]:
    """Writes `messages.perfetto-trace` with the slowest messages of each cell and a median one; returns it.
    Raises CampaignError, ExchangeError, OSError."""
    cells = dict.fromkeys(cell for cell, _ in _valid(campaign))
    path = directory / f"messages{SUFFIX}"
    _write(path, (way for cell in cells for way in sorted(cell_ways(campaign, cell), key=_published)))
    return [path]


def write_all(campaign: Campaign, directory: Path) -> list[Path]:
    """Writes `<cell>/<trial>.perfetto-trace` with every message of the measure phase, of each valid trial;
    returns them. Raises as `write_chosen`."""
    paths = []
    for cell, trial in _valid(campaign):
        paths.append(directory / cell / f"{trial}{SUFFIX}")
        _write(paths[-1], all_ways(campaign, cell, trial))
    return paths


def _published(way: MessageWay) -> int:
    return way.publish_ns


def _valid(campaign: Campaign) -> list[tuple[str, int]]:
    """The valid trials with samples. Raises ExchangeError if there are none."""
    valid = {(row["cell"], row["trial"]) for row in campaign.cells.to_dicts() if row["valid"]}
    keys = [key for key in trials(campaign) if key in valid]
    if not keys:
        raise ExchangeError(f"{campaign.directory}: no valid trial has samples, so there are no messages")
    return keys


def _write(path: Path, ways: Iterable[MessageWay]) -> None:
    if path.exists():
        raise ExchangeError(f"{path}: already exists; name another folder with --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}{PARTIAL}")
    try:
        with partial.open("wb") as stream:
            write_trace(ways, stream)
        keep_file(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_trace(ways: Iterable[MessageWay], stream: IO[bytes]) -> None:
    """Writes these messages as one trace, ordered by time within each trial."""
    writer = _Writer(StreamingTraceProtoBuilder(stream))
    for way in ways:
        writer.message(way)


Span = tuple[int, int]
Notes = dict[str, str | int | None]


@dataclass
class _Slice:
    """A slice and those that lie within it, in the order of time. flow: its id, and whether it ends here."""

    span: Span
    name: str
    notes: Notes
    flow: tuple[int, bool] | None = None
    inner: list[_Slice] = field(default_factory=list)


@dataclass
class _Track:
    """A track and its extra tracks; ends_ns: when the last slice on each ends."""

    uuid: int
    name: str
    ends_ns: list[int] = field(default_factory=list)


class _Writer:
    def __init__(self, builder: StreamingTraceProtoBuilder) -> None:
        self._builder = builder
        self._tracks: dict[tuple[str, ...], _Track] = {}
        self._pids: dict[tuple[str, ...], int] = {}
        self._calls: set[tuple[int, str, Span]] = set()  # two messages may be under way during one call
        first = self._builder.create_packet()
        first.trusted_packet_sequence_id = SEQUENCE_ID
        first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        first.trace_packet_defaults.timestamp_clock_id = BUILTIN_CLOCK_MONOTONIC
        first.clock_snapshot.primary_trace_clock = BUILTIN_CLOCK_MONOTONIC
        clock = first.clock_snapshot.clocks.add()
        clock.clock_id, clock.timestamp = BUILTIN_CLOCK_MONOTONIC, 0
        self._builder.write_packet(first)

    def message(self, way: MessageWay) -> None:
        """Adds a message: its total, each of its stays, and what its threads did."""
        trial = f"{way.cell} #{way.trial}"
        flow = _number(trial, way.edge, str(way.sequence), str(way.publish_ns), str(way.latency_ns))
        common: Notes = {"cell": way.cell, "trial": way.trial, "latency_ns": way.latency_ns}
        identity: Notes = {"edge": way.edge, "sequence": way.sequence, "chosen": way.chosen}
        name = f"{way.edge}, {way.chosen}" + ("" if way.place is None else f" {way.place}")
        message_span = (way.publish_ns, way.publish_ns + way.latency_ns)
        self._slice(self._messages(trial), _Slice(message_span, name, common | identity))
        for place, row in enumerate(way.rows):
            track = self._thread(trial, row)
            stays = [
                self._stay(way, stay, common, (flow, number == len(way.stays)))
                for number, stay in enumerate(way.stays, start=1)
                if stay.row == place
            ]
            calls = [_call(way, call) for call in way.calls if call.row == place]
            in_line, beyond = _nested(stays, [call for call in calls if self._is_new(track, call)])
            for each in in_line:
                self._slice(track, each)
            for each in beyond:
                self._slice(self._below(track, "calls"), each)
            self._states(track, way, [state for state in way.states if state.row == place])

    def _stay(self, way: MessageWay, stay: Stay, common: Notes, flow: tuple[int, bool]) -> _Slice:
        row, end_row = way.rows[stay.row], way.rows[stay.end_row]
        notes: Notes = {"edge": stay.edge, "sequence": stay.sequence, "worker": row.worker}
        if stay.row != stay.end_row:
            notes["to"] = f"{end_row.worker or 'not known'}: {_thread_name(end_row)}"
        span = (way.publish_ns + stay.begin_ns, way.publish_ns + stay.end_ns)
        return _Slice(span, stay.layer, common | notes | _share(stay), flow)

    def _is_new(self, track: _Track, call: _Slice) -> bool:
        key = (track.uuid, call.name, call.span)
        is_new = key not in self._calls
        self._calls.add(key)
        return is_new

    def _states(self, thread: _Track, way: MessageWay, states: Sequence[WayState]) -> None:
        """Adds a thread's states, except those that another message has shown already."""
        if not states:
            return
        track = self._below(thread, "scheduler")
        for state in states:
            end_ns = way.publish_ns + state.end_ns
            begin_ns = max(way.publish_ns + state.begin_ns, *track.ends_ns, 0)
            if begin_ns < end_ns:
                self._slice(track, _state(way, state, (begin_ns, end_ns)))

    def _slice(self, track: _Track, each: _Slice) -> None:
        """Adds a slice, with those within it, on the first free track."""
        self._put(self._free(track, each.span), each)

    def _put(self, uuid: int, each: _Slice) -> None:
        packet = self._packet(uuid, each.span[0], TrackEvent.TYPE_SLICE_BEGIN)
        event = packet.track_event
        event.name = each.name
        for key, value in each.notes.items():
            if value is None:
                continue
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = value
        if each.flow is not None:
            (event.terminating_flow_ids if each.flow[1] else event.flow_ids).append(each.flow[0])
        self._builder.write_packet(packet)
        for inner in each.inner:
            self._put(uuid, inner)
        self._builder.write_packet(self._packet(uuid, each.span[1], TrackEvent.TYPE_SLICE_END))

    def _free(self, track: _Track, span: Span) -> int:
        """A track without a slice at that time."""
        for number, end_ns in enumerate(track.ends_ns):
            if end_ns <= span[0]:
                track.ends_ns[number] = span[1]
                return track.uuid if number == 0 else _number(str(track.uuid), str(number))
        track.ends_ns.append(span[1])
        number = len(track.ends_ns) - 1
        if number == 0:
            return track.uuid
        extra_uuid = _number(str(track.uuid), str(number))
        self._describe(
            TrackDescriptor(uuid=extra_uuid, parent_uuid=track.uuid, name=f"{track.name} ({number + 1})")
        )
        return extra_uuid

    def _messages(self, trial: str) -> _Track:
        key = (trial,)
        if key not in self._tracks:
            self._tracks[key] = _Track(_number(*key), f"messages of {trial}")
            self._describe(TrackDescriptor(uuid=_number(*key), name=f"messages of {trial}"))
        return self._tracks[key]

    def _thread(self, trial: str, row: WayRow) -> _Track:
        worker = row.worker or "process not known"
        process, key = (trial, worker), (trial, worker, row.thread, str(row.number))
        if process not in self._pids:
            self._pids[process] = self._new_number()
            descriptor = TrackDescriptor(uuid=_number(*process))
            descriptor.process.pid = self._pids[process]
            descriptor.process.process_name = f"{worker} of {trial}"
            self._describe(descriptor)
        if key not in self._tracks:
            descriptor = TrackDescriptor(uuid=_number(*key), parent_uuid=_number(*process))
            descriptor.thread.pid, descriptor.thread.tid = self._pids[process], self._new_number()
            descriptor.thread.thread_name = _thread_name(row)
            self._describe(descriptor)
            self._tracks[key] = _Track(_number(*key), _thread_name(row))
        return self._tracks[key]

    def _below(self, thread: _Track, what: str) -> _Track:
        """A track of its own below a thread's."""
        key = (str(thread.uuid), what)
        if key not in self._tracks:
            name = f"{what} of {thread.name}"
            self._describe(TrackDescriptor(uuid=_number(*key), parent_uuid=thread.uuid, name=name))
            self._tracks[key] = _Track(_number(*key), name)
        return self._tracks[key]

    def _new_number(self) -> int:
        """A number that no process or thread of the trace has; 0 and 1 have special meanings."""
        return 2 + len(self._pids) + len(self._tracks)

    def _describe(self, descriptor: TrackDescriptor) -> None:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = SEQUENCE_ID
        packet.track_descriptor.CopyFrom(descriptor)
        self._builder.write_packet(packet)

    def _packet(self, uuid: int, time_ns: int, kind: TrackEvent.Type) -> TracePacket:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = SEQUENCE_ID
        packet.timestamp = time_ns
        packet.track_event.track_uuid, packet.track_event.type = uuid, kind
        return packet


def _call(way: MessageWay, call: WayCall) -> _Slice:
    span = (way.publish_ns + call.begin_ns, way.publish_ns + call.end_ns)
    return _Slice(span, call.name, {"bytes": call.bytes, "worker": way.rows[call.row].worker})


def _state(way: MessageWay, state: WayState, span: Span) -> _Slice:
    woken = state.woken_by
    by = None if woken is None else f"{woken.name} ({woken.thread})"
    if woken is not None and woken.interrupt:
        by = f"an interrupt during {by}"
    notes: Notes = {"cpu": state.cpu, "worker": way.rows[state.row].worker, "woken_by": by}
    inner = []
    for ran in state.instead:
        begin_ns = max(way.publish_ns + ran.begin_ns, span[0])
        if begin_ns < way.publish_ns + ran.end_ns:
            instead: Notes = {"cpu": ran.cpu, "thread": ran.thread}
            inner.append(_Slice((begin_ns, way.publish_ns + ran.end_ns), ran.name, instead))
    return _Slice(span, state.state, notes, inner=inner)


def _nested(stays: Sequence[_Slice], calls: Sequence[_Slice]) -> tuple[list[_Slice], list[_Slice]]:
    """Puts each call into the stay that contains it. Returns the stays and the calls between them, in the
    order of time, and the calls that reach beyond a stay."""
    between: list[_Slice] = []
    beyond: list[_Slice] = []
    within: dict[int, list[_Slice]] = {}
    for call in calls:
        touched = [place for place, stay in enumerate(stays) if _overlap(stay.span, call.span)]
        inside = [place for place in touched if _contains(stays[place].span, call.span)]
        if inside:
            within.setdefault(inside[-1], []).append(call)
        else:
            (beyond if touched else between).append(call)
    for place, inner in within.items():
        stays[place].inner, crossing = _tree(inner)
        beyond += crossing
    between, crossing = _tree(between)
    beyond, more = _tree([*beyond, *crossing])
    return sorted([*stays, *between], key=_begin), sorted([*beyond, *more], key=_begin)


def _tree(calls: Sequence[_Slice]) -> tuple[list[_Slice], list[_Slice]]:
    """Nests calls in one another; returns the outermost ones, and those that only overlap with another."""
    outermost: list[_Slice] = []
    crossing: list[_Slice] = []
    opened: list[_Slice] = []
    for call in sorted(calls, key=lambda call: (call.span[0], -call.span[1])):
        while opened and opened[-1].span[1] <= call.span[0]:
            opened.pop()
        if opened and not _contains(opened[-1].span, call.span):
            crossing.append(call)
            continue
        (opened[-1].inner if opened else outermost).append(call)
        opened.append(call)
    return outermost, crossing


def _begin(each: _Slice) -> int:
    return each.span[0]


def _contains(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _overlap(stay: Span, call: Span) -> bool:
    """Whether they share any time; a call without a length may lie at an end."""
    return _contains(stay, call) or (stay[0] < call[1] and call[0] < stay[1])


def _share(stay: Stay) -> Notes:
    """What the scheduler recorded about a stay."""
    share = stay.scheduler
    if share is None:
        return {}
    times: Notes = {
        "asleep_ns": share.asleep_ns,
        "waiting_for_cpu_ns": share.waiting_ns,
        "running_ns": share.running_ns,
    }
    ran = [
        f"{runner.name} ({runner.thread}) on CPU {runner.cpu} for {duration_text(runner.ran_ns)}"
        for runner in share.instead
    ]
    return {**times, "ran_instead": ", ".join(ran) or None}


def _thread_name(row: WayRow) -> str:
    return row.thread if row.number is None else f"{row.thread} {row.number}"


def _number(*parts: str) -> int:
    """A 64-bit number for these words, the same each time."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")
