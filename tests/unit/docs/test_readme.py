# SPDX-License-Identifier: Apache-2.0
"""README.md: results come first, its study is the one that ships, and its commands and exit codes exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from documented import check_command
from ruamel.yaml import YAML

from lagometer.cli.main import EXIT_CODES

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
OURS = ".venv/bin/lagometer"
FOLD = 40  # lines that a visitor of the repository sees first


def command_lines() -> list[list[str]]:
    """The indented lines, as words, without their comments."""
    lines = re.findall(r"^    (?! )(.+)$", re.sub(r"^```.*?^```", "", TEXT, flags=re.M | re.S), re.M)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_a_command_exists(words: list[str]) -> None:
    if words[0] == "make":
        targets = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        assert words[1] in " ".join(targets).split()
    else:
        assert words[0] == OURS
        check_command(words[1:])


def test_every_kind_of_command_is_found() -> None:
    found = command_lines()
    assert {words[0] for words in found} == {"make", OURS}
    assert {"doctor", "measure", "run", "show", "report", "probe", "compare"} <= {words[1] for words in found}


def test_the_study_is_the_one_that_ships() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    shipped = (ROOT / "studies" / "tiny.yaml").read_text(encoding="utf-8")
    assert YAML(typ="safe").load(block) == YAML(typ="safe").load(shipped)


def test_results_and_the_picture_come_before_the_first_heading() -> None:
    top = TEXT.partition("\n## ")[0]
    assert len(top.splitlines()) <= FOLD
    rows = re.findall(r"^\| [^|\n]*\d[^|\n]* \|(?: [\d.]+ [µm]s [^|]*\|){3}$", top, re.M)
    assert re.search(r"^\| p50 .*\| 64 B \| 64 KB \| 1 MB \|$", top, re.M) and len(rows) >= 2
    [picture] = re.findall(r"^!\[[^\]]+\]\(([^)]+)\)$", top, re.M)
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_exit_codes_are_those_of_the_help() -> None:
    codes = re.findall(r"^\| (\d+) \|", TEXT, re.M)
    assert codes and all(re.search(rf"(?:^|: |· ){code} ", EXIT_CODES) for code in codes)
