# SPDX-License-Identifier: Apache-2.0
"""A YAML file as a tree of text with line numbers.

Scalars stay text: the key decides what a value means, not YAML's guesses, which turn an unquoted `null` into
nothing, `no` into false, and `010` into eight.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode, SequenceNode

from lagometer.errors import BadInput

FILE_BYTES_MAX = 1 << 20
DEPTH_MAX = 20
_STANDARD_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Scalar:
    """Text; plain: written without quotes; line: from 1, None where there is no file."""

    text: str
    plain: bool
    line: int | None


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Tree, ...]
    line: int | None


@dataclass(frozen=True)
class Entries:
    """A mapping, in file order; keys are unique."""

    entries: tuple[tuple[Scalar, Tree], ...]
    line: int | None


Tree = Scalar | Items | Entries


def read_document(path: Path) -> tuple[Entries, str]:
    """The mapping in a YAML file, and the file's text. Raises BadInput, with the line if there is one."""
    text = _read_text(path)
    return parse_document(text, str(path)), text


def parse_document(text: str, source: str) -> Entries:
    """The mapping in a YAML text. Raises BadInput."""
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _syntax_error(error, source) from error
    except (YAMLError, RecursionError, ValueError) as error:
        reason = (
            "is nested too deeply"
            if isinstance(error, RecursionError)
            else f"is not YAML: {_first_line(error)}"
        )
        raise BadInput(reason, where=source) from error
    if node is None:
        raise BadInput("the file is empty", where=source, hint="start with `name:` and `matrix:`")
    tree = _Converter(source).convert(node, ())
    if not isinstance(tree, Entries):
        kind = "a list" if isinstance(tree, Items) else "a single value"
        raise BadInput(
            f"{kind} at top level, where keys are expected",
            where=f"{source}:{tree.line}",
            hint="write `key: value` lines",
        )
    return tree


def tree_of(value: object) -> Tree:
    """The same tree from Python values (of a command line); text counts as unquoted, as a user types it."""
    if isinstance(value, Mapping):
        return Entries(
            tuple((Scalar(str(key), False, None), tree_of(item)) for key, item in value.items()), None
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Items(tuple(tree_of(item) for item in value), None)
    if isinstance(value, bool):
        return Scalar("true" if value else "false", True, None)
    return Scalar("null" if value is None else str(value), True, None)


def entry_of(document: Entries, name: str) -> Tree | None:
    """The value of a key; None if the key is missing."""
    return next((item for key, item in document.entries if key.text == name), None)


def replaced(document: Entries, key: Scalar, value: Tree) -> Entries:
    """The same mapping with one entry replaced in place, or added."""
    if entry_of(document, key.text) is None:
        return Entries((*document.entries, (key, value)), document.line)
    return Entries(
        tuple(
            (key, value) if entry_key.text == key.text else (entry_key, item)
            for entry_key, item in document.entries
        ),
        document.line,
    )


def without(document: Entries, names: Collection[str]) -> Entries:
    """The same mapping without these keys."""
    return Entries(tuple(entry for entry in document.entries if entry[0].text not in names), document.line)


def merged_over(new: Tree, old: Tree | None) -> Tree:
    """The old mapping with the entries of the new one in place of its own."""
    assert isinstance(new, Entries) and isinstance(old, Entries)
    for key, item in new.entries:
        old = replaced(old, key, item)
    return old


def is_file(path: Path) -> bool:
    """Whether a name that a user wrote is a file's. False if it is too long, or in a folder that can't be
    looked into."""
    try:
        return path.is_file()
    except OSError:
        return False


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(
            f"cannot be read: {error.strerror}", where=str(path), hint="name a YAML file"
        ) from error
    except ValueError as error:
        raise BadInput("is not a file name", where=repr(str(path))) from error
    if len(content) > FILE_BYTES_MAX:
        raise BadInput(
            f"is larger than {FILE_BYTES_MAX} bytes", where=str(path), hint="name a study, not data"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadInput(
            f"byte 0x{content[error.start]:02x} is not UTF-8",
            where=f"{path}:{line}",
            hint="save the file as UTF-8",
        ) from error


def _syntax_error(error: MarkedYAMLError, source: str) -> BadInput:
    mark = error.problem_mark or error.context_mark
    where = f"{source}:{mark.line + 1}" if mark is not None else source
    problem = str(error.problem or error.context or "is not YAML")
    if "'\\t'" in problem:
        return BadInput("a tab, which YAML does not allow here", where=where, hint="indent with spaces")
    if "duplicate anchor" in problem or "undefined alias" in problem:
        return BadInput(problem, where=where)
    if "another document" in problem or "single document" in str(error.context):
        return BadInput(
            "a second document (`---`) in one file", where=where, hint="keep one study in one file"
        )
    return BadInput(f"is not YAML: {problem}", where=where)


class _Converter:
    """Turns the nodes of one file into the tree; converts a node with several aliases only once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._done: dict[int, Tree] = {}

    def convert(self, node: Any, above: tuple[int, ...]) -> Tree:
        if id(node) in self._done:
            return self._done[id(node)]
        where = self._where(node)
        if id(node) in above:
            raise BadInput("an alias that contains itself", where=where)
        if len(above) > DEPTH_MAX:
            raise BadInput("is nested too deeply", where=where)
        tag = str(node.tag or _STANDARD_TAG)
        if not tag.startswith(_STANDARD_TAG):
            raise BadInput(f"the tag '{tag}' is not known here", where=where, hint="leave the tag out")
        tree = self._done[id(node)] = self._tree(node, (*above, id(node)))
        return tree

    def _tree(self, node: Any, inside: tuple[int, ...]) -> Tree:
        line: int = node.start_mark.line + 1
        if isinstance(node, ScalarNode):
            return Scalar(str(node.value), node.style is None, line)
        if isinstance(node, SequenceNode):
            return Items(tuple(self.convert(item, inside) for item in node.value), line)
        return Entries(self._entries(node, inside), line)

    def _entries(self, node: Any, inside: tuple[int, ...]) -> tuple[tuple[Scalar, Tree], ...]:
        first_lines: dict[str, int] = {}
        entries = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise BadInput("a key that is not a word", where=self._where(key_node))
            key = Scalar(str(key_node.value), key_node.style is None, key_node.start_mark.line + 1)
            if key.text in first_lines:
                raise BadInput(
                    f"the key '{key.text}' is written twice",
                    where=self._where(key_node),
                    hint=f"it is already on line {first_lines[key.text]}; keep one",
                )
            first_lines[key.text] = key.line or 0
            value = self.convert(value_node, inside)
            if isinstance(value, Scalar) and value.plain and not value.text:
                value = replace(value, line=key.line)  # YAML places a missing value at the next token
            entries.append((key, value))
        return tuple(entries)

    def _where(self, node: Any) -> str:
        return f"{self._source}:{node.start_mark.line + 1}"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["unreadable"])[0]
