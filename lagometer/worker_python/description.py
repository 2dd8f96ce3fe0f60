# SPDX-License-Identifier: Apache-2.0
"""Checks what an adapter's `describe` returns (docs/ADAPTERS.md, "What it reports about itself"): a wrong
setting would end up in the results, or end the worker without saying whose it is."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from typing import Any

from lagometer.worker_python.adapter import AdapterError

KEYS = ("settings", "paste", "observed", "transport")
SETTING = ("value", "default")
PASTE = ("file", "text")
VALUES = "true, false, a number, a text, None, or a list or dict of these"


def checked(adapter: str, of: str, described: object) -> dict[str, Any]:
    """Returns the description of an object. of: which object, such as `writer t`. Raises AdapterError, which
    names the adapter, the key, its value and what is allowed."""
    subject = f"{adapter}: describe of {of}"
    if not isinstance(described, Mapping):
        raise AdapterError(f"{subject} returned {described!r}; it must return a dict with {_list(KEYS)}")
    _check_keys(subject, "", described, KEYS)
    settings = described.get("settings", {})
    if not isinstance(settings, Mapping):
        raise AdapterError(f"{subject}: settings is {settings!r}; it must be a dict of settings by name")
    for name, setting in settings.items():
        _check_setting(subject, name, setting)
    paste = described.get("paste", [])
    if not isinstance(paste, list | tuple):
        raise AdapterError(f"{subject}: paste is {paste!r}; it must be a list of {_form(PASTE)}")
    for place, part in enumerate(paste):
        if not isinstance(part, Mapping) or not all(isinstance(part.get(key), str) for key in PASTE):
            raise AdapterError(f"{subject}: paste[{place}] is {part!r}; it must be {_form(PASTE)}, both text")
    for key in ("observed", "transport"):
        if not isinstance(described.get(key, {}), Mapping):
            raise AdapterError(f"{subject}: {key} is {described[key]!r}; it must be a dict")
        _check_value(subject, key, described.get(key, {}))
    return dict(described)


def _check_setting(subject: str, name: object, setting: object) -> None:
    if not isinstance(name, str):
        raise AdapterError(f"{subject}: settings has the key {name!r}; a setting's name must be a text")
    where = f"settings[{name!r}]"
    if not isinstance(setting, Mapping):
        raise AdapterError(f"{subject}: {where} is {setting!r}; it must be {_form(SETTING)}")
    _check_keys(subject, where, setting, SETTING)
    for key in SETTING:
        if key not in setting:
            given = f"{where} is {dict(setting)!r}, without '{key}'"
            raise AdapterError(f"{subject}: {given}; it must be {_form(SETTING)}")
        _check_value(subject, f"{where}[{key!r}]", setting[key])


def _check_keys(subject: str, where: str, given: Mapping[Any, Any], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            whose = f"{subject}: {where}" if where else subject
            raise AdapterError(
                f"{whose} has the unknown key {key!r} (its value is {given[key]!r}); "
                f"known are {_list(known)}{meant}"
            )


def _check_value(subject: str, where: str, value: object) -> None:
    """Checks that it can be written as JSON and read again by everyone."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise AdapterError(f"{subject}: {where} has the key {key!r}; a key must be a text")
            _check_value(subject, f"{where}[{key!r}]", inner)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            _check_value(subject, f"{where}[{place}]", inner)
    elif isinstance(value, float) and not math.isfinite(value):
        raise AdapterError(f"{subject}: {where} is {value!r}; a number must be finite")
    elif value is not None and not isinstance(value, bool | int | float | str):
        raise AdapterError(f"{subject}: {where} is {value!r}, a {type(value).__name__}; it must be {VALUES}")


def _form(keys: Collection[str]) -> str:
    return "{" + ", ".join(f'"{key}": …' for key in keys) + "}"


def _list(keys: Collection[str]) -> str:
    return ", ".join(keys)
