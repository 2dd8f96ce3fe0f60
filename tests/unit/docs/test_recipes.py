# SPDX-License-Identifier: Apache-2.0
"""docs/RECIPES.md: its YAML parses, its studies load, and every command and option that it names exists."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documented import check_command
from ruamel.yaml import YAML

from lagometer.cli.main import EXIT_CODES
from lagometer.study import discover_adapters, expand, load_study

RECIPES = Path(__file__).parents[3] / "docs" / "RECIPES.md"
TEXT = RECIPES.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def scripts(node: Any) -> Iterator[str]:
    """The shell text in a pipeline: values of `run` and `script`."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("run", "script"):
                yield "\n".join(value) if isinstance(value, list) else value
            yield from scripts(value)
    elif isinstance(node, list):
        for each in node:
            yield from scripts(each)


def command_lines() -> Iterator[list[str]]:
    """Every call of lagometer: in pipelines, and in indented lines of the text."""
    shell = [
        line
        for block in BLOCKS
        for text in scripts(YAML(typ="safe").load(block))
        for line in text.split("\n")
    ]
    shell += [line for line in TEXT.splitlines() if line.startswith("    lagometer ")]
    for line in shell:
        words = shlex.split(line)
        if "lagometer" in words:
            yield words[words.index("lagometer") + 1 :]


@pytest.mark.parametrize("words", list(command_lines()), ids=" ".join)
def test_commands_and_options_exist(words: list[str]) -> None:
    check_command(words)


def compared() -> Iterator[tuple[str, list[str]]]:
    """Comparisons within a campaign whose study ships: its name, and the words of the command."""
    study_by_folder = {}
    for words in command_lines():
        if words[0] == "run" and words[1].startswith("studies/"):
            study_by_folder[words[words.index("--out") + 1]] = words[1]
        elif words[0] == "compare" and "--by" in words and words[1] in study_by_folder:
            yield study_by_folder[words[1]], words


def test_what_is_compared_by_a_part_of_ids_is_in_ids() -> None:
    comparisons = list(compared())
    assert comparisons
    for path, words in comparisons:
        study = load_study(RECIPES.parents[1] / path)
        expansion = expand(study, discover_adapters(study.options), cpus=(0, 1))
        ids = [*(cell.id for cell in expansion.cells), *(each.cell for each in expansion.excluded)]
        glob = words[words.index("--select") + 1] if "--select" in words else "*"
        one, other = words[words.index("--by") + 1].split(":")
        for part in (one, other):
            assert any(part in cell.split("/") and fnmatch.fnmatchcase(cell, glob) for cell in ids), part
        assert study.fewest_trials() >= 6, "fewer trials show no difference"


def test_pipelines_and_studies_are_there(tmp_path: Path) -> None:
    loaded = [YAML(typ="safe").load(block) for block in BLOCKS]
    studies = [block for block, content in zip(BLOCKS, loaded, strict=True) if "matrix" in content]
    assert (len(loaded), len(studies)) == (6, 3)
    for study in studies:
        (tmp_path / "study.yaml").write_text(study)
        assert load_study(tmp_path / "study.yaml").trials >= 6
    assert len(list(command_lines())) >= 14


def test_exit_codes_are_those_of_the_help() -> None:
    for code in (8, 9):
        assert f"| {code} |" in TEXT and f" {code} " in EXIT_CODES
