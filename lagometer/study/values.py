# SPDX-License-Identifier: Apache-2.0
"""Reads values from a study's tree; errors name the file, the line, the key and the nearest valid word.

All problems of a file are collected, so that one run of a command names them all.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lagometer import units
from lagometer.errors import BadInput, Problem
from lagometer.study.document import Entries, Items, Scalar, Tree
from lagometer.units import UnitError

T = TypeVar("T")

_NULL_WORDS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false"})


class Problems:
    """Collects what is wrong with one source (a file or a command line)."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._problems: list[Problem] = []

    def add(self, message: str, line: int | None, key: str = "", hint: str = "") -> None:
        """Adds a problem with the value of `key` (dotted) on `line`."""
        location = f"{self.source}:{line}" if line is not None else self.source
        self._problems.append(Problem(message, f"{location}: {key}" if key else location, hint))

    def raise_if_any(self) -> None:
        """Raises BadInput that names every problem so far."""
        if self._problems:
            raise BadInput.of(self._problems)

    def __len__(self) -> int:
        return len(self._problems)


def closest(word: str, valid: Iterable[str]) -> str | None:
    """The valid word that is most like this one; None if all differ too much."""
    name_by_folded = {name.lower(): name for name in reversed(list(valid))}
    matches = difflib.get_close_matches(word.lower(), name_by_folded, n=1, cutoff=0.5)
    return name_by_folded[matches[0]] if matches else None


def nearest(word: str, valid: Iterable[str]) -> str:
    """A hint: the valid word that the user probably meant, or the list of all."""
    words = list(valid)
    if (near := closest(word, words)) is not None:
        return f"did you mean '{near}'?"
    return f"known are: {', '.join(words)}" if words else "none is known"


def is_null(value: Tree) -> bool:
    """Whether YAML reads this as nothing: an unquoted null, `~`, or no value at all."""
    return isinstance(value, Scalar) and value.plain and value.text in _NULL_WORDS


def scalars(value: Tree, key: str, problems: Problems) -> tuple[Scalar, ...]:
    """The single values of a key that takes one value or a list."""
    if isinstance(value, Scalar):
        return (value,)
    if isinstance(value, Entries):
        problems.add("has keys under it, where a value or a list is expected", value.line, key)
        return ()
    if not value.items:
        problems.add("is an empty list", value.line, key, "list at least one value, or leave the key out")
    values = []
    for item in value.items:
        if isinstance(item, Scalar):
            values.append(item)
        else:
            kind = "a list" if isinstance(item, Items) else "keys"
            problems.add(f"has {kind} inside its list, where single values are expected", item.line, key)
    return tuple(values)


def single(value: Tree, key: str, problems: Problems) -> Scalar | None:
    """The one value of a key that takes no list; None after adding a problem."""
    if isinstance(value, Scalar) and not is_null(value):
        return value
    if isinstance(value, Scalar):
        problems.add("has no value", value.line, key, "write one, or leave the key out")
    else:
        kind = "a list" if isinstance(value, Items) else "keys under it"
        problems.add(f"has {kind}, where one value is expected", value.line, key)
    return None


def parsed(value: Scalar, key: str, parse: Callable[[str], T], problems: Problems) -> T | None:
    """The value of `parse`; None after adding a problem. `parse` raises UnitError."""
    if is_null(value):
        problems.add("has no value", value.line, key, "write one, or leave it out")
        return None
    try:
        return parse(value.text)
    except UnitError as error:
        problems.add(str(error), value.line, key, boolean_hint(value))
        return None


def listed_twice(text: str, first: str, line: int | None, key: str) -> tuple[str, int | None, str, str]:
    """The problem of a value that a list has already, perhaps in another spelling: what `Problems.add`
    takes."""
    same = f" (as '{first}')" if first != text else ""
    return f"'{text}' is listed twice{same}", line, key, "list each value once"


def word_parser(valid: Sequence[str]) -> Callable[[str], str]:
    """A parser that accepts only these words."""

    def parse(text: str) -> str:
        if text in valid:
            return text
        raise UnitError(f"unknown value '{text}'; {nearest(text, valid)}")

    return parse


def text_parser(text: str) -> str:
    """Any text that is not blank."""
    if not text.strip():
        raise UnitError("is blank")
    return text


def boolean_hint(value: Scalar) -> str:
    """A hint at YAML's trap, if some YAML readers read this word as true or false."""
    if value.plain and value.text.lower() in _BOOLEAN_WORDS:
        return f"an unquoted {value.text} is a boolean to YAML; a word is expected here"
    return ""


def count_between(minimum: int, maximum: int) -> Callable[[str], int]:
    """A parser of whole numbers between two bounds, both included. It raises UnitError."""

    def parse(text: str) -> int:
        number = units.parse_count(text)
        if not minimum <= number <= maximum:
            raise UnitError(f"'{text}' is not between {minimum} and {maximum}")
        return number

    return parse


def name_parser(subject: str) -> Callable[[str], str]:
    """A parser of names: letters, digits, `.`, `_` and `-`."""
    pattern = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

    def parse(text: str) -> str:
        if pattern.fullmatch(text):
            return text
        raise UnitError(f"'{text}' is not a name for {subject}; use up to 64 letters, digits, '.', '_', '-'")

    return parse


@dataclass(frozen=True)
class Names:
    """A key whose parts have names, and the messages for wrong ones.

    key, a_part: their names in messages; empty: what a part without content does; write: what to write in a
    part; taken: the reserved name, and its meaning.
    """

    key: str
    a_part: str
    empty: str
    write: str
    taken: tuple[str, str] = ("", "")


def named_parts(
    value: Tree, names: Names, problems: Problems, lines: dict[str, int | None] | None = None
) -> Iterator[tuple[str, Entries]]:
    """The parts of `key: {name: {...}}`, by name; adds their lines, and problems."""
    if not isinstance(value, Entries) or not value.entries:
        problems.add(
            f"has no {names.key} under it", value.line, names.key, f"write `name: {{{names.write}}}`"
        )
        return
    parse, (reserved, meaning) = name_parser(names.a_part), names.taken
    for key, item in value.entries:
        where = f"{names.key}.{key.text}"
        if lines is not None:
            lines[where] = key.line
        if parsed(key, where, parse, problems) is None:
            continue
        if key.text == reserved:
            problems.add(f"'{reserved}' is {meaning}", key.line, where, "choose another name")
        elif isinstance(item, Entries):
            yield key.text, item
        else:
            problems.add(names.empty, key.line, where, f"write `{names.write}` under it")


def option_value(text: str, plain: bool) -> bool | int | float | str:
    """An adapter's option by the rules of YAML 1.2: true, false, numbers; anything else is text, and so is
    everything in quotes."""
    if plain and text in ("true", "false"):
        return text == "true"
    if plain and re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        return int(text)
    if plain and re.fullmatch(r"-?(0|[1-9][0-9]*)\.[0-9]+", text):
        return float(text)
    return text
