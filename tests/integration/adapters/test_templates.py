# SPDX-License-Identifier: Apache-2.0
"""The templates, as an author starts from them: at most 150 lines, outside the tree, against installed files
alone, built by one command, found through LAGOMETER_ADAPTER_PATH.

The whole conformance suite runs on one of them, and on all in `make nightly`; on the others what is quick.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from conformance_support import EVERYTHING, abilities, abilities_to_show, broken_lines, conformance
from needs import ROOT, need, rust_folder

TEMPLATES = ROOT / "templates"
FIRST_HEADER = ROOT / "tests" / "abi" / "v1"  # the headers as they were first published: never changed
LINES_MAX = 150
WHOLE = "in_cpp"
SOURCES = {"in_c": "adapter.c", "in_cpp": "adapter.cpp", "in_rust": "adapter.rs"}
COMPILERS = {"in_c": "cc", "in_cpp": "c++", "in_rust": "rust"}
INCLUDE = '"$(lagometer adapters --include)"'


def build_command(source: Path) -> str:
    """The command that the source's own head comment names."""
    head = source.read_text().splitlines()[:8]
    (command,) = [line.strip(" */!") for line in head if INCLUDE in line]
    return command


def rewrite(path: Path, changes: Mapping[str, str]) -> None:
    """Replaces texts that must be in a file."""
    text = path.read_text()
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


def build_outside(name: str, folder: Path, include: Path, changes: Mapping[str, str] | None = None) -> None:
    """Builds a copy of the adapter in the folder, with the command that it names, without a warning."""
    need(COMPILERS[name])
    own = folder / name
    shutil.copytree(TEMPLATES / name, own)
    rewrite(own / SOURCES[name], changes or {})
    command = build_command(own / SOURCES[name]).replace(INCLUDE, shlex.quote(str(include)))
    path = f"{rust_folder() or ''}{os.pathsep}{os.environ.get('PATH', os.defpath)}".lstrip(os.pathsep)
    result = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=own,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


def not_kept(build: Path, folder: Path, name: str, *only: str) -> dict[str, list[str]]:
    """By ability, what of the contract the adapter does not keep."""
    code, results, errors = conformance(build, name, *only, path=folder)
    found = abilities(results)
    broken = {each: broken_lines(ability) for each, ability in found.items() if ability["verdict"] == "fail"}
    assert code == (3 if broken else 0), errors
    assert any(ability["verdict"] == "pass" for ability in found.values())
    return broken


def lines_broken(build: Path, folder: Path, name: str, ability: str) -> list[str]:
    """What an adapter that was broken on purpose does not keep of an ability."""
    code, results, errors = conformance(build, name, "--only", ability, path=folder)
    assert code == 3, errors
    return broken_lines(abilities(results)[ability])


@pytest.fixture(scope="module")
def installed(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers as they are installed, and nothing else of the tree."""
    prefix = tmp_path_factory.mktemp("installed")
    command = ["cmake", "--install", str(build), "--prefix", str(prefix), "--component", "headers"]
    subprocess.run(command, check=True, capture_output=True)
    (include,) = prefix.rglob("include")
    return include


@pytest.mark.parametrize("name", SOURCES)
def test_an_adapter_in_150_lines_passes_the_suite(
    build: Path, installed: Path, tmp_path: Path, name: str
) -> None:
    need("netns")
    assert len((TEMPLATES / name / SOURCES[name]).read_text().splitlines()) <= LINES_MAX
    build_outside(name, tmp_path, installed)
    assert not not_kept(
        build, tmp_path, name, *(() if EVERYTHING or name == WHOLE else abilities_to_show(name))
    )


SILENT = "threads: each that the adapter creates calls thread_begin: the thread that calls on_data has not "
ALLOCATES = "measuring: the adapter's own code allocates nothing: the adapter's own code allocated "


def test_a_thread_that_the_host_is_not_told_of_and_allocations_are_seen_in_rust(
    build: Path, installed: Path, tmp_path: Path
) -> None:
    need("netns")
    include = tmp_path / "include"
    shutil.copytree(installed, include)
    untold = {
        '(host().thread_begin)(host().this, ROLE_RECEIVE, text("listener"));': "",
        "(host().thread_end)(host().this);": "",
    }
    rewrite(include / "lagometer" / "plain.rs", untold)
    asked = "    let count = max.min(reader.waiting.len() as u32);\n"
    allocating = {asked: f"{asked}    std::hint::black_box(Box::new(count));\n"}
    build_outside("in_rust", tmp_path, include, allocating)
    broken = lines_broken(build, tmp_path, "in_rust", "contract")
    assert len(broken) == 2 and broken[0].startswith(SILENT) and broken[1].startswith(ALLOCATES), broken


def test_a_thread_that_the_host_is_not_told_of_is_seen_in_cpp(
    build: Path, installed: Path, tmp_path: Path
) -> None:
    need("netns")
    untold = {
        '    host->thread_begin(host->self, LAGOMETER_ROLE_RECEIVE, to_c("listener"));\n': "",
        "    host->thread_end(host->self);\n": "",
    }
    build_outside("in_cpp", tmp_path, installed, untold)
    (broken,) = lines_broken(build, tmp_path, "in_cpp", "contract")
    assert broken.startswith(SILENT), broken


def test_a_panic_in_rust_is_told_with_its_message(build: Path, installed: Path, tmp_path: Path) -> None:
    """It can't unwind into C, so it ends the process."""
    need("netns")
    asked = "    let writer = object::<Writer, _>(handle);\n    if bytes"
    panicking = {asked: f'    assert!(bytes < 1000, "{{bytes}} B are too many for me");\n{asked}'}
    build_outside("in_rust", tmp_path, installed, panicking)
    (broken,) = lines_broken(build, tmp_path, "in_rust", "sizes")
    assert broken.startswith(
        "1,023 B of bytes, byte for byte: its process died of SIGABRT at 'send', in borrow"
    )
    assert " panicked at adapter.rs:" in broken and broken.endswith(": 1023 B are too many for me"), broken


def test_the_template_in_python_passes_the_suite(build: Path, tmp_path: Path) -> None:
    """There is nothing to build: it is copied away from the tree and found."""
    need("netns")
    shutil.copytree(TEMPLATES / "in_python", tmp_path / "in_python")
    assert len((tmp_path / "in_python" / "adapter.py").read_text().splitlines()) <= LINES_MAX
    assert not not_kept(build, tmp_path, "in_python", *(() if EVERYTHING else abilities_to_show("in_python")))


def test_every_template_is_tested_and_says_which_hooks_are_required() -> None:
    folders = {path.parent.name: path.parent for path in TEMPLATES.glob("*/adapter.json")}
    assert set(folders) == {*SOURCES, "in_python"}
    for name, folder in folders.items():
        assert "Required: " in (folder / SOURCES.get(name, "adapter.py")).read_text(), name
        assert f"]({name}/" in (TEMPLATES / "README.md").read_text(), name


def test_an_adapter_of_the_first_header_stays_loadable(build: Path, tmp_path: Path) -> None:
    need("netns")
    build_outside("in_c", tmp_path, FIRST_HEADER)
    broken = not_kept(build, tmp_path, "in_c", *(() if EVERYTHING else abilities_to_show("in_c")))
    newer = "refuses: security that the sidecar does not list"  # by plain.h, which is no part of the ABI
    assert [line for lines in broken.values() for line in lines if not line.startswith(newer)] == []
