# SPDX-License-Identifier: Apache-2.0
"""Which message is which in programs of zenoh-c: by its key and content.

Zenoh stamps no time on its messages unless it is told to, and copies them before they leave. So a message
that a subscriber gets is the one that was put with the same key and content before, if there is only one that
this subscriber has not had since. If there are several, as when the same content is put again before it
arrives, nobody can tell which it is; such messages are left out and counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lagometer.stats.program.messages import Joined, Taken, Takes, Writes
from lagometer.stats.trial.calls import Message
from lagometer.store import probes
from lagometer.store.probes import ProbeLog

Put = tuple[int, Message]  # when the call began, and which message it put


@dataclass(frozen=True)
class Contents:
    """The messages of all programs of zenoh-c. puts: by content, in the order of the calls' entry. streams:
    of the publishers. sizes: payload bytes of each message."""

    puts: Mapping[int, Sequence[Put]]
    streams: frozenset[int]
    sizes: Mapping[Message, int]

    def join(self, takes: Takes) -> Joined:
        """Finds the publisher's message for each message that a subscriber took."""
        found = defaultdict[int, list[tuple[int, int]]](list)
        unsure = defaultdict[int, set[int]](set)
        used: dict[int, int] = defaultdict(
            int
        )  # by content, how many of its puts this subscriber is done with
        strange = ambiguous = 0
        for index in np.argsort(takes.taken_ns, kind="stable").tolist():
            content = int(takes.contents[index])
            puts = self.puts.get(content, ())
            until = bisect_right(puts, int(takes.taken_ns[index]), key=_begin)
            candidates, used[content] = puts[used[content] : until], until
            if len(candidates) == 1:
                ((_, (stream, sequence)),) = candidates
                found[stream].append((sequence, index))
                continue
            strange += until == 0
            ambiguous += until > 0
            for _, (stream, sequence) in candidates:
                unsure[stream].add(sequence)
        by_stream = {}
        for stream, pairs in found.items():
            sequences, indices = np.array(pairs, dtype=np.int64).T
            by_stream[stream] = Taken(sequences, takes.taken_ns[indices], takes.cpus[indices])
        return Joined(takes.endpoint, by_stream, strange, ambiguous, unsure)


def contents_of(writes: Sequence[Writes], logs: Sequence[ProbeLog]) -> Contents:
    """What was put, by content."""
    puts: dict[int, list[Put]] = defaultdict(list)
    sizes: dict[Message, int] = {}
    keys = [_contents(log) for log in logs]
    for writer in writes:
        of_calls = keys[writer.endpoint.program]
        for sequence, index in enumerate(writer.indices.tolist()):
            if index not in of_calls:
                break  # of another middleware
            key, message = of_calls[index], (writer.stream, sequence)
            puts[int(key["sequence"])].append((int(writer.calls["begin_ns"][sequence]), message))
            sizes[message] = int(key["payload_bytes"])
    streams = frozenset(stream for stream, _ in sizes)
    return Contents({content: sorted(calls) for content, calls in puts.items()}, streams, sizes)


def _contents(log: ProbeLog) -> dict[int, np.void]:
    """What each call that put something put, by the call's index."""
    chosen = (log.keys["kind"] == probes.CONTENT) & (log.calls["call"] == probes.API_WRITE)[log.owners]
    return dict(zip(log.owners[chosen].tolist(), log.keys[chosen], strict=True))


def _begin(put: Put) -> int:
    return put[0]
