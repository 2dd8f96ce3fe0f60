# SPDX-License-Identifier: Apache-2.0
"""What the conductor knows about a trial besides the records: the input of estimates and verdicts.

All times are CLOCK_MONOTONIC in nanoseconds. Nothing in this module is computed from a latency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lagometer.store.exchanges import HostExchanges
from lagometer.store.observed import Observed


@dataclass(frozen=True)
class EdgeSpec:
    """One stream as one of its readers sees it."""

    name: str  # as in docs/FORMAT.md: "source→relay-1"
    stream: int  # unique in the trial
    sender: str  # name of the publishing node
    receiver: str  # name of the subscribing node
    receiver_node: int  # index of the subscribing node in the trial
    reader: int  # index of the reader within its node
    reliability: str  # "reliable" | "best_effort", as requested
    history: str  # "keep_last" | "keep_all"
    payload_bytes: int  # the largest
    receiver_start: int = 0  # the subscriber's position in the trial's start order of nodes
    # When the node had created its endpoints, if it joined after the common start.
    sender_joined_ns: int | None = None
    receiver_joined_ns: int | None = None
    # When it left, if it did not stay to the end.
    sender_left_ns: int | None = None
    receiver_left_ns: int | None = None
    sender_host: str = "here"
    receiver_host: str = "here"
    sender_clock: str = ""  # the host whose clock the sender's times use; empty: the conductor's own
    receiver_clock: str = ""
    sizes_bytes: tuple[int, ...] = ()  # of message `sequence` modulo their number; empty: all the largest
    polled: bool = False  # the subscriber polls, so no notification is awaited
    lifespan_ns: int = 0  # after this, the middleware may drop a message nobody took; 0: never

    @property
    def may_drop(self) -> bool:
        """Whether a reliable stream is allowed to lose a message that nobody took in time."""
        return self.history == "keep_last" or self.lifespan_ns > 0

    # False: replies of a service, or messages of several instances, overtake each other, even if reliable.
    in_order: bool = True
    called: bool = False  # it carries the requests or the replies of a service
    # Of requests, if the server or the client is not there all the time: from when until when calls of the
    # client belong to this server, even if it was not there. None: the service is never away.
    calls_ns: tuple[int, int] | None = None
    # Other readers of the subscriber that need a new message, too, before it works (trigger `all`).
    waits_for: tuple[int, ...] = ()
    timed: bool = False  # its publisher publishes on a schedule, whatever it receives

    @property
    def is_whole(self) -> bool:
        """Whether its subscriber was there all the time, so that every message has a row."""
        return self.receiver_joined_ns is None and self.receiver_left_ns is None

    @property
    def joined_ns(self) -> int | None:
        """When both its ends were there, if one of them joined after the common start."""
        joined = (self.sender_joined_ns, self.receiver_joined_ns)
        return max((time_ns for time_ns in joined if time_ns is not None), default=None)

    @property
    def leaves(self) -> bool:
        """Whether one of its ends did not stay to the end."""
        return self.sender_left_ns is not None or self.receiver_left_ns is not None

    @property
    def one_clock(self) -> bool:
        """Whether times of its two ends may be subtracted from each other."""
        return self.sender_clock == self.receiver_clock


def ways_through(forwards: Sequence[bool], returns: bool) -> tuple[list[int], bool]:
    """At which nodes between the hops of a chain a message is still on its way, and whether one turns it
    round (docs/methodology/chains.md).

    forwards: of each node in between, whether it is a bridge for the messages of the chain; returns: the
    chain ends at the node where it began.
    """
    places = [place for place, is_bridge in enumerate(forwards) if is_bridge]
    if returns and len(places) == len(forwards):
        # All are on two sides, also the one that turns the messages round: that is the one in the middle.
        returns = len(places) % 2 == 1
        places = [place for place in places if not returns or place != len(places) // 2]
    return places, returns


@dataclass(frozen=True)
class ChainSpec:
    """A named path: the names of its edges, each starting at the node where the previous one ends.

    returns: it ends at the node where it began, does not reach that node earlier, and a node in between turns
    its messages round. forwarded: the edges whose messages are taken by a bridge, which passes them on along
    this chain to another domain or adapter.
    """

    name: str
    edges: tuple[str, ...]
    returns: bool = False
    forwarded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class WriterFacts:
    """A worker's final report on one of its writers."""

    stream: int
    node: int
    sent: int  # over the whole trial, including warm-up and drain
    rejected: int
    resent_after_timeout: int  # closed loops only
    recorder_full: bool
    origin: str  # "loaned" | "native" | "copied"
    counters: Mapping[str, int] = field(default_factory=dict)  # only what the adapter can report
    period_ns: int | None = None  # of the periodic timer that triggers it; None: not triggered by one
    due: int | None = None  # messages its schedule had in the measure phase; None: no schedule
    skipped: int = 0  # messages it dropped because they were late
    shift_ns: int = 0  # how far its schedule was behind the original at the end
    at_once: int = 1  # messages per tick of its schedule
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # as for a reader


@dataclass(frozen=True)
class ReaderFacts:
    """A worker's final report on one of its readers."""

    node: int
    reader: int  # index within its node
    received: int
    corrupted: int
    recorder_full: bool
    counters: Mapping[str, int] = field(default_factory=dict)
    # The middleware's reports about it, by the names in `records.EVENT_NAMES`, if the adapter offers them:
    # `total` and `measured` (in the measure phase) for each.
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialFacts:
    """One trial as the conductor saw it."""

    cell: str
    trial: int
    factors: Mapping[str, object]  # every factor of the schema; None if neither varied nor set
    edges: tuple[EdgeSpec, ...]
    source_streams: frozenset[int]  # streams whose messages start a chain (timer or closed loop)
    sink_edges: frozenset[str]  # names of edges where a chain ends; in a closed loop, the reply's edge
    closed_loop: bool
    begin_ns: int  # the common start T
    measure_begin_ns: int
    measure_end_ns: int
    drain_end_ns: int
    cpu_ns: int  # process CPU time of all workers and daemons in the measure phase
    overhead_s: float
    started: str  # ISO 8601
    writers: tuple[WriterFacts, ...] = ()
    readers: tuple[ReaderFacts, ...] = ()
    reasons: tuple[str, ...] = ()  # found by the conductor, see docs/methodology/validity.md
    warnings: tuple[str, ...] = ()
    deadline_ns: int | None = None  # from a message's due time until it is taken; None: the study has none
    keeps_saturated: bool = False  # a source that falls behind makes the trial saturated, not failed
    deadline_k: int = 10  # window of consecutive activations for the fewest deadlines met
    chains: tuple[ChainSpec, ...] = ()
    # Pairs of edges between which a bridge is: its messages of the first go on as those of the second.
    forwarding: frozenset[tuple[str, str]] = frozenset()
    discovery_ns: int | None = None  # until all readers had discovered all writers; None if they never did
    workers_started_ns: int = 0  # 0: unknown
    # From that time until the last worker had its process up, its participant created, and all matched.
    startup_ns: Mapping[str, int] = field(default_factory=dict)
    # For each node that joined late: how long its process took to start, and then its participants.
    join_startup_ns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    observed: Observed | None = None  # None if the trial ended before its common start
    exchanges: tuple[HostExchanges, ...] = ()  # they relate the hosts' clocks to each other

    @cached_property
    def one_clock(self) -> bool:
        """Whether times of both ends of every edge may be subtracted from each other."""
        return all(edge.one_clock for edge in self.edges)
