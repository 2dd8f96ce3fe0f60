# SPDX-License-Identifier: Apache-2.0
"""Which transport carried the messages of each edge, judged from outside and compared with the adapters'
claims.

Descriptors and mappings of the two processes show which transports exist. The counters of the loopback, or of
the receiver's links if the two are on different hosts, show whether the payload went over the network. A
transport that neither rules out stays possible: only a claim that can't be true is a mismatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lagometer.agent.observe.sockets import Address, Traces
from lagometer.run.worker.layout import topics_read
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store.observed import Match
from lagometer.study.cell import Cell
from lagometer.study.claims import TRANSPORTS
from lagometer.study.graph import Edge

OVER_NETWORK = frozenset({"tcp", "udp"})
WITHIN_HOST = frozenset({"process", "unix-socket"})  # shared memory is too, but it is detected directly
CARRIED_SHARE_MIN = 0.9  # of the received payload: with less, not all of it went over the network
ABSENT_SHARE_MAX = 0.5  # with more, it may have
# Discovery, heartbeats and acknowledgements go over the network even if messages do not. If messages do not
# stand out from them, there is no conclusion.
CONTROL_BYTES_PER_WORKER = 40_000
CONTROL_BYTES_PER_WORKER_AND_S = 20_000
SEGMENT_MAX_BYTES = 65_535  # of an IPv4 packet, so of a UDP datagram or a TCP segment, headers included


@dataclass(frozen=True)
class Traffic:
    """What the loopback, or the links of a host, carried, and the minimum if all messages went that way.

    udp_sent, tcp_sent: datagrams and segments that all hosts sent, those of discovery included; None if
    unknown. over: whether the payload went that way; None if unknown.
    """

    way: str
    carried_bytes: int
    payload_bytes: int
    messages: int
    udp_sent: int | None
    tcp_sent: int | None
    over: bool | None

    def narrowed(self, possible: frozenset[str]) -> frozenset[str]:
        """The ways that remain possible, given the counters."""
        if self.over is None:
            return possible
        if not self.over:
            return possible - OVER_NETWORK
        possible &= OVER_NETWORK
        if self.udp_sent is None:
            return possible
        # A message takes a datagram of its own, a large one several; a segment may hold many messages.
        udp = self.udp_sent >= CARRIED_SHARE_MIN * self.messages and self._holds_payload(self.udp_sent)
        tcp = self._holds_payload(self.tcp_sent) if self.tcp_sent is not None else not udp
        enough = {way for way, sent_enough in (("udp", udp), ("tcp", tcp)) if sent_enough}
        return possible & enough or possible

    def _holds_payload(self, packets: int) -> bool:
        return packets * SEGMENT_MAX_BYTES >= CARRIED_SHARE_MIN * self.payload_bytes

    @property
    def seen(self) -> str:
        """Returns the same in words."""
        return f"{self.carried_bytes} B over {self.way} for {self.payload_bytes} B received"


def matches(cell: Cell, outcome: TrialOutcome) -> tuple[Match, ...]:
    """Returns, for every edge of the cell, the claimed transport and the possible ones."""
    evidence = outcome.evidence
    if evidence is None:
        return ()
    worker_of = {node: index for index, nodes in enumerate(cell.workers) for node in nodes}
    edges = cell.graph.edges()
    hosts = _Hosts(outcome)
    # Messages within a process need not cross the loopback: judge them only if there are no others.
    crossing = [edge for edge in edges if worker_of[edge.publisher] != worker_of[edge.subscriber]]
    counted = crossing or list(edges)
    bridged = cell.edges_across
    judged = evidence.private and not bridged  # the bridge's own messages are in the counters, too
    loopback = _loopback_traffic(cell, outcome, counted) if judged else None
    links = _link_traffic(cell, outcome, hosts, worker_of) if not bridged else {}
    edge_matches = []
    for edge in edges:
        if edge in bridged:  # what an adapter claims holds to the bridge, and from it
            edge_matches.append(Match(edge.name, None, (), ""))
            continue
        sender, receiver = worker_of[edge.publisher], worker_of[edge.subscriber]
        apart = hosts.apart(sender, receiver)
        claimed = _claimed(cell, outcome, sender, receiver, edge.topic, apart)
        ends = evidence.traces[sender], evidence.traces[receiver]
        if ends[0] is None or ends[1] is None:
            edge_matches.append(Match(edge.name, claimed, (), ""))
            continue
        possible, evidence_text = present(ends[0], ends[1], sender == receiver, evidence.daemons)
        if apart:
            possible -= WITHIN_HOST if hosts.one_kernel(sender, receiver) else WITHIN_HOST | {"shared-memory"}
        traffic = links.get(hosts.name_of[receiver]) if apart else loopback if edge in counted else None
        if traffic is not None:
            possible = traffic.narrowed(possible)
            evidence_text += f"; {traffic.seen}"
        edge_matches.append(
            Match(edge.name, claimed, tuple(word for word in TRANSPORTS if word in possible), evidence_text)
        )
    return tuple(edge_matches)


def present(
    sender: Traces, receiver: Traces, same: bool, daemons: Sequence[Traces]
) -> tuple[frozenset[str], str]:
    """Returns the ways that the two processes have in common, and the evidence in words.

    TCP may also connect them through a daemon, such as a broker.
    """
    possible: set[str] = {"process"} if same else set()
    shared = [name for key, name in sender.memory.items() if key in receiver.memory]
    if shared:
        possible.add("shared-memory")
    if sender.unix_sockets and receiver.unix_reachable:
        possible.add("unix-socket")
    joined = _joined(sender, receiver)
    brokers = [daemon for daemon in daemons if _joined(sender, daemon) and _joined(daemon, receiver)]
    if joined or brokers:
        possible.add("tcp")
    if sender.udp_sockets and receiver.udp_sockets:
        possible.add("udp")
    words = [
        f"{len(shared)} shared mappings" + (f" ({shared[0]}, …)" if shared else ""),
        f"{len(joined)} TCP connections",
        f"{min(sender.udp_sockets, receiver.udp_sockets)} UDP sockets",
        f"{min(sender.unix_sockets, receiver.unix_reachable)} Unix-domain sockets",
    ]
    words += [f"{len(brokers)} daemons between"] if brokers else []
    return frozenset(possible), "in one process" if same and not joined and not brokers else ", ".join(words)


def _joined(one: Traces, other: Traces) -> list[Address]:
    """Returns the first process's ends of its TCP connections to the other."""
    return [end for end in one.connections if (end[1], end[0]) in other.connections]


class _Hosts:
    """The hosts of a trial's workers, as far as they matter for the way of a message."""

    def __init__(self, outcome: TrialOutcome) -> None:
        self.name_of = {worker: host.name for host in outcome.hosts for worker in host.workers}
        self._hello = {host.name: host.hello for host in outcome.hosts}

    def apart(self, one: int, other: int) -> bool:
        """Whether messages between two workers go over a link: each has its own network."""
        return self._said(one, "network") != self._said(other, "network")

    def one_kernel(self, one: int, other: int) -> bool:
        """Whether both are on one machine, so mappings of equal files share memory."""
        return self._said(one, "boot") == self._said(other, "boot") != ""

    def _said(self, worker: int, key: str) -> str:
        return str(self._hello[self.name_of[worker]].get(key, ""))


def _link_traffic(
    cell: Cell, outcome: TrialOutcome, hosts: _Hosts, worker_of: Mapping[str, int]
) -> dict[str, Traffic]:
    """Returns what the links of each host brought in, if it receives messages from other hosts."""
    traffic_by_host = {}
    for host in outcome.hosts:
        incoming = [
            edge
            for edge in cell.graph.edges()
            if hosts.name_of[worker_of[edge.subscriber]] == host.name
            and hosts.apart(worker_of[edge.publisher], worker_of[edge.subscriber])
        ]
        carried_bytes = host.evidence.network.get("link_bytes") if host.evidence is not None else None
        if incoming and carried_bytes is not None:
            traffic_by_host[host.name] = _traffic(
                cell, outcome, incoming, f"the links of {host.name}", carried_bytes
            )
    return traffic_by_host


def _loopback_traffic(cell: Cell, outcome: TrialOutcome, edges: Sequence[Edge]) -> Traffic | None:
    """Returns what the loopback counted for these edges; None if the kernel has no counter."""
    evidence = outcome.evidence
    assert evidence is not None
    carried_bytes = evidence.network.get("loopback_bytes")
    return (
        _traffic(cell, outcome, edges, "the loopback", carried_bytes) if carried_bytes is not None else None
    )


def _traffic(
    cell: Cell, outcome: TrialOutcome, edges: Sequence[Edge], way: str, carried_bytes: int
) -> Traffic:
    evidence = outcome.evidence
    assert evidence is not None
    received = _received(cell, outcome, edges)
    messages = sum(received.values())
    payload_bytes = round(sum(count * cell.traffic[topic].mean_bytes for topic, count in received.items()))
    workers, seconds = len(outcome.workers), evidence.window_ns / 1e9
    control = workers * (CONTROL_BYTES_PER_WORKER + CONTROL_BYTES_PER_WORKER_AND_S * seconds)
    over: bool | None = None
    if carried_bytes < ABSENT_SHARE_MAX * payload_bytes:
        over = False
    elif carried_bytes - control >= CARRIED_SHARE_MIN * payload_bytes and payload_bytes > control:
        over = True
    udp_sent, tcp_sent = (evidence.network.get(name) for name in ("udp_sent", "tcp_sent"))
    return Traffic(way, carried_bytes, payload_bytes, messages, udp_sent, tcp_sent, over)


def _received(cell: Cell, outcome: TrialOutcome, edges: Sequence[Edge]) -> dict[str, int]:
    """Returns the minimum number of messages received on each topic.

    Of a topic's readers, the one with the most messages counts, because one transmission may serve them all.
    """
    received = {
        (reader.node, reader.reader): reader.received
        for worker in outcome.workers
        if worker.done is not None
        for reader in worker.done.readers
    }
    most: dict[str, int] = {}
    for edge in edges:
        node = cell.graph.node_index(edge.subscriber)
        reader = topics_read(cell.graph, edge.subscriber).index(edge.topic)
        most[edge.topic] = max(most.get(edge.topic, 0), received.get((node, reader), 0))
    return most


def _claimed(
    cell: Cell, outcome: TrialOutcome, sender: int, receiver: int, topic: str, apart: bool
) -> str | None:
    """Returns the transport that the adapters of both ends claim; None if one of them claims none.

    The sender's preference comes first. A claim of an endpoint takes precedence over that of its context. Two
    adapters, or two hosts, share the network but not memory.
    """
    traffic = cell.traffic[topic]
    alike = len(traffic.adapters) == 1 and not apart
    within = sender == receiver and alike
    key = "within_process" if within else "between_processes"
    objects = (f"writer lagometer/{topic}", "context")
    offered = _declared(outcome, sender, objects, traffic.publisher_adapter, key)
    objects = (f"reader lagometer/{topic}", "context")
    accepted = _declared(outcome, receiver, objects, traffic.subscriber_adapter, key)
    return next((word for word in offered if word in accepted and (alike or word in OVER_NETWORK)), None)


def _declared(
    outcome: TrialOutcome, worker: int, objects: Sequence[str], adapter: str, key: str
) -> Sequence[str]:
    """Returns the transports in the description of the first object that names any (docs/ADAPTERS.md)."""
    ready = outcome.workers[worker].ready
    settings = (
        [setting for setting in ready.settings if setting.get("adapter") == adapter]
        if ready is not None
        else []
    )
    for name in objects:
        for setting in settings:
            words = _inside(_inside(setting, "effective"), "transport").get(key)
            if setting.get("object") == name and isinstance(words, list) and words:
                return [word for word in words if isinstance(word, str)]
    return []


def _inside(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}
