# SPDX-License-Identifier: Apache-2.0
"""The trace for Perfetto, read back with the package's own messages."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BUILTIN_CLOCK_MONOTONIC, Trace, TrackEvent
from way_campaign import CALLS, CELL, STATES, Made, whole_ns, write_ways

from lagometer.cli.main import main
from lagometer.errors import BadInput
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.perfetto import write_all, write_chosen
from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary.ways import message_ways

TRIALS = [[20_000 + 1000 * place for place in range(25)], [30_000 + 1000 * place for place in range(25)]]
# Each message is under way when the next one is published: hand-overs of two lie over one another.
CROWDED = [[14_000_000 + 100 * place for place in range(30)]]


def run(*arguments: str) -> object:
    """The command's exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


class Read:
    """A trace as a viewer understands it."""

    def __init__(self, path: Path) -> None:
        trace = Trace()
        trace.ParseFromString(path.read_bytes())
        self.clock = trace.packet[0].clock_snapshot.primary_trace_clock
        self.default_clock = trace.packet[0].trace_packet_defaults.timestamp_clock_id
        self.tracks: dict[int, Any] = {}
        self.slices: list[dict[str, Any]] = []
        events: dict[int, list[Any]] = defaultdict(list)
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            elif packet.HasField("track_event"):
                assert packet.track_event.track_uuid in self.tracks  # told before it is used
                events[packet.track_event.track_uuid].append(packet)
        for uuid, packets in events.items():
            self._nest(uuid, sorted(packets, key=lambda packet: packet.timestamp))

    def _nest(self, uuid: int, packets: list[Any]) -> None:
        """Slices as a stack, in the order of time: each end closes the slice that was opened last."""
        opened: list[Any] = []
        for packet in packets:
            event = packet.track_event
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                opened.append(packet)
                continue
            begun = opened.pop()
            known = begun.track_event
            self.slices.append(
                {
                    "track": uuid,
                    "name": known.name,
                    "within": [outer.track_event.name for outer in opened],
                    "begin_ns": begun.timestamp,
                    "end_ns": packet.timestamp,
                    "flows": [*known.flow_ids, *known.terminating_flow_ids],
                    "last": bool(known.terminating_flow_ids),
                    "args": {
                        note.name: note.int_value if note.HasField("int_value") else note.string_value
                        for note in known.debug_annotations
                    },
                }
            )
        assert not opened

    def flows(self) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for each in self.slices:
            for flow in each["flows"]:
                found[flow].append(each)
        return {flow: sorted(own, key=lambda each: each["begin_ns"]) for flow, own in found.items()}

    def track_names(self, uuid: int) -> list[str]:
        """The names of a track and of those above it."""
        names = []
        while uuid:
            track = self.tracks[uuid]
            names.append(track.name or track.thread.thread_name or track.process.process_name)
            uuid = track.parent_uuid
        return names

    def process_of(self, uuid: int) -> str:
        track = self.tracks[uuid]
        while not track.HasField("process"):
            track = self.tracks[track.parent_uuid]
        return str(track.process.process_name)


def whole(read: Read) -> None:
    """Each flow is one message: it leads without a gap from its publishing until it was taken."""
    flows = read.flows()
    assert flows
    for own in flows.values():
        at_ns = own[0]["begin_ns"]
        for each in own:
            assert each["begin_ns"] == at_ns < each["end_ns"]
            at_ns = each["end_ns"]
        assert {each["args"]["latency_ns"] for each in own} == {at_ns - own[0]["begin_ns"]}
        assert [each["last"] for each in own] == [False] * (len(own) - 1) + [True]
        assert all(each["args"].keys() >= {"cell", "trial", "edge", "sequence", "worker"} for each in own)
        for each in own:
            assert (
                read.process_of(each["track"])
                == f"{each['args']['worker']} of {CELL} #{each['args']['trial']}"
            )


def test_the_chosen_messages_are_those_of_the_summary(tmp_path: Path) -> None:
    campaign = open_campaign(write_ways(tmp_path / "ways", Made(TRIALS)))
    (path,) = write_chosen(campaign, tmp_path / "out")
    read = Read(path)
    whole(read)
    assert (read.clock, read.default_clock) == (BUILTIN_CLOCK_MONOTONIC, BUILTIN_CLOCK_MONOTONIC)
    expected = {
        (way.trial, way.publish_ns, way.latency_ns): [stay.layer for stay in way.stays]
        for way in message_ways(campaign, [CELL])[0]
    }
    shown = {
        (own[0]["args"]["trial"], own[0]["begin_ns"], own[0]["args"]["latency_ns"]): [
            each["name"] for each in own
        ]
        for own in read.flows().values()
    }
    assert shown == expected and len(expected) == 4
    messages = [each for each in read.slices if not each["flows"]]
    assert sorted(each["end_ns"] - each["begin_ns"] for each in messages) == sorted(
        key[2] for key in expected
    )


@pytest.mark.parametrize("layers", [True, False])
def test_a_whole_trial_is_written_also_where_messages_overlap(tmp_path: Path, layers: bool) -> None:
    campaign = open_campaign(write_ways(tmp_path / "ways", Made(CROWDED, layers=layers)))
    (path,) = write_all(campaign, tmp_path / "out")
    assert path == tmp_path / "out" / CELL / "0.perfetto-trace"
    read = Read(path)
    whole(read)
    found = sorted(own[0]["args"]["latency_ns"] for own in read.flows().values())
    assert found == sorted(map(whole_ns, CROWDED[0]))
    threads = [track for track in read.tracks.values() if track.HasField("thread")]
    assert len({track.thread.tid for track in threads}) == len(threads)
    # Nothing lies over anything else on one track, not even within it.
    by_track = defaultdict(list)
    for each in read.slices:
        by_track[each["track"]].append((each["begin_ns"], each["end_ns"]))
    for spans in by_track.values():
        spans.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_nothing_is_overwritten_or_made_of_nothing(tmp_path: Path) -> None:
    campaign = open_campaign(write_ways(tmp_path / "ways", Made(TRIALS)))
    write_chosen(campaign, tmp_path / "out")
    with pytest.raises(ExchangeError, match="already exists"):
        write_chosen(campaign, tmp_path / "out")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ExchangeError, match="no valid trial"):
        write_chosen(open_campaign(write_ways(empty, Made([]))), tmp_path / "other")


def test_the_command_writes_one_file_or_one_for_each_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_ways(tmp_path / "ways", Made(TRIALS))
    assert run("export", str(directory), "--format", "perfetto") == 0
    assert capsys.readouterr().out.splitlines() == [
        str(directory / "export/perfetto/messages.perfetto-trace")
    ]
    assert run("export", str(directory), "--format", "perfetto", "--all-messages") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run("export", str(directory), "--format", "csv", "--all-messages") == BadInput.exit_code
    assert "--format perfetto" in capsys.readouterr().err


def calls_and_states(read: Read) -> list[dict[str, Any]]:
    """The slices that are no message and no stay."""
    return [each for each in read.slices if not each["flows"] and "latency_ns" not in each["args"]]


def test_calls_lie_in_the_stays_and_states_on_a_track_of_their_own(tmp_path: Path) -> None:
    latency_ns = 20_000
    campaign = open_campaign(write_ways(tmp_path / "ways", Made([[latency_ns]], timelines=True)))
    (path,) = write_chosen(campaign, tmp_path / "out")
    read = Read(path)
    whole(read)
    begin_ns = next(each["begin_ns"] for each in read.slices if each["within"] == [] and not each["flows"])
    part_ns = latency_ns // 1000
    found = calls_and_states(read)
    spans = {
        (each["name"], (each["begin_ns"] - begin_ns) // part_ns, (each["end_ns"] - begin_ns) // part_ns)
        for each in found
    }
    others = {(name, begin, end) for *_, ran in STATES for name, _, _, begin, end in ran}
    assert spans == {each[2:5] for each in (*CALLS, *STATES)} | others and len(found) == len(spans)
    places = {each["name"]: (read.track_names(each["track"])[:-1], each["within"]) for each in found}
    assert places == {
        "rmw_publish": (["node:source 5"], ["send_path"]),
        "send": (["node:source 5"], ["transport"]),
        "middleware_write": (["calls of node:source 5", "node:source 5"], []),
        "receive": (["recvUC 6"], []),
        "poll": (["node:relay 7"], []),
        "middleware_take": (["node:relay 7"], ["take"]),
        "rmw_take": (["node:relay 7"], ["take", "middleware_take"]),
        "asleep": (["scheduler of recvUC 6", "recvUC 6"], []),
        "waiting": (["scheduler of recvUC 6", "recvUC 6"], []),
        "hog": (["scheduler of recvUC 6", "recvUC 6"], ["waiting"]),
        "idle": (["scheduler of recvUC 6", "recvUC 6"], ["waiting"]),
        "running": (["scheduler of recvUC 6", "recvUC 6"], []),
    }
    notes = {each["name"]: each["args"] for each in found}
    assert notes["send"]["bytes"] == 64 and "bytes" not in notes["receive"]
    assert notes["asleep"]["woken_by"] == "an interrupt during node:source (105)"
    assert (notes["waiting"]["cpu"], notes["hog"]["thread"]) == (0, 99)


def test_what_happened_while_two_messages_were_under_way_is_shown_once(tmp_path: Path) -> None:
    directory = write_ways(tmp_path / "ways", Made([[20_000_000] * 30], timelines=True))
    kept = directory / form.TIMELINES / CELL / "0.parquet"
    events = pl.read_parquet(kept, glob=False)
    calls = events.filter(pl.col("kind") == "call")
    period_ns = events["publish_ns"].unique().sort().diff()[1]
    # The next message was under way, too, during each call.
    again = calls.with_columns(pl.col("sequence") + 1, pl.col("publish_ns", "taken_ns") + period_ns)
    form.write_parquet(pl.concat([events, again]), kept)
    campaign = open_campaign(directory)
    (path,) = write_all(campaign, tmp_path / "out")
    read = Read(path)
    whole(read)
    found = calls_and_states(read)
    shown = sorted((each["name"], each["begin_ns"], each["end_ns"]) for each in found)
    expected = {(call["name"], call["begin_ns"], call["end_ns"]) for call in calls.iter_rows(named=True)}
    assert [each for each in shown if each[0] in dict.fromkeys(calls["name"])] == sorted(expected)
    states = [each for each in found if each["name"] in {"asleep", "waiting", "running"}]
    assert len({each["track"] for each in states}) == 1
    ordered = sorted((each["begin_ns"], each["end_ns"]) for each in states)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ordered))
