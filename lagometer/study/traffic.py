# SPDX-License-Identifier: Apache-2.0
"""The messages of a topic: from the workload's settings of the topic, otherwise from the cell's factors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from lagometer.study.distribution import Distribution
from lagometer.study.payload import PayloadType, at_least
from lagometer.study.policies import NONE, Policy

SecurityKind = Literal["none", "sign", "encrypt"]

PAYLOAD_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class TopicSettings:
    """A workload file's settings of one topic; None follows the cell's factors.

    payload_bytes or payload: a size, or a distribution of sizes; adapter: a name, or `publisher+subscriber`;
    domain_across: of its subscribers, if a bridge carries it to another domain.
    """

    payload_bytes: int | None = None
    payload: Distribution | None = None
    type: PayloadType | None = None
    content: str | None = None
    reliability: Literal["best_effort", "reliable"] | None = None
    history: Literal["keep_last", "keep_all"] | None = None
    depth: int | None = None
    durability: Literal["volatile", "transient_local"] | None = None
    deadline_period_ns: int | None = None
    lifespan_ns: int | None = None
    liveliness: str | None = None
    partition: str | None = None
    instances: int | None = None
    domain: int | None = None
    domain_across: int | None = None
    security: SecurityKind | None = None
    adapter: str | None = None


# The fields of `Factors` that a topic may override.
TOPIC_FIELDS = frozenset(field.name for field in fields(TopicSettings)) - {"payload", "domain_across"}


@dataclass(frozen=True)
class Traffic:
    """The messages of one topic in one cell.

    payload_bytes: the largest; deadline_period_ns, lifespan_ns: 0 for none; liveliness: in its canonical
    spelling; partition: a name, or `none`; instances: 0 without a key; security: of the participants at
    both ends; sizes_bytes: of message `sequence` modulo their number, empty if all have `payload_bytes`;
    domain_across: of the subscribers, None: the same.
    """

    adapter: str
    domain: int
    type: PayloadType
    content: str
    payload_bytes: int
    reliability: Literal["best_effort", "reliable"]
    history: Literal["keep_last", "keep_all"]
    depth: int
    durability: Literal["volatile", "transient_local"]
    deadline_period_ns: int = 0
    lifespan_ns: int = 0
    liveliness: str = NONE
    partition: str = NONE
    instances: int = 0
    security: SecurityKind = "none"
    sizes_bytes: tuple[int, ...] = ()
    domain_across: int | None = None

    @property
    def subscriber_domain(self) -> int:
        """The domain of the topic's subscribers."""
        return self.domain if self.domain_across is None else self.domain_across

    @property
    def domains(self) -> tuple[int, ...]:
        """The domains of both ends, each once."""
        return tuple(dict.fromkeys((self.domain, self.subscriber_domain)))

    def domains_of(self, adapter: str) -> tuple[int, ...]:
        """The domains in which this adapter is at one of the ends."""
        ends = ((self.publisher_adapter, self.domain), (self.subscriber_adapter, self.subscriber_domain))
        return tuple(dict.fromkeys(domain for name, domain in ends if name == adapter))

    def in_one_domain(self) -> Traffic:
        """The same without a bridge: both ends in the lower of the two domains."""
        return replace(self, domain=min(self.domains), domain_across=None)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies that are on."""
        enabled: dict[Policy, bool] = {
            "deadline": self.deadline_period_ns > 0,
            "lifespan": self.lifespan_ns > 0,
            "liveliness": self.liveliness != NONE,
            "partition": self.partition != NONE,
            "instances": self.instances > 0,
        }
        return tuple(policy for policy, is_on in enabled.items() if is_on)

    @property
    def publisher_adapter(self) -> str:
        """The adapter of the topic's publishers."""
        return self.adapter.split("+")[0]

    @property
    def subscriber_adapter(self) -> str:
        """The adapter of the topic's subscribers."""
        return self.adapter.split("+")[-1]

    @property
    def mean_bytes(self) -> float:
        """The mean of the payloads."""
        return sum(self.sizes_bytes) / len(self.sizes_bytes) if self.sizes_bytes else self.payload_bytes

    @property
    def adapters(self) -> tuple[str, ...]:
        """The adapters of both ends, each once."""
        return tuple(dict.fromkeys((self.publisher_adapter, self.subscriber_adapter)))


def traffic_of(settings: TopicSettings, default: Traffic, seed: str) -> Traffic:
    """What a topic with these settings carries if other topics carry `default`; `seed` determines drawn
    sizes."""
    overrides = {field.name: getattr(settings, field.name) for field in fields(settings)}
    payload = overrides.pop("payload")
    traffic = replace(default, **{name: value for name, value in overrides.items() if value is not None})
    if payload is None:
        return traffic
    sizes = tuple(min(at_least(traffic.type, size), PAYLOAD_BYTES_MAX) for size in payload.draw(seed))
    return replace(traffic, payload_bytes=max(sizes), sizes_bytes=sizes)
