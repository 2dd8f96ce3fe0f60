# SPDX-License-Identifier: Apache-2.0
"""Whether what a cell asks for is in force, according to the adapters' objects.

An adapter reports effective settings, often with the middleware's own names and units. For each option, its
sidecar says which setting shows the value (`reported`, docs/adapters/sidecar.md); by default, the one with
the option's name. Values that equal the vendor's own are left out of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lagometer.units import UnitError, parse_payload_bytes

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Confirmation:
    """What is known about an option. in_force: None if nothing shows it. setting, value: what the adapter
    reports instead, if another value is in force. silent: the settings that could have shown it."""

    in_force: bool | None
    setting: str = ""
    value: object = None
    silent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What a cell asks for.

    options: adapter → option → value; declared: adapter → option → its declaration in the sidecar;
    environment: the variables of its variant; factors: those that it has, by name.
    """

    adapters: Sequence[str]
    options: Mapping[str, Json]
    declared: Mapping[str, Mapping[str, Json]]
    environment: Mapping[str, str] = field(default_factory=dict)
    factors: Json = field(default_factory=dict)


def confirmations(asked: Asked, objects: Sequence[Json]) -> Iterator[tuple[str, object, Confirmation]]:
    """What is asked for, its value, and what is known about it. An option that has no effect in this cell is
    left out. objects: what the adapters' objects report (docs/FORMAT.md, `settings`)."""
    for adapter in asked.adapters:
        for name, value in asked.options.get(adapter, {}).items():
            declared = asked.declared.get(adapter, {}).get(name)
            if declared is not None and _has_effect(asked.factors, declared.get("only_with") or {}):
                outcome = confirmation(name, value, declared, partial(reported, objects, adapter))
                yield f"{adapter}: {name}", value, outcome
    for name, value in asked.environment.items():
        values = [each for adapter in asked.adapters for each in reported(objects, adapter, name)]
        others = [each for each in values if str(each) != value]
        outcome = Confirmation(
            not others if values else None, name, others[0] if others else None, silent=(name,)
        )
        yield f"environment variable {name}", value, outcome


def difference(label: str, value: object, outcome: Confirmation) -> str:
    """How a value in force differs from the one asked for, in words."""
    prefix = "" if label.endswith(f" {outcome.setting}") else f"{outcome.setting} "
    return f"{label} {value} asked for, {prefix}{outcome.value} in force"


def reported(objects: Sequence[Json], adapter: str, setting: str) -> list[object]:
    """The values that an adapter reports for a setting: its contexts', or otherwise its endpoints'."""
    adapter_objects = [entry for entry in objects if entry.get("adapter") == adapter]
    contexts = [entry for entry in adapter_objects if entry.get("object") == "context"]
    for group in (contexts, [entry for entry in adapter_objects if entry not in contexts]):
        settings = [entry.get("settings") or {} for entry in group]
        if values := [value_of(by_name[setting]) for by_name in settings if setting in by_name]:
            return values
    return []


def value_of(setting: object) -> object:
    """The value in force of a setting as it is reported."""
    return setting.get("value") if isinstance(setting, dict) else setting


def confirmation(
    option: str, asked: object, declared: Json, values_of: Callable[[str], Sequence[object]]
) -> Confirmation:
    """Compares an option's value with what is reported.

    declared: the option as in its sidecar (`default`, `reported`, `also`). values_of: all values that the
    adapter's objects report for a setting.
    """
    if isinstance(asked, str):
        asked = (declared.get("also") or {}).get(asked, asked)
    entries: Sequence[Json] | None = declared.get("reported")
    by_name: Sequence[Json] = [{"setting": option}]
    confirmed, silent = False, []
    for entry in by_name if entries is None else entries:
        name, values = entry["setting"], entry.get("values")
        if values and _word(asked) not in values:
            continue  # this setting does not show such a value
        expected = values[_word(asked)] if values else _times(asked, entry.get("times") or 1)
        reported_values = values_of(name)
        for value in reported_values:
            if not alike(expected, value):
                return Confirmation(False, name, value)
        usual = entry.get("vendors")
        left_out = expected is None or alike(expected, declared.get("default") if usual is None else usual)
        confirmed = confirmed or bool(reported_values) or left_out
        silent.append(name)
    # An option at its default requests nothing.
    return Confirmation(True if confirmed or asked == declared.get("default") else None, silent=tuple(silent))


def alike(asked: object, in_force: object) -> bool:
    """Whether a value as written in a study equals the reported one: sizes may have units."""
    if isinstance(asked, str) and isinstance(in_force, (int, float)) and not isinstance(in_force, bool):
        try:
            return parse_payload_bytes(asked) == in_force
        except UnitError:
            return False
    if isinstance(asked, bool) or isinstance(in_force, bool):
        return str(asked).lower() == str(in_force).lower()
    return asked == in_force or str(asked) == str(in_force)


def _has_effect(factors: Json, only_with: Mapping[str, Sequence[str]]) -> bool:
    return all(str(factors.get(factor)) in values for factor, values in only_with.items())


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _times(value: object, factor: float) -> object:
    if isinstance(value, str) and factor != 1:
        try:
            value = parse_payload_bytes(value)
        except UnitError:
            return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return value * factor
