# SPDX-License-Identifier: Apache-2.0
"""When a thread slept, waited in a run queue, and ran, and what ran on its CPU while it waited
(docs/methodology/scheduler.md).

A thread is in one state from one scheduler event to the next, so its timeline has no gaps. Unknown times are
marked as such: before and after the recording, and wherever an event may have been lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from lagometer.store import scheduler as sched
from lagometer.store.scheduler import SchedulerLog

RUNNING, WAITING, ASLEEP, UNKNOWN = range(4)
IDLE_NAME = "idle"
NOT_KNOWN = -1

Times = npt.NDArray[np.int64]
Stretch = tuple[int, int, int, int]  # state, begin_ns, end_ns, CPU (its queue's or where it runs; -1: none)
_IN, _OUT, _WAKE, _BORN, _MOVE = range(5)
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_Event = tuple[int, int, int, int]  # time_ns, kind, CPU, the record's state; of a move: from where


@dataclass(frozen=True)
class Other:
    """A thread that ran on a CPU. name, thread: its name and its id on the machine."""

    name: str
    thread: int
    cpu: int


@dataclass(frozen=True)
class Waker:
    """Who woke a thread: a thread of this name and id (on the machine), or an interrupt while it ran."""

    name: str
    thread: int
    interrupt: bool


@dataclass(frozen=True)
class Timeline:
    """The states of one thread; each begins where the one before ends."""

    begins: Times
    ends: Times
    states: npt.NDArray[np.int8]
    cpus: npt.NDArray[np.int32]

    @classmethod
    def of(cls, stretches: Sequence[Stretch]) -> Timeline:
        """Built from consecutive stretches."""
        table = np.array(stretches, dtype=np.int64).reshape(-1, 4)
        return cls(table[:, 1], table[:, 2], table[:, 0].astype(np.int8), table[:, 3].astype(np.int32))

    def spent(self, begins: Times, ends: Times) -> npt.NDArray[np.int64]:
        """For each of these gaps, the time in each state: one row per gap; a row adds up to its gap."""
        durations_ns = np.zeros((len(begins), 4), np.int64)
        for state in (RUNNING, WAITING, ASLEEP):
            durations_ns[:, state] = self._until(ends, state) - self._until(begins, state)
        durations_ns[:, UNKNOWN] = ends - begins - durations_ns.sum(axis=1)
        return durations_ns

    def _until(self, times: Times, state: int) -> Times:
        """The total time in a state up to each of these times."""
        durations_ns = np.where(self.states == state, self.ends - self.begins, 0)
        cumulative_ns = np.concatenate([[0], np.cumsum(durations_ns)])
        place = np.searchsorted(self.begins, times, side="right") - 1
        inside = np.clip(place, 0, None)
        since = np.minimum(times, self.ends[inside]) - self.begins[inside]
        within = np.where(self.states[inside] == state, since, 0)
        return np.where(place < 0, 0, cumulative_ns[inside] + within)

    def within(self, begin_ns: int, end_ns: int) -> Iterator[Stretch]:
        """The parts of a gap in one state each, in order."""
        first = max(0, int(np.searchsorted(self.begins, begin_ns, side="right")) - 1)
        for place in range(first, len(self.begins)):
            if self.begins[place] >= end_ns:
                return
            part = max(begin_ns, int(self.begins[place])), min(end_ns, int(self.ends[place]))
            if part[0] < part[1]:
                yield int(self.states[place]), *part, int(self.cpus[place])

    def waits(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a gap in which the thread waited: from, until, on which CPU."""
        for state, from_ns, until_ns, cpu in self.within(begin_ns, end_ns):
            if state == WAITING:
                yield from_ns, until_ns, cpu


class RunQueues:
    """What the scheduler of one host did."""

    def __init__(self, log: SchedulerLog) -> None:
        self._log = log
        self._timelines: dict[int, Timeline] = {}
        self._wakers: dict[int, dict[int, Waker]] = {}

    def timeline(self, thread: int) -> Timeline:
        """The states of a thread, by its id on the machine."""
        if thread not in self._timelines:
            self._timelines[thread] = Timeline.of(self._without_lost(self._stretches(thread)))
        return self._timelines[thread]

    def ran(self, cpu: int, begin_ns: int, end_ns: int) -> Iterator[tuple[Other, int]]:
        """What ran on a CPU in this time, and for how long, in order; unknown threads are left out."""
        for other, from_ns, until_ns in self.turns(cpu, begin_ns, end_ns):
            yield other, until_ns - from_ns

    def turns(self, cpu: int, begin_ns: int, end_ns: int) -> Iterator[tuple[Other, int, int]]:
        """The same, with when each began and ended."""
        times, threads = self._exchanges.get(cpu, (np.zeros(0, np.int64), np.zeros(1, np.int64)))
        place = int(np.searchsorted(times, begin_ns, side="right"))
        at_ns = begin_ns
        while at_ns < end_ns and len(times):
            until_ns = min(end_ns, int(times[place])) if place < len(times) else end_ns
            thread = int(threads[place])
            if thread == NOT_KNOWN:
                at_ns, place = until_ns, place + 1
                continue
            yield Other(self._name(thread), thread, cpu), at_ns, until_ns
            at_ns, place = until_ns, place + 1

    def waker(self, thread: int, at_ns: int) -> Waker | None:
        """Who woke a thread at this moment; None if that was not recorded."""
        if thread not in self._wakers:
            records = self._records_of(thread)
            records = records[(records["kind"] == sched.WAKING) & (records["thread"] == thread)]
            self._wakers[thread] = {
                time_ns: Waker(self._name(other), other, state == sched.BY_INTERRUPT)
                for time_ns, other, state in records[["time_ns", "other", "state"]].tolist()
            }
        return self._wakers[thread].get(at_ns)

    def _name(self, thread: int) -> str:
        return IDLE_NAME if thread == sched.IDLE else self._log.names.get(thread, f"thread {thread}")

    @cached_property
    def _exchanges(self) -> dict[int, tuple[Times, npt.NDArray[np.int64]]]:
        """For each CPU, when its thread changed, and who ran before each change and after the last one. If
        the leaving thread is not the one that came, a change in between is missing."""
        records = self._log.records
        exchanges = records[records["kind"] == sched.EXCHANGE]
        by_cpu = {}
        for cpu in np.unique(exchanges["cpu"]).tolist():
            cpu_exchanges = exchanges[exchanges["cpu"] == cpu]
            threads = np.concatenate([cpu_exchanges["thread"][:1], cpu_exchanges["other"]]).astype(np.int64)
            threads[:-1][threads[:-1] != cpu_exchanges["thread"]] = NOT_KNOWN
            by_cpu[int(cpu)] = (cpu_exchanges["time_ns"].astype(np.int64), threads)
        return by_cpu

    @cached_property
    def _lost(self) -> list[tuple[int, int]]:
        """The time ranges in which events may be missing."""
        records = self._log.records
        intervals = []
        for place in np.flatnonzero(records["kind"] == sched.LOST).tolist():
            at_ns, cpu = int(records[place]["time_ns"]), records[place]["cpu"]
            before = records[:place]  # a move has the CPU of a queue, whoever recorded it
            same_cpu = (before["cpu"] == cpu) & (before["kind"] != sched.MOVE) & (before["time_ns"] < at_ns)
            indices = np.flatnonzero(same_cpu)
            begin_ns = int(before[indices[-1]]["time_ns"]) if len(indices) else self._log.begin_ns
            intervals.append((begin_ns, at_ns))
        return intervals

    @cached_property
    def _by_thread(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The threads of all events in ascending order, and each one's record."""
        records = self._log.records
        primary = np.flatnonzero(
            np.isin(records["kind"], (sched.EXCHANGE, sched.WAKING, sched.BORN, sched.MOVE))
        )
        coming = np.flatnonzero(records["kind"] == sched.EXCHANGE)
        threads = np.concatenate([records["thread"][primary], records["other"][coming]])
        places = np.concatenate([primary, coming])
        order = np.argsort(threads, kind="stable")
        return threads[order], places[order]

    def _records_of(self, thread: int) -> sched.Records:
        """The records of a thread's events, in time order."""
        ordered, places = self._by_thread
        first, last = (int(np.searchsorted(ordered, thread, side=side)) for side in _SIDES)
        return self._log.records[np.sort(places[first:last])]

    def _events(self, thread: int) -> list[_Event]:
        """A thread's events, in time order."""
        events: list[_Event] = []
        for time_ns, kind, state, cpu, leaving, *_, target, _ in self._records_of(thread).tolist():
            if kind == sched.EXCHANGE:
                events.append((time_ns, _OUT if leaving == thread else _IN, cpu, state))
            else:
                event_kind = {sched.WAKING: _WAKE, sched.BORN: _BORN, sched.MOVE: _MOVE}[kind]
                events.append((time_ns, event_kind, target, cpu if event_kind == _MOVE else state))
        return events

    def _stretches(self, thread: int) -> list[Stretch]:
        """The states of a thread, assuming no event was lost."""
        events = self._events(thread)
        begin_ns, end_ns = self._log.begin_ns, self._log.end_ns
        on_cpu = [place for place, event in enumerate(events) if event[1] in (_IN, _OUT)]
        if not on_cpu:  # it slept all the time, or ran all the time
            return [(UNKNOWN, begin_ns, end_ns, -1)]
        stretches: list[Stretch] = []
        at_ns, before = begin_ns, -1
        for place in [*on_cpu, len(events)]:
            until_ns = events[place][0] if place < len(events) else end_ns
            if before >= 0 and place < len(events) and events[before][1] == events[place][1] == _OUT:
                # Its switch-in event is missing. Until the last change on that CPU, the thread was not there.
                change_ns = max(at_ns, self._change_before(events[place][2], until_ns))
                away = _away(events, before, place, (at_ns, change_ns))
                stretches += [*away, (UNKNOWN, change_ns, until_ns, -1)]
            else:
                stretches += _between(events, before, place, (at_ns, until_ns))
            at_ns, before = max(at_ns, until_ns), place
        return [stretch for stretch in stretches if stretch[1] < stretch[2]]

    def _change_before(self, cpu: int, at_ns: int) -> int:
        times, _ = self._exchanges[cpu]
        place = int(np.searchsorted(times, at_ns)) - 1
        return int(times[place]) if place >= 0 else self._log.begin_ns

    def _without_lost(self, stretches: list[Stretch]) -> list[Stretch]:
        """Marks stretches as unknown where an event may be missing."""
        if not self._lost:
            return stretches
        return [
            (UNKNOWN, begin_ns, end_ns, -1)
            if any(begin_ns < until_ns and from_ns < end_ns for from_ns, until_ns in self._lost)
            else (state, begin_ns, end_ns, cpu)
            for state, begin_ns, end_ns, cpu in stretches
        ]


def _between(events: Sequence[_Event], before: int, after: int, span: tuple[int, int]) -> list[Stretch]:
    """The states between two events at which a thread got onto its CPU or left it; -1 and the number of
    events stand for the beginning and the end of the recording."""
    begin_ns, end_ns = span
    first = events[before] if before >= 0 else None
    last = events[after] if after < len(events) else None
    if (first is None or first[1] == _IN) and (last is None or last[1] == _OUT):
        cpu = first[2] if first is not None else last[2] if last is not None else -1
        return [(RUNNING, begin_ns, end_ns, cpu)]
    if (first is not None and first[1] == _IN) or (last is not None and last[1] == _OUT):
        return [(UNKNOWN, begin_ns, end_ns, -1)]  # two of a kind in a row: one in between is missing
    return _away(events, before, after, span)


def _away(events: Sequence[_Event], before: int, after: int, span: tuple[int, int]) -> list[Stretch]:
    """The states of a thread that is on no CPU: it waits from its wake-up, or from the beginning if it left
    the CPU while runnable."""
    begin_ns, end_ns = span
    first = events[before] if before >= 0 else None
    last = events[after] if after < len(events) else None
    woken = next((event for event in events[before + 1 : after] if event[1] in (_WAKE, _BORN)), None)
    if first is not None and first[3] == sched.RUNNABLE:
        return _queued(events, before + 1, after, (begin_ns, end_ns, first[2]))
    if woken is not None:
        state = UNKNOWN if woken[1] == _BORN else ASLEEP
        since_ns = min(max(woken[0], begin_ns), end_ns)
        rest = _queued(events, before + 1, after, (since_ns, end_ns, woken[2]))
        return [(state, begin_ns, since_ns, -1), *rest]
    if last is None and first is not None and first[3] == sched.ASLEEP:
        return [(ASLEEP, begin_ns, end_ns, -1)]
    if last is not None and last[1] == _IN and (first is None or _woken_on_leaving(events, before)):
        queue_cpu = next((event[3] for event in events[before + 1 : after] if event[1] == _MOVE), last[2])
        return _queued(events, before + 1, after, (begin_ns, end_ns, queue_cpu))
    return [(UNKNOWN, begin_ns, end_ns, -1)]


def _woken_on_leaving(events: Sequence[_Event], place: int) -> bool:
    """Whether another CPU woke it just before it had left its own; no further wake-up follows then."""
    for event in reversed(events[:place]):
        if event[1] == _WAKE:
            return True
        if event[1] in (_IN, _OUT):
            return False
    return False


def _queued(events: Sequence[_Event], begin: int, end: int, wait: tuple[int, int, int]) -> list[Stretch]:
    """A wait (from, until, on which CPU's queue), split where the thread moved to another queue."""
    at_ns, until_ns, cpu = wait
    stretches: list[Stretch] = []
    for time_ns, kind, target, _ in events[begin:end]:
        if kind != _MOVE or time_ns < at_ns:
            continue
        stretches.append((WAITING, at_ns, min(time_ns, until_ns), cpu))
        at_ns, cpu = min(time_ns, until_ns), target
    return [*stretches, (WAITING, at_ns, until_ns, cpu)]
