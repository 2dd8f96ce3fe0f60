# SPDX-License-Identifier: Apache-2.0
"""Single calls and scheduler states on the threads of a few messages: the slowest ones and a median one.

The probes' and the scheduler's files of a trial are too large to keep. Only what happened while these
messages were under way is kept, on the threads that each of them passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from lagometer.stats.trial import run_queue
from lagometer.stats.trial.hops import KEYS, Hop, Hops
from lagometer.stats.trial.layer_times import edge_workers
from lagometer.stats.trial.run_queue import RunQueues
from lagometer.stats.trial.scheduling import INSTEAD_MAX, Scheduled
from lagometer.stats.trial.way import thread_name
from lagometer.store import probes
from lagometer.store import timelines as store
from lagometer.store.facts import TrialFacts
from lagometer.store.format import ARROW, END_TO_END
from lagometer.store.probes import ProbeLog
from lagometer.store.records import Lane
from lagometer.store.timelines import TIMELINES_SCHEMA

SLOWEST = 3
MESSAGES_MAX = 64  # of a trial; more only if many edges have no end-to-end messages
CALLS_MAX = STATES_MAX = 400  # of a message: the longest

Message = tuple[str, int, int, int]  # edge, sequence, publish_ns, taken_ns
Key = tuple[int, int, int]  # as `hops.KEYS`
Thread = tuple[int, int]  # worker, number in records
Row = dict[str, Any]
STATES = {
    run_queue.ASLEEP: store.ASLEEP,
    run_queue.WAITING: store.WAITING,
    run_queue.RUNNING: store.RUNNING,
}


def slowest(messages: pl.DataFrame) -> list[Key]:
    """The slowest of an edge's messages (as `Hops.of_edge`), in no particular order."""
    top = messages.top_k(SLOWEST, by=("latency_ns", "sequence"), reverse=[False, True])
    return [(int(sequence), int(begin), int(end)) for sequence, begin, end in top.select(KEYS).iter_rows()]


def median(messages: pl.DataFrame) -> Key | None:
    """The message with the median latency (the lower one, if there are two); None if there is none."""
    if messages.is_empty():
        return None
    latency_ns, middle = messages["latency_ns"].to_numpy(), (messages.height - 1) // 2
    (places,) = np.nonzero(latency_ns == np.partition(latency_ns, middle)[middle])
    sequence, publish_ns, taken_ns = messages[places].select(KEYS).sort("sequence").row(0)
    return int(sequence), int(publish_ns), int(taken_ns)


@dataclass(frozen=True)
class TimelineCounts:
    """messages: those chosen. calls, states: how many were kept. left_out: beyond the most of a message."""

    messages: int = 0
    calls: int = 0
    states: int = 0
    left_out: int = 0

    def as_json(self) -> Mapping[str, int]:
        """For the journal."""
        return asdict(self)


@dataclass(frozen=True)
class Timelines:
    """The rows of a trial as `TIMELINES_SCHEMA`, and how many there are."""

    frame: pl.DataFrame
    counts: TimelineCounts


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a trial's threads. workers: their names. logs: of the probes, by worker;
    scheduled: of the schedulers, by host; both on the conductor's clock."""

    workers: Sequence[str]
    logs: Mapping[int, ProbeLog]
    scheduled: Sequence[Scheduled]

    def numbers(self, worker: int, node: str, layered: set[int]) -> set[Thread]:
        """Those of a worker's threads that are in a message's layers, and the thread of a node."""
        known = self._names.get(worker, {})
        named = [number for number, name in known.items() if name == thread_name(node)]
        of_node = named if len(named) == 1 else []
        return {(worker, number) for number in (*of_node, *layered) if number in known}

    @cached_property
    def _names(self) -> dict[int, dict[int, str]]:
        """By worker, its threads' names, by the numbers in records."""
        names: dict[int, dict[int, str]] = {}
        for host in self.scheduled:
            for worker, numbers in host.threads.items():
                known = {number: host.log.names.get(there, "") for number, there in numbers.items()}
                names.setdefault(worker, {}).update(known)
        for worker, log in self.logs.items():
            names.setdefault(worker, {}).update(log.names)
        return names

    @cached_property
    def _queues(self) -> list[tuple[Scheduled, RunQueues]]:
        return [(host, RunQueues(host.log)) for host in self.scheduled]

    def calls(self, threads: set[Thread], begin_ns: int, end_ns: int) -> Iterator[Row]:
        """The calls of threads that were not over before a time, or entered after another."""
        for worker in sorted({worker for worker, _ in threads}):
            log = self.logs.get(worker)
            if log is None:
                continue
            first = int(np.searchsorted(log.calls["end_ns"], begin_ns))
            calls, numbers = log.calls[first:], log.threads[first:]
            wanted = [number for owner, number in threads if owner == worker]
            chosen = (calls["begin_ns"] <= end_ns) & np.isin(numbers, wanted)
            chosen &= np.isin(calls["call"], [*store.CALLS])
            for call, number in zip(calls[chosen], numbers[chosen].tolist(), strict=True):
                kind, result = int(call["call"]), int(call["result"])
                moved = kind in (probes.SEND, probes.RECEIVE) and result >= 0
                yield {
                    "worker": self.workers[worker],
                    "thread": number,
                    "kind": store.CALL,
                    "name": store.CALLS[kind],
                    "begin_ns": int(call["begin_ns"]),
                    "end_ns": int(call["end_ns"]),
                    "cpu": int(call["cpu_end"]),
                    "bytes": result if moved else None,
                    "instead": [],
                    "woken_by": None,
                }

    def states(self, threads: set[Thread], begin_ns: int, end_ns: int) -> Iterator[Row]:
        """The known states of threads between two times."""
        for worker, number in sorted(threads):
            for host, queues in self._queues:
                there = host.threads.get(worker, {}).get(number)
                if there is None:
                    continue
                for state, *stretch in queues.timeline(there).within(begin_ns, end_ns):
                    if state != run_queue.UNKNOWN:
                        place = {"worker": self.workers[worker], "thread": number}
                        yield place | _state(queues, there, state, *stretch)


def _state(queues: RunQueues, thread: int, state: int, begin_ns: int, end_ns: int, cpu: int) -> Row:
    waker = queues.waker(thread, end_ns) if state == run_queue.ASLEEP else None
    return {
        "kind": store.STATE,
        "name": STATES[state],
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "cpu": cpu if cpu >= 0 else None,
        "bytes": None,
        "instead": _instead(queues, cpu, begin_ns, end_ns) if state == run_queue.WAITING else [],
        "woken_by": asdict(waker) if waker is not None else None,
    }


def _instead(queues: RunQueues, cpu: int, begin_ns: int, end_ns: int) -> list[Row]:
    """What ran on a CPU, in order; the longest turns, if there are very many."""
    turns = [
        {**asdict(other), "begin_ns": from_ns, "end_ns": until_ns}
        for other, from_ns, until_ns in queues.turns(cpu, begin_ns, end_ns)
    ]
    return _longest(turns, INSTEAD_MAX, begin_ns, end_ns)


def timelines_of(
    layers: pl.DataFrame,
    samples: pl.DataFrame,
    lanes: Sequence[Lane],
    facts: TrialFacts,
    recorded: Recorded,
) -> Timelines:
    """What the threads did that the chosen messages of a trial pass. layers: as `LAYERS_SCHEMA`."""
    hops = Hops(samples)
    ways = {message: _hops(hops, message) for message in _chosen(hops)}
    layered = _layered(layers, {(hop.edge, hop.sequence) for way in ways.values() for hop in way})
    ends = {edge.name: found for edge in facts.edges if (found := edge_workers(edge, lanes)) is not None}
    rows: list[Row] = []
    left_out = 0
    for message, way in ways.items():
        threads: set[Thread] = set()
        for hop in way:
            numbers = layered.get((hop.edge, hop.sequence), set())
            for worker, node in zip(ends.get(hop.edge, ()), (hop.sender, hop.receiver), strict=False):
                threads |= recorded.numbers(worker, node, numbers)
        span = message[2:]
        calls, states = [*recorded.calls(threads, *span)], [*recorded.states(threads, *span)]
        kept = _longest(calls, CALLS_MAX, *span) + _longest(states, STATES_MAX, *span)
        missing = len(calls) + len(states) - len(kept)
        left_out += missing
        identity = dict(zip(("edge", *KEYS), message, strict=True))
        rows += [{**identity, "left_out": missing, **row} for row in kept]
    frame = pl.DataFrame(
        [tuple(row[name] for name in TIMELINES_SCHEMA) for row in rows],
        schema=TIMELINES_SCHEMA,
        orient="row",
    )
    calls_kept = sum(row["kind"] == store.CALL for row in rows)
    return Timelines(frame, TimelineCounts(len(ways), calls_kept, len(rows) - calls_kept, left_out))


def _chosen(hops: Hops) -> list[Message]:
    """The messages that a view may choose: end to end, or of each edge if there are none end to end."""
    edges = hops.edges
    wanted = [END_TO_END] if END_TO_END in edges else [edge for edge in edges if ARROW in edge]
    chosen: dict[Message, None] = {}
    for edge in wanted:
        if len(chosen) >= MESSAGES_MAX:
            break
        messages = hops.of_edge(edge)
        middle = median(messages)
        keys = slowest(messages) if middle is None else [*slowest(messages), middle]
        chosen |= dict.fromkeys((edge, *key) for key in keys)
    return [*chosen][:MESSAGES_MAX]


def _hops(hops: Hops, message: Message) -> Sequence[Hop]:
    edge, sequence, publish_ns, taken_ns = message
    index = hops.within(publish_ns, taken_ns)
    if edge == END_TO_END:
        return index.way(sequence, publish_ns, taken_ns)
    return index.single(edge, sequence)


def _layered(layers: pl.DataFrame, wanted: set[tuple[str, int]]) -> dict[tuple[str, int], set[int]]:
    """By edge and sequence, the threads of a message's layers."""
    keys = pl.DataFrame([*wanted], schema={"edge": pl.String(), "sequence": pl.UInt64()}, orient="row")
    found = layers.with_columns(pl.col("edge").cast(pl.String())).join(
        keys, on=("edge", "sequence"), how="semi"
    )
    threads: dict[tuple[str, int], set[int]] = {}
    for edge, sequence, *both in found.select("edge", "sequence", "begin_thread", "end_thread").iter_rows():
        threads.setdefault((edge, sequence), set()).update(both)
    return threads


def _longest(rows: Sequence[Row], most: int, begin_ns: int, end_ns: int) -> list[Row]:
    """The rows with the longest parts between two times, in the order of time."""

    def part_ns(row: Row) -> int:
        return min(int(row["end_ns"]), end_ns) - max(int(row["begin_ns"]), begin_ns)

    kept = sorted(rows, key=lambda row: (-part_ns(row), row["begin_ns"]))[:most]
    return sorted(kept, key=lambda row: (row["begin_ns"], -row["end_ns"]))
