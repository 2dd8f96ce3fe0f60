# SPDX-License-Identifier: Apache-2.0
"""Many reasons with one code word are summed up; few are not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lagometer.stats.verdict.reasons import in_few


def test_hundreds_of_silent_edges_take_four_lines() -> None:
    silent = [f"nothing-received: relay-{index}→relay-{index + 1}" for index in range(11, 127)]
    assert in_few(["rate-missed: source", *silent, "lost-keep-all: a→b 3"]) == [
        "rate-missed: source",
        *silent[:3],
        "nothing-received: and 113 more (all are in journal.jsonl)",
        "lost-keep-all: a→b 3",
    ]


def test_a_few_stay_as_they_are() -> None:
    few = [f"nothing-received: {edge}" for edge in "abcd"]
    assert in_few(few) == few
    assert in_few([]) == []


@given(st.lists(st.sampled_from(["a: 1", "a: 2", "b: 1", "c"]), max_size=40))
def test_no_code_word_is_left_out_and_none_takes_more_than_four_lines(reasons: list[str]) -> None:
    few = in_few(reasons)
    words = [reason.partition(":")[0] for reason in few]
    assert list(dict.fromkeys(words)) == list(dict.fromkeys(reason.partition(":")[0] for reason in reasons))
    assert all(words.count(word) <= 4 for word in words)
