# SPDX-License-Identifier: Apache-2.0
"""Publishers and subscribers of a check, in processes identified by roles, and what they exchanged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from lagometer.conformance.asks import USUAL_DEPTH, Asks
from lagometer.conformance.bench import Bench, Peer, PeerFailure, Refused, Subject

MEET_S = 30.0  # the time limit for endpoints to match; waiting ends once they have
QUIET_S = 2.0  # after this time without new messages, no more are expected
PAUSE_S = 0.005
DISPATCHES = ("poll", "waitset", "listener")  # those with the fewest foreign threads first
SMALL_BYTES = 1024  # the largest payload, unless a check says otherwise
NOT_KNOWN = 2  # `exact` of lagometer_matched


class NotMet(Exception):
    """Endpoints did not receive each other's messages in time."""


@dataclass(frozen=True)
class Endpoint:
    """A publisher (`stream` set) or a subscriber of a check."""

    id: str
    role: int
    topic: str
    domain: int
    bytes: int
    stream: int | None = None


@dataclass(frozen=True)
class Sent:
    """What a publisher was to send: the accepted sequences, the number of rejected ones, the longest call."""

    accepted: list[int]
    rejected: int
    longest_ns: int
    traces: list[dict[str, Any]] = field(default_factory=list)  # the stamps, if requested


@dataclass(frozen=True)
class Account:
    """What a subscriber received from one publisher, and what was wrong with anything that it got."""

    probes: int = 0
    count: int = 0
    last_bytes: int = 0
    sequences: list[int] = field(default_factory=list)
    traces: list[dict[str, Any]] = field(default_factory=list)  # as in `Sent`
    damaged: int = 0
    damage: str = ""
    failure: str = ""

    @property
    def trouble(self) -> str:
        """What was damaged or failed; empty if nothing was."""
        if self.failure:
            return self.failure
        return f"{self.damaged} damaged: {self.damage}" if self.damaged else ""


class PubSub:
    """The publishers and subscribers of one check.

    Roles are processes. If an adapter's messages stay within one process, all roles share it.

    security: of the contexts of a role, as in a plan; a role that is not in it has none.
    """

    def __init__(
        self,
        subject: Subject,
        roles: int = 2,
        message_bytes: int = SMALL_BYTES,
        security: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.subject = subject
        self._security = security or {}
        self._bench = Bench(subject, 1 if subject.within_process else roles, message_bytes)
        self._contexts: dict[tuple[int, int], str] = {}
        self._readers: list[Endpoint] = []
        self._writers: list[Endpoint] = []
        self._names = 0

    def __enter__(self) -> PubSub:
        self._bench.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bench.__exit__(kind, error, trace)

    def peer(self, role: int) -> Peer:
        """The process of a role."""
        return self._bench.peers[0 if self.subject.within_process else role]

    def qos_of(self, asks: Asks, **more: Any) -> dict[str, Any]:
        """The QoS that a check needs, within the sidecar's declarations and limits."""
        policies = dict(more)
        if asks.reliability not in ("strongest", "unset"):
            policies["reliability"] = asks.reliability
        declared = self.subject.adapter.sidecar.abilities.history
        if asks.history == "keep_all" or (asks.history != "keep_last" and "keep_all" in declared):
            return self.qos(history="keep_all", blocking_ns=asks.blocking_ns, **policies)
        if asks.durability != "volatile":
            policies["durability"] = asks.durability
        return self.qos(depth=asks.depth, blocking_ns=asks.blocking_ns, **policies)

    def qos(self, **more: Any) -> dict[str, Any]:
        """The strongest reliability in the sidecar; a history of 16 unless given, within limits."""
        abilities = self.subject.adapter.sidecar.abilities
        history = "keep_last" if "keep_last" in abilities.history else "keep_all"
        policies: dict[str, Any] = {"reliability": abilities.reliability[-1], "history": history, **more}
        if "reliable" in abilities.reliability and "reliability" not in more:
            policies["reliability"] = "reliable"
        if policies["history"] == "keep_last":
            limits = self.subject.adapter.sidecar.limits
            durable_depth_max = (
                limits.transient_local_depth_max if policies.get("durability") == "transient_local" else None
            )
            depths_max = [limit for limit in (limits.depth_max, durable_depth_max) if limit is not None]
            policies["depth"] = min([policies.get("depth", USUAL_DEPTH), *depths_max])
        return policies

    def usual_dispatch(self) -> str:
        """Polling if declared, since it involves no foreign thread."""
        declared = self.subject.adapter.sidecar.abilities.dispatch
        return next(name for name in DISPATCHES if name in declared)

    def context(self, role: int, domain: int = 0) -> str:
        """The context of a role in a domain, created on first use."""
        key = (role, domain)
        if key not in self._contexts:
            name = f"context-{role}-{domain}"
            more: dict[str, Any] = {"security": self._security[role]} if role in self._security else {}
            self.peer(role).do(
                "context",
                id=name,
                domain=domain,
                options=self.subject.all_options(),
                network=self._bench.network(),
                **more,
            )
            self._contexts[key] = name
        return self._contexts[key]

    def writer(self, role: int, topic: str, *, domain: int = 0, size: int = 64, **more: Any) -> Endpoint:
        """Makes a publisher. `more`: qos, type, stamps, instances."""
        self._names += 1
        endpoint = Endpoint(f"writer-{self._names}", role, topic, domain, size, stream=self._names)
        self._make("writer", endpoint, stream=endpoint.stream, **more)
        self._writers.append(endpoint)
        return endpoint

    def reader(self, role: int, topic: str, *, domain: int = 0, size: int = 64, **more: Any) -> Endpoint:
        """Makes a subscriber. `more`: qos, type, dispatch, work_ns, stamps, instances."""
        self._names += 1
        endpoint = Endpoint(f"reader-{self._names}", role, topic, domain, size)
        self._make("reader", endpoint, **{"dispatch": self.usual_dispatch(), **more})
        self._readers.append(endpoint)
        return endpoint

    def _make(self, kind: str, endpoint: Endpoint, **more: Any) -> None:
        order = {"type": self._usual_type(), "qos": self.qos(), **more}
        context = self.context(endpoint.role, endpoint.domain)
        topic = f"lagometer/{endpoint.topic}"
        self.peer(endpoint.role).do(
            kind, id=endpoint.id, context=context, topic=topic, bytes=endpoint.bytes, **order
        )

    def _usual_type(self) -> str:
        types = self.subject.adapter.sidecar.abilities.types
        return "bytes" if "bytes" in types else types[0]

    def destroy(self, endpoint: Endpoint) -> None:
        """Destroys a publisher or subscriber."""
        self.peer(endpoint.role).do("destroy", id=endpoint.id)
        self._readers = [other for other in self._readers if other != endpoint]
        self._writers = [other for other in self._writers if other != endpoint]

    def meet(self, seconds: float = MEET_S) -> None:
        """Sends probes until each subscriber hears every publisher of its topic and domain, else `NotMet`."""
        deadline = time.monotonic() + seconds
        pause_s = PAUSE_S
        while missing := self._missing():
            if time.monotonic() > deadline:
                some = missing[:3]
                examples = [f"{reader.id} and {writer.id} on {writer.topic}" for reader, writer in some]
                more = ", …" if len(missing) > len(some) else ""
                raise NotMet(
                    f"{len(missing)} pairs did not hear each other within {seconds:.0f} s: "
                    f"{', '.join(examples)}{more}; {self.counted(some)}{other_network(self.subject)}"
                )
            self.probe()
            time.sleep(pause_s)
            pause_s = min(0.1, pause_s * 1.5)

    def probe(self) -> None:
        """Sends a probe on each publisher."""
        for peer in self._bench.peers:
            peer.do("probe")

    def _missing(self) -> list[tuple[Endpoint, Endpoint]]:
        heard = self._heard(False)
        missing = []
        for reader in self._readers:
            for writer in self._writers:
                if (reader.topic, reader.domain) != (writer.topic, writer.domain):
                    continue
                account = _account(heard[reader.id], writer)
                if account.failure:
                    raise PeerFailure(account.failure)
                if not account.probes:
                    missing.append((reader, writer))
        return missing

    def counted(self, pairs: Sequence[tuple[Endpoint, Endpoint]]) -> str:
        """What each end of these pairs counts by itself (`writer_matched`, `reader_matched`), against the
        endpoints that its topic has."""
        ends = dict.fromkeys(end for pair in pairs for end in reversed(pair))
        return ", ".join(map(self._count_of, ends))

    def _count_of(self, end: Endpoint) -> str:
        writes = end.stream is not None
        others, kind = (self._readers, "subscribers") if writes else (self._writers, "publishers")
        there = sum((other.topic, other.domain) == (end.topic, end.domain) for other in others)
        try:
            answer = self.peer(end.role).do("matched", id=end.id)
        except (PeerFailure, Refused) as failure:
            return f"what {end.id} counts is not known: {failure}"
        if answer["exact"] == NOT_KNOWN:
            return f"{end.id} can't tell how many of {there} {kind} it found"
        return f"{end.id} counts {answer['count']} of {there} {kind}"

    def _heard(self, sequences: bool) -> dict[str, Any]:
        by_reader: dict[str, Any] = {}
        for peer in self._bench.peers:
            answer = peer.do("heard", sequences=sequences)
            if answer["broken"]:
                raise PeerFailure(f"host->fail was called outside any call: {answer['broken']}")
            by_reader |= answer["readers"]
        return by_reader

    def send(self, writer: Endpoint, count: int, *, size: int | None = None, **more: Any) -> Sent:
        """Sends messages. `more`: pace_ns, until_rejected."""
        answer = self.peer(writer.role).do(
            "send", writer=writer.id, count=count, bytes=writer.bytes if size is None else size, **more
        )
        traces = answer.get("traces", [])
        return Sent(answer["accepted"], answer["rejected"], answer["longest_ns"], traces)

    def deliver(
        self, writer: Endpoint, readers: Sequence[Endpoint], count: int, qos: Mapping[str, Any], **more: Any
    ) -> Sent:
        """Sends messages; with a reliable `qos`, in batches that fit into the subscribers' queues.

        `qos`: of all endpoints; `more`: as for `send`.
        """
        depth = qos.get("depth", count) if qos["reliability"] == "reliable" else count
        accepted: list[int] = []
        rejected = longest_ns = 0
        for begin in range(0, count, depth):
            sent = self.send(writer, min(depth, count - begin), **more)
            accepted += sent.accepted
            rejected, longest_ns = rejected + sent.rejected, max(longest_ns, sent.longest_ns)
            if begin + depth < count:
                self.settled([(reader, writer) for reader in readers], len(accepted))
        return Sent(accepted, rejected, longest_ns)

    def account(self, reader: Endpoint, writer: Endpoint) -> Account:
        """What the subscriber has received from the publisher so far."""
        return _account(self._heard(True)[reader.id], writer)

    def accounts(self, pairs: Sequence[tuple[Endpoint, Endpoint]]) -> list[Account]:
        """What several pairs (subscriber, publisher) have exchanged so far."""
        heard = self._heard(True)
        return [_account(heard[reader.id], writer) for reader, writer in pairs]

    def streams_heard(self) -> dict[str, int]:
        """The number of publishers from which each subscriber has received data or probes."""
        return {reader: len(heard["streams"]) for reader, heard in self._heard(False).items()}

    def settled(
        self, pairs: Sequence[tuple[Endpoint, Endpoint]], wanted: int, quiet_s: float = QUIET_S
    ) -> list[Account]:
        """Waits until each pair has this many messages, or damaged ones, or nothing new for a while."""
        counts: list[int] = []
        changed = time.monotonic()
        while True:
            accounts = self.accounts(pairs)
            if all(account.count >= wanted or account.trouble for account in accounts):
                return accounts
            if (now := [account.count for account in accounts]) != counts:
                counts, changed = now, time.monotonic()
            elif time.monotonic() - changed > quiet_s:
                return accounts
            time.sleep(PAUSE_S)


def other_network(subject: Subject) -> str:
    """What to try if endpoints that need a network do not meet; empty if they need none."""
    if subject.adapter.sidecar.scope != "network":
        return ""
    if subject.network == "private":
        return (
            "; the private machine has only a loopback, which carries multicast: if the middleware needs "
            "another interface, check with --network host"
        )
    return (
        "; on the host's network multicast may not reach the loopback, or a firewall may drop it: check "
        "without --network host, in the private machine, whose loopback carries multicast"
    )


def _account(heard: Mapping[str, Any], writer: Endpoint) -> Account:
    """Extracts one publisher's stream from what a subscriber received."""
    faults = {key: heard[key] for key in ("damaged", "damage", "failure")}
    for stream in heard["streams"]:
        if stream["stream"] == writer.stream:
            return Account(
                probes=stream["probes"],
                count=stream["count"],
                last_bytes=stream["last_bytes"],
                sequences=stream.get("sequences", []),
                traces=stream.get("traces", []),
                **faults,
            )
    return Account(**faults)
