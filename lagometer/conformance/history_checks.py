# SPDX-License-Identifier: Apache-2.0
"""What is kept for a subscriber that does not take messages, or that joins late."""

from __future__ import annotations

import time

from lagometer.conformance import asks
from lagometer.conformance.bench import Subject
from lagometer.conformance.exchange_checks import judge_delivery
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import PubSub, Sent
from lagometer.units import duration_text, plain_duration_text

UNDER_WAY_S = 0.5  # for the last messages: nothing reports when they reach a subscriber that takes nothing
INSTANCES = 8
LATE_S = 10.0  # for discovery, which nothing reports here
BLOCKING_SLACK_NS = 2_000_000_000  # a busy machine wakes threads late


def check_keep_last(subject: Subject, findings: Findings) -> None:
    """64 messages with a depth of 8 while nothing is taken: the newest are kept, and 8 at most."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.KEEP_LAST)
        depth = qos["depth"]
        writer, reader = pubsub.writer(0, "last", qos=qos), pubsub.reader(1, "last", qos=qos)
        pubsub.meet()
        pubsub.peer(1).do("stall", reader=reader.id)
        sent = pubsub.send(writer, asks.KEEP_LAST.messages, pace_ns=1_000_000)
        time.sleep(UNDER_WAY_S)
        pubsub.peer(1).do("resume", reader=reader.id)
        (account,) = pubsub.settled([(reader, writer)], asks.KEEP_LAST.messages)
        received = account.sequences
        findings.judge("all that came is whole", not account.trouble, account.trouble)
        findings.judge("something came", bool(received), "nothing came after the subscriber took nothing")
        findings.judge("once and in order", received == sorted(set(received)), f"came: {received[:20]}")
        has_depth = subject.adapter.sidecar.abilities.depth
        count = depth if has_depth and qos["reliability"] == "reliable" else 1  # else one of them may be lost
        newest = sent.accepted[-count:]
        findings.judge(
            "the newest came",
            received[-count:] == newest,
            f"{received[-count:]} came last, {newest} were sent last",
        )
        if not has_depth:
            findings.skip(f"{depth} at most", "declared: the depth has no effect")
            return
        hint = 'if the middleware has no such depth, declare `"depth": false` among the abilities'
        findings.judge(f"{depth} at most", len(received) <= depth, f"{len(received)} came: {hint}")


def check_keep_all(subject: Subject, findings: Findings) -> None:
    """Messages of 4 KB until one is rejected, or 16 MB, while nothing is taken; then all of them arrive."""
    size = 4096
    with PubSub(subject, message_bytes=size) as pubsub:
        qos = pubsub.qos_of(asks.KEEP_ALL)
        blocking_ns = asks.KEEP_ALL.blocking_ns
        writer = pubsub.writer(0, "all", size=size, qos=qos)
        reader = pubsub.reader(1, "all", size=size, qos=qos)
        pubsub.meet()
        pubsub.peer(1).do("stall", reader=reader.id)
        sent = pubsub.send(writer, asks.KEEP_ALL.messages, until_rejected=True)
        findings.judge(
            "publishing keeps blocking_ns_max",
            sent.longest_ns <= blocking_ns + BLOCKING_SLACK_NS,
            f"{duration_text(sent.longest_ns)} for one message where {plain_duration_text(blocking_ns)} were "
            "allowed",
        )
        if sent.rejected:
            findings.note("back-pressure", f"after {len(sent.accepted)} messages that nobody took")
        else:
            findings.skip("back-pressure", f"all of {len(sent.accepted)} messages that nobody took were kept")
        pubsub.peer(1).do("resume", reader=reader.id)
        (account,) = pubsub.settled([(reader, writer)], len(sent.accepted), quiet_s=5.0)
        withheld = len(sent.accepted) - account.count
        further = pubsub.send(writer, 10, pace_ns=10_000_000)
        if withheld > 0 and not account.trouble:
            findings.note("what was accepted last", f"{withheld} messages waited for the next to be sent")
        all_sent = Sent(
            sent.accepted + further.accepted,
            sent.rejected + further.rejected,
            max(sent.longest_ns, further.longest_ns),
        )
        (account,) = pubsub.settled([(reader, writer)], len(all_sent.accepted))
        judge_delivery(findings, "after the stall", all_sent, account, qos["reliability"] == "reliable")
        findings.judge(
            "and it goes on",
            account.sequences[-1:] == further.accepted[-1:] != [],
            f"{account.sequences[-1:]} came last, {further.accepted[-1:]} was sent last",
        )


def check_transient_local(subject: Subject, findings: Findings) -> None:
    """A late subscriber gets the earlier messages (of a keyed topic, the newest of each instance); one that
    requests volatile does not."""
    if "instances" in subject.adapter.sidecar.abilities.policies:
        _check_instances(subject, findings)
    depth = asks.TRANSIENT_LOCAL.depth_within(subject.adapter.sidecar.limits)
    early_count = max(1, min(asks.TRANSIENT_LOCAL.messages, depth // 4))  # probes are kept, too
    for durability in ("transient_local", "volatile"):
        if durability not in subject.adapter.sidecar.abilities.durability:
            continue
        with PubSub(subject) as pubsub:
            qos = pubsub.qos(depth=4 * early_count, durability=durability)
            writer = pubsub.writer(0, "late", qos=qos)
            early = pubsub.reader(0, "late", qos=qos)
            pubsub.meet()
            pubsub.send(writer, early_count)
            pubsub.settled([(early, writer)], early_count)
            late = pubsub.reader(1, "late", qos=qos)
            pubsub.meet()
            pubsub.send(writer, early_count)
            wanted = 2 * early_count if durability == "transient_local" else early_count
            (account,) = pubsub.settled([(late, writer)], wanted)
            findings.judge(f"{durability}: whole", not account.trouble, account.trouble)
            expected = list(range(2 * early_count - wanted, 2 * early_count))
            findings.judge(
                f"{durability}: a late subscriber gets "
                + ("what was sent before, too" if wanted > early_count else "what is sent from then on"),
                account.sequences == expected,
                f"{len(account.sequences)} came, the first {account.sequences[:3]}; expected {len(expected)}",
            )


def _check_instances(subject: Subject, findings: Findings) -> None:
    """With a depth of 1 and 8 instances, a late subscriber gets 8 messages: the newest of each."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos(depth=1, durability="transient_local")
        writer = pubsub.writer(0, "keys", qos=qos, instances=INSTANCES)
        early = pubsub.reader(0, "keys", qos=qos, instances=INSTANCES)
        pubsub.meet()
        last: list[int] = []
        for _ in range(3):  # the early subscriber's queue holds no more at once
            last = pubsub.send(writer, INSTANCES).accepted
            pubsub.settled([(early, writer)], last[-1] + 1)
        late = pubsub.reader(1, "keys", qos=qos, instances=INSTANCES)
        # Without meet(): probes have keys, too, and would replace messages.
        pubsub.settled([(late, writer)], INSTANCES, quiet_s=LATE_S)
        time.sleep(UNDER_WAY_S)
        account = pubsub.account(late, writer)
        findings.judge("instances: whole, each with its key", not account.trouble, account.trouble)
        findings.judge(
            "instances: a late subscriber gets the newest of each",
            sorted(account.sequences) == last,
            f"{sorted(account.sequences)} came; expected {last}",
        )
