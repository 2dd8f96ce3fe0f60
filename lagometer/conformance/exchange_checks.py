# SPDX-License-Identifier: Apache-2.0
"""Whether endpoints discover each other in any order, and whether messages arrive unchanged."""

from __future__ import annotations

import time
from collections.abc import Iterator

from lagometer.conformance import asks
from lagometer.conformance.bench import Subject
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import MEET_S, PAUSE_S, QUIET_S, Account, Endpoint, NotMet, PubSub, Sent
from lagometer.study.payload import (
    FIXED_PAYLOADS_BYTES,
    IMU_BYTES,
    OF_ROS,
    PayloadType,
    has_size,
    holds_envelope,
)

LARGEST_BYTES = 1 << 24
DATAGRAM_BYTES = 65_507  # the largest that UDP carries over IPv4
SMALLEST_BYTES = 16  # the envelope
TRIES = 10  # for a message without guaranteed delivery
REPAIR_S = 10.0  # time for retransmitting a lost part of a large message, if delivery is guaranteed
PACE_NS = 1_000_000


def check_discovery(subject: Subject, findings: Findings) -> None:
    """Both start orders, and a second subscriber in addition to the first."""
    with PubSub(subject) as pubsub:
        first = pubsub.writer(0, "writer_first", qos=pubsub.qos_of(asks.DISCOVERY))
        _met(pubsub, findings, "a subscriber meets a publisher that was there before", [(1, "writer_first")])
        pubsub.reader(0, "reader_first")
        pubsub.writer(1, "reader_first")
        _met(pubsub, findings, "a publisher meets a subscriber that was there before", [])
        third = "a second and a third subscriber meet the same publisher"
        if (reason := asks.DISCOVERY.lacks(subject.adapter.sidecar.limits)) is not None:
            findings.skip(third, reason)
        else:
            _met(pubsub, findings, third, [(0, "writer_first"), (1, "writer_first")])
        pubsub.send(first, 1)
    _hears_late(subject, findings)


def _hears_late(subject: Subject, findings: Findings) -> None:
    """A publisher that only publishes: nobody calls writer_matched, as in a measure phase."""
    name = "a subscriber that comes while messages flow hears them"
    if not subject.adapter.sidecar.abilities.late_readers:
        findings.skip(name, "late_readers is false")
        return
    with PubSub(subject) as pubsub:
        writer = pubsub.writer(0, "writer_first", qos=pubsub.qos_of(asks.DISCOVERY))
        late = pubsub.reader(1, writer.topic)
        until_s = time.monotonic() + MEET_S
        while (account := pubsub.account(late, writer)).count == 0 and time.monotonic() < until_s:
            pubsub.send(writer, 1)
            time.sleep(PAUSE_S)
    hint = f"nothing came within {MEET_S:g} s without writer_matched: declare `late_readers: false`"
    findings.judge(name, account.count > 0 and not account.trouble, account.trouble or hint)


def _met(pubsub: PubSub, findings: Findings, name: str, readers: list[tuple[int, str]]) -> None:
    for role, topic in readers:
        pubsub.reader(role, topic)
    try:
        pubsub.meet()
    except NotMet as error:
        findings.judge(name, False, str(error))
        raise
    findings.judge(name, True)


def check_dispatch(subject: Subject, findings: Findings, dispatch: str) -> None:
    """Messages, one per millisecond, to a subscriber with this dispatch."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.DISPATCH)  # deeper than the message count: a busy machine overwrites none
        writer = pubsub.writer(0, "dispatch", qos=qos)
        reader = pubsub.reader(1, "dispatch", qos=qos, dispatch=dispatch)
        pubsub.meet()
        count = asks.DISPATCH.messages
        sent = pubsub.deliver(writer, [reader], count, qos, pace_ns=PACE_NS)
        (account,) = pubsub.settled([(reader, writer)], len(sent.accepted))
        judge_delivery(findings, f"{count} messages by {dispatch}", sent, account, _reliable(subject))


def check_best_effort(subject: Subject, findings: Findings) -> None:
    """Messages that arrive are intact, unique and in order; and at least one arrives."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.BEST_EFFORT)
        writer, reader = pubsub.writer(0, "effort", qos=qos), pubsub.reader(1, "effort", qos=qos)
        pubsub.meet()
        sent = pubsub.send(writer, asks.BEST_EFFORT.messages, pace_ns=PACE_NS)
        (account,) = pubsub.settled([(reader, writer)], len(sent.accepted))
        name = f"{asks.BEST_EFFORT.messages} messages, best effort"
        judge_delivery(findings, name, sent, account, reliable=False)


def check_reliable(subject: Subject, findings: Findings) -> None:
    """A subscriber works 1 ms on each of 500 messages, sent as fast as they are accepted."""
    with PubSub(subject) as pubsub:
        qos = pubsub.qos_of(asks.RELIABLE)
        writer = pubsub.writer(0, "reliable", qos=qos)
        reader = pubsub.reader(1, "reliable", qos=qos, work_ns=1_000_000)
        pubsub.meet()
        count = asks.RELIABLE.messages
        sent = pubsub.deliver(writer, [reader], count, qos)
        (account,) = pubsub.settled([(reader, writer)], len(sent.accepted))
        judge_delivery(findings, f"{count} messages to a slow subscriber", sent, account, reliable=True)


def judge_delivery(findings: Findings, label: str, sent: Sent, account: Account, reliable: bool) -> None:
    """Judges whether all that was sent arrived if reliable; else whether some did, once and in order."""
    received = account.sequences
    findings.judge(f"{label}: all that came is whole", not account.trouble, account.trouble)
    findings.judge(f"{label}: accepted", bool(sent.accepted), f"all {sent.rejected} were rejected")
    duplicates = len(received) - len(set(received))
    findings.judge(
        f"{label}: none came twice",
        duplicates == 0,
        f"{duplicates} of {len(received)} messages had come before",
    )
    findings.judge(
        f"{label}: in order",
        received == sorted(received),
        "some messages came after one that was sent later",
    )
    unexpected = sorted(set(received) - set(sent.accepted))
    findings.judge(
        f"{label}: none that was rejected",
        not unexpected,
        f"the messages {unexpected[:5]} came although commit rejected them: no reader may get a rejected one",
    )
    if reliable:
        lost = sorted(set(sent.accepted) - set(received))
        findings.judge(
            f"{label}: all came",
            not lost,
            f"{len(lost)} of {len(sent.accepted)} messages that commit accepted are missing: {lost[:5]}",
        )
    else:
        findings.judge(
            f"{label}: at least half came",
            2 * len(received) >= len(sent.accepted),
            f"{len(received)} of {len(sent.accepted)} messages came, and one was sent each millisecond",
        )


def sizes_of(subject: Subject, begin: int, end: int) -> list[int]:
    """Payload sizes with begin ≤ size ≤ end: 2^k and 2^k ± 1, and around every known boundary."""
    borders = [1 << power for power in range(4, 25)] + [DATAGRAM_BYTES]
    sizes = {border + offset for border in borders for offset in (-1, 0, 1)}
    # The middleware's own headers count as part of a fragment: 4 of CDR, 4 of a sequence's length.
    for border in subject.adapter.sidecar.limits.fragment_bytes:
        sizes |= {border + offset for offset in (-9, -8, -7, -5, -4, -3, -1, 0, 1)}
    return sorted(size for size in sizes if max(begin, SMALLEST_BYTES) <= size <= end)


def check_sizes(subject: Subject, findings: Findings) -> None:
    """Sizes that fit into a datagram, byte for byte."""
    limit = subject.adapter.sidecar.limits.payload_bytes_max or LARGEST_BYTES
    _check_sizes(subject, findings, sizes_of(subject, SMALLEST_BYTES, min(limit, DATAGRAM_BYTES)))


def check_large(subject: Subject, findings: Findings) -> None:
    """Sizes larger than a datagram, up to 16 MiB, byte for byte."""
    limit = subject.adapter.sidecar.limits.payload_bytes_max or LARGEST_BYTES
    _check_sizes(subject, findings, sizes_of(subject, DATAGRAM_BYTES + 1, min(limit, LARGEST_BYTES)))


def _check_sizes(subject: Subject, findings: Findings, sizes: list[int]) -> None:
    """Types of any length, in endpoints just large enough for a group of sizes; then the others."""
    types = subject.adapter.sidecar.abilities.types
    for kind in types:
        for group in _groups(sizes_with(kind, sizes)):
            findings.begin(f"endpoints for {kind} of up to {max(group):,} B")
            with PubSub(subject, message_bytes=max(group)) as pubsub:
                _exchange_sizes(pubsub, findings, group, kind)
    fixed_sizes: list[tuple[PayloadType, int]] = [("fixed", size) for size in FIXED_PAYLOADS_BYTES]
    fixed_sizes.append(("Imu", IMU_BYTES))
    for kind, size in fixed_sizes:
        if kind in types and min(sizes) <= size <= max(sizes):
            findings.begin(f"endpoints for {kind} of {size:,} B")
            with PubSub(subject, message_bytes=size) as pubsub:
                _exchange_sizes(pubsub, findings, [size], kind)


def sizes_with(kind: PayloadType, sizes: list[int]) -> list[int]:
    """The sizes to exchange with a type of any length, none for others. Every fifth for ROS 2 messages, since
    they use the same path as `bytes`."""
    if kind in ("fixed", "Imu"):
        return []
    fitting = [size for size in sizes if has_size(kind, size) and holds_envelope(kind, size)]
    return fitting[::5] if kind in OF_ROS else fitting


def _groups(sizes: list[int]) -> Iterator[list[int]]:
    """Sizes that share endpoints: some middleware allocates the largest size many times."""
    bounds = [1 << power for power in (12, 17, 19, 20, 21, 22, 23, 24)]
    begin = 0
    for bound in bounds:
        group = [size for size in sizes if begin < size <= bound + 1]
        begin = bound + 1
        if group:
            yield group


def _exchange_sizes(pubsub: PubSub, findings: Findings, sizes: list[int], kind: PayloadType) -> None:
    largest_bytes, qos = max(sizes), pubsub.qos_of(asks.SIZES)
    writer = pubsub.writer(0, "sizes", size=largest_bytes, qos=qos, type=kind)
    reader = pubsub.reader(1, "sizes", size=largest_bytes, qos=qos, type=kind)
    pubsub.meet()
    for size in sizes:
        name = f"{size:,} B of {kind}, byte for byte"
        findings.begin(name)
        fault = _send_one(pubsub, writer, reader, size)
        findings.judge(name, not fault, fault)
        if fault:
            return  # the next messages could be the rest of this one


def _send_one(pubsub: PubSub, writer: Endpoint, reader: Endpoint, size: int) -> str:
    """Sends a message of this size, repeatedly without guaranteed delivery; returns what went wrong."""
    reliable = _reliable(pubsub.subject)
    for _ in range(1 if reliable else TRIES):
        before = pubsub.account(reader, writer)
        sent = pubsub.send(writer, 1, size=size)
        if not sent.accepted:
            continue
        quiet_s = REPAIR_S if reliable else QUIET_S  # a lost message never comes, or is sent again
        (account,) = pubsub.settled([(reader, writer)], before.count + 1, quiet_s=quiet_s)
        if account.trouble:
            return account.trouble
        if account.count > before.count:
            return "" if account.last_bytes == size else f"{account.last_bytes} bytes came"
    return "it did not arrive"


def _reliable(subject: Subject) -> bool:
    return "reliable" in subject.adapter.sidecar.abilities.reliability
