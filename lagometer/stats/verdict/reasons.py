# SPDX-License-Identifier: Apache-2.0
"""The reasons of one trial in few lines: with hundreds of edges, one cause gives hundreds of reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

NAMED_MAX = 3  # reasons with one code word; more than one line of them says nothing new


def in_few(reasons: Iterable[str]) -> list[str]:
    """The reasons in their order; of more than four with one code word only the first three, and how
    many more there are. The journal has all."""
    listed = list(reasons)
    counts = Counter(_code_word(reason) for reason in listed)
    seen: Counter[str] = Counter()
    few = []
    for reason in listed:
        word = _code_word(reason)
        seen[word] += 1
        more = counts[word] - NAMED_MAX
        if more <= 1 or seen[word] <= NAMED_MAX:
            few.append(reason)
        elif seen[word] == NAMED_MAX + 1:
            few.append(f"{word}: and {more} more (all are in journal.jsonl)")
    return few


def _code_word(reason: str) -> str:
    return reason.partition(":")[0]
