# SPDX-License-Identifier: Apache-2.0
"""Tests whether endpoints with two QoS settings receive each other's messages, regardless of the rules.

A pair that can match is created before the pairs under test, and another one after them. Once both have
matched, discovery has had its time: a pair without messages some time later does not match.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lagometer.conformance.bench import PeerFailure, Refused, Subject
from lagometer.conformance.pubsub import PAUSE_S, Endpoint, NotMet, PubSub
from lagometer.conformance.qos_rules import Qos

NO_MATCH_S = 1.0  # after the last pair that can match has matched
# The policies that endpoints of a check can set.
TRIED = (
    "reliability",
    "durability",
    "history",
    "depth",
    "deadline_ns",
    "lifespan_ns",
    "liveliness",
    "lease_ns",
    "partition",
)
LIVELINESS = ("automatic", "manual_by_topic")
LEASE_NS = 3_600_000_000_000  # if only the kind is given: longer than any check


@dataclass(frozen=True)
class Observed:
    """The result of one pair. matched: None if it was not tested, and `reason` says why."""

    adapter: str
    matched: bool | None
    reason: str = ""


def observed(subject: Subject, pairs: Sequence[tuple[Qos, Qos]]) -> list[Observed]:
    """Tests pairs of (offered, requested) at the same time, each on its own topic."""
    if subject.missing is not None:
        return [Observed(subject.name, None, subject.missing) for _ in pairs]
    try:
        with PubSub(subject) as pubsub:
            return _try_all(pubsub, subject, pairs)
    except (NotMet, PeerFailure, Refused) as error:
        return [Observed(subject.name, None, str(error)) for _ in pairs]


def _try_all(pubsub: PubSub, subject: Subject, pairs: Sequence[tuple[Qos, Qos]]) -> list[Observed]:
    pubsub.writer(0, "before")
    pubsub.reader(1, "before")
    pubsub.meet()
    outcomes: dict[int, Observed] = {}
    endpoints: dict[int, tuple[Endpoint, Endpoint]] = {}
    for index, (offered, requested) in enumerate(pairs):
        try:
            writer = pubsub.writer(0, f"pair_{index}", qos=asked_for(offered, "reliable"))
            endpoints[index] = (
                pubsub.reader(1, f"pair_{index}", qos=asked_for(requested, "best_effort")),
                writer,
            )
        except (Refused, ValueError) as error:
            outcomes[index] = Observed(subject.name, None, str(error))
    control = (pubsub.reader(1, "after"), pubsub.writer(0, "after"))
    heard = _heard(pubsub, endpoints, control)
    for index in endpoints:
        outcomes[index] = Observed(subject.name, index in heard)
    return [outcomes[index] for index in range(len(pairs))]


def _heard(
    pubsub: PubSub, endpoints: Mapping[int, tuple[Endpoint, Endpoint]], control: tuple[Endpoint, Endpoint]
) -> set[int]:
    """The indices of the pairs that received messages by the time the control did, or a little later."""
    ended_s: float | None = None
    while True:
        pubsub.probe()
        accounts = pubsub.accounts([*endpoints.values(), control])
        heard = {index for index, account in zip(endpoints, accounts, strict=False) if account.probes}
        if len(heard) == len(endpoints):
            return heard
        now_s = time.monotonic()
        if accounts[-1].probes and ended_s is None:
            ended_s = now_s + NO_MATCH_S
        if ended_s is not None and now_s > ended_s:
            return heard
        time.sleep(PAUSE_S)


def asked_for(qos: Qos, reliability: str) -> dict[str, Any]:
    """A QoS as orders to endpoints of a check state it. Raises ValueError if they can't.

    Unset policies get the DDS defaults (reliability: that side's), since vendors have their own defaults: a
    publisher of Fast DDS is transient local.
    """
    policies = {name: value for name, value in vars(qos).items() if value not in (None, ())}
    policies = {"reliability": reliability, "durability": "volatile", **policies}
    for name in policies:
        if name not in TRIED:
            raise ValueError(f"{name.removesuffix('_ns')} is judged by the rules alone")
    if "liveliness" in policies:
        if policies["liveliness"] not in LIVELINESS:
            raise ValueError(f"liveliness {policies['liveliness']} is judged by the rules alone")
        policies = {"lease_ns": LEASE_NS, **policies}
    if "partition" in policies:
        policies["partition"] = ";".join(policies["partition"])
    return policies
