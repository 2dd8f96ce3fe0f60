# SPDX-License-Identifier: Apache-2.0
"""Parts: studies within a study, each the study above it with some keys replaced, in one campaign."""

from __future__ import annotations

from lagometer.study.document import Entries, Tree, entry_of, merged_over, replaced, without
from lagometer.study.values import Problems, name_parser, nearest, parsed

KEY = "parts"
MATRIX = "matrix"
# What a part may say; everything else is the campaign's.
PART_KEYS = (
    "description",
    "duration",
    "warmup",
    "discard",
    "drain",
    "trials",
    "saturation",
    "deadline",
    "deadline_k",
    "layer_stamps",
    "needs",
    "discovery_timeout",
    "priority",
    "options",
    "exclude",
    MATRIX,
)
_name = name_parser("a part")


def part_documents(document: Entries, problems: Problems) -> dict[str, Entries]:
    """The document of each part, by name; empty for a study without parts. `exclude` of the whole study stays
    with that."""
    value = entry_of(document, KEY)
    if value is None:
        return {}
    if not isinstance(value, Entries) or not value.entries:
        problems.add("has no parts under it", value.line, KEY, "write `name: {matrix: {…}}`")
        return {}
    above = without(document, (KEY, "scales", "exclude"))
    found: dict[str, Entries] = {}
    for key, item in value.entries:
        where = f"{KEY}.{key.text}"
        if parsed(key, where, _name, problems) is None:
            continue
        if not isinstance(item, Entries):
            problems.add("sets nothing", key.line, where, "write keys of a study under it")
            continue
        found[key.text] = _over(item, above, where, problems)
    return found


def _over(part: Entries, above: Entries, where: str, problems: Problems) -> Entries:
    for key, item in part.entries:
        if key.text not in PART_KEYS:
            problems.add(f"a part can't set '{key.text}'", key.line, where, nearest(key.text, PART_KEYS))
            continue
        given: Tree | None = entry_of(above, key.text)
        both = key.text == MATRIX and isinstance(item, Entries) and isinstance(given, Entries)
        above = replaced(above, key, merged_over(item, given) if both else item)
    return above
