# SPDX-License-Identifier: Apache-2.0
"""When a thread slept, waited in a run queue, and ran, and who ran on its CPU while it waited
(docs/methodology/scheduler.md).

A thread is in one state from one event of the scheduler to the next, so what is known of it has no gaps. What
is not known is said to be so: before and after the recording, and wherever an event may have been lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagometer.store import scheduler as sched
from lagometer.store.scheduler import SchedulerLog

RUNNING, WAITING, ASLEEP, UNKNOWN = range(4)
IDLE_NAME = "idle"
NOT_KNOWN = -1

Times = npt.NDArray[np.int64]
Stretch = tuple[int, int, int, int]  # state, begin_ns, end_ns, CPU (of a queue, or that it runs on; -1: none)
_IN, _OUT, _WAKE, _BORN, _MOVE = range(5)
_Event = tuple[int, int, int, int]  # time_ns, what, CPU, state of the record; of a move where from


@dataclass(frozen=True)
class Other:
    """A thread that ran on a CPU. name, thread: its name and its number on the machine."""

    name: str
    thread: int
    cpu: int


@dataclass(frozen=True)
class Timeline:
    """The states of one thread; each begins where the one before ends."""

    begins: Times
    ends: Times
    states: npt.NDArray[np.int8]
    cpus: npt.NDArray[np.int32]

    @classmethod
    def of(cls, stretches: Sequence[Stretch]) -> Timeline:
        """From stretches that follow one another."""
        table = np.array(stretches, dtype=np.int64).reshape(-1, 4)
        return cls(table[:, 1], table[:, 2], table[:, 0].astype(np.int8), table[:, 3].astype(np.int32))

    def spent(self, begins: Times, ends: Times) -> npt.NDArray[np.int64]:
        """Of each of these gaps the time in each state: a row for each gap, and they add up to it."""
        found = np.zeros((len(begins), 4), np.int64)
        for state in (RUNNING, WAITING, ASLEEP):
            found[:, state] = self._until(ends, state) - self._until(begins, state)
        found[:, UNKNOWN] = ends - begins - found.sum(axis=1)
        return found

    def _until(self, times: Times, state: int) -> Times:
        """How long it had been in a state by then."""
        own = np.where(self.states == state, self.ends - self.begins, 0)
        before = np.concatenate([[0], np.cumsum(own)])
        place = np.searchsorted(self.begins, times, side="right") - 1
        inside = np.clip(place, 0, None)
        since = np.minimum(times, self.ends[inside]) - self.begins[inside]
        within = np.where(self.states[inside] == state, since, 0)
        return np.where(place < 0, 0, before[inside] + within)

    def waits(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a gap in which it waited: from, until, on which CPU."""
        first = max(0, int(np.searchsorted(self.begins, begin_ns, side="right")) - 1)
        for place in range(first, len(self.begins)):
            if self.begins[place] >= end_ns:
                return
            part = max(begin_ns, int(self.begins[place])), min(end_ns, int(self.ends[place]))
            if self.states[place] == WAITING and part[0] < part[1]:
                yield (*part, int(self.cpus[place]))


class RunQueues:
    """What the scheduler of one host did."""

    def __init__(self, log: SchedulerLog) -> None:
        self._log = log
        self._timelines: dict[int, Timeline] = {}

    def timeline(self, thread: int) -> Timeline:
        """The states of a thread, by its number on the machine."""
        if thread not in self._timelines:
            self._timelines[thread] = Timeline.of(self._without_lost(self._stretches(thread)))
        return self._timelines[thread]

    def ran(self, cpu: int, begin_ns: int, end_ns: int) -> Iterator[tuple[Other, int]]:
        """Who ran on a CPU in this time, and how long, one after the other; who is not known is left out."""
        times, threads = self._exchanges.get(cpu, (np.zeros(0, np.int64), np.zeros(1, np.int64)))
        place = int(np.searchsorted(times, begin_ns, side="right"))
        at_ns = begin_ns
        while at_ns < end_ns and len(times):
            until_ns = min(end_ns, int(times[place])) if place < len(times) else end_ns
            thread = int(threads[place])
            if thread == NOT_KNOWN:
                at_ns, place = until_ns, place + 1
                continue
            name = IDLE_NAME if thread == sched.IDLE else self._log.names.get(thread, f"thread {thread}")
            yield Other(name, thread, cpu), until_ns - at_ns
            at_ns, place = until_ns, place + 1

    @cached_property
    def _exchanges(self) -> dict[int, tuple[Times, npt.NDArray[np.int64]]]:
        """Of each CPU when its thread changed, and who ran before each of these times, and after the last.
        Where the one who leaves is not the one who came, a change between them is missing."""
        records = self._log.records
        exchanges = records[records["kind"] == sched.EXCHANGE]
        found = {}
        for cpu in np.unique(exchanges["cpu"]).tolist():
            own = exchanges[exchanges["cpu"] == cpu]
            threads = np.concatenate([own["thread"][:1], own["other"]]).astype(np.int64)
            threads[:-1][threads[:-1] != own["thread"]] = NOT_KNOWN
            found[int(cpu)] = (own["time_ns"].astype(np.int64), threads)
        return found

    @cached_property
    def _lost(self) -> list[tuple[int, int]]:
        """The times in which events may be missing."""
        records = self._log.records
        found = []
        for place in np.flatnonzero(records["kind"] == sched.LOST).tolist():
            at_ns, cpu = int(records[place]["time_ns"]), records[place]["cpu"]
            before = records[:place]  # a move has the CPU of a queue, whoever noted it
            own = (before["cpu"] == cpu) & (before["kind"] != sched.MOVE) & (before["time_ns"] < at_ns)
            same = np.flatnonzero(own)
            begin_ns = int(before[same[-1]]["time_ns"]) if len(same) else self._log.begin_ns
            found.append((begin_ns, at_ns))
        return found

    def _events(self, thread: int) -> list[_Event]:
        """What happened to a thread, in the order of time."""
        records = self._log.records
        kinds = records["kind"]
        mine, next_one = records["thread"] == thread, records["other"] == thread
        own = mine & np.isin(kinds, (sched.EXCHANGE, sched.WAKING, sched.BORN, sched.MOVE))
        some = records[own | (next_one & (kinds == sched.EXCHANGE))]
        found: list[_Event] = []
        for time_ns, kind, state, cpu, leaving, *_, target, _ in some.tolist():
            if kind == sched.EXCHANGE:
                found.append((time_ns, _OUT if leaving == thread else _IN, cpu, state))
            else:
                what = {sched.WAKING: _WAKE, sched.BORN: _BORN, sched.MOVE: _MOVE}[kind]
                found.append((time_ns, what, target, cpu if what == _MOVE else state))
        return found

    def _stretches(self, thread: int) -> list[Stretch]:
        """The states of a thread, were no event lost."""
        events = self._events(thread)
        begin_ns, end_ns = self._log.begin_ns, self._log.end_ns
        on_cpu = [place for place, event in enumerate(events) if event[1] in (_IN, _OUT)]
        if not on_cpu:  # it slept all the time, or ran all the time
            return [(UNKNOWN, begin_ns, end_ns, -1)]
        found: list[Stretch] = []
        at_ns, before = begin_ns, -1
        for place in [*on_cpu, len(events)]:
            until_ns = events[place][0] if place < len(events) else end_ns
            if before >= 0 and place < len(events) and events[before][1] == events[place][1] == _OUT:
                # Its coming is missing. Until the last change on that CPU it was not there.
                change_ns = max(at_ns, self._change_before(events[place][2], until_ns))
                away = _away(events, before, place, (at_ns, change_ns))
                found += [*away, (UNKNOWN, change_ns, until_ns, -1)]
            else:
                found += _between(events, before, place, (at_ns, until_ns))
            at_ns, before = max(at_ns, until_ns), place
        return [each for each in found if each[1] < each[2]]

    def _change_before(self, cpu: int, at_ns: int) -> int:
        times, _ = self._exchanges[cpu]
        place = int(np.searchsorted(times, at_ns)) - 1
        return int(times[place]) if place >= 0 else self._log.begin_ns

    def _without_lost(self, stretches: list[Stretch]) -> list[Stretch]:
        """What an event may be missing of is not known."""
        if not self._lost:
            return stretches
        return [
            (UNKNOWN, begin_ns, end_ns, -1)
            if any(begin_ns < until_ns and from_ns < end_ns for from_ns, until_ns in self._lost)
            else (state, begin_ns, end_ns, cpu)
            for state, begin_ns, end_ns, cpu in stretches
        ]


def _between(events: Sequence[_Event], before: int, after: int, span: tuple[int, int]) -> list[Stretch]:
    """The states between two places at which a thread got onto its CPU or left it; -1 and the number of
    events: the beginning and the end of the recording."""
    begin_ns, end_ns = span
    first = events[before] if before >= 0 else None
    last = events[after] if after < len(events) else None
    if (first is None or first[1] == _IN) and (last is None or last[1] == _OUT):
        cpu = first[2] if first is not None else last[2] if last is not None else -1
        return [(RUNNING, begin_ns, end_ns, cpu)]
    if (first is not None and first[1] == _IN) or (last is not None and last[1] == _OUT):
        return [(UNKNOWN, begin_ns, end_ns, -1)]  # two in a row: one between them is missing
    return _away(events, before, after, span)


def _away(events: Sequence[_Event], before: int, after: int, span: tuple[int, int]) -> list[Stretch]:
    """The states of a thread that is on no CPU: it waits from when it was woken, or from the beginning if it
    left as runnable."""
    begin_ns, end_ns = span
    first = events[before] if before >= 0 else None
    last = events[after] if after < len(events) else None
    woken = next((each for each in events[before + 1 : after] if each[1] in (_WAKE, _BORN)), None)
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
        moved = next((each[3] for each in events[before + 1 : after] if each[1] == _MOVE), last[2])
        return _queued(events, before + 1, after, (begin_ns, end_ns, moved))
    return [(UNKNOWN, begin_ns, end_ns, -1)]


def _woken_on_leaving(events: Sequence[_Event], place: int) -> bool:
    """Whether it was woken just before it had left its CPU, as another CPU may do: then no further call
    comes."""
    for event in reversed(events[:place]):
        if event[1] == _WAKE:
            return True
        if event[1] in (_IN, _OUT):
            return False
    return False


def _queued(events: Sequence[_Event], begin: int, end: int, wait: tuple[int, int, int]) -> list[Stretch]:
    """A wait (from, until, on the queue of which CPU), cut where the thread was moved to another queue."""
    at_ns, until_ns, cpu = wait
    found: list[Stretch] = []
    for time_ns, what, target, _ in events[begin:end]:
        if what != _MOVE or time_ns < at_ns:
            continue
        found.append((WAITING, at_ns, min(time_ns, until_ns), cpu))
        at_ns, cpu = min(time_ns, until_ns), target
    return [*found, (WAITING, at_ns, until_ns, cpu)]
