# SPDX-License-Identifier: Apache-2.0
"""What the conductor knows about a trial, beside the records: the input of estimates and verdicts.

All times are CLOCK_MONOTONIC in nanoseconds. Nothing in here is computed from a latency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lagometer.store.exchanges import HostExchanges
from lagometer.store.observed import Observed


@dataclass(frozen=True)
class EdgeSpec:
    """One stream as one reader sees it."""

    name: str  # as in docs/FORMAT.md: "source→relay-1"
    stream: int  # unique in the trial
    sender: str  # name of the publishing node
    receiver: str  # name of the subscribing node
    receiver_node: int  # index of the subscribing node in the trial
    reader: int  # index of the reader within its node
    reliability: str  # "reliable" | "best_effort", as asked for
    history: str  # "keep_last" | "keep_all"
    payload_bytes: int  # the largest
    receiver_start: int = 0  # as how many-th node of the trial the subscriber was started
    # When the node had created its endpoints, of one that joined after the common start.
    sender_joined_ns: int | None = None
    receiver_joined_ns: int | None = None
    # When it left, of one that did not stay to the end.
    sender_left_ns: int | None = None
    receiver_left_ns: int | None = None
    sender_host: str = "here"
    receiver_host: str = "here"
    sender_clock: str = ""  # the host whose clock the sender's times are of; empty: the conductor's own
    receiver_clock: str = ""
    sizes_bytes: tuple[int, ...] = ()  # of message `sequence` modulo their number; empty: all are the largest
    lifespan_ns: int = 0  # after which the middleware may drop a message that nobody took; 0: never

    @property
    def may_drop(self) -> bool:
        """Whether a reliable stream is allowed to lose a message that nobody took in time."""
        return self.history == "keep_last" or self.lifespan_ns > 0

    # False: replies of a service, or messages of several instances, overtake each other, however reliable.
    in_order: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether its subscriber was there all the time, so that every message has a row."""
        return self.receiver_joined_ns is None and self.receiver_left_ns is None

    @property
    def one_clock(self) -> bool:
        """Whether times of its two ends may be subtracted."""
        return self.sender_clock == self.receiver_clock


@dataclass(frozen=True)
class ChainSpec:
    """A named path: the names of its edges, each beginning at the node where the one before ends.

    returns: it ends at the node where it began, and does not come there before.
    """

    name: str
    edges: tuple[str, ...]
    returns: bool = False


@dataclass(frozen=True)
class WriterFacts:
    """What a worker said about one of its writers when it was done."""

    stream: int
    node: int
    sent: int  # over the whole trial, warm-up and drain included
    rejected: int
    resent_after_timeout: int  # closed loops only
    recorder_full: bool
    origin: str  # "loaned" | "native" | "copied"
    counters: Mapping[str, int] = field(default_factory=dict)  # only what the adapter can tell
    period_ns: int | None = None  # of the periodic timer that triggers it; None: not a periodic timer's
    due: int | None = None  # messages that its schedule had in the measure phase; None: no schedule
    skipped: int = 0  # messages that it dropped because they were late
    shift_ns: int = 0  # by how much its schedule was behind the original in the end
    at_once: int = 1  # messages that its schedule has at a time
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # as of a reader


@dataclass(frozen=True)
class ReaderFacts:
    """What a worker said about one of its readers when it was done."""

    node: int
    reader: int  # index within its node
    received: int
    corrupted: int
    recorder_full: bool
    counters: Mapping[str, int] = field(default_factory=dict)
    # What the middleware reports of it, by the names of `records.EVENT_NAMES`, where the adapter offers it:
    # `total` and `measured` (in the measure phase) of each.
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialFacts:
    """One trial as the conductor saw it."""

    cell: str
    trial: int
    factors: Mapping[str, object]  # every factor of the schema, None where neither varied nor set
    edges: tuple[EdgeSpec, ...]
    source_streams: frozenset[int]  # streams whose messages start a chain (timer or closed loop)
    sink_edges: frozenset[str]  # names of edges where a chain ends; in a closed loop the one of the reply
    closed_loop: bool
    begin_ns: int  # the common start T
    measure_begin_ns: int
    measure_end_ns: int
    drain_end_ns: int
    cpu_ns: int  # process CPU of all workers and daemons in the measure phase
    overhead_s: float
    started: str  # ISO 8601
    writers: tuple[WriterFacts, ...] = ()
    readers: tuple[ReaderFacts, ...] = ()
    reasons: tuple[str, ...] = ()  # found by the conductor, see docs/methodology/validity.md
    warnings: tuple[str, ...] = ()
    deadline_ns: int | None = None  # from when a message was due until it is taken; None: the study has none
    keeps_saturated: bool = False  # a source that falls behind makes the trial saturated, not failed
    deadline_k: int = 10  # of how many activations in a row the fewest met are looked for
    chains: tuple[ChainSpec, ...] = ()
    discovery_ns: int | None = None  # until all readers had heard all writers; None if they never did
    workers_started_ns: int = 0  # 0: not known
    # From then until the last worker's process was up, its participant created, all matched.
    startup_ns: Mapping[str, int] = field(default_factory=dict)
    # Of each node that joined late: how long its process took to come up, and then its participants.
    join_startup_ns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    observed: Observed | None = None  # None if it ended before its common start
    exchanges: tuple[HostExchanges, ...] = ()  # by which hosts' clocks are held against each other

    @cached_property
    def one_clock(self) -> bool:
        """Whether times of both ends of every edge may be subtracted."""
        return all(edge.one_clock for edge in self.edges)
