# SPDX-License-Identifier: Apache-2.0
"""Opening and closing: a hundred times without a leak, and during traffic."""

from __future__ import annotations

from lagometer.conformance import asks
from lagometer.conformance.bench import Bench, Subject
from lagometer.conformance.findings import Findings
from lagometer.conformance.pubsub import SMALL_BYTES, Endpoint, PubSub

ROUNDS = 100
MORE_ROUNDS = 20  # for each further dispatch, which differs only in the wake-up
REOPENING_TIMES = 10.0  # twice as long as any other order
RETURNS = 10
NEVER = 1 << 62  # more messages than ever arrive: waits until no new ones do


def check_reopening(subject: Subject, findings: Findings) -> None:
    """Opens and closes everything in use: descriptors, threads, files as before, no late callback."""
    for index, dispatch in enumerate(subject.adapter.sidecar.abilities.dispatch):
        rounds = MORE_ROUNDS if index else ROUNDS
        with Bench(subject, 1, SMALL_BYTES) as bench:
            answer = bench.peers[0].do(
                "reopen",
                times=REOPENING_TIMES,
                rounds=rounds,
                dispatch=dispatch,
                depth=asks.REOPENING.depth_within(subject.adapter.sidecar.limits),
                blocking_ns=asks.REOPENING.blocking_ns,
                options=subject.all_options(),
                network=bench.network(),
            )
        before, after = answer["before"], answer["after"]
        spare = {"descriptors": subject.adapter.sidecar.limits.descriptors_spare}
        for resource in ("descriptors", "threads", "files", "message_queues"):
            if resource not in before:  # a Python process can't see the queues
                continue
            findings.judge(
                f"{dispatch}: {resource.replace('_', ' ')} after {rounds} openings",
                after[resource] <= before[resource] + spare.get(resource, 0),
                f"there are {after[resource]}, and there were {before[resource]} before them",
            )
        late = answer["late_callbacks"]
        findings.judge(
            f"{dispatch}: no callback after its reader is destroyed",
            late == 0,
            f"on_data was called {late} times after the reader's destruction had returned",
        )


def check_teardown(subject: Subject, findings: Findings) -> None:
    """Subscribers come and go, then publishers, while the other side continues."""
    with PubSub(subject) as pubsub:
        writer = pubsub.writer(0, "busy")
        staying = pubsub.reader(1, "busy")
        pubsub.meet()
        for _ in range(RETURNS):
            leaving = pubsub.reader(1, "busy")
            pubsub.meet()
            pubsub.peer(0).do("flood", writer=writer.id, bytes=writer.bytes)
            pubsub.peer(1).do("heard", sequences=False)
            pubsub.destroy(leaving)
            flooded = pubsub.peer(0).do("calm", writer=writer.id)
            if not findings.judge(
                "a publisher goes on while a subscriber goes", not flooded["failure"], flooded["failure"]
            ):
                return
        _still_heard(pubsub, findings, "who stayed still hears", staying, writer)
        for _ in range(RETURNS):
            leaving = pubsub.writer(0, "busy")
            pubsub.meet()
            pubsub.peer(0).do("flood", writer=leaving.id, bytes=leaving.bytes)
            pubsub.peer(1).do("heard", sequences=False)
            pubsub.peer(0).do("calm", writer=leaving.id)
            pubsub.destroy(leaving)
        _still_heard(pubsub, findings, "a subscriber hears on when publishers have gone", staying, writer)
    _check_closing_in_midst(subject, findings)


def _still_heard(pubsub: PubSub, findings: Findings, name: str, reader: Endpoint, writer: Endpoint) -> None:
    """Judges whether new messages arrive after all earlier ones have arrived."""
    pairs = [(reader, writer)]
    pubsub.settled(pairs, NEVER)
    before = pubsub.account(reader, writer).count
    pubsub.send(writer, 20, pace_ns=2_000_000)
    (account,) = pubsub.settled(pairs, before + 20)
    findings.judge(name, account.count > before and not account.trouble, account.trouble or "nothing came")


def _check_closing_in_midst(subject: Subject, findings: Findings) -> None:
    """Closes all of one process, including its context, while the other sends to it."""
    name = "a publisher goes on while a whole context goes"
    if subject.within_process:
        findings.skip(name, "its messages stay within one process")
        return
    with PubSub(subject) as pubsub:
        writer = pubsub.writer(0, "busy")
        reader = pubsub.reader(1, "busy")
        pubsub.meet()
        pubsub.peer(0).do("flood", writer=writer.id, bytes=writer.bytes)
        pubsub.destroy(reader)
        pubsub.peer(1).do("destroy", id=pubsub.context(1))
        flooded = pubsub.peer(0).do("calm", writer=writer.id)
        findings.judge(name, not flooded["failure"], flooded["failure"])
