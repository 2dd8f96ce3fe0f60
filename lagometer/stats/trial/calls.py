# SPDX-License-Identifier: Apache-2.0
"""The calls of one process, as its probe recorded them, for lookup by thread, kind and message."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lagometer.store import probes
from lagometer.store.probes import ProbeLog

Message = tuple[int, int]  # stream and sequence, from our envelope
HOPS_MAX = 32  # threads that wake each other on one message's way
Sample = tuple[bytes, int]  # writer and sequence number, from RTPS


@dataclass(frozen=True)
class Call:
    """One call: when it was entered and left, and on which thread."""

    begin_ns: int
    end_ns: int
    thread: int
    object: int = 0
    descriptor: int = -1


@dataclass(frozen=True)
class Carried:
    """One call that carried a part of a message. fragments: their numbers; empty if it was not split."""

    call: Call
    fragments: range = range(0)
    all_fragments: int = 0


class Process:
    """The calls of one process."""

    def __init__(self, log: ProbeLog) -> None:
        self._log = log
        self.names = log.names
        begins, ends = log.calls["begin_ns"].tolist(), log.calls["end_ns"].tolist()
        threads, objects = log.threads.tolist(), log.calls["object"].tolist()
        descriptors = log.calls["descriptor"].tolist()
        self._calls = [
            Call(*fields) for fields in zip(begins, ends, threads, objects, descriptors, strict=True)
        ]
        self._of: dict[tuple[int, int], list[Call]] = defaultdict(list)
        self._of_kind: dict[int, list[Call]] = defaultdict(list)
        self._notifies: dict[int, list[Call]] = defaultdict(
            list
        )  # by what they notified, in the order of entry
        self._signals: set[int] = set()  # eventfds and pipes
        self._drains: dict[int, set[int]] = defaultdict(set)  # by eventfd or pipe, the threads that read it
        for kind, call in zip(log.calls["call"].tolist(), self._calls, strict=True):
            self._of[call.thread, kind].append(call)
            self._of_kind[kind].append(call)
            if kind == probes.DRAINED:
                self._drains[call.object].add(call.thread)
            elif kind == probes.NOTIFY:
                self._notifies[call.object].append(call)
                if call.descriptor >= 0:
                    self._signals.add(call.object)
        for calls in self._notifies.values():
            calls.sort(key=_begin)

    # --- by thread and kind

    @property
    def last_ns(self) -> int:
        """When the last of all calls returned; 0 if there are none."""
        return self._calls[-1].end_ns if self._calls else 0

    def knows(self, kind: int) -> bool:
        """Whether there is any call of this kind."""
        return bool(self._of_kind[kind])

    def last(self, kind: int, thread: int | None, after_ns: int, until_ns: int) -> Call | None:
        """The last call that returned after one moment and no later than another; None if there is none."""
        calls = self._of_kind[kind] if thread is None else self._of[thread, kind]
        place = bisect_right(calls, until_ns, key=_end) - 1
        return calls[place] if place >= 0 and calls[place].end_ns > after_ns else None

    def following(self, kind: int, thread: int, after_ns: int, until_ns: int) -> Call | None:
        """A thread's first call that was entered at or after one moment and no later than another."""
        calls = self._of[thread, kind]
        for place in range(bisect_left(calls, after_ns, key=_end), len(calls)):
            if calls[place].begin_ns >= after_ns:
                return calls[place] if calls[place].begin_ns <= until_ns else None
        return None

    def within(self, kind: int, thread: int | None, begin_ns: int, end_ns: int) -> list[Call]:
        """The calls that were entered and left between two moments."""
        calls = self._of_kind[kind] if thread is None else self._of[thread, kind]
        candidates = calls[bisect_left(calls, begin_ns, key=_end) : bisect_right(calls, end_ns, key=_end)]
        return [call for call in candidates if call.begin_ns >= begin_ns]

    def notified(self, thread: int | None, condition: int, after_ns: int, until_ns: int) -> Call | None:
        """A thread's (None: any) last call that notified a condition, entered between two moments."""
        # The woken thread may continue before the call returns, so the call's end says nothing.
        kind = probes.NOTIFY
        calls = self._of_kind[kind] if thread is None else self._of[thread, kind]
        for call in reversed(calls[bisect_left(calls, after_ns, key=_end) :]):
            if call.object == condition and after_ns <= call.begin_ns <= until_ns:
                return call
        return None

    def handed_over(
        self, thread: int, to: int, after_ns: int, until_ns: int
    ) -> Sequence[tuple[Call, Call]] | None:
        """How one thread woke another between two moments, perhaps through others: each waking call, and the
        call in which the woken thread had waited. None if it was not seen."""
        hops: list[tuple[Call, Call]] = []
        current, until = to, until_ns
        while len(hops) < HOPS_MAX:
            hop = self._woken_by(current, after_ns, until)
            if hop is None:
                return None
            hops.append(hop)
            current, until = hop[0].thread, hop[0].begin_ns
            if current == thread:
                return hops[::-1]
        return None

    def _woken_by(self, thread: int, after_ns: int, until_ns: int) -> tuple[Call, Call] | None:
        """Who woke a thread last, and in which call the thread had waited."""
        hops = [
            self._woken_by_condition(thread, after_ns, until_ns),
            self._woken_by_signal(thread, after_ns, until_ns),
        ]
        return max((hop for hop in hops if hop is not None), key=lambda hop: hop[1].end_ns, default=None)

    def _woken_by_condition(self, thread: int, after_ns: int, until_ns: int) -> tuple[Call, Call] | None:
        waits = self._of[thread, probes.BLOCK]
        for woken in reversed(waits[: bisect_right(waits, until_ns, key=_end)]):
            if woken.end_ns <= after_ns:
                break
            since_ns = max(after_ns, woken.begin_ns)
            notification = self._notified_by(woken.object, thread, since_ns, woken.end_ns)
            if notification is not None:
                return notification, woken
        return None

    def _woken_by_signal(self, thread: int, after_ns: int, until_ns: int) -> tuple[Call, Call] | None:
        """A wake-up by an eventfd or a pipe. The thread that empties it must be the one that waited. If
        nobody ever empties it, only the write to it is known."""
        waits, latest = self._of[thread, probes.WAIT], None
        for target in self._signals:
            if self._drains[target] and thread not in self._drains[target]:
                continue
            notification = self._notified_by(target, thread, after_ns, until_ns)
            place = (
                bisect_right(waits, notification.begin_ns, key=_end)
                if notification is not None
                else len(waits)
            )
            if notification is None or place == len(waits) or waits[place].end_ns > until_ns:
                continue
            if latest is None or waits[place].end_ns > latest[1].end_ns:
                latest = notification, waits[place]
        return latest

    def _notified_by(self, target: int, woken: int, after_ns: int, until_ns: int) -> Call | None:
        """The last notifying call of another thread, entered between two moments."""
        calls = self._notifies[target]
        for call in reversed(calls[: bisect_right(calls, until_ns, key=_begin)]):
            if call.begin_ns < after_ns:
                break
            if call.thread != woken:
                return call
        return None

    def thread_named(self, name: str) -> int | None:
        """The only thread with this name; None if there is none, or several."""
        threads = [thread for thread, known in self.names.items() if known == name]
        return threads[0] if len(threads) == 1 else None

    # --- by message

    def samples(self) -> Iterator[tuple[Sample, Message]]:
        """Which of our messages each RTPS sample is."""
        for key in self._log.keys:
            is_rtps = int(key["kind"]) != probes.BY_ENVELOPE
            if is_rtps and int(key["number"]) and int(key["stream"]) < probes.STREAM_IS_TIME:
                yield _sample(key), (int(key["stream"]), int(key["sequence"]))

    def carried(self, kind: int, known: dict[Sample, Message]) -> dict[Message, list[Carried]]:
        """By message, the calls of a kind that carried it in datagrams, in the order of their return."""
        by_message: dict[Message, list[Carried]] = defaultdict(list)
        kinds = self._log.calls["call"]
        for key, owner in zip(self._log.keys, self._log.owners.tolist(), strict=True):
            if kinds[owner] != kind or int(key["kind"]) not in probes.CARRYING or self._is_stream(owner):
                continue
            message = (int(key["stream"]), int(key["sequence"]))
            if message[0] >= probes.STREAM_IS_TIME:
                resolved = known.get(_sample(key))
                if resolved is None:
                    continue
                message = resolved
            first = int(key["first_fragment"])
            fragments = range(first, first + int(key["fragments"]))
            by_message[message].append(Carried(self._calls[owner], fragments, int(key["fragments_all"])))
        return by_message

    def _is_stream(self, owner: int) -> bool:
        return bool(self._log.calls["is_stream"][owner])

    def streams(self, kind: int) -> dict[tuple[int, int], Stream]:
        """What went over each stream socket, by descriptor and connection number."""
        calls = self._log.calls
        by_owner: dict[int, tuple[Message, int]] = {
            owner: ((int(key["stream"]), int(key["sequence"])), int(key["number"]))
            for key, owner in zip(self._log.keys, self._log.owners.tolist(), strict=True)
            if int(key["kind"]) == probes.BY_ENVELOPE
        }
        streams: dict[tuple[int, int], Stream] = {}
        for index in np.flatnonzero((calls["call"] == kind) & (calls["is_stream"] != 0)).tolist():
            call = calls[index]
            stream = streams.setdefault(
                (int(call["descriptor"]), int(call["connection"])), Stream([], [], {})
            )
            if index in by_owner:
                message, offset = by_owner[index]
                stream.begins.setdefault(message, int(call["object"]) + offset)
            stream.ends.append(int(call["object"]) + int(call["result"]))
            stream.calls.append(self._calls[index])
        return streams


@dataclass(frozen=True)
class Stream:
    """The calls on one stream socket. ends: the bytes transferred when each call returned. begins: by
    message, the bytes transferred before its payload."""

    calls: list[Call]
    ends: list[int]
    begins: dict[Message, int]

    def call_with(self, byte: int) -> Call | None:
        """The call that moved the byte with this number."""
        place = bisect_right(self.ends, byte)
        return self.calls[place] if place < len(self.calls) else None

    def extents(self, size_of: Callable[[int], int] | None = None) -> dict[Message, tuple[int, int]]:
        """The first byte of each message's payload, and the byte after its last, from the size that `size_of`
        gives for its sequence. Other data may follow before the next payload, which is the latest possible
        end."""
        order = sorted(self.begins, key=self.begins.__getitem__)
        ends = [*(self.begins[message] for message in order[1:]), self.ends[-1] if self.ends else 0]
        extents = {}
        for message, end in zip(order, ends, strict=True):
            begin = self.begins[message]
            size = size_of(message[1]) if size_of is not None else end - begin
            extents[message] = (begin, min(end, begin + size))
        return extents


def _begin(call: Call) -> int:
    return call.begin_ns


def _end(call: Call) -> int:
    return call.end_ns


def _sample(key: np.void) -> Sample:
    return bytes(key["writer"]), int(key["number"])


def samples_of(processes: Iterable[Process]) -> dict[Sample, Message]:
    """Which of our messages each RTPS sample is, as seen by any process."""
    return {sample: message for process in processes for sample, message in process.samples()}
