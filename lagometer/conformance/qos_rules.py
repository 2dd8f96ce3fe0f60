# SPDX-License-Identifier: Apache-2.0
"""Whether two QoS settings match, by the rules of DDS (Data Distribution Service 1.4, section 2.2.3).

A publisher must offer at least what a subscriber requests, policy by policy; they must share a partition.
History, depth and lifespan are each side's own choice.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, fields, replace

from lagometer.study.values import nearest
from lagometer.units import UnitError, parse_duration_ns, plain_duration_text

# Each from the weakest to the strongest.
RELIABILITY = ("best_effort", "reliable")
DURABILITY = ("volatile", "transient_local", "transient", "persistent")
LIVELINESS = ("automatic", "manual_by_participant", "manual_by_topic")
DESTINATION_ORDER = ("by_reception_timestamp", "by_source_timestamp")
PRESENTATION = ("instance", "topic", "group")
OWNERSHIP = ("shared", "exclusive")
HISTORY = ("keep_last", "keep_all")
PARTITION = "partition"


@dataclass(frozen=True)
class Qos:
    """One side's QoS; None: the DDS default, which for reliability differs by side.

    Durations: None is infinite, except for latency_budget_ns, where it is 0.
    """

    reliability: str | None = None
    durability: str | None = None
    deadline_ns: int | None = None
    latency_budget_ns: int | None = None
    liveliness: str | None = None
    lease_ns: int | None = None
    ownership: str | None = None
    destination_order: str | None = None
    presentation: str | None = None
    partition: tuple[str, ...] = ()
    history: str | None = None
    depth: int | None = None
    lifespan_ns: int | None = None


@dataclass(frozen=True)
class Policy:
    """The result for one policy. rule: what must hold, in words; offered, requested: as text."""

    name: str
    offered: str
    requested: str
    compatible: bool
    rule: str


# The profiles of ROS 2, from rmw/qos_profiles.h.
PROFILES: dict[str, Qos] = {
    "default": Qos("reliable", "volatile", history="keep_last", depth=10),
    "sensor_data": Qos("best_effort", "volatile", history="keep_last", depth=5),
    "services": Qos("reliable", "volatile", history="keep_last", depth=10),
    "parameters": Qos("reliable", "volatile", history="keep_last", depth=1000),
    "clock": Qos("best_effort", "volatile", history="keep_last", depth=1),
    "rosout": Qos("reliable", "transient_local", history="keep_last", depth=1000, lifespan_ns=10_000_000_000),
    "action_status": Qos("reliable", "transient_local", history="keep_last", depth=1),
}
_WORDS = {
    word: name
    for name, words in {
        "reliability": RELIABILITY,
        "durability": DURABILITY,
        "liveliness": LIVELINESS,
        "destination_order": DESTINATION_ORDER,
        "ownership": OWNERSHIP,
        "history": HISTORY,
    }.items()
    for word in words
}
_DURATIONS = ("deadline", "latency_budget", "lease", "lifespan")
_KEYS = (*_DURATIONS, "depth", PARTITION, "presentation")


def parse_qos(text: str) -> Qos:
    """A QoS as a user writes it: `reliable,transient_local,deadline=100ms`, optionally after the name of a
    ROS 2 profile, such as `sensor_data`. Raises UnitError."""
    qos = Qos()
    policy_names: set[str] = set()
    for index, part in enumerate(text.split(",")):
        word, sign, value = part.strip().partition("=")
        if not sign and word in PROFILES and index == 0:
            qos = PROFILES[word]
            continue
        name = word if sign else _WORDS.get(word, "")
        if name not in _KEYS and (sign or not name):
            known = [*PROFILES, *_WORDS, *(f"{key}=…" for key in _KEYS)]
            raise UnitError(f"'{part.strip()}' is not a policy; {nearest(word, known)}")
        if name in policy_names:
            raise UnitError(f"'{part.strip()}': there is a {name} already")
        policy_names.add(name)
        qos = _with(qos, name, value if sign else word)
    return qos


def _with(qos: Qos, name: str, value: str) -> Qos:
    if name in _DURATIONS:
        return replace(qos, **{f"{name}_ns": parse_duration_ns(value)})  # type: ignore[arg-type]
    if name == "depth":
        if not value.isdecimal() or int(value) < 1:
            raise UnitError(f"depth={value} is not a number from 1 up")
        return replace(qos, depth=int(value))
    if name == PARTITION:
        return replace(qos, partition=tuple(value.split("+")))
    if name == "presentation" and value not in PRESENTATION:
        raise UnitError(f"presentation={value}; {nearest(value, PRESENTATION)}")
    return replace(qos, **{name: value})  # type: ignore[arg-type]


def judged(offered: Qos, requested: Qos) -> tuple[Policy, ...]:
    """The result for each policy that must match, in the order of the standard's table."""
    return (
        _ordered("durability", offered.durability, requested.durability, DURABILITY),
        _ordered("presentation", offered.presentation, requested.presentation, PRESENTATION),
        _duration("deadline", offered.deadline_ns, requested.deadline_ns),
        _duration("latency budget", offered.latency_budget_ns or 0, requested.latency_budget_ns or 0),
        _ownership(offered.ownership or "shared", requested.ownership or "shared"),
        _ordered("liveliness", offered.liveliness, requested.liveliness, LIVELINESS),
        _duration("liveliness lease", offered.lease_ns, requested.lease_ns),
        # A publisher is reliable by default; a subscriber is not.
        _ordered("reliability", offered.reliability or "reliable", requested.reliability, RELIABILITY),
        _ordered(
            "destination order", offered.destination_order, requested.destination_order, DESTINATION_ORDER
        ),
        _partition(offered.partition or ("",), requested.partition or ("",)),
    )


def _ordered(name: str, offered: str | None, requested: str | None, words: tuple[str, ...]) -> Policy:
    offers, requests = offered or words[0], requested or words[0]
    rule = f"offer at least what is requested: {' < '.join(words)}"
    return Policy(name, offers, requests, words.index(offers) >= words.index(requests), rule)


def _duration(name: str, offered_ns: int | None, requested_ns: int | None) -> Policy:
    def text(value: int | None) -> str:
        return "infinite" if value is None else plain_duration_text(value)

    compatible = requested_ns is None or (offered_ns is not None and offered_ns <= requested_ns)
    return Policy(name, text(offered_ns), text(requested_ns), compatible, "offer no more than is requested")


def _ownership(offered: str, requested: str) -> Policy:
    return Policy("ownership", offered, requested, offered == requested, "both the same")


def _partition(offered: tuple[str, ...], requested: tuple[str, ...]) -> Policy:
    """Names match by wildcards on either side, but two names with wildcards never do (2.2.3.13), not even
    equal ones."""
    shared = any(
        (offered_name == requested_name and not _is_wild(offered_name))
        or (not _is_wild(requested_name) and fnmatch.fnmatchcase(requested_name, offered_name))
        or (not _is_wild(offered_name) and fnmatch.fnmatchcase(offered_name, requested_name))
        for offered_name in offered
        for requested_name in requested
    )

    def text(names: tuple[str, ...]) -> str:
        return " ".join(name or '""' for name in names)

    return Policy(PARTITION, text(offered), text(requested), shared, "share a partition")


def _is_wild(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def described(qos: Qos) -> dict[str, object]:
    """The QoS for JSON."""
    return {
        field.name: value for field in fields(qos) if (value := getattr(qos, field.name)) not in (None, ())
    }
