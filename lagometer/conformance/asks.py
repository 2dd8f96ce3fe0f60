# SPDX-License-Identifier: Apache-2.0
"""What each check needs from an adapter: the numbers that the checks use and the documentation lists.

Nothing here exceeds a sidecar's limits: a check reduces its needs to the limits, and is absent if the reduced
check would show nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from lagometer.study.sidecar import Limits
from lagometer.units import plain_duration_text

USUAL_DEPTH = 16
BLOCKING_NS = 1_000_000_000  # how long publishing may block, unless a check says otherwise
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Asks:
    """The most that a check needs at once.

    depth: of keep_last; reliability: `strongest` of those declared, `unset` (the middleware's own default),
    or one of the sidecar's words; history: keep_last if declared, unless `keep_all` (or `keep_all or
    keep_last`: keep_all if declared); endpoints: publishers and subscribers of one topic together; messages:
    sent in a row, at most `depth` of them before the subscriber has them; more: the rest, in words.
    """

    depth: int = USUAL_DEPTH
    reliability: str = "strongest"
    history: str = "keep_last"
    durability: str = "volatile"
    blocking_ns: int = BLOCKING_NS
    topics: int = 1
    endpoints: int = 2
    messages: int = 0
    more: str = ""

    def depth_within(self, limits: Limits) -> int:
        """The depth, reduced to the sidecar's limits."""
        durable_depth_max = limits.transient_local_depth_max if self.durability == "transient_local" else None
        return min(depth for depth in (self.depth, limits.depth_max, durable_depth_max) if depth is not None)

    def lacks(
        self, limits: Limits, topics_least: int | None = None, endpoints_least: int | None = None
    ) -> str | None:
        """Why the sidecar's limits make this absent; None if they don't. `…_least`: a sufficient minimum."""
        topics, endpoints = topics_least or self.topics, endpoints_least or self.endpoints
        if limits.topics_max is not None and topics > limits.topics_max:
            return _at_most(limits.topics_max, "topics at once", limits.topics_max_reason)
        if limits.endpoints_max is not None and endpoints > limits.endpoints_max:
            return _at_most(limits.endpoints_max, "endpoints on a topic", limits.endpoints_max_reason)
        return None

    def told(self) -> dict[str, str]:
        """All needs in words, by the column of the documentation's table."""
        return {
            "depth": _HISTORIES[self.history].format(f"{self.depth:,}"),
            "reliability": self.reliability.replace("_", " "),
            "blocking": plain_duration_text(self.blocking_ns),
            "topics": f"{self.topics:,}",
            "endpoints": f"{self.endpoints:,}",
            "messages": f"{self.messages:,}" if self.messages else "",
            "besides": ", ".join(filter(None, [self._besides(), self.more])),
        }

    def _besides(self) -> str:
        return "" if self.durability == "volatile" else f"durability {self.durability}"


_HISTORIES = {
    "keep_last": "{}",
    "keep_all": "keep_all",
    "keep_all or keep_last": "keep_all, else {}",
}


def _at_most(limit: int, things: str, reason: str) -> str:
    return f"at most {limit} {things}" + (f": {reason}" if reason else "")


DISCOVERY = Asks(endpoints=4, topics=2)
DISPATCH = Asks(depth=256, messages=200, more="one each millisecond")
SIZES = Asks(depth=1, messages=1)
LOANS = Asks()
BEST_EFFORT = Asks(depth=512, reliability="best_effort", messages=300, more="one each millisecond")
RELIABLE = Asks(
    depth=1_000,
    reliability="reliable",
    history="keep_all or keep_last",
    messages=500,
    more="1 ms of work on each",
)
KEEP_LAST = Asks(
    depth=8,
    messages=64,
    more="with `depth: false` or `drops: newest` up to 14,000 of 4 KB, until one is lost",
)
KEEP_ALL = Asks(history="keep_all", blocking_ns=100 * NS_PER_MS, messages=4_000, more="4 KB each")
TRANSIENT_LOCAL = Asks(depth=80, durability="transient_local", endpoints=3, messages=20)
DOMAINS = Asks(messages=100, more="two domains")
TOPICS = Asks(depth=4, topics=500, messages=1)
ENDPOINTS = Asks(depth=256, endpoints=50, messages=5)
FAN_OUT = Asks(depth=512, endpoints=9, messages=400)
REOPENING = Asks(depth=8, reliability="unset", blocking_ns=NS_PER_MS, more="opened 100 times")
TEARDOWN = Asks(endpoints=3)
SETTINGS = Asks(history="keep_all or keep_last")
CONTRACT = Asks(endpoints=3, topics=4)
LAYERS = Asks(depth=400, endpoints=4, messages=200, more="from each of two publishers")
SECURITY = Asks(messages=10, endpoints=6, topics=3, more="four participants, two kinds")
OUTPUT = Asks(messages=20, more="one trial by each dispatch, with the study's defaults")
