# SPDX-License-Identifier: Apache-2.0
"""How a link changes over time: handovers, outages, other rates. Times count from the start of the measure
phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lagometer import units
from lagometer.study.document import Entries, Items, Scalar, Tree
from lagometer.study.values import Problems, nearest, parsed
from lagometer.units import UnitError

CHANGES = "changes"
STEPS_MAX = 1000  # that a link accepts for one measure phase
WRITE = "write `changes: [{at: 2s, outage: 300ms}]`"
# The keys of a profile that a change may have; shape, queue and MTU stay.
OF_A_PROFILE = {"rate": "rate_bps", "delay": "delay_ns", "jitter": "jitter_ns", "loss": "loss"}


class Parser(Protocol):
    """Reads a value. Raises UnitError."""

    def __call__(self, text: str, /) -> object:
        """Returns the value."""


class HasState(Protocol):
    """The properties of a link that may change."""

    @property
    def rate_bps(self) -> int:
        """0: unlimited."""

    @property
    def delay_ns(self) -> int:
        """One way."""

    @property
    def jitter_ns(self) -> int:
        """The standard deviation."""

    @property
    def loss(self) -> float:
        """The share of frames."""


@dataclass(frozen=True)
class Change:
    """at_ns: from the start of the measure phase; every_ns: repeats with this period, 0 for once; outage_ns:
    how long all frames are lost, 0 for none; the other fields: the value from then on, None keeps the
    current one."""

    at_ns: int
    every_ns: int = 0
    outage_ns: int = 0
    rate_bps: int | None = None
    delay_ns: int | None = None
    jitter_ns: int | None = None
    loss: float | None = None

    def as_json(self) -> dict[str, Any]:
        """For manifest.json: the keys that it sets."""
        defaults = {"every_ns": 0, "outage_ns": 0}
        return {
            key: value
            for key, value in vars(self).items()
            if value is not None and (key not in defaults or value != defaults[key])
        }


@dataclass(frozen=True)
class Step:
    """The state of a link from a time of the measure phase on. outage: all frames are lost."""

    at_ns: int
    rate_bps: int
    delay_ns: int
    jitter_ns: int
    loss: float
    outage: bool


def change_keys(of_a_profile: Mapping[str, Parser]) -> dict[str, tuple[str, Parser]]:
    """The keys of a change: each with its field and its parser."""
    return {
        "at": ("at_ns", units.parse_duration_ns),
        "every": ("every_ns", _some_time),
        "outage": ("outage_ns", _some_time),
        **{name: (OF_A_PROFILE[name], parse) for name, parse in of_a_profile.items()},
    }


def _some_time(text: str) -> int:
    duration_ns = units.parse_duration_ns(text)
    if duration_ns < 1_000_000:
        raise UnitError(f"'{text}' is less than 1 ms")
    return duration_ns


def read_changes(
    value: Tree, where: str, of_a_profile: Mapping[str, Parser], problems: Problems
) -> tuple[Change, ...]:
    """The key `changes` of a link, in the order of time."""
    if not isinstance(value, Items) or not value.items:
        problems.add("takes a list of changes", value.line, where, WRITE)
        return ()
    changes: list[Change] = []
    for index, item in enumerate(value.items):
        key_path = f"{where}[{index}]"
        if not isinstance(item, Entries):
            problems.add("is not a change", item.line, key_path, WRITE)
            continue
        change = _change(item, key_path, of_a_profile, problems)
        if change is None:
            continue
        for message, hint in _wrong(change, changes[-1] if changes else None):
            problems.add(message, item.line, key_path, hint)
        changes.append(change)
    return tuple(changes)


def _change(
    item: Entries, where: str, of_a_profile: Mapping[str, Parser], problems: Problems
) -> Change | None:
    keys = change_keys(of_a_profile)
    fields: dict[str, Any] = {}
    for key, value in item.entries:
        key_path = f"{where}.{key.text}"
        if key.text not in keys:
            problems.add(f"unknown key '{key.text}'", key.line, key_path, nearest(key.text, keys))
        elif not isinstance(value, Scalar):
            problems.add("takes one value", key.line, key_path, "write it behind the colon")
        else:
            field, parse = keys[key.text]
            if (parsed_value := parsed(value, key_path, parse, problems)) is not None:
                fields[field] = parsed_value
    if "at_ns" not in fields:
        if not any(key.text == "at" for key, _ in item.entries):
            problems.add("does not say when", item.line, where, "add `at: 2s`, from the measure phase on")
        return None
    return Change(**fields)


def _wrong(change: Change, previous: Change | None) -> Iterator[tuple[str, str]]:
    """What is wrong with a change, and a hint."""
    if not change.outage_ns and all(getattr(change, field) is None for field in OF_A_PROFILE.values()):
        yield "changes nothing", "add `outage: 300ms`, or a key of the profile such as `rate: 2Mbit`"
    if previous is not None and change.at_ns <= previous.at_ns:
        yield "is not later than the change before it", "put changes in the order of their times"
    if change.every_ns and change.outage_ns >= change.every_ns:
        yield "its outage never ends before the next", "make `every` longer than `outage`"


def step_count(changes: Sequence[Change], until_ns: int) -> int:
    """How many steps a measure phase of this length has, at most."""
    return sum(
        (1 + bool(change.outage_ns)) * len(range(change.at_ns, until_ns, change.every_ns or until_ns + 1))
        for change in changes
    )


def steps_of(state: HasState, changes: Sequence[Change], until_ns: int) -> tuple[Step, ...]:
    """The states of the link, step by step, in a measure phase of this length. Of several changes at the same
    time, the last in the list applies. An outage that begins in the phase and ends after it has no end."""
    occurrences = sorted(
        (at_ns, index)
        for index, change in enumerate(changes)
        for at_ns in range(change.at_ns, until_ns, change.every_ns or until_ns + 1)
    )
    ends = {at_ns + changes[index].outage_ns for at_ns, index in occurrences if changes[index].outage_ns}
    times = sorted({at_ns for at_ns, _ in occurrences} | {end_ns for end_ns in ends if end_ns < until_ns})
    current = {field: getattr(state, field) for field in OF_A_PROFILE.values()}
    steps, next_one, outage_until_ns = [], 0, 0
    for at_ns in times:
        while next_one < len(occurrences) and occurrences[next_one][0] <= at_ns:
            change = changes[occurrences[next_one][1]]
            changed = {field: getattr(change, field) for field in current}
            current |= {field: value for field, value in changed.items() if value is not None}
            if change.outage_ns:
                outage_until_ns = max(outage_until_ns, at_ns + change.outage_ns)
            next_one += 1
        outage = at_ns < outage_until_ns
        steps.append(Step(at_ns=at_ns, outage=outage, **{**current, **({"loss": 1.0} if outage else {})}))
    return tuple(steps)
