# SPDX-License-Identifier: Apache-2.0
"""Scales: the same study in several sizes. A scale sets keys and factors that replace those of the file."""

from __future__ import annotations

from lagometer.study import parts
from lagometer.study.document import Entries, Tree, entry_of, merged_over, replaced
from lagometer.study.values import Problems, nearest

KEY = "scales"


def scale_names(document: Entries) -> tuple[str, ...]:
    """The scales of a study, in file order."""
    value = entry_of(document, KEY)
    return tuple(key.text for key, _ in value.entries) if isinstance(value, Entries) else ()


def check_scales(document: Entries, problems: Problems) -> None:
    """Reports a key `scales` without scales, which would otherwise be missed only when one is asked for."""
    value = entry_of(document, KEY)
    if value is not None and not scale_names(document):
        problems.add("has no scales under it", value.line, KEY, "write `quick: {trials: 1}` under it")


def scaled(document: Entries, scale: str | None, problems: Problems) -> Entries:
    """The document at a scale; None leaves it as it is. The key `scales` stays."""
    if scale is None:
        return document
    value = entry_of(document, KEY)
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
            message = f"a scale can't set '{key.text}'"
            problems.add(message, key.line, f"{KEY}.{scale}", "the campaign's folder tells them apart")
            continue
        merged = replaced(merged, key, _over(key.text, item, entry_of(merged, key.text)))
    return merged


def _over(name: str, new: Tree, old: Tree | None) -> Tree:
    """The value of a key at a scale: a scale replaces single entries of a matrix, also in a part, and any
    other key as a whole."""
    if not isinstance(new, Entries) or not isinstance(old, Entries):
        return new
    if name == parts.MATRIX:
        return merged_over(new, old)
    if name != parts.KEY:
        return new
    for part, item in new.entries:
        old = replaced(old, part, _over_part(item, entry_of(old, part.text)))
    return old


def _over_part(new: Tree, old: Tree | None) -> Tree:
    if not isinstance(new, Entries) or not isinstance(old, Entries):
        return new
    for key, item in new.entries:
        old = replaced(old, key, _over(key.text, item, entry_of(old, key.text)))
    return old
