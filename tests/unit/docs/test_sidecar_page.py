# SPDX-License-Identifier: Apache-2.0
"""docs/adapters/sidecar.md marks the keys that a sidecar must have, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from lagometer.study.sidecar import Abilities, Daemon, Option, Reported, Sidecar

PAGE = Path(__file__).parents[3] / "docs" / "adapters" / "sidecar.md"
MARK = "**required**"
KEY = re.compile(r"`(?:[a-z_]+\.)?([a-z_]+)`")
# What each table lists, by the heading above it: none for the whole file.
TABLES: dict[str, type[BaseModel]] = {
    "": Sidecar,
    "Abilities": Abilities,
    "Which settings tell of an option": Reported,
    "Daemons": Daemon,
}


def rows(heading: str) -> list[tuple[list[str], str]]:
    """The keys and the text of each row of the table below a heading."""
    sections = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = sections[0] if not heading else sections[sections.index(heading) + 1]
    cells = [line.strip("|").split("|", 1) for line in text.splitlines() if line.startswith("| `")]
    return [(KEY.findall(keys), what.strip()) for keys, what in cells]


def required(model: type[BaseModel]) -> set[str]:
    return {name for name, field in model.model_fields.items() if field.is_required()}


@pytest.mark.parametrize("heading", TABLES)
def test_the_keys_that_are_required_are_marked_and_no_others(heading: str) -> None:
    listed, model = rows(heading), TABLES[heading]
    assert listed
    marked = {key for keys, what in listed if what.startswith(MARK) for key in keys}
    assert marked == required(model)


def test_the_keys_of_an_option_that_are_required_are_named() -> None:
    (what,) = [what for keys, what in rows("") if keys == ["options"]]
    (named,) = re.findall(r"\(Required: ([^)]+)\)", what)
    assert set(KEY.findall(named)) == required(Option)
