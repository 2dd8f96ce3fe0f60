# SPDX-License-Identifier: Apache-2.0
"""Named chains: their rows, the parts of their time, how old data gets, half a round trip."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trial import SmallTrial

from lagometer.stats.trial.chain_figures import chain_columns
from lagometer.stats.trial.edges import samples
from lagometer.store.facts import ChainSpec

T = 1_100_000
CHAIN = ChainSpec("way", ("lidar→ekf", "ekf→planner"))


def rows_of(
    trial: SmallTrial, chain: ChainSpec = CHAIN, sinks: tuple[str, ...] = ("planner",)
) -> pl.DataFrame:
    frame = samples(trial.lanes(), trial.facts({0}, set(sinks), chains=(chain,)))
    return frame.filter(pl.col("edge") == chain.name)


def timed() -> SmallTrial:
    """A lidar, a timer that uses its newest message, and a planner.

    Points 0 are published at T, taken 10 later and handled 50 after that; the timer begins at T + 200 and
    publishes 30 later; its message is taken 20 later. Handling takes 50.
    """
    trial = SmallTrial()
    points, pose = trial.edge(0, "lidar", "ekf"), trial.edge(1, "ekf", "planner")
    trial.send(0, 0, T)
    trial.take(points, 0, T + 10)
    trial.send(1, 0, T + 230, causes=((0, 0),), callback_ns=30)
    trial.take(pose, 0, T + 250)
    return trial


def test_the_parts_are_those_of_betz_and_add_up_to_the_whole() -> None:
    row = rows_of(timed()).row(0, named=True)
    assert row["communication_ns"] == 10 + 20
    assert row["idle_ns"] == 200 - 60
    assert row["computation_ns"] == 50 + 30 + 50
    assert row["handled_ns"] - row["publish_ns"] == 30 + 140 + 130
    assert (row["publish_ns"], row["taken_ns"], row["outcome"]) == (T, T + 250, "delivered")


def test_a_relay_has_no_idle_time() -> None:
    trial = SmallTrial()
    points, pose = trial.edge(0, "lidar", "ekf"), trial.edge(1, "ekf", "planner")
    trial.send(0, 0, T)
    trial.take(points, 0, T + 10, handled_ns=T + 80)
    trial.send(1, 0, T + 90, causes=((0, 0),), callback_ns=80)
    trial.take(pose, 0, T + 100)
    row = rows_of(trial).row(0, named=True)
    assert (row["communication_ns"], row["computation_ns"], row["idle_ns"]) == (20, 80 + 50, 0)


def test_of_several_taken_at_once_each_begins_when_the_one_before_ends() -> None:
    trial = SmallTrial()
    points = trial.edge(0, "lidar", "planner")
    for sequence in (0, 1):
        trial.send(0, sequence, T + sequence)
        trial.take(points, sequence, T + 10, handled_ns=T + 60 + 50 * sequence)
    rows = rows_of(trial, ChainSpec("way", ("lidar→planner",)))
    assert rows["communication_ns"].to_list() == [10, 59]
    assert rows["computation_ns"].to_list() == [50, 50]


def test_one_input_with_several_ways_and_one_that_is_passed_over() -> None:
    trial = timed()
    points, pose = trial.edges
    trial.send(0, 1, T + 300)  # replaced by the next before the timer looks
    trial.take(points, 1, T + 310)
    trial.send(0, 2, T + 320)
    trial.take(points, 2, T + 330)
    for sequence, begun in ((1, T + 450), (2, T + 550)):
        trial.send(1, sequence, begun + 30, causes=((0, 2),), callback_ns=30)
        trial.take(pose, sequence, begun + 50)
    rows = rows_of(trial)
    assert rows["sequence"].to_list() == [0, 2, 2]  # message 1 was not lost, and has no row
    figures = chain_columns(rows, returns=False)
    whole = [300, 450 + 100 - 320, 550 + 100 - 320]
    assert figures["age_mean_ns"] == pytest.approx((whole[0] + (whole[1] + whole[2]) / 2) / 2)
    assert (figures["age_best_ns"], figures["age_worst_ns"]) == (min(whole), max(whole))
    # An event right after message 0 is in message 2, which is answered at T + 550.
    assert figures["reaction_max_ns"] == 550 + 0
    means = [figures[f"{name}_mean_ns"] for name in ("communication", "computation", "idle")]
    assert sum(means) == pytest.approx(figures["whole_mean_ns"])  # type: ignore[arg-type]


def test_what_was_lost_on_the_way_has_a_row() -> None:
    trial = timed()
    points, pose = trial.edges
    trial.send(0, 1, T + 300)  # lost on the first edge
    trial.send(0, 2, T + 400)
    trial.take(points, 2, T + 410)
    trial.send(1, 1, T + 430, causes=((0, 2),), callback_ns=5)  # lost on the second
    trial.send(0, 3, T + 500)
    trial.take(points, 3, T + 510)
    trial.send(1, 2, T + 530, causes=((0, 3),), callback_ns=5)
    trial.take(pose, 2, T + 540)
    rows = rows_of(trial).sort("sequence")
    assert list(zip(rows["sequence"], rows["outcome"].cast(pl.String()), strict=True)) == [
        (0, "delivered"),
        (1, "lost"),
        (2, "lost"),
        (3, "delivered"),
    ]
    assert rows["communication_ns"].null_count() == 2


def test_a_chain_follows_a_cause_that_is_not_the_first() -> None:
    trial = SmallTrial()
    other, points, pose = (
        trial.edge(2, "odom", "ekf", 1),
        trial.edge(0, "lidar", "ekf"),
        trial.edge(1, "ekf", "planner"),
    )
    trial.send(2, 0, T)
    trial.take(other, 0, T + 90)
    trial.send(0, 0, T)
    trial.take(points, 0, T + 10)
    trial.send(1, 0, T + 145, causes=((2, 0), (0, 0)), callback_ns=55)
    trial.take(pose, 0, T + 150)
    row = rows_of(trial).row(0, named=True)
    assert (row["sequence"], row["idle_ns"], row["computation_ns"]) == (0, 30, 50 + 55 + 50)


def test_half_a_round_trip_leaves_out_the_echo_and_any_offset_of_its_clock() -> None:
    for offset in (0, 3_000_000):
        trial = SmallTrial()
        ping, pong = trial.edge(0, "ping", "pong"), trial.edge(1, "pong", "ping")
        trial.send(0, 0, T)
        trial.take(ping, 0, T + 40 + offset, handled_ns=T + 90 + offset)
        trial.send(1, 0, T + 140 + offset, causes=((0, 0),), callback_ns=100)
        trial.take(pong, 0, T + 200)
        facts = trial.facts(
            {0}, {"ping"}, chains=(ChainSpec("way", ("ping→pong", "pong→ping"), returns=True),)
        )
        facts = facts.__class__(**{**facts.__dict__, "drain_end_ns": 0})
        rows = samples(trial.lanes(), facts).filter(pl.col("edge") == "way")
        assert chain_columns(rows, returns=True)["half_round_trip_mean_ns"] == (200 - 100) / 2


def test_a_message_in_a_bridge_is_still_on_its_way() -> None:
    """Ping, a bridge that takes 30 each way, and a pong that takes 100, all on one clock: 200 in all."""
    trial = SmallTrial()
    legs = ("ping→bridge", "bridge→pong", "pong→bridge", "bridge→ping")
    edges = [trial.edge(stream, *leg.split("→")) for stream, leg in enumerate(legs)]
    edges[2] = trial.edges[2] = replace(edges[2], reader=1)
    trial.received_rows[(edges[2].receiver_node, 1)] = []
    at_ns = T
    for stream, stay_ns in enumerate((0, 30, 100, 30)):
        causes = ((stream - 1, 0),) if stream else ()
        trial.send(stream, 0, at_ns + stay_ns, causes=causes, callback_ns=stay_ns)
        trial.take(edges[stream], 0, at_ns + stay_ns + 10, handled_ns=at_ns + stay_ns + 15)
        at_ns += stay_ns + 10
    chain = ChainSpec("way", legs, returns=True, forwarded=frozenset({"ping→bridge", "pong→bridge"}))
    facts = trial.facts({0}, {"ping"}, chains=(chain,))
    rows = samples(trial.lanes(), facts).filter(pl.col("edge") == "way")
    assert rows["communication_ns"].to_list() == [4 * 10 + 2 * 30]
    assert rows["computation_ns"].to_list() == [100 + 5]
    assert chain_columns(rows, returns=True)["half_round_trip_mean_ns"] == (200 - 100) / 2


def test_records_without_the_begin_of_the_callback_have_no_parts_but_communication() -> None:
    trial = timed()
    del trial.sent_rows[1][0]["callback_ns"]
    row = rows_of(trial).row(0, named=True)
    assert (row["communication_ns"], row["computation_ns"], row["idle_ns"]) == (30, None, None)


def means(trial: SmallTrial, *chains: ChainSpec) -> list[list[int]]:
    """Of each chain, communication, computation and idle time of its rows, which add up to the whole."""
    facts = trial.facts({0, 1}, {"planner"}, chains=chains)
    frame = samples(trial.lanes(), facts)
    found = []
    for chain in chains:
        rows = frame.filter((pl.col("edge") == chain.name) & (pl.col("outcome") == "delivered"))
        parts = rows.select("communication_ns", "computation_ns", "idle_ns")
        whole = rows["handled_ns"] - rows["publish_ns"]
        assert parts.sum_horizontal().to_list() == whole.to_list()
        assert all(part >= 0 for row in parts.iter_rows() for part in row)
        found += [list(row) for row in parts.unique().iter_rows()]
    return found


@pytest.mark.parametrize("first", [0, 1])
def test_of_several_publishers_taken_at_once_each_begins_when_the_one_before_ends(first: int) -> None:
    """One call takes a message of each publisher, whose callbacks take 5,000 each, one after the other."""
    trial = SmallTrial()
    edges = [trial.edge(stream, name, "planner") for stream, name in enumerate(("left", "right"))]
    for number in range(20):
        at_ns = T + 20_000 * number
        for stream in (0, 1):
            trial.send(stream, number, at_ns)
        for place, stream in enumerate((first, 1 - first)):
            trial.take(edges[stream], number, at_ns + 1_000, handled_ns=at_ns + 6_000 + 5_000 * place)
    chains = [ChainSpec(edge.sender, (edge.name,)) for edge in edges]
    expected = [[1_000, 5_000, 0], [6_000, 5_000, 0]]
    assert means(trial, *chains) == (expected if first == 0 else expected[::-1])


def test_data_used_by_the_second_of_two_callbacks_waits_for_the_first() -> None:
    """One call takes two points; the callback of each uses the newest pose, and works for 5,000."""
    trial = SmallTrial()
    pose, points = trial.edge(0, "odom", "ekf"), trial.edge(1, "lidar", "ekf", reader=1)
    fused = trial.edge(2, "ekf", "planner")
    for number in range(20):
        at_ns = T + 40_000 * number
        trial.send(0, number, at_ns)
        trial.take(pose, number, at_ns + 1_000, handled_ns=at_ns + 1_050)
        for place in (0, 1):
            trial.send(1, 2 * number + place, at_ns + 1_000 + place)
        taken_ns = at_ns + 2_000
        for place in (0, 1):
            point, sent_ns = 2 * number + place, taken_ns + 5_000 * (place + 1)
            trial.take(points, point, taken_ns, handled_ns=sent_ns)
            trial.send(2, point, sent_ns, causes=((1, point), (0, number)), callback_ns=sent_ns - taken_ns)
            trial.take(fused, point, sent_ns + 500)
    from_pose, from_points = (ChainSpec(edge.sender, (edge.name, fused.name)) for edge in (pose, points))
    assert sorted(means(trial, from_pose)) == [[1_500, 5_100, 950], [1_500, 5_100, 5_950]]
    assert sorted(means(trial, from_points)) == [[1_500, 5_050, 0], [6_499, 5_050, 0]]


def test_a_timer_that_fires_when_messages_are_taken_begins_when_it_says() -> None:
    """Two points are handled at once; the timer began after they were taken, and uses the newest."""
    trial = SmallTrial()
    points, pose = trial.edge(0, "lidar", "ekf"), trial.edge(1, "ekf", "planner")
    for number in (0, 1):
        trial.send(0, number, T + number)
        trial.take(points, number, T + 10, handled_ns=T + 60 + 50 * number)
    trial.send(1, 0, T + 230, causes=((0, 1),), callback_ns=30)
    trial.take(pose, 0, T + 250)
    assert means(trial, CHAIN) == [[59 + 20, 50 + 30 + 50, 90]]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 900), st.booleans()), min_size=1, max_size=12))
def test_however_messages_are_taken_together_the_parts_add_up(calls: list[tuple[int, int, bool]]) -> None:
    """calls: how many messages a call takes, how long each callback works, and whose message is the first."""
    trial = SmallTrial()
    edges = [trial.edge(stream, name, "ekf") for stream, name in enumerate(("left", "right"))]
    fused = trial.edge(2, "ekf", "planner")
    numbers, free_ns, published = [0, 0], T, 0
    for count, work_ns, swapped in calls:
        newest: list[tuple[int, int]] = []
        taken_ns = handled_ns = free_ns + 100
        for place in range(count):
            stream = (place + swapped) % 2
            trial.send(stream, numbers[stream], free_ns + place)
            handled_ns += work_ns
            trial.take(edges[stream], numbers[stream], taken_ns, handled_ns=handled_ns)
            newest = [(stream, numbers[stream]), *(each for each in newest if each[0] != stream)]
            callback_ns = max(handled_ns - taken_ns, 1)
            trial.send(2, published, handled_ns, causes=tuple(newest), callback_ns=callback_ns)
            trial.take(fused, published, handled_ns + 20, handled_ns=handled_ns + 30)
            numbers[stream], published = numbers[stream] + 1, published + 1
        free_ns = handled_ns + 50
    means(trial, *(ChainSpec(edge.sender, (edge.name, fused.name)) for edge in edges))
