# SPDX-License-Identifier: Apache-2.0
"""Reads one JSON object key by key, with the bounds of each value. Refuses keys that nobody read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from lagometer.worker_python.plan_bounds import TEXT_CHARACTERS_MAX, Bounds

ANY_TEXT = Bounds(0, TEXT_CHARACTERS_MAX)


class PlanError(Exception):
    """What is wrong with a plan, and where: "nodes[0].rules[1].period_ns: …"."""


def refuse(path: str, problem: str) -> NoReturn:
    """Raises PlanError for the value at this path."""
    raise PlanError(f"{path or 'plan'}: {problem}")


class Fields:
    """The keys of one object; `finish` refuses those that were not read."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            refuse(path, f"must be an object, not {_kind(value)}")
        self._value: Mapping[str, Any] = value
        self._path = path
        self._known: set[str] = set()

    def path_of(self, key: str) -> str:
        """Returns where a key of this object is, in words."""
        return f"{self._path}.{key}" if self._path else key

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._value

    def at(self, key: str) -> Any:
        """Returns the value of a key that must exist."""
        self._known.add(key)
        if key not in self._value:
            refuse(self.path_of(key), "is missing")
        return self._value[key]

    def text(self, key: str, characters: Bounds) -> str:
        """Returns text that can be passed to other programs."""
        value = self.at(key)
        if not isinstance(value, str):
            refuse(self.path_of(key), f"must be text, not {_kind(value)}")
        if len(value) > characters.high:
            refuse(self.path_of(key), f"is longer than {characters.high} characters")
        if len(value) < characters.low:
            refuse(self.path_of(key), "is empty")
        if "\0" in value:
            refuse(self.path_of(key), "holds a zero byte")
        if any("\ud800" <= character <= "\udfff" for character in value):
            refuse(self.path_of(key), "holds half of a surrogate pair")
        return value

    def word(self, key: str, *words: str) -> str:
        """Returns one of these words."""
        value = self.text(key, ANY_TEXT)
        if value not in words:
            refuse(self.path_of(key), f"is '{value}', must be {' | '.join(words)}")
        return value

    def boolean(self, key: str) -> bool:
        """Returns true or false."""
        value = self.at(key)
        if not isinstance(value, bool):
            refuse(self.path_of(key), f"must be true or false, not {_kind(value)}")
        return value

    def integer(self, key: str, bounds: Bounds) -> int:
        """Returns a whole number within bounds."""
        return _integer(self.at(key), self.path_of(key), bounds)

    def place(self, key: str, size: int) -> int:
        """Returns an index into a list of this size."""
        return self.integer(key, Bounds(0, size - 1))

    def number(self, key: str, bounds: Bounds) -> float:
        """Returns a number within bounds."""
        value = self.at(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            refuse(self.path_of(key), f"must be a number, not {_kind(value)}")
        if not bounds.low <= value <= bounds.high:
            refuse(self.path_of(key), f"is {_shown(value)}, outside {bounds.low} … {bounds.high}")
        return float(value)

    def integers(self, key: str, items: Bounds, bounds: Bounds) -> tuple[int, ...]:
        """Returns a list of whole numbers within bounds."""
        values = self._list(key, items)
        return tuple(
            _integer(value, f"{self.path_of(key)}[{index}]", bounds) for index, value in enumerate(values)
        )

    def places(self, key: str, items: Bounds, size: int) -> tuple[int, ...]:
        """Returns a list of distinct indices into another list of this size."""
        places: list[int] = []
        for index, value in enumerate(self._list(key, items)):
            path = f"{self.path_of(key)}[{index}]"
            if size == 0:
                refuse(path, "points at an empty list")
            places.append(_integer(value, path, Bounds(0, size - 1)))
            if places.count(places[-1]) > 1:
                refuse(path, "is listed twice")
        return tuple(places)

    def part(self, key: str) -> Fields:
        """Returns an object."""
        return Fields(self.at(key), self.path_of(key))

    def parts(self, key: str, items: Bounds) -> list[Fields]:
        """Returns a list of objects."""
        values = self._list(key, items)
        return [Fields(value, f"{self.path_of(key)}[{index}]") for index, value in enumerate(values)]

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Returns an object with arbitrary keys."""
        value = self.at(key)
        if not isinstance(value, dict):
            refuse(self.path_of(key), f"must be an object, not {_kind(value)}")
        return value

    def finish(self) -> None:
        """Refuses keys that nobody read."""
        for key in self._value:
            if key not in self._known:
                refuse(self.path_of(key), "is not a key of a plan")

    def _list(self, key: str, items: Bounds) -> list[Any]:
        value = self.at(key)
        if not isinstance(value, list):
            refuse(self.path_of(key), f"must be a list, not {_kind(value)}")
        if len(value) > items.high:
            refuse(self.path_of(key), f"has more than {items.high} items")
        if len(value) < items.low:
            refuse(self.path_of(key), "is empty")
        return value


def _integer(value: object, path: str, bounds: Bounds) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 64:
        refuse(path, f"must be a whole number of 64 bits, not {_kind(value)}")
    if not bounds.low <= value <= bounds.high:
        refuse(path, f"is {_shown(value)}, outside {bounds.low} … {bounds.high}")
    if value % bounds.step:
        refuse(path, f"is {value}, no multiple of {bounds.step}")
    return value


def _kind(value: object) -> str:
    names = {bool: "a truth value", int: "a number", float: "a number", str: "text", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")


def _shown(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(value)[:40]
