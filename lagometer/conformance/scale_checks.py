# SPDX-License-Identifier: Apache-2.0
"""Many topics, many endpoints, several domains: each subscriber gets only its own, and its share."""

from __future__ import annotations

from lagometer.conformance import asks
from lagometer.conformance.bench import PeerFailure, Refused, Subject
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import DISPATCHES, PubSub

FAN_LEAST = 2  # subscribers, the fewest for a fair share
MEET_S = 120.0  # for very many endpoints, on a busy machine


def check_topics(subject: Subject, findings: Findings) -> None:
    """500 topics, each with a publisher in one process and a subscriber in the other, in the first dispatch
    that supports this many. Tries each declared dispatch, and reports the result of each."""
    declared = [name for name in DISPATCHES if name in subject.adapter.sidecar.abilities.dispatch]
    obstacles: dict[str, str] = {}
    for dispatch in declared:
        try:
            _exchange_topics(subject, findings, dispatch)
        except (Refused, PeerFailure) as failure:
            obstacles[dispatch] = str(failure)
        else:
            for name, obstacle in obstacles.items():
                findings.skip(f"{asks.TOPICS.topics} topics by {name}", obstacle)
            return
    for name, obstacle in obstacles.items():
        findings.judge(f"{asks.TOPICS.topics} topics by {name}", False, obstacle)


def _exchange_topics(subject: Subject, findings: Findings, dispatch: str) -> None:
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.TOPICS)
        pairs = []
        for number in range(asks.TOPICS.topics):
            topic = f"topic_{number:03d}"
            writer = pubsub.writer(0, topic, qos=qos)
            pairs.append((pubsub.reader(1, topic, qos=qos, dispatch=dispatch), writer))
        pubsub.meet(MEET_S)
        findings.judge(f"{asks.TOPICS.topics} topics by {dispatch}: all met", True)
        reliable = qos["reliability"] == "reliable"
        for _ in range(1 if reliable else 3):
            for _, writer in pairs:
                pubsub.send(writer, 1)
        accounts = pubsub.settled(pairs, 1)
        silent = [
            writer.topic for (_, writer), account in zip(pairs, accounts, strict=True) if account.count == 0
        ]
        findings.judge(
            "each subscriber got its message",
            not silent,
            f"{len(silent)} of {len(pairs)} subscribers got nothing, first those of {', '.join(silent[:3])}",
        )
        heard = pubsub.streams_heard()
        mixed = [reader.topic for reader, _ in pairs if heard[reader.id] > 1]
        findings.judge(
            "no subscriber got a message of another topic",
            not mixed,
            f"{len(mixed)} of {len(pairs)} subscribers did, first those of {', '.join(mixed[:3])}: pass a "
            "message on only to subscribers whose topic has the same name",
        )


def check_endpoints(subject: Subject, findings: Findings) -> None:
    """25 publishers and 25 subscribers on one topic."""
    with PubSub(subject) as pubsub:
        half, count = asks.ENDPOINTS.endpoints // 2, asks.ENDPOINTS.messages
        qos = pubsub.qos_of(asks.ENDPOINTS)
        writers = [pubsub.writer(0, "crowd", qos=qos) for _ in range(half)]
        readers = [pubsub.reader(1, "crowd", qos=qos) for _ in range(half)]
        pubsub.meet(MEET_S)
        findings.judge(f"{half} publishers and {half} subscribers on a topic: all met", True)
        for writer in writers:
            pubsub.deliver(writer, readers, count, qos, pace_ns=1_000_000)
            if qos.get("depth", asks.ENDPOINTS.depth) < count * half:  # too small for what all of them send
                pubsub.settled([(reader, writer) for reader in readers], count)
        pairs = [(reader, writer) for reader in readers for writer in writers]
        accounts = pubsub.settled(pairs, count)
        trouble = next((account.trouble for account in accounts if account.trouble), "")
        findings.judge("all that came is whole", not trouble, trouble)
        disorder = sum(account.sequences != sorted(set(account.sequences)) for account in accounts)
        findings.judge(
            "once and in order",
            disorder == 0,
            f"from {disorder} of {len(pairs)} publishers to subscribers, messages came twice or out of order",
        )
        if qos["reliability"] == "reliable":
            short = sum(account.count < count for account in accounts)
            findings.judge(
                "all came",
                short == 0,
                f"messages are missing from {short} of {len(pairs)} publishers to subscribers",
            )
        else:
            silent = sum(account.count == 0 for account in accounts)
            findings.judge(
                "each heard each",
                silent == 0,
                f"nothing came from {silent} of {len(pairs)} publishers to subscribers",
            )


def check_fan_out(subject: Subject, findings: Findings) -> None:
    """One publisher, eight subscribers in two processes: all receive; a stalled one does not block others."""
    fan = min(asks.FAN_OUT.endpoints, subject.adapter.sidecar.limits.endpoints_max or 1 << 30) - 1
    with PubSub(subject, roles=3) as pubsub:
        qos = pubsub.qos_of(asks.FAN_OUT)
        writer = pubsub.writer(0, "fan", qos=qos)
        readers = [pubsub.reader(1 + number % 2, "fan", qos=qos) for number in range(fan)]
        pairs = [(reader, writer) for reader in readers]
        pubsub.meet()
        sent = pubsub.deliver(writer, readers, asks.FAN_OUT.messages, qos, pace_ns=500_000)
        counts = [account.count for account in pubsub.settled(pairs, len(sent.accepted))]
        index = fairness(counts)
        findings.judge(
            "fairness of what each got (Jain's index) is at least 0.95",
            index >= 0.95,
            f"it is {index:.3f}; the subscribers got {counts} messages",
        )
        if qos["reliability"] == "reliable":
            findings.judge(
                "all got all",
                min(counts) == len(sent.accepted),
                f"the subscribers got {counts} of {len(sent.accepted)} messages",
            )
    if "best_effort" not in subject.adapter.sidecar.abilities.reliability:
        findings.skip("one that stalls does not stop the others", "it has no best effort")
        return
    _check_stalled_among_others(subject, findings)


def _check_stalled_among_others(subject: Subject, findings: Findings) -> None:
    endpoints_max = subject.adapter.sidecar.limits.endpoints_max or asks.FAN_OUT.endpoints
    with PubSub(subject, roles=3) as pubsub:
        qos = pubsub.qos_of(asks.FAN_OUT, reliability="best_effort")  # so that a busy machine overwrites none
        writer = pubsub.writer(0, "fan", qos=qos)
        stalled = pubsub.reader(1, "fan", qos=qos)
        others = [pubsub.reader(2, "fan", qos=qos) for _ in range(min(3, endpoints_max - 2))]
        pairs = [(reader, writer) for reader in others]
        pubsub.meet()
        pubsub.peer(1).do("stall", reader=stalled.id)
        count = asks.FAN_OUT.messages
        pubsub.send(writer, count, pace_ns=500_000)
        counts = [account.count for account in pubsub.settled(pairs, count)]
        pubsub.peer(1).do("resume", reader=stalled.id)
        findings.judge(
            "one that stalls does not stop the others (best effort, at least half reached each)",
            min(counts) >= count // 2,
            f"the others got {counts} of {count} messages while it took nothing",
        )


def fairness(counts: list[int]) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has all (Jain, Chiu and Hawe 1984)."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0


def check_domains(subject: Subject, findings: Findings) -> None:
    """Two domains with the same topic, in the same two processes."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.DOMAINS)
        writers = [pubsub.writer(0, "apart", domain=domain, qos=qos) for domain in (0, 1)]
        readers = [pubsub.reader(1, "apart", domain=domain, qos=qos) for domain in (0, 1)]
        pubsub.meet()
        sent = [pubsub.send(writer, asks.DOMAINS.messages, pace_ns=1_000_000) for writer in writers]
        same_domain = [(readers[number], writers[number]) for number in (0, 1)]
        cross_domain = [(readers[number], writers[1 - number]) for number in (0, 1)]
        accounts = pubsub.settled(same_domain, min(len(result.accepted) for result in sent))
        for number, result in enumerate(accounts):
            findings.judge(
                f"a subscriber in domain {number} hears its own domain",
                result.count > 0,
                f"no message of the publisher in domain {number} reached it",
            )
        for number, result in enumerate(pubsub.accounts(cross_domain)):
            crossed = result.count + result.probes
            findings.judge(
                f"a subscriber in domain {number} does not hear the other domain",
                crossed == 0,
                f"{crossed} messages of the publisher in domain {1 - number} reached it, on the same topic: "
                "keep the context's `domain` in what publishers and subscribers are matched by, or declare "
                "`domains: false`",
            )
