# SPDX-License-Identifier: Apache-2.0
"""Whether a requested option is in force, according to the adapter's objects.

An adapter reports effective settings, often with the middleware's own names and units. For each option, its
sidecar says which setting shows the value (`reported`, docs/adapters/sidecar.md); by default, the one with
the option's name. Values that equal the vendor's own are left out of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


def confirmation(
    option: str, asked: object, declared: Json, reported: Callable[[str], Sequence[object]]
) -> Confirmation:
    """Compares an option's value with what is reported.

    declared: the option as in its sidecar (`default`, `reported`, `also`). reported: all values that the
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
        reported_values = reported(name)
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
