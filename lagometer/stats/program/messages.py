# SPDX-License-Identifier: Apache-2.0
"""Matches each message a program took with the message another program wrote.

Every DDS stamps a message with a time and reports that time to the reader. If the time is also known on the
writing side (the application set it, or the probe saw it on the way out), both are the same to the
nanosecond. Otherwise the middleware stamps while `write` runs, and the message is the one being written at
that time. The middleware also says who wrote a message, which tells those apart that have one time, such as
one that is passed on with its time. If several still match, nobody can tell which it is; such messages are
left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lagometer.stats.program.endpoints import UNKNOWN_TOPIC, Endpoint
from lagometer.stats.program.realtime import RealtimeClock, Times
from lagometer.stats.trial.calls import Message, Sample
from lagometer.store import probes
from lagometer.store.probes import ProbeLog, Records

WIRE_ERROR_NS = 2  # RTPS has fractions of 2^-32 s

Index = npt.NDArray[np.int64]
UNKNOWN_NS = 0
NOT_ONE = -1  # none that was probed
SEVERAL = -2
NO_WRITER = np.void(bytes(16))


@dataclass(frozen=True)
class Writes:
    """All calls with which a writer wrote, in the order of their entry. stream: its number. times_ns: the
    time stamp of each message, CLOCK_REALTIME; UNKNOWN_NS if unknown. indices: of the calls in its log."""

    endpoint: Endpoint
    stream: int
    calls: Records
    times_ns: Times
    indices: Index

    def which(self, stamped_ns: Times, seen_ns: Times, clock: RealtimeClock) -> Index:
        """For each time stamp (CLOCK_REALTIME), the call that wrote its message; or NOT_ONE, SEVERAL.
        seen_ns: when the message was seen, so it had been written."""
        return self.which_and_unsure(stamped_ns, seen_ns, clock)[0]

    def which_and_unsure(
        self, stamped_ns: Times, seen_ns: Times, clock: RealtimeClock
    ) -> tuple[Index, Set[int]]:
        """The same, and the calls among the several."""
        known = np.flatnonzero(self.times_ns != UNKNOWN_NS)
        order = known[np.argsort(self.times_ns[known], kind="stable")]
        unsure: set[int] = set()
        matches = _only(order, *_near(self.times_ns[order], stamped_ns), unsure)
        unstamped = np.flatnonzero(self.times_ns == UNKNOWN_NS)
        unmatched = np.flatnonzero(matches == NOT_ONE)
        if len(unstamped) and len(unmatched):
            found = np.full(len(unmatched), NOT_ONE, dtype=np.int64)
            for times_ns in clock.to_monotonic(stamped_ns[unmatched]):
                others = self._under_way(unstamped, times_ns, seen_ns[unmatched], clock.margin_ns, unsure)
                found = _either(found, others, unsure)
            matches[unmatched] = found
        return matches, unsure

    def _under_way(
        self, places: Index, times_ns: Times, seen_ns: Times, error_ns: int, unsure: set[int]
    ) -> Index:
        """Which of these calls was running at each time, and had begun when the message was seen; adds those
        that may have been to `unsure`."""
        calls = self.calls[places]
        margin_ns = error_ns + WIRE_ERROR_NS
        latest_ns = np.maximum.accumulate(calls["end_ns"])
        until_ns = np.minimum(times_ns + margin_ns, seen_ns)
        begin = np.searchsorted(latest_ns, times_ns - margin_ns, side="left").astype(np.int64)
        end = np.searchsorted(calls["begin_ns"], until_ns, side="right").astype(np.int64)
        matches = _only(places, begin, end, set())
        for index in np.flatnonzero(end - begin > 1).tolist():
            candidates = np.arange(begin[index], end[index])
            fits = candidates[calls["end_ns"][candidates] >= times_ns[index] - margin_ns]
            matches[index] = places[fits[0]] if len(fits) == 1 else SEVERAL if len(fits) else NOT_ONE
            if len(fits) > 1:
                unsure.update(places[fits].tolist())
        return matches


def _either(found: Index, others: Index, unsure: set[int]) -> Index:
    """What was found in either of two ways; SEVERAL where they differ. Adds those that differ to `unsure`."""
    differ = (found != NOT_ONE) & (others != NOT_ONE) & (found != others)
    unsure.update(place for place in [*found[differ].tolist(), *others[differ].tolist()] if place >= 0)
    return np.where(differ, SEVERAL, np.where(found == NOT_ONE, others, found)).astype(np.int64)


def _near(sorted_ns: Times, times_ns: Times) -> tuple[Index, Index]:
    """For each time, the range of indices whose times are the same except for precision lost on the wire."""
    begin = np.searchsorted(sorted_ns, times_ns - WIRE_ERROR_NS, side="left").astype(np.int64)
    return begin, np.searchsorted(sorted_ns, times_ns + WIRE_ERROR_NS, side="right").astype(np.int64)


def _only(places: Index, begin: Index, end: Index, unsure: set[int]) -> Index:
    """The single index in each range; NOT_ONE if the range is empty, SEVERAL if it has more. Adds those that
    are not alone to `unsure`."""
    counts = end - begin
    for several in np.flatnonzero(counts > 1).tolist():
        unsure.update(places[begin[several] : end[several]].tolist())
    if not len(places):
        return np.full(len(begin), NOT_ONE, dtype=np.int64)
    first = places[np.minimum(begin, len(places) - 1)]
    return np.where(counts == 1, first, np.where(counts > 1, SEVERAL, NOT_ONE)).astype(np.int64)


@dataclass(frozen=True)
class Takes:
    """All messages a reader took, in order: when the call began and returned, on which CPU, and the times
    with which their writers stamped them, on CLOCK_MONOTONIC. Where messages have no time: deserialisers, in
    roscpp; contents, their hashes, in zenoh-c; otherwise empty. writers: their GUIDs, NO_WRITER where the
    middleware did not say it; empty if none does."""

    endpoint: Endpoint
    begin_ns: Times
    taken_ns: Times
    cpus: npt.NDArray[np.uint16]
    stamped_ns: Times
    deserialisers: npt.NDArray[np.uint64]
    contents: npt.NDArray[np.uint64]
    writers: npt.NDArray[np.void]

    def may_be_of(self, guid: bytes) -> npt.NDArray[np.bool_]:
        """Which messages a writer may have written; all of them if its GUID is not known (empty)."""
        if not guid or not len(self.writers):
            return np.ones(len(self.taken_ns), dtype=np.bool_)
        fits: npt.NDArray[np.bool_] = (self.writers == np.void(guid)) | (self.writers == NO_WRITER)
        return fits


@dataclass(frozen=True)
class Taken:
    """What a reader took from one writer. sequences: for each message, how many the writer wrote before."""

    sequences: Index
    taken_ns: Times
    cpus: npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Joined:
    """What one reader took. of_writers: by stream. strange: messages that no probed program wrote. ambiguous:
    messages that match several writes. unsure: by stream, the writes that they match: one that nobody else
    took may still have arrived."""

    endpoint: Endpoint
    of_writers: Mapping[int, Taken] = field(default_factory=dict)
    strange: int = 0
    ambiguous: int = 0
    unsure: Mapping[int, Set[int]] = field(default_factory=dict)


def writes_of(endpoints: Sequence[Endpoint], logs: Sequence[ProbeLog], clock: RealtimeClock) -> list[Writes]:
    """What each writer wrote; writers that never wrote are included."""
    writes = []
    for stream, endpoint in enumerate(writer for writer in endpoints if writer.writes):
        log = logs[endpoint.program]
        indices = np.flatnonzero(endpoint.calls(log))
        indices = indices[np.argsort(log.calls["begin_ns"][indices], kind="stable")]
        calls = log.calls[indices]
        times_ns = calls["result" if endpoint.by_rmw else "connection"].astype(np.int64)
        _add_seen(times_ns, calls, log.threads[indices], endpoint, log, clock)
        writes.append(Writes(endpoint, stream, calls, times_ns, indices))
    return writes


def _add_seen(
    times_ns: Times,
    calls: Records,
    threads: npt.NDArray[np.uint32],
    endpoint: Endpoint,
    log: ProbeLog,
    clock: RealtimeClock,
) -> None:
    """Adds the time stamps seen on messages that the writing thread sent itself, where the application gave
    none."""
    if not endpoint.guid or not len(calls):
        return
    keys, owners = _sent_with_time(log)
    matching = keys["writer"] == np.void(endpoint.guid)
    keys, owners = keys[matching], owners[matching]
    sent_ns, sender_threads = log.calls["begin_ns"][owners], log.threads[owners]
    stamped_ns = clock.to_monotonic(keys["sequence"].astype(np.int64))
    margin_ns = clock.margin_ns + WIRE_ERROR_NS
    is_unknown = times_ns == UNKNOWN_NS
    for thread in np.unique(threads).tolist():
        places = np.flatnonzero(threads == thread)
        sends = np.flatnonzero(sender_threads == thread)
        within = places[
            np.maximum(0, np.searchsorted(calls["begin_ns"][places], sent_ns[sends], side="right") - 1)
        ]
        inside = (calls["begin_ns"][within] <= sent_ns[sends]) & (sent_ns[sends] <= calls["end_ns"][within])
        for possible_ns in stamped_ns:
            inside &= ~_of_earlier(calls, within, possible_ns[sends], margin_ns)
        inside &= is_unknown[within]
        # In reverse, so that the first of several counts: resent messages come later.
        for place, send in zip(within[inside][::-1].tolist(), sends[inside][::-1].tolist(), strict=True):
            times_ns[place] = int(keys["sequence"][send])


def _of_earlier(calls: Records, within: Index, stamped_ns: Times, margin_ns: int) -> npt.NDArray[np.bool_]:
    """Which time stamps were given while an earlier call ran than the one `within` which they were sent: with
    write batching a packet waits until it is full, and has the messages of several calls."""
    latest_ns = np.maximum.accumulate(calls["end_ns"])
    last = np.searchsorted(calls["begin_ns"], stamped_ns + margin_ns, side="right").astype(np.int64) - 1
    was_running = (last >= 0) & (stamped_ns <= latest_ns[np.maximum(last, 0)] + margin_ns)
    earlier: npt.NDArray[np.bool_] = was_running & (last < within)
    return earlier


def takes_of(endpoint: Endpoint, log: ProbeLog) -> Takes:
    """What a reader took."""
    call_mask = endpoint.calls(log)
    if endpoint.by_rmw:
        own = log.calls[call_mask]
        begin_ns, end_ns = own["begin_ns"].astype(np.int64), own["end_ns"].astype(np.int64)
        nothing, nobody = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype="V16")
        return Takes(
            *(endpoint, begin_ns, end_ns, own["cpu_end"], own["result"].copy()), nothing, nothing, nobody
        )
    of_roscpp = np.flatnonzero(call_mask & (log.calls["connection"] != 0))
    own_keys = call_mask[log.owners]
    key_mask, content_mask = (
        own_keys & (log.keys["kind"] == kind) for kind in (probes.TAKEN, probes.CONTENT)
    )
    owners = of_roscpp if len(of_roscpp) else log.owners[key_mask | content_mask]
    return Takes(
        endpoint,
        log.calls["begin_ns"][owners].astype(np.int64),
        log.calls["end_ns"][owners].astype(np.int64),
        log.calls["cpu_end"][owners],
        log.keys["number"][key_mask].astype(np.int64),
        log.calls["connection"][of_roscpp],
        log.keys["sequence"][content_mask],
        log.keys["writer"][key_mask],
    )


def join(takes: Takes, writes: Sequence[Writes], clock: RealtimeClock) -> Joined:
    """Finds the writer's message for each message a reader took."""
    heard = [writer for writer in writes if _is_heard(takes.endpoint, writer)]
    places = [_places(writer, takes, clock) for writer in heard]
    candidates = np.zeros(len(takes.taken_ns), dtype=np.int64)
    for matches, _ in places:
        candidates += np.where(matches >= 0, 1, np.where(matches == SEVERAL, 2, 0))
    by_stream, unsure = {}, {}
    for writer, (matches, several) in zip(heard, places, strict=True):
        certain = (candidates == 1) & (matches >= 0)
        if certain.any():
            by_stream[writer.stream] = Taken(matches[certain], takes.taken_ns[certain], takes.cpus[certain])
        of_others = matches[(candidates > 1) & (matches >= 0)]
        unsure[writer.stream] = several | set(of_others.tolist())
    strange, ambiguous = int((candidates == 0).sum()), int((candidates > 1).sum())
    return Joined(takes.endpoint, by_stream, strange, ambiguous, unsure)


def _places(writes: Writes, takes: Takes, clock: RealtimeClock) -> tuple[Index, Set[int]]:
    """For each message that was taken, the call that wrote it, and the calls among several. A reader is told
    who wrote, so another writer's message with the same time is not meant: one that is passed on may keep
    its time."""
    own = takes.may_be_of(writes.endpoint.guid)
    matches = np.full(len(own), NOT_ONE, dtype=np.int64)
    matches[own], unsure = writes.which_and_unsure(takes.stamped_ns[own], takes.taken_ns[own], clock)
    return matches, unsure


def samples_sent(
    writes: Sequence[Writes], logs: Sequence[ProbeLog], clock: RealtimeClock
) -> tuple[dict[Sample, Message], dict[Message, int]]:
    """Which of our messages each RTPS sample is, and how many payload bytes it has."""
    by_guid = {entry.endpoint.guid: entry for entry in writes if entry.endpoint.guid}
    messages: dict[Sample, Message] = {}
    sizes: dict[Message, int] = {}
    for log in logs:
        keys, owners = _sent_with_time(log)
        sent_ns = log.calls["end_ns"][owners].astype(np.int64)
        for guid in _guids(keys):
            writer = by_guid.get(guid)
            if writer is None:
                continue
            own = keys["writer"] == np.void(guid)
            writer_keys = keys[own]
            places = writer.which(writer_keys["sequence"].astype(np.int64), sent_ns[own], clock)
            for key, place in zip(writer_keys, places.tolist(), strict=True):
                if place >= 0:
                    message = (writer.stream, place)
                    messages[guid, int(key["number"])] = message
                    sizes[message] = int(key["payload_bytes"])
    return messages, sizes


def _sent_with_time(log: ProbeLog) -> tuple[Records, Index]:
    """What was sent with a time stamp, and by which calls."""
    sent = (log.calls["call"] == probes.SEND)[log.owners] & (log.keys["stream"] == probes.STREAM_IS_TIME)
    return log.keys[sent], log.owners[sent]


def _guids(keys: Records) -> Iterator[bytes]:
    return iter({bytes(guid) for guid in keys["writer"]})


def _is_heard(reader: Endpoint, writes: Writes) -> bool:
    topic = writes.endpoint.topic
    return UNKNOWN_TOPIC in (topic, reader.topic) or topic == reader.topic
