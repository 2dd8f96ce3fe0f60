# SPDX-License-Identifier: Apache-2.0
"""Every command of docs/ADAPTERS.md and of the page on conformance, run as an author runs it: in a folder of
its own, with the installed headers, in the order of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from needs import ROOT, need, rust_folder
from worker_support import RUNTIME_DIRECTORY

from lagometer.study.sidecar import Sidecar

PAGES = (ROOT / "docs" / "ADAPTERS.md", ROOT / "docs" / "adapters" / "conformance.md")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
NEEDS = ("netns", "c++", "cc", "rust")


def blocks() -> list[str]:
    """The pages' blocks of commands, in order."""
    return [block for page in PAGES for block in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.fixture
def author(tmp_path: Path, build: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the templates in it, as copied, and the environment of a user's shell."""
    for name in NEEDS:
        need(name)
    folder = tmp_path / "author"
    folder.mkdir()
    for template in (ROOT / "templates").glob("in_*"):
        shutil.copytree(template, folder / template.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(folder / "in_cpp", folder / "mine")
    shutil.copytree(folder / "in_rust", folder / "mine_rs")
    shutil.copytree(ROOT / "adapters" / "null", folder / "null")
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (("lagometer", "-m lagometer.cli.main "), ("python", "")):
        command = programs / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        command.chmod(0o755)
    found = [str(programs), *([str(rust_folder())] if rust_folder() else []), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(found), "PYTHONPATH": str(ROOT)}
    for name in ("worker", "supervisor", "conformance"):
        environment[f"LAGOMETER_{name.upper()}"] = str(build / "engine" / f"lagometer-{name}")
    environment.pop("LAGOMETER_ADAPTER_PATH", None)
    yield folder, environment
    # A worker that is run by hand is in no private machine, and nobody removes its folder.
    shutil.rmtree(RUNTIME_DIRECTORY, ignore_errors=True)


def test_the_documented_commands_work_in_their_order(author: tuple[Path, dict[str, str]]) -> None:
    """In one test, since later commands use what earlier ones have built."""
    folder, environment = author
    # A page's commands are typed into one shell: what is exported stays for the blocks that follow.
    script = "set -e\nexport LAGOMETER_ADAPTER_PATH=$PWD\n"
    for block in blocks():
        result = subprocess.run(
            ["/bin/sh", "-c", script + block], cwd=folder, env=environment, capture_output=True
        )
        # In bytes, since a worker's records may be among them.
        assert result.returncode == 0, (block, result.stdout, result.stderr)


def test_the_pages_have_commands_in_each_language() -> None:
    text = "".join(blocks())
    commands = ("g++ ", "cc -std", "rustc ", "--crate-name mine_rs", "null/null.cpp", "lagometer measure")
    for words in (*commands, "conformance in_python"):
        assert words in text, words


def test_the_page_says_what_to_change_for_each_scope() -> None:
    page = PAGES[0].read_text(encoding="utf-8").partition("### How far its messages reach\n")[2]
    section = page.partition("\n### ")[0]
    for scope in get_args(Sidecar.model_fields["scope"].annotation):
        assert f"\n| `{scope}` | " in section, scope
    assert BLOCK.findall(section)[0].count("lagometer measure ") == 3
