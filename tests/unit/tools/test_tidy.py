# SPDX-License-Identifier: Apache-2.0
"""Which files clang-tidy looks at in CI: those that a change touches first, and a few others by turn."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from needs import ROOT


@pytest.fixture(scope="module")
def tidy() -> ModuleType:
    specification = importlib.util.spec_from_file_location("tidy", ROOT / "tools" / "tidy.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@localhost")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Twelve commits, each with a file of its own."""
    git(tmp_path, "init", "-q", "-b", "main")
    for number in range(12):
        (tmp_path / f"{number}.cpp").write_text("")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", str(number))
    return tmp_path


def names(found: tuple[str, set[Path]]) -> list[str]:
    return sorted(path.name for path in found[1])


def test_on_a_branch_what_changed_since_it_left_the_origin(
    tidy: ModuleType, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAGOMETER_BASE", raising=False)
    git(history, "update-ref", "refs/remotes/origin/main", "HEAD~2")
    git(history, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    (history / "0.cpp").write_text("changed, and not committed")
    assert names(tidy.changed_files(history)) == ["0.cpp", "10.cpp", "11.cpp"]
    monkeypatch.setenv("LAGOMETER_BASE", "HEAD~1")
    assert names(tidy.changed_files(history)) == ["0.cpp", "11.cpp"]


def test_without_a_branch_what_the_last_commits_changed(
    tidy: ModuleType, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAGOMETER_BASE", raising=False)
    assert len(names(tidy.changed_files(history))) == tidy.COMMITS
    git(history, "checkout", "-q", "HEAD~10")
    assert names(tidy.changed_files(history)) == ["1.cpp"]


def test_what_changed_comes_first_then_what_includes_it_then_others_by_turn(tidy: ModuleType) -> None:
    files = [Path(f"{number}.cpp") for number in range(100)]
    header = Path("h.hpp")
    includes = {file: {file, header} if index % 2 else {file} for index, file in enumerate(files)}
    touched, others = tidy.chosen(files, {header, files[98]}, includes, "00000001abc")
    assert touched == [files[98], *files[1 : 2 * tidy.CHANGED_MAX - 2 : 2]]
    assert len(touched) == tidy.CHANGED_MAX and len(others) == tidy.OTHERS
    assert not set(touched) & set(others)
    turns = {file for turn in range(100) for file in tidy.chosen(files, set(), {}, f"{turn:08x}")[1]}
    assert turns == set(files)
    assert tidy.chosen([], set(), {}, "") == ([], [])


def test_what_is_included_through_others_counts(tidy: ModuleType, tmp_path: Path) -> None:
    for name, text in (
        ("a/main.cpp", '#include "near.hpp"\n#include <vector>\n'),
        ("a/near.hpp", '#include "far.hpp"\n'),
        ("b/near.hpp", ""),
        ("b/far.hpp", '#include "../a/near.hpp"\n'),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    by_name = {
        "near.hpp": [tmp_path / "a/near.hpp", tmp_path / "b/near.hpp"],
        "far.hpp": [tmp_path / "b/far.hpp"],
    }
    found = tidy.includes_of(tmp_path / "a" / "main.cpp", by_name, set())
    assert {path.relative_to(tmp_path).as_posix() for path in found} == {
        "a/main.cpp",
        "a/near.hpp",
        "b/far.hpp",
    }


def test_an_unknown_choice_is_refused(tidy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGOMETER_TIDY", "some")
    with pytest.raises(SystemExit, match="'some', expected changed or all"):
        tidy.selected([])


@pytest.mark.parametrize("kind", ["BOOL", "UNINITIALIZED"])
def test_a_build_that_joins_files_is_configured_again_apart(
    tidy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    build, apart = tmp_path / "release", tmp_path / "apart"
    build.mkdir()
    asked: list[list[str]] = []

    def configure(command: list[str], **_: object) -> None:
        asked.append(command)
        apart.mkdir()
        entry = {
            "directory": str(apart),
            "file": "one.cpp",
            "command": f"c++ -I{apart}/generated -o one one.cpp",
        }
        (apart / "compile_commands.json").write_text(json.dumps([entry]))

    monkeypatch.setattr(tidy.subprocess, "run", configure)
    (build / "CMakeCache.txt").write_text(f"CMAKE_UNITY_BUILD:{kind}=OFF\n")
    assert (tidy.database(build), asked) == (build, [])
    (build / "CMakeCache.txt").write_text(f"A:BOOL=ON\nCMAKE_UNITY_BUILD:{kind}=ON\n")
    assert tidy.database(build) == apart
    assert asked[0][-1] == "-DCMAKE_UNITY_BUILD=OFF"
    (entry,) = json.loads((apart / "compile_commands.json").read_text())
    assert entry["command"] == f"c++ -I{build}/generated -o one one.cpp"
