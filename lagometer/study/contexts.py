# SPDX-License-Identifier: Apache-2.0
"""Problems that only a scale or a part of a study has: their line may be one that is right without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lagometer.errors import BadInput, Problem


def problems_of(read: Callable[[], object]) -> tuple[Problem, ...]:
    """What is wrong with what `read` reads."""
    try:
        read()
    except BadInput as error:
        return error.problems
    return ()


def only_there(problems: Sequence[Problem], elsewhere: Sequence[Problem], context: str) -> list[Problem]:
    """The problems, each with the context unless it is also `elsewhere`. context: `at the scale quick`."""
    return [
        problem if problem in elsewhere else replace(problem, what=f"{problem.what}, {context}")
        for problem in problems
    ]
