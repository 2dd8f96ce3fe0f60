# SPDX-License-Identifier: Apache-2.0
"""docs/ADAPTERS.md and the pages below it name every function of the public ABI headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documented import check_command

ROOT = Path(__file__).parents[3]
HEADERS = sorted((ROOT / "engine" / "include" / "lagometer").glob("*.h"))
PAGES = [ROOT / "docs" / "ADAPTERS.md", *sorted((ROOT / "docs" / "adapters").glob("*.md"))]
DOCUMENTED = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# A function pointer of a table begins its line; a parameter does not.
POINTER = re.compile(r"^ +[\w* ]+?\(\*(\w+)\)\(", re.MULTILINE)
# What a typedef names is known by the field that has this type.
CALLBACK = re.compile(r"^ +lagometer_\w+_function (\w+);", re.MULTILINE)
EXPORTED = re.compile(r"^[\w* ]*\b(lagometer_adapter)\(", re.MULTILINE)


def functions(text: str) -> list[str]:
    """The functions of a header: in tables, in configurations, and the library's only symbol."""
    code = COMMENT.sub("", text)
    return [name for pattern in (POINTER, CALLBACK, EXPORTED) for name in pattern.findall(code)]


def test_commands_within_the_text_exist() -> None:
    """Those in blocks are run, by tests/integration/adapters/test_documented_commands.py."""
    called = [call.split()[1:] for call in re.findall(r"`(lagometer [^`]+)`", DOCUMENTED)]
    for words in called:
        check_command(words)
    targets = re.findall(r"`make ([a-z-]+)[^`]*`", DOCUMENTED)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert len(called) >= 10 and len(targets) > 2


def undocumented(names: list[str], documented: str) -> list[str]:
    return [name for name in names if f"`{name}`" not in documented]


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_the_pages_name_every_function(header: Path) -> None:
    names = functions(header.read_text(encoding="utf-8"))
    assert names
    assert undocumented(names, DOCUMENTED) == []


def test_every_kind_of_function_is_found() -> None:
    core = functions((ROOT / "engine" / "include" / "lagometer" / "adapter.h").read_text(encoding="utf-8"))
    expected = {"log", "stamp_keyed", "probe", "extension", "waitset_wait_ready", "on_data", "on_policy"}
    assert expected | {"lagometer_adapter"} <= set(core)
    timers = (ROOT / "engine" / "include" / "lagometer" / "timers.h").read_text(encoding="utf-8")
    assert functions(timers) == ["create", "arm", "destroy"]


def test_a_function_without_a_word_is_found() -> None:
    assert undocumented(["take", "rewind"], "`take` takes; rewind is only a word") == ["rewind"]
