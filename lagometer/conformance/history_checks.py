# SPDX-License-Identifier: Apache-2.0
"""What is kept for a subscriber that does not take messages, or that joins late."""

from __future__ import annotations

import time
from dataclasses import replace

from lagometer.conformance import asks
from lagometer.conformance.bench import Subject
from lagometer.conformance.exchange_checks import judge_delivery
from lagometer.conformance.findings import Findings, Otherwise
from lagometer.conformance.pubsub import Account, Endpoint, PubSub, Sent
from lagometer.units import duration_text, plain_duration_text

UNDER_WAY_S = 0.5  # for the last messages: nothing reports when they reach a subscriber that takes nothing
# How many messages fill a queue whose length nobody knows, one attempt after another. Together they are fewer
# than a subscriber's account keeps.
FULL_QUEUE = (100, 1_000, 4_000, 14_000)
FULL_QUEUE_BYTES = 4096
GOES_ON = 10  # messages after them: what a publisher withheld may come with its next one
INSTANCES = 8
LATE_S = 10.0  # for discovery, which nothing reports here
BLOCKING_SLACK_NS = 2_000_000_000  # a busy machine wakes threads late


def check_keep_last(subject: Subject, findings: Findings) -> Otherwise | None:
    """64 messages with a depth of 8 while nothing is taken: the newest are kept, and 8 at most.

    If the sidecar says otherwise, messages until the queue is full: what it loses is what `drops` declares.
    """
    abilities = subject.adapter.sidecar.abilities
    if abilities.drops == "newest" or not abilities.depth:
        return _check_full_queue(subject, findings)
    _check_newest_kept(subject, findings)
    return None


def _check_newest_kept(subject: Subject, findings: Findings) -> None:
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
        _judge_order(findings, received)
        count = depth if qos["reliability"] == "reliable" else 1  # else one of them may be lost
        newest = sent.accepted[-count:]
        findings.judge(
            "the newest came",
            received[-count:] == newest,
            f"the messages {received[-count:]} came last, and {newest} were sent last: a full queue drops "
            "its oldest message; if it drops the arriving one, declare `drops: newest`",
        )
        findings.judge(
            f"{depth} at most",
            len(received) <= depth,
            f"{len(received)} messages waited with a depth of {depth}: keep so many, or declare "
            '`"depth": false` among the abilities',
        )


def _judge_order(findings: Findings, received: list[int]) -> None:
    findings.judge("something came", bool(received), "nothing came once the subscriber took messages again")
    findings.judge(
        "once and in order",
        received == sorted(set(received)),
        f"the messages came in this order: {received[:20]}",
    )


def _check_full_queue(subject: Subject, findings: Findings) -> Otherwise | None:
    """Fills the queue of a subscriber that takes nothing. With `drops: newest` a reliable publisher may
    reject instead: then a best-effort one shows what is dropped."""
    abilities = subject.adapter.sidecar.abilities
    payload_max = subject.adapter.sidecar.limits.payload_bytes_max or FULL_QUEUE_BYTES
    size = min(payload_max, FULL_QUEUE_BYTES)
    wanted = ["reliable"] if "reliable" in abilities.reliability else []
    if "best_effort" in abilities.reliability and (not wanted or abilities.drops == "newest"):
        wanted.append("best_effort")
    unjudged = ""
    with PubSub(subject, message_bytes=size) as pubsub:
        for reliability in wanted:
            qos = pubsub.qos_of(asks.KEEP_LAST, reliability=reliability)
            topic = f"full_{reliability}"
            pair = (
                pubsub.reader(1, topic, size=size, qos=qos),
                pubsub.writer(0, topic, size=size, qos=qos),
            )
            pubsub.meet()
            for count in FULL_QUEUE:
                sent, account = _filled(pubsub, *pair, count)
                unjudged = judge_full_queue(findings, abilities.drops, sent, account)
                if not unjudged or sent.rejected:
                    break
            if not unjudged:
                break
    if abilities.drops == "newest":
        declared = "declared absent: drops says that a full queue loses what comes"
        return Otherwise("absent", f"{declared} (not judged: {unjudged})" if unjudged else declared)
    return Otherwise("not-run", f"not judged: {unjudged}") if unjudged else None


def _filled(pubsub: PubSub, reader: Endpoint, writer: Endpoint, count: int) -> tuple[Sent, Account]:
    """Sends until a message is rejected, or so many, while nothing is taken; then what came of them."""
    before = pubsub.account(reader, writer).count
    pubsub.peer(1).do("stall", reader=reader.id)
    sent = pubsub.send(writer, count, until_rejected=True)
    time.sleep(UNDER_WAY_S)
    pubsub.peer(1).do("resume", reader=reader.id)
    pubsub.settled([(reader, writer)], before + len(sent.accepted))
    further = pubsub.send(writer, GOES_ON, pace_ns=10_000_000)
    (account,) = pubsub.settled([(reader, writer)], before + len(sent.accepted) + len(further.accepted))
    began = sent.accepted[0] if sent.accepted else 0
    last = sent.accepted[-1] + sent.rejected if sent.accepted else 0
    of_these = [sequence for sequence in account.sequences if began <= sequence <= last]
    return sent, replace(account, sequences=of_these)


def judge_full_queue(findings: Findings, drops: str, sent: Sent, account: Account) -> str:
    """Judges what a queue lost that nobody took from; returns why nothing shows it, empty if it was judged.

    A queue that drops its oldest message ends with the last one that was sent; one that drops what comes
    begins with the first.
    """
    received = account.sequences
    findings.judge("all that came is whole", not account.trouble, account.trouble)
    _judge_order(findings, received)
    strange = sorted(set(received) - set(sent.accepted))
    findings.judge(
        "none that was rejected",
        not strange,
        f"the messages {strange[:5]} came although commit rejected them: no reader may get a rejected one",
    )
    lost = len(set(sent.accepted) - set(received))
    if not received or findings.broken:
        return ""
    if not lost and not sent.rejected:
        reason = f"{len(sent.accepted):,} messages were sent while nothing was taken, and none is lost"
        findings.skip("what a full queue loses", reason)
        return reason
    told = f"{lost:,} of {len(sent.accepted):,} messages are lost"
    if lost and drops == "newest":
        findings.judge(
            "a full queue drops what comes, as `drops` declares",
            received[0] == sent.accepted[0],
            f"{told}, the first ones among them, so the queue dropped its oldest: leave `drops` out",
        )
    elif lost:
        findings.judge(
            "a full queue drops its oldest message",
            received[-1] == sent.accepted[-1],
            f"{told}, the last ones among them, so the queue dropped what came: declare `drops: newest`, or "
            "return REJECTED from commit while there is no room",
        )
    elif drops == "newest":
        reason = f"a message was rejected after {len(sent.accepted):,}, and none that was accepted is lost"
        findings.skip("a full queue drops what comes, as `drops` declares", reason)
        return reason
    else:
        findings.note("a full queue rejects what comes", f"after {len(sent.accepted):,} messages")
    return ""


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
