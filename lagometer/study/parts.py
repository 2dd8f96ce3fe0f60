# SPDX-License-Identifier: Apache-2.0
"""Parts: studies within a study. Each is the outer study with some keys replaced, in the same campaign."""

from __future__ import annotations

from lagometer.study.document import Entries, Tree, entry_of, merged_over, replaced, without
from lagometer.study.values import Names, Problems, named_parts, nearest

KEY = "parts"
MATRIX = "matrix"
# The keys that a part may set; all others belong to the campaign.
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
    "layers",
    "scheduler",
    "resources",
    "capture",
    "transfer",
    "needs",
    "discovery_timeout",
    "priority",
    "options",
    "exclude",
    MATRIX,
)
_NAMES = Names(KEY, "a part", empty="sets nothing", write="matrix: {…}")


def part_documents(document: Entries, problems: Problems) -> dict[str, Entries]:
    """The document of each part, by name; empty for a study without parts. The whole study's `exclude` is not
    passed on."""
    value = entry_of(document, KEY)
    if value is None:
        return {}
    above = without(document, (KEY, "scales", "exclude"))
    return {
        name: _over(item, above, f"{KEY}.{name}", problems)
        for name, item in named_parts(value, _NAMES, problems)
    }


def _over(part: Entries, above: Entries, where: str, problems: Problems) -> Entries:
    for key, item in part.entries:
        if key.text not in PART_KEYS:
            problems.add(f"a part can't set '{key.text}'", key.line, where, nearest(key.text, PART_KEYS))
            continue
        inherited: Tree | None = entry_of(above, key.text)
        mergeable = key.text == MATRIX and isinstance(item, Entries) and isinstance(inherited, Entries)
        above = replaced(above, key, merged_over(item, inherited) if mergeable else item)
    return above
