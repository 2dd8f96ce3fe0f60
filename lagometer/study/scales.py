# SPDX-License-Identifier: Apache-2.0
"""Scales: the same study in several sizes. A scale names keys and factors that replace those of the file."""

from __future__ import annotations

from lagometer.study.document import Entries, Scalar, Tree
from lagometer.study.values import Problems, nearest

KEY = "scales"
MERGED = "matrix"  # of this key a scale replaces single entries; any other it replaces as a whole


def scale_names(document: Entries) -> tuple[str, ...]:
    """The scales that a study has, in its order."""
    value = _entry(document, KEY)
    return tuple(key.text for key, _ in value.entries) if isinstance(value, Entries) else ()


def scaled(document: Entries, scale: str | None, problems: Problems) -> Entries:
    """The document at a scale, None: as it stands without one. The key `scales` stays."""
    if scale is None:
        return document
    value = _entry(document, KEY)
    names = scale_names(document)
    if scale not in names:
        hint = nearest(scale, names) if names else "the study has no `scales:`"
        problems.add(f"no scale '{scale}'", value.line if value is not None else None, KEY, hint)
        return document
    assert isinstance(value, Entries)
    chosen = next(item for key, item in value.entries if key.text == scale)
    if not isinstance(chosen, Entries):
        problems.add("sets nothing", chosen.line, f"{KEY}.{scale}", "write keys of a study under it")
        return document
    merged = document
    for key, item in chosen.entries:
        if key.text in (KEY, "name"):
            what = f"a scale can't set '{key.text}'"
            problems.add(what, key.line, f"{KEY}.{scale}", "the campaign's folder tells them apart")
            continue
        given = _entry(merged, key.text)
        both = isinstance(item, Entries) and isinstance(given, Entries)
        merged = _with(merged, key, _over(item, given) if key.text == MERGED and both else item)
    return merged


def _over(new: Tree, old: Tree | None) -> Tree:
    """A mapping with the entries of a new one in the place of its own."""
    assert isinstance(new, Entries) and isinstance(old, Entries)
    for key, item in new.entries:
        old = _with(old, key, item)
    return old


def _entry(document: Entries, name: str) -> Tree | None:
    return next((item for key, item in document.entries if key.text == name), None)


def _with(document: Entries, key: Scalar, value: Tree) -> Entries:
    """The same with one entry replaced, in its place, or added."""
    if _entry(document, key.text) is None:
        return Entries((*document.entries, (key, value)), document.line)
    return Entries(
        tuple((key, value) if own.text == key.text else (own, item) for own, item in document.entries),
        document.line,
    )
