# SPDX-License-Identifier: Apache-2.0
"""Publishers and subscriptions of ROS 2, as their creation was traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lagometer.stats.program.endpoints import FOREVER_NS, endpoints_of
from lagometer.store import probes
from lagometer.store.probes import decode, encode

OBJECT = 0x111

Call = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]


def created(kind: int, at_ns: int, topic: str) -> Call:
    text = {"text": 0, "bytes": len(topic), "characters": topic.encode().ljust(46, b"\0")}
    return {"call": kind, "begin_ns": at_ns, "end_ns": at_ns, "object": OBJECT}, [text]


def used(kind: int, begin_ns: int) -> Call:
    call = {"call": kind, "begin_ns": begin_ns, "end_ns": begin_ns + 10, "object": OBJECT}
    return {**call, "result": 1_700_000_000_000_000_000 + begin_ns}, []


@pytest.mark.parametrize(
    ("creation", "use"),
    [(probes.ROS2_PUBLISHER, probes.RMW_PUBLISH), (probes.ROS2_SUBSCRIPTION, probes.RMW_TAKE)],
)
def test_what_is_created_at_the_address_of_another_does_not_take_its_messages(
    creation: int, use: int
) -> None:
    calls = [created(creation, 100, "/pose"), used(use, 200), used(use, 300)]
    calls += [created(creation, 400, "/scan"), used(use, 500)]
    log = decode(encode({7: calls}))
    pose, scan = endpoints_of(log, 0)
    assert [(each.topic, each.since_ns, each.until_ns) for each in (pose, scan)] == [
        ("/pose", 0, 400),
        ("/scan", 400, FOREVER_NS),
    ]
    assert [int(each.calls(log).sum()) for each in (pose, scan)] == [2, 1]
