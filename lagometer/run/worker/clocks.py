# SPDX-License-Identifier: Apache-2.0
"""When the hosts of a trial exchange time stamps: before its common start, rarely while it runs, and after
it.

Only hosts with different clocks do so, and only if they have an address by which they reach each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lagometer.run.hosts.part import HostPart
from lagometer.run.worker.plan import Phases, Plan, TimerRule

MS = 1_000_000
BURST = 24  # consecutive exchanges, before and after
BURST_PERIOD_NS = 2 * MS
# How often each host asks while messages flow. With two hosts there is a question every 50 ms. A clock may
# drift by 200 ppm of half of that, 5 µs, until the next question or since the last.
PERIOD_NS = 100 * MS


@dataclass(frozen=True)
class Asking:
    """One host and the hosts that it asks: name, address and port of each."""

    part: HostPart
    peers: tuple[tuple[str, str, int], ...]


def askings(parts: Sequence[HostPart]) -> list[Asking]:
    """Returns who asks whom: of any two hosts with different clocks, each asks the other."""
    peers_by_name: dict[str, list[tuple[str, str, int]]] = {}
    for one, other in itertools.permutations(parts, 2):
        if one.clock_port and other.clock_port and not _one_clock(one, other):
            peers_by_name.setdefault(one.name, []).append((other.name, other.address, other.clock_port))
    return [Asking(part, tuple(peers_by_name[part.name])) for part in parts if part.name in peers_by_name]


def _one_clock(one: HostPart, other: HostPart) -> bool:
    if one.clock.same and other.clock.same:
        return True
    named = one.link.hello.get("clock")
    return bool(named) and named == other.link.hello.get("clock")


def while_running(
    plans: Sequence[Plan], begin_ns: int, phases: Phases, place: int, places: int
) -> dict[str, Any]:
    """Returns when a host asks, starting at the common start: midway between the messages of the fastest
    timer, one host after another. place: the host's place among the `places` hosts that ask.

    If the timer is faster than an exchange, there is no free time in between: then the exchange coincides
    with messages.
    """
    timers = [
        rule for plan in plans for node in plan.nodes for rule in node.rules if isinstance(rule, TimerRule)
    ]
    fastest = min(timers, key=lambda rule: rule.period_ns, default=None)
    message_ns = fastest.period_ns if fastest is not None else MS
    middle_ns = fastest.offset_ns + message_ns // 2 if fastest is not None else 0
    apart_ns = -(-PERIOD_NS // (places * message_ns)) * message_ns
    length_ns = phases.warmup_ns + phases.measure_ns + phases.drain_ns
    first_ns = begin_ns + middle_ns + place * apart_ns
    return {"first_ns": first_ns, "period_ns": places * apart_ns, "until_ns": begin_ns + length_ns}
