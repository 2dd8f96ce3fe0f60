# SPDX-License-Identifier: Apache-2.0
"""Words that stop a reader, with better ones, and overlong Markdown lines; for check_sources.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

LINE_LENGTH_MAX = 120
STUMBLING = {
    r"mend(?:s|ed|ing)?": "fix",
    r"anew": "again, or re-: rewrite, recreate",
    r"amid": "during, while",
    r"thereof": "of it",
    r"whereof": "of which",
    r"beneath": "below, under",
    r"henceforth": "from now on",
    r"(?<![Tt]here )(?:is|are) none": "is not a …, does not exist",
    r"told of": "reported, notified",
    r"without a word": "silently",
    r"of another make": "of another vendor",
    r"between two makes": "between two vendors",
    r"stayed away": "was missing",
}
PATTERNS = [  # also at the beginning of a sentence, but not Python's `is None`
    (re.compile(rf"\b(?:{word}|{word[0].upper()}{word[1:]})\b"), better) for word, better in STUMBLING.items()
]
TEXTS = re.compile(r"\.(?:md|py|c|h|cpp|hpp|rs|ts|mts|mjs|css|html|yaml|yml|json|toml|sh|cmake|table)$")
# Licences and old campaigns are not ours, lock files have no prose, and this rule must name the words.
NOT_OURS = re.compile(
    r"^(?:LICENSE|tests/golden/|requirements/|.*package-lock\.json$|.*Cargo\.lock$"
    r"|tools/words\.py$|tests/unit/tools/test_check_sources\.py$)"
)
# Generated, or a list of long entries.
UNWRAPPED = {"CHANGELOG.md", "docs/adapters/matrix.md", "docs/INTEROPERABILITY.md"}
UNBREAKABLE = re.compile(r"^\s*(?:\||#|!\[|<|    )|^\s*(?:[-*] )?\S+$")


def findings(name: str, content: bytes) -> Iterator[tuple[int, str]]:
    """Line numbers and findings of a tracked file. Files that are not text have none."""
    plain = name.startswith(("tools/", ".ci/")) or name.endswith(("Makefile", "CMakeLists.txt"))
    if NOT_OURS.match(name) or not (TEXTS.search(name) or (plain and b"\0" not in content)):
        return
    fenced = False
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        # What stands in backticks is a name, such as a key that a change removed.
        prose = re.sub(r"`[^`]*`", "", line) if name.endswith(".md") else line
        for pattern, better in PATTERNS:
            if found := pattern.search(prose):
                yield number, f"'{found[0]}' stops a reader; better: {better}"
        wrapped = name.endswith(".md") and name not in UNWRAPPED and not fenced
        if wrapped and len(line) > LINE_LENGTH_MAX and not UNBREAKABLE.match(line):
            yield number, f"{len(line)} characters, at most {LINE_LENGTH_MAX}: wrap it"
