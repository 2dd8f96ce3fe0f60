# SPDX-License-Identifier: Apache-2.0
"""Joining records into samples, on trials small enough to be worked out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.trial.edges import samples
from lagometer.store import format as form
from lagometer.store import records as rec
from lagometer.store.errors import RecordsError
from tests.fixtures.small_trial import (
    DRAIN_END_NS,
    MEASURE_BEGIN_NS,
    MEASURE_END_NS,
    SmallTrial,
    fused,
    pipeline,
)

T = MEASURE_BEGIN_NS


def outcomes(frame: pl.DataFrame, edge: str) -> dict[int, str]:
    chosen = frame.filter(pl.col("edge") == edge)
    return dict(chosen.select("sequence", pl.col("outcome").cast(pl.String())).iter_rows())


def test_columns_are_those_of_the_format() -> None:
    trial, _, _ = pipeline(3)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    assert dict(frame.schema) == form.SAMPLES_SCHEMA
    assert dict(samples([], trial.facts({0}, {"sink"})).schema) == form.SAMPLES_SCHEMA


def test_a_pipeline_end_to_end_has_the_times_of_its_two_ends() -> None:
    trial, _, _ = pipeline(4)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    row = frame.filter(pl.col("edge") == "end-to-end").row(2, named=True)
    publish_ns = T + 100 + 40_000
    assert row["sequence"] == 2
    assert (row["intended_ns"], row["publish_ns"], row["published_ns"]) == (
        publish_ns - 100,
        publish_ns,
        publish_ns + 100,
    )
    assert row["taken_ns"] == publish_ns + 3_002 + 6_000
    assert row["handled_ns"] == row["taken_ns"] + 50
    assert row["signalled_ns"] is None and row["cpu_publish"] is None and row["cause_stream"] is None
    second = frame.filter(pl.col("edge") == "relay→sink").row(2, named=True)
    assert (second["cause_stream"], second["cause_sequence"], second["intended_ns"]) == (0, 2, None)


def test_lost_on_the_way_is_lost_end_to_end() -> None:
    trial, _, _ = pipeline(6, lost=(2,))
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    expected = {0: "delivered", 1: "delivered", 2: "lost", 3: "delivered", 4: "delivered", 5: "delivered"}
    assert outcomes(frame, "source→relay") == expected
    assert outcomes(frame, "end-to-end") == expected
    assert set(outcomes(frame, "relay→sink").values()) == {"delivered"}


def test_the_last_ones_are_censored_not_lost() -> None:
    trial, _, _ = pipeline(5, lost=(3, 4))
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    assert outcomes(frame, "source→relay")[4] == outcomes(frame, "end-to-end")[3] == "censored"


def test_taken_after_the_drain_is_censored() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    trial.send(0, 0, T)
    trial.take(edge, 0, DRAIN_END_NS + 1)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    assert outcomes(frame, "source→sink") == outcomes(frame, "end-to-end") == {0: "censored"}
    assert frame["taken_ns"].null_count() == 2


@pytest.mark.parametrize(
    ("reliability", "history", "outcome"),
    [
        ("best_effort", "keep_last", "lost"),
        ("best_effort", "keep_all", "lost"),
        ("reliable", "keep_all", "lost"),
        ("reliable", "keep_last", "overwritten"),
    ],
)
def test_what_a_gap_is_called_depends_on_what_was_promised(
    reliability: str, history: str, outcome: str
) -> None:
    trial, _, _ = pipeline(3, lost=(1,), reliability=reliability, history=history)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    assert outcomes(frame, "source→relay")[1] == outcomes(frame, "end-to-end")[1] == outcome


def test_rejected_duplicated_reordered_corrupted_and_unmatched() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(4):
        trial.send(0, number, T + number, status=int(number == 1))
    trial.take(edge, 2, T + 1_000)
    trial.take(edge, 0, T + 2_000, flags=rec.FLAG_CORRUPTED)
    trial.take(edge, 3, T + 3_000)
    trial.take(edge, 3, T + 4_000)
    trial.take(edge, 77, T + 5_000)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"})).filter(pl.col("edge") == "source→sink")
    rows = frame.select("sequence", pl.col("outcome").cast(pl.String()), "reordered", "corrupted").rows()
    assert rows == [
        (0, "delivered", True, True),
        (1, "rejected", False, False),
        (2, "delivered", False, False),
        (3, "delivered", False, False),
        (3, "duplicate", False, False),
        (77, "unmatched", False, False),
    ]
    assert frame["publish_ns"].to_list()[-1] is None


def test_phases_go_by_what_was_intended() -> None:
    trial = SmallTrial()
    trial.edge(0, "source", "sink")
    trial.send(0, 0, T + 10, intended_ns=T - 1)  # late: due in the warm-up
    trial.send(0, 1, T)
    trial.send(0, 2, MEASURE_END_NS + 5, intended_ns=MEASURE_END_NS - 1)
    trial.send(0, 3, MEASURE_END_NS)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"})).filter(pl.col("edge") == "source→sink")
    assert frame["phase"].cast(pl.String()).to_list() == ["warm-up", "measure", "measure", "drain"]


def test_a_fan_out_has_a_row_for_each_sink_that_a_root_should_reach() -> None:
    trial = SmallTrial()
    left, right = trial.edge(0, "source", "left"), trial.edge(0, "source", "right")
    for number in range(3):
        trial.send(0, number, T + number)
        trial.take(left, number, T + 100 + number)
    trial.take(right, 0, T + 200)
    trial.take(right, 2, T + 202)
    frame = samples(trial.lanes(), trial.facts({0}, {"left", "right"})).filter(pl.col("edge") == "end-to-end")
    found = frame.select("sequence", pl.col("outcome").cast(pl.String())).sort("sequence", "outcome").rows()
    assert found == [(0, "delivered")] * 2 + [(1, "delivered"), (1, "lost")] + [(2, "delivered")] * 2


def test_all_causes_are_kept_and_chains_follow_the_first() -> None:
    trial = fused()
    frame = samples(trial.lanes(), trial.facts({0, 1}, {"sink"}))
    last = frame.filter(pl.col("edge") == "fusion→sink")
    assert last["causes"].to_list() == [
        [{"stream": 0, "sequence": 0}, {"stream": 1, "sequence": 1}],
        [{"stream": 0, "sequence": 1}, {"stream": 1, "sequence": 3}],
    ]
    chains = frame.filter(pl.col("edge") == "end-to-end")
    assert (chains["taken_ns"] - chains["publish_ns"]).to_list() == [300, 300]
    assert chains["causes"].null_count() == 2


def test_messages_that_a_node_chose_not_to_use_are_not_lost() -> None:
    trial = SmallTrial()
    edge, result = trial.edge(0, "source", "sampler"), trial.edge(1, "sampler", "sink")
    for number in range(6):
        trial.send(0, number, T + 1_000 * number)
        trial.take(edge, number, T + 1_000 * number + 100)
    for fired, newest in enumerate((1, 1, 5)):  # a timer: twice the same message, then one far later
        trial.send(1, fired, T + 6_000 + fired, causes=((0, newest),))
        trial.take(result, fired, T + 7_000 + fired)
    chains = samples(trial.lanes(), trial.facts({0}, {"sink"})).filter(pl.col("edge") == "end-to-end")
    assert chains["sequence"].to_list() == [1, 1, 5]
    assert set(chains["outcome"].cast(pl.String())) == {"delivered"}


def test_a_timer_without_an_input_yet_begins_no_chain() -> None:
    trial = SmallTrial()
    result = trial.edge(1, "sampler", "sink")
    trial.edge(0, "source", "sampler")
    trial.send(1, 0, T)
    trial.take(result, 0, T + 10)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    assert frame.filter(pl.col("edge") == "end-to-end").is_empty()


def pingpong() -> SmallTrial:
    """The pong of ping 1 is lost, so ping 2 is sent after a time-out."""
    trial = SmallTrial()
    ping, pong = trial.edge(0, "ping", "pong"), trial.edge(1, "pong", "ping")
    for number in range(4):
        at_ns = T + 10_000 * number
        trial.send(0, number, at_ns)
        trial.take(ping, number, at_ns + 1_000)
        trial.send(1, number, at_ns + 1_500, causes=((0, number),))
        if number != 1:
            trial.take(pong, number, at_ns + 2_500)
    return trial


def test_end_to_end_of_a_ping_pong_is_the_round_trip() -> None:
    trial = pingpong()
    frame = samples(trial.lanes(), trial.facts({0}, {"ping"}, closed_loop=True))
    chains = frame.filter(pl.col("edge") == "end-to-end").sort("sequence")
    assert (chains["taken_ns"] - chains["publish_ns"]).to_list() == [2_500, None, 2_500, 2_500]
    assert chains["outcome"].cast(pl.String()).to_list() == ["delivered", "lost", "delivered", "delivered"]
    assert chains["resent"].to_list() == [False, False, True, False]


def test_a_chain_of_causes_that_bites_its_tail_has_no_root() -> None:
    trial = SmallTrial()
    trial.edge(0, "source", "loop")
    trial.edge(1, "loop", "other")
    back = trial.edge(2, "other", "sink")
    trial.send(1, 0, T, causes=((2, 0),))
    trial.send(2, 0, T, causes=((1, 0),))
    trial.take(back, 0, T + 5)
    frame = samples(trial.lanes(), trial.facts({0}, {"sink"}))
    assert frame.filter(pl.col("edge") == "end-to-end").is_empty()


@pytest.mark.parametrize("first_cause", [3, 2**31, 2**32 - 1])
def test_causes_beyond_their_lane_are_refused(first_cause: int) -> None:
    trial = fused()
    trial.sent_rows[2][1]["first_cause"] = first_cause
    with pytest.raises(RecordsError, match="point beyond"):
        samples(trial.lanes(), trial.facts({0, 1}, {"sink"}))


def test_a_sequence_sent_twice_is_refused() -> None:
    trial = SmallTrial()
    trial.edge(0, "source", "sink")
    trial.send(0, 4, T)
    trial.send(0, 4, T + 1)
    with pytest.raises(RecordsError, match="sequence 4 sent twice"):
        samples(trial.lanes(), trial.facts({0}, {"sink"}))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 500)), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_every_message_has_one_row_and_latency_is_taken_less_publish(
    messages: list[tuple[bool, int]], shuffler: object
) -> None:
    trial = SmallTrial()
    edge = trial.edge(3, "source", "sink")
    arrivals = [(T + 100 * n + latency, n) for n, (arrives, latency) in enumerate(messages) if arrives]
    for number in range(len(messages)):
        trial.send(3, number, T + 100 * number)
    for at_ns, number in sorted(arrivals):
        trial.take(edge, number, at_ns)
    trial.sent_rows[3].sort(key=lambda _: shuffler.random())  # type: ignore[attr-defined]
    frame = samples(trial.lanes(), trial.facts({3}, {"sink"}))
    for name in ("source→sink", "end-to-end"):
        rows = frame.filter(pl.col("edge") == name).sort("sequence")
        assert rows["sequence"].to_list() == list(range(len(messages)))
        assert (rows["taken_ns"] - rows["publish_ns"]).to_list() == [
            latency if arrives else None for arrives, latency in messages
        ]
        newest = max((n for _, n in arrivals), default=-1)
        gaps = {n for n, (arrives, _) in enumerate(messages) if not arrives}
        assert outcomes(frame, name) == {
            n: "delivered" if n not in gaps else "lost" if n < newest else "censored"
            for n in range(len(messages))
        }
        order = [n for _, n in sorted(arrivals)]
        late = {n for place, n in enumerate(order) if any(before > n for before in order[:place])}
        assert set(rows.filter("reordered")["sequence"].to_list()) == late


def test_records_of_many_messages_are_joined_exactly() -> None:
    count = 20_000
    sent = np.zeros(count, dtype=rec.SENT_DTYPE)
    sent["sequence"] = np.arange(count)
    sent["publish_ns"] = T + np.arange(count)
    received = np.zeros(count, dtype=rec.RECEIVED_DTYPE)
    received["sequence"] = np.arange(count)
    received["taken_ns"] = T + np.arange(count) + np.arange(count) % 7 + 1
    trial = SmallTrial()
    trial.edge(0, "source", "sink")
    lanes = [rec.Lane(rec.KIND_SENT, 0, 0, sent), rec.Lane(rec.KIND_RECEIVED, 1, 0, received)]
    frame = (
        samples(lanes, trial.facts({0}, {"sink"})).filter(pl.col("edge") == "source→sink").sort("sequence")
    )
    assert (frame["taken_ns"] - frame["publish_ns"]).to_list() == [n % 7 + 1 for n in range(count)]
