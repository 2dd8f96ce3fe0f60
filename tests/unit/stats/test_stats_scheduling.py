# SPDX-License-Identifier: Apache-2.0
"""When a thread slept, waited and ran, and who ran instead: against a scheduler that is played, whose truth
is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.stats.cell.scheduling import edge_scheduling
from lagometer.stats.trial.edges import samples as samples_of
from lagometer.stats.trial.run_queue import ASLEEP, RUNNING, UNKNOWN, WAITING, Other, RunQueues
from lagometer.stats.trial.scheduling import Scheduled, in_nodes, scheduler_times, with_side
from lagometer.store import scheduler as sched
from lagometer.store.format import LAYERS_SCHEMA
from lagometer.store.records import Lane
from lagometer.store.scheduler import decode, encode
from tests.fixtures.small_trial import SmallTrial

BEGIN = 1_000
THREADS, CPUS = (11, 12, 13, 14), (0, 1)
NAMES = {11: "source", 12: "sink", 13: "hog", 14: "other"}

Event = dict[str, int]


@dataclass
class Played:
    """A scheduler of two CPUs that does what a seed says, and what it did: the events, and the truth."""

    seed: int
    now_ns: int = BEGIN
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._on = dict.fromkeys(CPUS, 0)
        self._queues: dict[int, list[int]] = {cpu: [] for cpu in CPUS}
        self._state = dict.fromkeys(THREADS, ASLEEP)
        self.truth: dict[int, list[tuple[int, int, int]]] = {each: [] for each in THREADS}
        for each in THREADS:  # some are in a queue already when the recording begins
            if self._random.random() < 0.3:
                cpu = self._random.choice(CPUS)
                self._queues[cpu].append(each)
                self._note(each, WAITING, cpu)
            else:
                self._note(each, ASLEEP, -1)
        self.ran: dict[int, list[tuple[int, int]]] = {cpu: [(BEGIN, 0)] for cpu in CPUS}

    def _note(self, thread: int, state: int, cpu: int) -> None:
        self._state[thread] = state
        self.truth[thread].append((self.now_ns, state, cpu))

    def play(self, steps: int) -> Played:
        for _ in range(steps):
            self.now_ns += self._random.randint(1, 40)
            self._random.choice((self._wake, self._move, self._exchange, self._exchange))()
        self.now_ns += 10
        return self

    def _wake(self) -> None:
        sleeping = [each for each in THREADS if self._state[each] == ASLEEP]
        if not sleeping:
            return
        thread, cpu = self._random.choice(sleeping), self._random.choice(CPUS)
        waker = self._on[self._random.choice(CPUS)]
        self._add(sched.WAKING, cpu=0, thread=thread, other=waker, target_cpu=cpu, state=sched.BY_THREAD)
        self._queues[cpu].append(thread)
        self._note(thread, WAITING, cpu)

    def _move(self) -> None:
        cpu = self._random.choice(CPUS)
        if self._queues[cpu]:
            thread, target = self._queues[cpu].pop(), 1 - cpu
            self._queues[target].append(thread)
            self._add(sched.MOVE, cpu=cpu, thread=thread, target_cpu=target)
            self._note(thread, WAITING, target)

    def _exchange(self) -> None:
        cpu = self._random.choice(CPUS)
        leaving = self._on[cpu]
        sleeps = leaving == 0 or self._random.random() < 0.5
        coming = self._queues[cpu].pop(0) if self._queues[cpu] else 0
        if coming == leaving or (coming == 0 and not sleeps):
            return
        state = sched.ASLEEP if sleeps and leaving else sched.RUNNABLE
        self._add(sched.EXCHANGE, cpu=cpu, thread=leaving, other=coming, state=state)
        if leaving:
            self._note(leaving, ASLEEP if sleeps else WAITING, -1 if sleeps else cpu)
            if not sleeps:
                self._queues[cpu].append(leaving)
        if coming:
            self._note(coming, RUNNING, cpu)
        self._on[cpu] = coming
        self.ran[cpu].append((self.now_ns, coming))

    def _add(self, kind: int, **fields: int) -> None:
        self.events.append({"time_ns": self.now_ns, "kind": kind, **fields})

    def queues(self, events: Sequence[Event] | None = None) -> RunQueues:
        return RunQueues(decode(encode(events or self.events, BEGIN, self.now_ns, NAMES)))

    def state(self, thread: int, at_ns: int) -> tuple[int, int]:
        return [(state, cpu) for since_ns, state, cpu in self.truth[thread] if since_ns <= at_ns][-1]


def seen(played: Played, thread: int) -> bool:
    """Whether it was ever on a CPU: of others nothing can be told."""
    return any(thread in (each["thread"], each.get("other")) for each in _exchanges(played.events))


def _exchanges(events: Sequence[Event]) -> list[Event]:
    return [each for each in events if each["kind"] == sched.EXCHANGE]


@given(st.integers(0, 2**32), st.integers(1, 80))
@settings(max_examples=150, deadline=None)
def test_the_states_of_a_thread_are_those_that_it_had(seed: int, steps: int) -> None:
    played = Played(seed).play(steps)
    queues = played.queues()
    for thread in filter(lambda each: seen(played, each), THREADS):
        timeline = queues.timeline(thread)
        assert timeline.begins[0] == BEGIN
        assert timeline.ends[-1] == played.now_ns
        assert (timeline.begins[1:] == timeline.ends[:-1]).all()
        times = np.arange(BEGIN, played.now_ns)
        spent = timeline.spent(times, times + 1)
        places = np.searchsorted(timeline.begins, times, side="right") - 1
        told = zip(spent.argmax(axis=1).tolist(), timeline.cpus[places].tolist(), strict=True)
        assert list(told) == [played.state(thread, at) for at in times.tolist()]


@given(st.integers(0, 2**32), st.integers(0, 80), st.lists(st.tuples(st.integers(), st.integers())))
@settings(max_examples=100, deadline=None)
def test_the_times_add_up_to_the_gap_whatever_is_missing(
    seed: int, steps: int, gaps: list[tuple[int, int]]
) -> None:
    played = Played(seed).play(steps)
    chooser = random.Random(seed)
    kept = [each for each in played.events if chooser.random() < 0.7]
    span = played.now_ns + 200 - BEGIN
    pairs = [sorted((BEGIN - 100 + a % span, BEGIN - 100 + b % span)) for a, b in gaps]
    begins, ends = (np.array([pair[place] for pair in pairs], dtype=np.int64) for place in (0, 1))
    for thread in THREADS:
        spent = played.queues(kept).timeline(thread).spent(begins, ends)
        assert (spent >= 0).all()
        assert (spent.sum(axis=1) == ends - begins).all()


@given(st.integers(0, 2**32), st.integers(5, 80))
@settings(max_examples=100, deadline=None)
def test_who_ran_instead_is_who_was_on_that_cpu(seed: int, steps: int) -> None:
    played = Played(seed).play(steps)
    queues = played.queues()
    for thread in filter(lambda each: seen(played, each), THREADS):
        for begin_ns, end_ns, cpu in queues.timeline(thread).waits(BEGIN, played.now_ns):
            at_ns = begin_ns
            for other, ran_ns in queues.ran(cpu, begin_ns, end_ns):
                on = [each for since_ns, each in played.ran[cpu] if since_ns <= at_ns][-1]
                assert (other.thread, other.cpu) == (on, cpu)
                at_ns += ran_ns
            assert at_ns == end_ns or not any(each["cpu"] == cpu for each in _exchanges(played.events))


def exchange(at: int, leaving: int, coming: int, state: int = sched.ASLEEP, cpu: int = 0) -> Event:
    return {
        "time_ns": BEGIN + at,
        "kind": sched.EXCHANGE,
        "cpu": cpu,
        "thread": leaving,
        "other": coming,
        "state": state,
    }


def waking(at: int, thread: int, cpu: int = 0) -> Event:
    return {"time_ns": BEGIN + at, "kind": sched.WAKING, "thread": thread, "target_cpu": cpu}


def states(events: Sequence[Event], thread: int = 12, end: int = 100) -> list[tuple[int, int]]:
    """Of a thread: each state, and until when after the beginning."""
    timeline = RunQueues(decode(encode(events, BEGIN, BEGIN + end, NAMES))).timeline(thread)
    return list(zip(timeline.states.tolist(), (timeline.ends - BEGIN).tolist(), strict=True))


def test_a_thread_that_is_woken_while_it_leaves_waits_from_then_on() -> None:
    events = [exchange(10, 0, 12), waking(29, 12), exchange(30, 12, 13), exchange(50, 13, 12)]
    assert states(events) == [(WAITING, 10), (RUNNING, 30), (WAITING, 50), (RUNNING, 100)]


def test_a_call_that_wakes_a_running_thread_changes_nothing() -> None:
    events = [
        exchange(10, 13, 12),
        waking(15, 12),
        exchange(20, 12, 13),
        waking(40, 12),
        exchange(60, 13, 12),
    ]
    assert states(events)[2:] == [(ASLEEP, 40), (WAITING, 60), (RUNNING, 100)]


def test_a_thread_whose_coming_is_missing_waits_until_the_last_change_for_sure() -> None:
    events = [exchange(10, 12, 13), waking(20, 12), exchange(30, 13, 14), exchange(60, 12, 13)]
    assert states(events)[1:] == [(ASLEEP, 20), (WAITING, 30), (UNKNOWN, 60), (ASLEEP, 100)]
    queues = RunQueues(decode(encode(events, BEGIN, BEGIN + 100, NAMES)))
    # From 30 on somebody came that was not seen to leave: nobody is named.
    assert list(queues.ran(0, BEGIN + 20, BEGIN + 50)) == [(Other("hog", 13, 0), 10)]


def test_what_a_lost_event_may_concern_is_not_known() -> None:
    events = [exchange(10, 12, 13, sched.RUNNABLE), exchange(60, 13, 12)]
    assert states(events) == [(RUNNING, 10), (WAITING, 60), (RUNNING, 100)]
    lost = {"time_ns": BEGIN + 30, "kind": sched.LOST, "cpu": 0}
    assert states([events[0], lost, events[1]]) == [(RUNNING, 10), (UNKNOWN, 60), (RUNNING, 100)]


def test_of_a_thread_without_events_nothing_is_known() -> None:
    assert states([exchange(10, 13, 14)]) == [(UNKNOWN, 100)]


def test_nothing_is_known_before_and_after_the_recording() -> None:
    timeline = RunQueues(decode(encode([exchange(10, 12, 13)], BEGIN, BEGIN + 100, NAMES))).timeline(12)
    begins, ends = (
        np.array([BEGIN - 50, BEGIN - 50, BEGIN + 90]),
        np.array([BEGIN - 10, BEGIN + 5, BEGIN + 150]),
    )
    spent = timeline.spent(begins, ends)
    assert spent[:, UNKNOWN].tolist() == [40, 50, 50]
    assert spent[:, RUNNING].tolist() == [0, 5, 0]


def test_a_new_thread_was_not_there_before() -> None:
    born = {**waking(20, 12), "kind": sched.BORN}
    assert states([born, exchange(25, 13, 12)]) == [(UNKNOWN, 20), (WAITING, 25), (RUNNING, 100)]


# --- the stays of messages


def stays(*rows: tuple[str, int, int, int, int]) -> pl.DataFrame:
    """Layer, begin, end, first and last thread of message 0."""
    given_rows = [("source→sink", 0, layer, BEGIN + a, BEGIN + b, *of) for layer, a, b, *of in rows]
    return pl.DataFrame(given_rows, schema=LAYERS_SCHEMA, orient="row")


def trial_of(layers: pl.DataFrame, events: Sequence[Event]) -> pl.DataFrame:
    """What the scheduler tells of the layers: threads 1 and 2 are 11 and 12 on the machine."""
    built = SmallTrial()
    edge = built.edge(0, "source", "sink")
    built.send(0, 0, BEGIN)
    built.take(edge, 0, BEGIN + 100)
    lanes: list[Lane] = [
        lane if lane.kind == 1 else Lane(lane.kind, lane.node, lane.endpoint, lane.records, worker=1)
        for lane in built.lanes()
    ]
    log = decode(encode(events, BEGIN, BEGIN + 100, NAMES))
    scheduled = [Scheduled(log, {0: {1: 11}, 1: {1: 12}})]
    facts = built.facts({0}, {"sink"})
    return scheduler_times(layers, samples_of(lanes, facts), lanes, facts, scheduled, {}).frame


EVENTS = [exchange(1, 0, 11, cpu=1), waking(20, 12), exchange(70, 13, 12), exchange(95, 11, 0, cpu=1)]


@pytest.mark.parametrize("layer", ["transport", "unseen_transport"])
def test_a_hand_over_counts_for_the_thread_that_is_waited_for(layer: str) -> None:
    found = trial_of(stays((layer, 10, 80, 1, 1)), EVENTS)
    assert found.select("asleep_ns", "waiting_ns", "running_ns").row(0) == (10, 50, 10)
    assert found["instead"][0].to_list() == [{"name": "hog", "thread": 13, "cpu": 0, "ran_ns": 50}]


def test_threads_of_two_processes_may_have_one_number() -> None:
    found = trial_of(stays(("send_path", 5, 10, 1, 1), ("transport", 10, 80, 1, 1)), EVENTS)
    assert found["running_ns"].to_list() == [5, 10]
    assert found["thread"].to_list() == [1, 1]


def test_a_stay_that_is_not_known_whole_is_left_out() -> None:
    layers = stays(("transport", 10, 80, 1, 1), ("take", 80, 101, 1, 1))
    assert trial_of(layers, EVENTS)["layer"].to_list() == ["transport"]


def test_the_side_of_what_is_unattributed_is_that_of_what_follows() -> None:
    rows = ("benchmark", 0, 1, 1, 1), ("send_path", 1, 2, 1, 1), ("unattributed", 2, 3, 1, 2)
    layers = stays(*rows, ("take", 3, 4, 2, 2), ("benchmark", 4, 5, 2, 2))
    sides = ["sender", "sender", "receiver", "receiver", "receiver"]
    assert with_side(layers)["side"].to_list() == sides


def test_what_is_unattributed_before_the_message_leaves_is_the_senders() -> None:
    """It ends where the transport begins: on the sender's thread, whose number the receiver may have, too."""
    rows = ("unattributed", 0, 1, 1, 1), ("transport", 1, 2, 1, 2), ("unattributed", 2, 3, 2, 2)
    assert with_side(stays(*rows))["side"].to_list() == ["sender", "receiver", "receiver"]
    found = trial_of(stays(("unattributed", 5, 10, 1, 1), ("transport", 10, 80, 1, 1)), EVENTS)
    assert found["running_ns"].to_list() == [5, 10]


def test_between_two_edges_a_node_computes_and_a_timer_waits() -> None:
    built = SmallTrial()
    first, second = built.edge(0, "source", "relay"), built.edge(1, "relay", "sink")
    late = built.edge(2, "relay", "other")
    built.send(0, 0, BEGIN)
    built.take(first, 0, BEGIN + 20)  # handled at BEGIN + 70
    built.send(1, 0, BEGIN + 60, ((0, 0),), callback_ns=40)
    built.take(second, 0, BEGIN + 90)
    built.send(2, 0, BEGIN + 95, ((0, 0),), callback_ns=10)  # by a timer
    built.take(late, 0, BEGIN + 99)
    facts = built.facts({0}, {"sink", "other"})
    found = in_nodes(samples_of(built.lanes(), facts), facts)
    assert set(found["edge"]) == {"source→relay"}
    spans = [
        (layer, begin_ns - BEGIN, end_ns - BEGIN)
        for layer, begin_ns, end_ns in found.select(
            pl.col("layer").cast(pl.String()), "begin_ns", "end_ns"
        ).iter_rows()
    ]
    assert sorted(spans) == [("computation", 20, 60), ("computation", 85, 95), ("idle", 70, 85)]


def test_of_several_taken_at_once_the_second_waits_for_the_callback_of_the_first() -> None:
    built = SmallTrial()
    first, second = built.edge(0, "source", "relay"), built.edge(1, "relay", "sink")
    for number, (sent_ns, done_ns) in enumerate(((60, 70), (110, 120))):
        built.send(0, number, BEGIN + number)
        built.take(first, number, BEGIN + 20, handled_ns=BEGIN + done_ns)
        built.send(1, number, BEGIN + sent_ns, ((0, number),), callback_ns=sent_ns - 20)
        built.take(second, number, BEGIN + sent_ns + 30)
    facts = built.facts({0}, {"sink"})
    samples = samples_of(built.lanes(), facts)
    on_first = samples.filter(pl.col("edge").cast(pl.String()) == "source→relay")
    assert on_first["started_ns"].to_list() == [None, BEGIN + 70]
    layer = pl.col("layer").cast(pl.String())
    spans = in_nodes(samples, facts).select(
        "sequence", layer, pl.col("begin_ns") - BEGIN, pl.col("end_ns") - BEGIN
    )
    assert sorted(spans.rows()) == [
        (0, "computation", 20, 60),
        (1, "callback_queue", 20, 70),
        (1, "computation", 70, 110),
    ]


def test_in_a_bridge_a_message_is_on_its_way_and_beside_it_the_node_computes() -> None:
    """It answers on its own side and forwards to the other, of one message."""
    built = SmallTrial()
    first, back = built.edge(0, "source", "bridge"), built.edge(1, "bridge", "source")
    across = built.edge(2, "bridge", "sink")
    built.send(0, 0, BEGIN)
    built.take(first, 0, BEGIN + 20)
    built.send(1, 0, BEGIN + 40, ((0, 0),), callback_ns=20)
    built.take(back, 0, BEGIN + 60)
    built.send(2, 0, BEGIN + 65, ((0, 0),), callback_ns=45)
    built.take(across, 0, BEGIN + 90)
    facts = built.facts({0}, {"sink"}, forwarding=frozenset({(first.name, across.name)}))
    found = in_nodes(samples_of(built.lanes(), facts), facts)
    assert set(found["edge"]) == {first.name}
    layer = pl.col("layer").cast(pl.String())
    spans = found.select(layer, pl.col("begin_ns") - BEGIN, pl.col("end_ns") - BEGIN).rows()
    assert sorted(spans) == [("bridge", 20, 65), ("computation", 20, 40)]


def test_what_a_node_does_is_taken_apart_by_its_thread() -> None:
    built = SmallTrial()
    first, second = built.edge(0, "source", "relay"), built.edge(1, "relay", "sink")
    built.send(0, 0, BEGIN)
    built.take(first, 0, BEGIN + 20)
    built.send(1, 0, BEGIN + 80, ((0, 0),), callback_ns=60)
    built.take(second, 0, BEGIN + 90)
    facts = built.facts({0}, {"sink"})
    events = [exchange(10, 13, 12), exchange(30, 12, 13, sched.RUNNABLE), exchange(50, 13, 12)]
    log = decode(encode(events, BEGIN, BEGIN + 100, {**NAMES, 12: "node:relay"}))
    none = pl.DataFrame(schema=LAYERS_SCHEMA)
    lanes = built.lanes()
    scheduled = [Scheduled(log, {0: {5: 12}})]
    found = scheduler_times(none, samples_of(lanes, facts), lanes, facts, scheduled, {})
    assert found.frame.select("asleep_ns", "waiting_ns", "running_ns").rows() == [(0, 20, 40)]
    assert found.counts.known == found.counts.stays == 0  # of layers
    scheduled = [Scheduled(log, {0: {6: 11}})]
    assert scheduler_times(none, samples_of(lanes, facts), lanes, facts, scheduled, {}).frame.is_empty()


# --- a cell


def cell_of(waits_ns: Sequence[int | None]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A trial whose messages spend 1,000 ns and a wait in `transport`; None: 50,000 ns of which nothing is
    known."""
    layers, told = [], []
    for sequence, wait_ns in enumerate(waits_ns):
        end_ns = 1_000 + (50_000 if wait_ns is None else wait_ns)
        layers.append(("e", sequence, "transport", 0, end_ns, 1, 2))
        if wait_ns is not None:
            instead = [{"name": "hog", "thread": 13, "cpu": 1, "ran_ns": wait_ns}]
            told.append(("e", sequence, "transport", 0, end_ns, 2, 400, wait_ns, 600, instead))
    from lagometer.store.format import SCHEDULER_SCHEMA

    return (
        pl.DataFrame(layers, schema=LAYERS_SCHEMA, orient="row"),
        pl.DataFrame(told, schema=SCHEDULER_SCHEMA, orient="row"),
    )


def test_the_slowest_messages_of_a_cell_tell_who_ran() -> None:
    found = edge_scheduling([cell_of([0] * 1980 + [99_000] * 20)])
    assert found is not None
    assert found.slowest is not None
    assert found.slowest.messages == 20
    assert found.slowest.waiting_share == pytest.approx(0.99)
    assert found.slowest.instead[0].name == "hog"
    assert found.slowest.instead[0].share == 1.0
    assert found.slowest.instead[0].cpus == (1,)
    assert found.whole.waiting_share == pytest.approx(99_000 * 20 / (1_000 * 2_000 + 99_000 * 20))
    layer = found.whole.layers[0]
    assert layer.asleep_ns + layer.waiting_ns + layer.running_ns == pytest.approx(found.whole.latency_ns)


def test_what_is_not_known_is_left_out_of_the_shares_and_said() -> None:
    found = edge_scheduling([cell_of([1_000, None])])
    assert found is not None
    assert found.slowest is None
    assert found.whole.known_share == pytest.approx(2_000 / 53_000)
    assert found.whole.waiting_share == 0.5
    assert (found.whole.layers[0].stays, found.whole.layers[0].known) == (2, 1)


def test_what_nodes_do_between_edges_is_listed_in_order() -> None:
    layers, told = cell_of([0])
    text = told.with_columns(pl.col("layer").cast(pl.String()))
    inside = [text.with_columns(layer=pl.lit(name)) for name in ("idle", "computation", "bridge")]
    found = edge_scheduling([(layers, pl.concat([text, *inside]))])
    assert found is not None
    assert [layer.name for layer in found.in_node] == ["bridge", "computation", "idle"]


def test_messages_of_two_trials_with_one_number_are_two() -> None:
    found = edge_scheduling([cell_of([0, 1_000]), cell_of([3_000])])
    assert found is not None
    assert (found.trials, found.whole.messages) == (2, 3)
    assert found.whole.latency_ns == pytest.approx((1_000 + 2_000 + 4_000) / 3)


def test_a_cell_of_which_nothing_is_known_has_no_figures() -> None:
    assert edge_scheduling([cell_of([None])]) is None
