# SPDX-License-Identifier: Apache-2.0
"""Single messages: which are chosen, and that their stays lead without a gap from publish to taken."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest
from way_campaign import (
    CALLS,
    CELL,
    FIRST,
    IN_NODE_NS,
    NOT_KEPT,
    SECOND,
    STATES,
    WAKER,
    Made,
    whole_ns,
    write_ways,
)

from lagometer.cli.main import main
from lagometer.report.build import build_report
from lagometer.stats.trial.hops import Hops
from lagometer.store import format as form
from lagometer.store.reader import open_campaign
from lagometer.summary import ways as ways_of
from lagometer.summary.way_data import MessageWay
from lagometer.summary.way_rows import Threads
from lagometer.summary.ways import all_ways, message_ways

# Three trials of 21 messages: the third has the middle median.
TRIALS = [[middle + 1000 * place for place in range(-10, 11)] for middle in (40_000, 60_000, 50_000)]
TRIALS[0][3] = 900_000
TRIALS[2][7] = 700_000
TRIALS[2][8] = 800_000


def run(*arguments: str) -> object:
    """The command's exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def found(directory: Path, *, layers: bool = True) -> list[MessageWay]:
    ways, notes = message_ways(
        open_campaign(write_ways(directory, Made(TRIALS, layers=layers))), [CELL, "absent"]
    )
    assert notes == []
    return ways


def named(way: MessageWay) -> list[tuple[str, str | None, str, str]]:
    return [
        (stay.layer, way.rows[stay.row].worker, way.rows[stay.row].thread, way.rows[stay.end_row].thread)
        for stay in way.stays
    ]


def test_the_three_slowest_and_the_median_of_the_middle_trial_are_chosen(tmp_path: Path) -> None:
    ways = found(tmp_path)
    assert [(way.chosen, way.place, way.trial, way.sequence) for way in ways[:3]] == [
        ("slowest", 1, 0, 3),
        ("slowest", 2, 2, 8),
        ("slowest", 3, 2, 7),
    ]
    assert [way.latency_ns for way in ways[:3]] == [whole_ns(each) for each in (900_000, 800_000, 700_000)]
    (median,) = ways[3:]
    ordered = sorted(TRIALS[2])
    assert (median.chosen, median.place, median.trial) == ("median", None, 2)
    assert median.latency_ns == whole_ns(ordered[10])


@pytest.mark.parametrize("layers", [True, False])
def test_stays_lead_from_publish_to_taken_without_a_gap(tmp_path: Path, layers: bool) -> None:
    for way in found(tmp_path, layers=layers):
        at_ns = 0
        for stay in way.stays:
            assert stay.begin_ns == at_ns < stay.end_ns
            at_ns = stay.end_ns
        assert at_ns == way.latency_ns and way.followed


def test_each_layer_is_on_the_thread_where_it_ran(tmp_path: Path) -> None:
    first, *_ = found(tmp_path)
    assert named(first) == [
        ("send_path", "source", "node:source", "node:source"),
        ("transport", "source", "node:source", "recvUC"),
        ("wake", "relay", "recvUC", "node:relay"),
        ("unattributed", "relay", "node:relay", "node:relay"),
        ("take", "relay", "node:relay", "node:relay"),
        ("computation", "relay", "node:relay", "node:relay"),
        ("send_path", "relay", "node:relay", "node:relay"),
        ("transport", "relay", "node:relay", "recvUC"),
        ("wake", "sink", "recvUC", "node:sink"),
        ("unattributed", "sink", "node:sink", "node:sink"),
        ("take", "sink", "node:sink", "node:sink"),
    ]
    across = first.stays[1]
    assert first.rows[across.end_row].worker == "relay" and first.rows[across.end_row].number == 6
    assert {stay.edge for stay in first.stays} == {FIRST, SECOND}


@pytest.mark.parametrize("across", ["transport", "unseen_transport"])
def test_threads_of_two_hosts_may_have_the_same_number(tmp_path: Path, across: str) -> None:
    directory = write_ways(tmp_path, Made([[10_000]]))
    path = directory / form.LAYER_FILES / CELL / "0.parquet"
    layers = pl.read_parquet(path, glob=False).with_columns(pl.col("layer").cast(pl.String()))
    form.write_layers(layers.with_columns(pl.col("layer").replace("transport", across)), path)
    journal = directory / form.JOURNAL
    line = json.loads(journal.read_text())
    line["threads"]["source"].append({"tid": 6, "name": "other"})
    line["threads"]["relay"].append({"tid": 5, "name": "another"})
    journal.write_text(json.dumps(line) + "\n")
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    assert named(way)[:3] == [
        ("send_path", "source", "node:source", "node:source"),
        (across, "source", "node:source", "recvUC"),
        ("wake", "relay", "recvUC", "node:relay"),
    ]


def test_without_layers_there_is_communication_and_computation(tmp_path: Path) -> None:
    first, *_ = found(tmp_path, layers=False)
    spent = [(stay.layer, stay.end_ns - stay.begin_ns) for stay in first.stays]
    assert spent == [("communication", 900_000), ("computation", IN_NODE_NS), ("communication", 450_000)]


def test_a_layer_file_with_a_gap_is_not_believed(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made([[10_000]]))
    path = directory / form.LAYER_FILES / CELL / "0.parquet"
    layers = pl.read_parquet(path, glob=False)
    layers.filter((pl.col("layer") != "wake") | (pl.col("edge") != SECOND)).write_parquet(path)
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    assert [stay.layer for stay in way.stays if stay.edge == SECOND] == ["communication"]
    assert way.stays[-1].end_ns == way.latency_ns


def test_a_message_whose_causes_are_unknown_is_unattributed(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made([[10_000]]))
    path = directory / form.SAMPLES / CELL / "0.parquet"
    samples = pl.read_parquet(path, glob=False)
    samples.with_columns(pl.lit(7, pl.UInt64).alias("cause_sequence")).write_parquet(path)
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    assert not way.followed
    assert [(stay.layer, stay.begin_ns, stay.end_ns) for stay in way.stays] == [
        ("unattributed", 0, whole_ns(10_000))
    ]


def test_idle_time_is_told_from_computation(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made([[10_000]], layers=False))
    path = directory / form.SAMPLES / CELL / "0.parquet"
    samples = pl.read_parquet(path, glob=False)
    taken = pl.col("taken_ns")
    first, second = pl.col("edge") == FIRST, pl.col("edge") == SECOND
    samples.with_columns(
        pl.when(first).then(taken + 1_000).otherwise("handled_ns").alias("handled_ns"),
        pl.when(second).then(pl.col("publish_ns") - 500).otherwise("begun_ns").alias("begun_ns"),
    ).write_parquet(path)
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    inside = [(stay.layer, stay.end_ns - stay.begin_ns) for stay in way.stays[1:-1]]
    assert inside == [("computation", 1_000), ("idle", IN_NODE_NS - 1_500), ("computation", 500)]


def test_the_wait_for_other_callbacks_is_told_from_computation(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made([[10_000]], layers=False))
    path = directory / form.SAMPLES / CELL / "0.parquet"
    samples = pl.read_parquet(path, glob=False)
    started = pl.when(pl.col("edge") == FIRST).then(pl.col("taken_ns") + 1_000)
    samples.with_columns(started.alias("started_ns")).write_parquet(path)
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    inside = [(stay.layer, stay.end_ns - stay.begin_ns) for stay in way.stays[1:-1]]
    assert inside == [("callback_queue", 1_000), ("computation", IN_NODE_NS - 1_000)]


@pytest.mark.parametrize("layers", [True, False])
def test_a_message_in_a_bridge_is_still_on_its_way(tmp_path: Path, layers: bool) -> None:
    directory = write_ways(tmp_path, Made([[10_000]], layers=layers))
    path = directory / form.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["cells"][0]["forwarding"] = [[FIRST, SECOND]]
    path.write_text(json.dumps(manifest))
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    place = [stay.begin_ns for stay in way.stays].index(10_000)
    assert way.stays[place].end_ns - way.stays[place].begin_ns == IN_NODE_NS
    assert named(way)[place] == ("bridge", "relay", "node:relay", "node:relay")
    assert "computation" not in {stay.layer for stay in way.stays}


def test_all_messages_of_a_trial_come_in_the_order_of_time(tmp_path: Path) -> None:
    campaign = open_campaign(write_ways(tmp_path, Made(TRIALS)))
    every = list(all_ways(campaign, CELL, 0))
    assert [way.latency_ns for way in every] == [whole_ns(each) for each in TRIALS[0]]
    assert all(way.followed and way.chosen == "all" for way in every)


def test_too_many_cells_are_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Made([[10_000]], cell=f"udp/pipeline-3/{number}") for number in range(3)]
    campaign = open_campaign(write_ways(tmp_path, *cells))
    monkeypatch.setattr(ways_of, "CELLS_MAX", 2)
    with patch.object(ways_of, "_needed", wraps=ways_of._needed) as needed:
        ways, notes = message_ways(campaign, [made.cell for made in cells])
    assert needed.call_count == 2, "of thousands of cells only those that are shown"
    assert {way.cell for way in ways} == {made.cell for made in cells[:2]}
    assert len(notes) == 1 and "of 2 of 3 cells" in notes[0]


def test_cells_with_too_many_messages_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Made([[10_000] * count], cell=f"udp/pipeline-3/{count}") for count in (2, 9, 3)]
    campaign = open_campaign(write_ways(tmp_path, *cells))
    monkeypatch.setattr(ways_of, "MESSAGES_MAX", 3 * (2 + 3))  # each is counted on three edges
    ways, notes = message_ways(campaign, [made.cell for made in cells])
    assert {way.cell for way in ways} == {cells[0].cell, cells[2].cell}
    assert len(notes) == 1 and "of 2 of 3 cells" in notes[0]


def test_a_thread_is_looked_for_in_the_processes_that_it_can_be_of() -> None:
    threads = Threads({"threads": {"a": [{"tid": 5, "name": "x"}], "b": [{"tid": 5, "name": "y"}]}})
    assert threads.numbered(5, ("b", "a")).thread == "y"
    assert threads.numbered(6, ("b", "a")).worker is None
    assert threads.numbered(0, ("b", "a")).thread == "not known"


def test_two_streams_into_one_node_are_told_apart_by_their_order() -> None:
    rows = [
        ("left→join", 0, 100, 200, None, None),
        ("right→join", 0, 110, 220, None, None),
        ("join→end", 0, 300, 400, 0, 0),
        ("join→end", 1, 310, 410, 1, 0),
    ]
    names = ("edge", "sequence", "publish_ns", "taken_ns", "cause_stream", "cause_sequence")
    frame = pl.DataFrame(
        [
            {
                **dict.fromkeys(form.SAMPLES_SCHEMA),
                **dict(zip(names, row, strict=True)),
                "outcome": "delivered",
                "phase": "measure",
            }
            for row in rows
        ],
        schema=form.SAMPLES_SCHEMA,
    )
    index = Hops(frame).whole()
    assert [hop.edge for hop in index.way(0, 100, 400)] == ["left→join", "join→end"]
    assert [hop.edge for hop in index.way(0, 110, 410)] == ["right→join", "join→end"]
    assert index.way(0, 100, 410) == ()


def test_report_and_show_have_the_same_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = open_campaign(write_ways(tmp_path, Made(TRIALS)))
    expected = [way.model_dump() for way in message_ways(campaign, [CELL])[0]]
    assert len(expected) == 4
    assert [way.model_dump() for way in build_report(campaign).ways] == expected
    assert run("show", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["messages"] == expected


def test_calls_and_states_are_on_the_rows_of_their_threads(tmp_path: Path) -> None:
    (way,) = message_ways(open_campaign(write_ways(tmp_path, Made([[20_000]], timelines=True))), [CELL])[0]
    places = {(row.worker, row.number): place for place, row in enumerate(way.rows)}
    part_ns = 20_000 // 1000
    assert {(call.row, call.name, call.begin_ns, call.end_ns, call.bytes) for call in way.calls} == {
        (places[worker, number], name, begin * part_ns, end * part_ns, 64 if name == "send" else None)
        for worker, number, name, begin, end in CALLS
    }
    assert [(state.row, state.state, state.begin_ns, state.end_ns, state.cpu) for state in way.states] == [
        (places[worker, number], name, begin * part_ns, end * part_ns, cpu)
        for worker, number, name, begin, end, cpu, _ in STATES
    ]
    asleep, waiting, _ = way.states
    assert asleep.woken_by is not None and asleep.woken_by.model_dump() == WAKER
    assert [(ran.name, ran.begin_ns, ran.end_ns) for ran in waiting.instead] == [
        ("hog", 400 * part_ns, 500 * part_ns),
        ("idle", 500 * part_ns, 600 * part_ns),
    ]
    assert waiting.woken_by is None and way.events_left_out == NOT_KEPT


def test_calls_of_threads_that_the_message_does_not_pass_are_left_out(tmp_path: Path) -> None:
    directory = write_ways(tmp_path, Made([[20_000]], layers=False, timelines=True))
    (way,) = message_ways(open_campaign(directory), [CELL])[0]
    assert {way.rows[call.row].number for call in way.calls} == {5, 7}
    assert way.states == []


def test_beyond_the_most_of_a_page_calls_and_states_are_left_out_and_said(tmp_path: Path) -> None:
    directory = write_ways(
        tmp_path, Made([[20_000]], timelines=True), Made([[20_000]], cell=f"{CELL}/b", timelines=True)
    )
    with patch.object(ways_of, "EVENTS_MAX", len(CALLS) + len(STATES)):
        ways, notes = message_ways(open_campaign(directory), [CELL, f"{CELL}/b"])
    assert [len(way.calls) for way in ways] == [len(CALLS), 0]
    assert ways[1].states == [] and ways[1].events_left_out == NOT_KEPT + len(CALLS) + len(STATES)
    (note,) = notes
    assert "Calls and scheduler states of 1 cells" in note
