# SPDX-License-Identifier: Apache-2.0
"""Deadlines and the age of data, counted by hand on small trials."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pytest

from lagometer.errors import BadInput
from lagometer.stats.trial.deadline import deadline_figures, fewest_met, longest_run
from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.store import format as form
from lagometer.study import study_from_mapping
from tests.fixtures.small_trial import (
    DRAIN_END_NS,
    MEASURE_BEGIN_NS,
    MEASURE_END_NS,
    SmallTrial,
    fused,
    pipeline,
)


def source_and_sink(response_ns: Mapping[int, int | None], count: int = 40) -> SmallTrial:
    """A message each 20 µs, due 100 ns before it is sent and taken 1 µs after; `response_ns`: of others."""
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(count):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        wait_ns = response_ns.get(number, 1_000)
        trial.send(0, number, due_ns + 100, intended_ns=due_ns)
        if wait_ns is not None:
            trial.take(edge, number, due_ns + wait_ns)
    return trial


def figures(
    trial: SmallTrial,
    deadline_ns: int | None = 2_000,
    skipped: int = 0,
    edge: str = "source→sink",
    k: int = 10,
) -> dict[str, object]:
    facts = trial.facts({0}, {"sink"}, deadline_ns=deadline_ns, deadline_k=k)
    facts = replace(facts, writers=tuple(replace(each, skipped=skipped) for each in facts.writers))
    return deadline_figures(samples(trial.lanes(), facts), facts)[edge]


def test_met_deadlines() -> None:
    assert figures(source_and_sink({})) == {
        "data_age_max_ns": 20_900,
        "deadline_ns": 2_000,
        "deadline_missed": 0,
        "deadline_miss_share": 0.0,
        "deadline_run_max": 0,
        "deadline_due": 40,
        "deadline_k": 10,
        "deadline_met_of_k_min": 10,
    }


def test_late_and_lost_messages_are_misses_and_counted_in_a_row() -> None:
    found = figures(source_and_sink({3: 2_001, 4: None, 5: None, 6: 2_000, 12: 5_000, 20: None}))
    assert found["deadline_missed"] == 5
    assert found["deadline_miss_share"] == 5 / 40
    assert found["deadline_run_max"] == 3
    assert found["deadline_met_of_k_min"] == 6  # 3 to 12
    # Number 3 is replaced by number 6 alone, two periods later than by the next.
    assert found["data_age_max_ns"] == 3 * 20_000 + 2_000 - 100


@pytest.mark.parametrize(("k", "fewest"), [(1, 0), (3, 0), (4, 1), (40, 35), (41, None)])
def test_the_study_says_of_how_many_in_a_row_the_fewest_are_told(k: int, fewest: int | None) -> None:
    found = figures(source_and_sink({3: 2_001, 4: None, 5: None, 12: 5_000, 20: None}), k=k)
    assert (found["deadline_k"], found["deadline_met_of_k_min"]) == (k, fewest)


def test_the_response_counts_and_not_the_latency() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    trial.send(0, 0, MEASURE_BEGIN_NS + 5_000, intended_ns=MEASURE_BEGIN_NS)
    trial.take(edge, 0, MEASURE_BEGIN_NS + 5_500)
    assert figures(trial)["deadline_missed"] == 1


def test_what_was_under_way_at_the_end_missed_if_its_time_was_over() -> None:
    trial = source_and_sink({39: None})
    due_ns = MEASURE_BEGIN_NS + 20_000 * 39
    assert figures(trial, DRAIN_END_NS - due_ns)["deadline_missed"] == 1
    untold = figures(trial, DRAIN_END_NS - due_ns + 1)
    assert (untold["deadline_missed"], untold["deadline_miss_share"], untold["deadline_due"]) == (0, 0.0, 39)
    assert due_ns < MEASURE_END_NS


def test_skipped_messages_are_misses() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in [*range(5), *range(8, 20)]:
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        trial.send(0, number, due_ns + 100, intended_ns=due_ns)
        trial.take(edge, number, due_ns + 1_000)
    for name in ("source→sink", form.END_TO_END):
        found = figures(trial, skipped=3, edge=name)
        assert (found["deadline_missed"], found["deadline_miss_share"]) == (3, 3 / 20)
        assert (found["deadline_run_max"], found["deadline_met_of_k_min"]) == (3, 7)


def test_what_was_skipped_last_is_a_miss_too() -> None:
    found = figures(source_and_sink({}), skipped=4)
    assert (found["deadline_missed"], found["deadline_run_max"]) == (4, 4)
    assert (found["deadline_miss_share"], found["deadline_met_of_k_min"]) == (4 / 44, 6)
    assert found["deadline_due"] == 44


@pytest.mark.parametrize(
    ("late", "missed", "run", "fewest"),
    [
        ({"far": range(20)}, 20, 1, 5),  # every second
        ({"near": (5, 6, 7), "far": (5, 6, 7)}, 6, 6, 4),
        ({"near": (5,), "far": (6,)}, 2, 1, 8),
    ],
)
def test_sources_with_one_schedule_have_messages_of_their_own(
    late: dict[str, Collection[int]], missed: int, run: int, fewest: int
) -> None:
    """Two sources publish at the same due times, one just after the other."""
    trial = SmallTrial()
    edges = [trial.edge(stream, name, "sink", stream) for stream, name in enumerate(("near", "far"))]
    for number in range(20):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        for stream, edge in enumerate(edges):
            trial.send(stream, number, due_ns + 10 * (1 + stream), intended_ns=due_ns)
            wait_ns = 9_000 if number in late.get(edge.sender, ()) else 1_000
            trial.take(edge, number, due_ns + wait_ns)
    facts = trial.facts({0, 1}, {"sink"}, deadline_ns=5_000)
    found = deadline_figures(samples(trial.lanes(), facts), facts)[form.END_TO_END]
    assert (found["deadline_due"], found["deadline_missed"]) == (40, missed)
    assert (found["deadline_run_max"], found["deadline_met_of_k_min"]) == (run, fewest)


def test_one_message_to_several_sinks_is_met_if_all_have_it_in_time() -> None:
    trial = SmallTrial()
    edges = [trial.edge(0, "source", name) for name in ("near", "far")]
    for number in range(20):
        due_ns = MEASURE_BEGIN_NS + 20_000 * number
        trial.send(0, number, due_ns + 10, intended_ns=due_ns)
        for edge in edges:
            wait_ns = 9_000 if (edge.receiver, number) in (("near", 5), ("far", 6)) else 1_000
            trial.take(edge, number, due_ns + wait_ns)
    facts = trial.facts({0}, {"near", "far"}, deadline_ns=5_000)
    found = deadline_figures(samples(trial.lanes(), facts), facts)[form.END_TO_END]
    assert (found["deadline_due"], found["deadline_missed"]) == (40, 2)
    assert (found["deadline_run_max"], found["deadline_met_of_k_min"]) == (2, 8)


def test_end_to_end_is_from_the_root_to_the_sink() -> None:
    trial, _, _ = pipeline(lost=(7,))
    found = figures(trial, deadline_ns=9_200, edge=form.END_TO_END)
    # Message i takes 9,100 + i; the later half is late, one of the earlier is lost.
    assert found["deadline_missed"] == 1
    assert figures(trial, deadline_ns=9_120, edge=form.END_TO_END)["deadline_missed"] == 30
    assert found["data_age_max_ns"] == 40_000 + 9_000 + 8


def test_an_overtaken_message_replaces_nothing() -> None:
    trial = SmallTrial()
    edge = trial.edge(0, "source", "sink")
    for number in range(3):
        trial.send(0, number, MEASURE_BEGIN_NS + 1_000 * number)
    for number, taken_ns in ((0, 3_000), (2, 4_000), (1, 9_000)):
        trial.take(edge, number, MEASURE_BEGIN_NS + taken_ns)
    assert figures(trial)["data_age_max_ns"] == 4_000


def age_end_to_end(trial: SmallTrial, sources: set[int], sinks: set[str]) -> object:
    facts = trial.facts(sources, sinks)
    return deadline_figures(samples(trial.lanes(), facts), facts)[form.END_TO_END]["data_age_max_ns"]


def test_of_several_sources_the_oldest_data_counts() -> None:
    """Two sources, one sink: each source's data is replaced by its own alone."""
    trial = SmallTrial()
    edges = [trial.edge(stream, f"source-{stream}", "sink", reader=stream) for stream in (0, 1)]
    for number, at_ns in enumerate((0, 1_000, 2_000, 3_000)):
        trial.send(0, number, MEASURE_BEGIN_NS + at_ns)
        trial.take(edges[0], number, MEASURE_BEGIN_NS + at_ns + 100)
    for number, at_ns in enumerate((0, 2_500)):
        trial.send(1, number, MEASURE_BEGIN_NS + at_ns)
        trial.take(edges[1], number, MEASURE_BEGIN_NS + at_ns + 200)
    assert age_end_to_end(trial, {0, 1}, {"sink"}) == 2_700  # of source-1; source-0's is 1,100


def test_an_input_that_is_fused_but_never_the_first_cause_has_an_age() -> None:
    """The fusion uses every second lidar message: 1, 2 µs later 3."""
    trial = fused()
    assert age_end_to_end(trial, {0, 1}, {"sink"}) == 2_000 + 1_500 - 1_000
    # The camera's data is replaced 2,300 ns after its publishing; if the lidar's never were, that is all.
    trial.cause_rows[2][-1]["sequence"] = 1
    assert age_end_to_end(trial, {0, 1}, {"sink"}) == 2_000 + 1_500 - 1_200


def test_each_sink_is_for_itself() -> None:
    trial = SmallTrial()
    near, far = trial.edge(0, "source", "near"), trial.edge(0, "source", "far")
    for number in range(3):
        trial.send(0, number, MEASURE_BEGIN_NS + 1_000 * number)
        trial.take(near, number, MEASURE_BEGIN_NS + 1_000 * number + 100)
    for number in (0, 2):
        trial.take(far, number, MEASURE_BEGIN_NS + 1_000 * number + 300)
    assert age_end_to_end(trial, {0}, {"near", "far"}) == 2_300


def test_of_two_ways_from_one_source_the_newest_counts() -> None:
    """A fusion takes the source's message k by one way and k - 1 by the other: it knows k."""
    trial = SmallTrial()
    edges = [trial.edge(0, "source", name) for name in ("quick", "slow")]
    into = [trial.edge(stream, name, "fusion", stream) for stream, name in ((1, "quick"), (2, "slow"))]
    result = trial.edge(3, "fusion", "sink")
    for number in range(3):
        at_ns = MEASURE_BEGIN_NS + 10_000 * number
        trial.send(0, number, at_ns)
        for stream, edge, onward, wait_ns in ((1, edges[0], into[0], 100), (2, edges[1], into[1], 9_000)):
            trial.take(edge, number, at_ns + wait_ns)
            trial.send(stream, number, at_ns + wait_ns, causes=((0, number),))
            trial.take(onward, number, at_ns + wait_ns + 100)
        if number:
            trial.send(3, number - 1, at_ns + 300, causes=((2, number - 1), (1, number)))
            trial.take(result, number - 1, at_ns + 400)
    assert age_end_to_end(trial, {0}, {"sink"}) == 10_400


def test_data_that_nothing_replaced_has_no_age() -> None:
    trial = SmallTrial()
    for stream in (0, 1):
        edge = trial.edge(stream, f"source-{stream}", "sink", reader=stream)
        trial.send(stream, 0, MEASURE_BEGIN_NS)
        trial.take(edge, 0, MEASURE_BEGIN_NS + 100)
    assert age_end_to_end(trial, {0, 1}, {"sink"}) is None


def test_ways_of_many_edges_lead_to_their_sources() -> None:
    """A chain of relays between two sources and the sink; the age is the same as without them."""
    trial = SmallTrial()
    for source in (0, 1):
        names = [f"source-{source}", *(f"relay-{source}-{place}" for place in range(4)), "sink"]
        for place, (sender, receiver) in enumerate(itertools.pairwise(names)):
            edge = trial.edge(
                10 * place + source, sender, receiver, reader=source if receiver == "sink" else 0
            )
            for number in range(3):
                at_ns = MEASURE_BEGIN_NS + (1 + source) * 5_000 * number + 200 * place
                cause = ((10 * (place - 1) + source, number),) if place else ()
                trial.send(edge.stream, number, at_ns, causes=cause)
                trial.take(edge, number, at_ns + 100)
    assert age_end_to_end(trial, {0, 1}, {"sink"}) == 10_000 + 4 * 200 + 100


def test_without_a_deadline_only_the_age_is_told() -> None:
    trial = source_and_sink({})
    assert set(figures(trial, deadline_ns=None)) == {"data_age_max_ns"}
    facts = trial.facts({0}, {"sink"})
    rows = summarise(samples(trial.lanes(), facts), facts)
    assert rows["data_age_max_ns"].to_list() == [20_900, 20_900]
    assert rows["deadline_missed"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("met", "run", "fewest"),
    [("", 0, None), ("1", 0, None), ("000", 3, 0), ("1101001", 2, 1), ("0111110", 1, 2)],
)
def test_runs_and_windows(met: str, run: int, fewest: int | None) -> None:
    mask = np.array([sign == "1" for sign in met], dtype=np.bool_)
    assert longest_run(~mask) == run
    assert fewest_met(mask, 3) == fewest


def test_a_study_names_its_deadline() -> None:
    matrix = {"adapter": "shm", "workload": "pipeline-2"}
    study = study_from_mapping({"name": "s", "deadline": "10ms", "matrix": matrix}, "test")
    assert study.deadline_ns == study.as_json()["deadline_ns"] == 10_000_000
    assert study.deadline_k == study.as_json()["deadline_k"] == 10
    chosen = study_from_mapping({"name": "s", "deadline": "10ms", "deadline_k": 4, "matrix": matrix}, "test")
    assert chosen.deadline_k == 4
    assert study_from_mapping({"name": "s", "matrix": matrix}, "test").deadline_ns is None


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"deadline_k": 4}, "'deadline_k' is for studies with `deadline`"),
        ({"deadline": "1ms", "deadline_k": 0}, "'0' is not between 1 and 1000000"),
        ({"deadline": "1ms", "deadline_k": "some"}, "deadline_k"),
    ],
)
def test_a_row_of_no_length_is_refused(keys: dict[str, object], told: str) -> None:
    matrix = {"adapter": "shm", "workload": "pipeline-2"}
    with pytest.raises(BadInput, match=told):
        study_from_mapping({"name": "s", "matrix": matrix, **keys}, "test")
