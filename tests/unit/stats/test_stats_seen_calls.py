# SPDX-License-Identifier: Apache-2.0
"""How many of the kernel's calls a probe saw: what counts as one call, and what is left out."""

from __future__ import annotations

from typing import Any

from lagometer.stats.trial.seen_calls import GROUPS, Seen, SeenCalls, added, seen_calls
from lagometer.store import probes
from lagometer.store.probes import decode, encode


def call(kind: int, begin_ns: int, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return {"call": kind, "begin_ns": begin_ns, "end_ns": begin_ns + 1, **more}, []


def test_calls_are_counted_by_group_within_the_two_readings() -> None:
    log = decode(
        encode(
            {
                1: [
                    call(probes.SEND, 50, descriptor=3),  # returned before
                    call(probes.SEND, 100, descriptor=3),
                    call(probes.SEND, 100, descriptor=3),  # the second datagram of a sendmmsg
                    call(probes.SEND, 110, descriptor=3, plain=1),
                    call(probes.NOTIFY, 120, descriptor=4, plain=1),  # an eventfd
                    call(probes.NOTIFY, 130),  # a condition variable
                    call(probes.WAIT, 140),
                    call(probes.DRAINED, 150, descriptor=4, plain=1),
                    call(probes.BLOCK, 160),
                    call(probes.API_WAIT, 170),
                ],
                2: [call(probes.RECEIVE, 100, descriptor=5), call(probes.RECEIVE, 199, descriptor=5)],
            }
        )
    )
    kernel = {"send": 1, "receive": 4, "wait": 1, "write": 2, "read": 4}
    found = seen_calls(log, kernel, 90, 200)
    assert list(found.groups) == list(GROUPS)
    assert found.groups == {
        "send": Seen(1, 1),
        "receive": Seen(4, 2),
        "wait": Seen(1, 1),
        "write": Seen(2, 2),
        "read": Seen(4, 1),
    }
    assert found.groups["receive"].share == 0.5
    assert SeenCalls.from_json(found.as_json()) == found
    assert seen_calls(log, {}, 0, 10).groups["send"].share is None


def test_a_sum_is_known_if_all_of_its_parts_are() -> None:
    one, other = SeenCalls({"send": Seen(10, 9)}), SeenCalls({"send": Seen(1, 2), "wait": Seen(3, 3)})
    assert added([one, other]).groups == {"send": Seen(11, 11), "wait": Seen(3, 3)}
    assert added([one, SeenCalls(absent="ENOENT: no")]) == SeenCalls(absent="ENOENT: no")
    assert added([other]).groups["send"].share == 1.0
