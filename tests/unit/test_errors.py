# SPDX-License-Identifier: Apache-2.0
"""The tree of errors: unique exit codes, and messages that say what, where, and what to do."""

from __future__ import annotations

from lagometer import errors
from lagometer.errors import BadInput, LagometerError, Problem


def leaves() -> list[type[LagometerError]]:
    return LagometerError.__subclasses__()


def test_exit_codes_are_unique_and_those_of_the_contract() -> None:
    codes = {error.__name__: error.exit_code for error in leaves()}
    assert codes == {
        "BadInput": 2,
        "TrialsFailed": 3,
        "NothingRunnable": 4,
        "CannotStore": 5,
        "SetupMissing": 6,
        "Internal": 7,
        "Regression": 8,
        "NotComparable": 9,
        "Interrupted": 130,
    }
    assert len(set(codes.values())) == len(codes)
    assert len({error.kind for error in leaves()}) == len(codes)


def test_every_exit_code_is_documented() -> None:
    for error in leaves():
        assert f"{error.__name__} " in str(errors.__doc__)
        assert f" {error.exit_code} " in str(errors.__doc__)


def test_a_message_says_what_where_and_what_to_do() -> None:
    assert str(BadInput("is wrong", "file:3: key", "fix it")) == "file:3: key: is wrong (fix it)"
    assert str(BadInput("is wrong")) == "is wrong"


def test_several_problems_are_one_error() -> None:
    error = BadInput.of([Problem("a", "x"), Problem("b", "y", "do")])
    assert isinstance(error, BadInput)
    assert str(error) == "x: a\ny: b (do)"
    assert error.as_json() == {
        "error": {
            "kind": "bad-input",
            "exit_code": 2,
            "message": "x: a\ny: b (do)",
            "problems": [{"what": "a", "where": "x", "hint": ""}, {"what": "b", "where": "y", "hint": "do"}],
        }
    }
