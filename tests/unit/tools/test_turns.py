# SPDX-License-Identifier: Apache-2.0
"""What is alike for many takes turns: each commit runs a part of a test's parameters, seven commits all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import turns


class Item(SimpleNamespace):
    """A test as pytest collects it, known by itself."""

    __hash__ = object.__hash__

    def get_closest_marker(self, name: str) -> object:
        return object() if name in self.marks else None


def items(test: str, count: int, *marks: str) -> list[Any]:
    return [Item(nodeid=f"{test}[{number}]", marks=marks, callspec=None) for number in range(count)]


def test_all_turns_run_each_once_and_each_about_as_many() -> None:
    of_one, of_other = items("tests/a.py::one", 12, "by_turn"), items("tests/a.py::other", 3, "by_turn")
    run: list[Any] = []
    for turn in range(100, 100 + turns.TURNS):
        left = turns.left_to_others([*of_one, *of_other], turn)
        chosen = [each for each in of_one if each not in left]
        assert 0 <= len(chosen) - 12 // turns.TURNS <= 1
        run += [*chosen, *(each for each in of_other if each not in left)]
    assert sorted(each.nodeid for each in run) == sorted(each.nodeid for each in [*of_one, *of_other])


def test_what_is_not_marked_and_what_has_no_parameters_is_run_always() -> None:
    single = Item(nodeid="tests/a.py::single", marks=("by_turn",))
    given: list[Any] = [*items("tests/a.py::other", 3), single]
    assert all(not turns.left_to_others(given, turn) for turn in range(turns.TURNS))


def test_the_turn_is_that_of_the_commit_or_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAGOMETER_TURN", raising=False)
    assert turns.turn_of_commit() >= 0
    monkeypatch.setenv("LAGOMETER_TURN", "3")
    assert turns.turn_of_commit() == 3
