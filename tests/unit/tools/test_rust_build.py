# SPDX-License-Identifier: Apache-2.0
"""Adapters in Rust are built together; one that does not build stops no other. With a cargo that records."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "adapters" / "rust" / "build.cmake"
TOGETHER = "--workspace --keep-going"

# Builds what it is told to, but the crate that FAILING names; with NOTHING set, never the whole workspace.
CARGO = """#!/bin/sh
echo "$*" >>calls
case "$*" in
    *--workspace*) names='first second' ;;
    *) names=${*##*lagometer-} ;;
esac
case "$*${NOTHING-}" in *--workspace*1) echo 'error: failed to download `vendored`' >&2; exit 101 ;; esac
code=0
for name in $names; do
    if [ "$name" = "${FAILING-}" ]; then
        printf 'warning: a comment\\nerror: could not compile `%s`\\n' "$name" >&2
        code=101
    else
        echo "built by $*" >"$CARGO_TARGET_DIR/$3/liblagometer_$name.so"
        if [ "$name" = second ]; then : >"$CARGO_TARGET_DIR/$3/router"; fi
    fi
done
exit $code
"""


class Tree:
    """A build folder with two adapters, the second of which has a program, too."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.adapters = root / "adapters"
        self.stamp = root / "stamp"
        for folder in ("target/release", "target/ci", "adapters/first", "adapters/second"):
            (root / folder).mkdir(parents=True)
        (root / "cargo").write_text(CARGO)
        (root / "cargo").chmod(0o755)

    def build(self, profile: str = "release", **environment: str) -> list[str]:
        """What cargo was asked for, behind what it is always."""
        (self.root / "calls").unlink(missing_ok=True)
        variables = {
            "names": "first,second",
            "programs_first": "",
            "programs_second": "router",
            "cargo": self.root / "cargo",
            "folder": self.adapters,
            "workspace": self.root,
            "target": self.root / "target",
            "profile": profile,
            "stamp": self.stamp,
        }
        subprocess.run(
            ["cmake", *(f"-D{name}={value}" for name, value in variables.items()), "-P", str(SCRIPT)],
            cwd=self.root,
            env=os.environ | environment,
            check=True,
            capture_output=True,
            timeout=60,
        )
        always = f"build --profile {profile} --locked --manifest-path {self.root}/Cargo.toml "
        return [line.removeprefix(always) for line in (self.root / "calls").read_text().splitlines()]

    def files(self) -> set[str]:
        return {str(path.relative_to(self.adapters)) for path in self.adapters.rglob("*") if path.is_file()}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


ALL = {"first/liblagometer_first.so", "second/liblagometer_second.so", "second/router"}


def test_all_are_built_by_one_run(tree: Tree) -> None:
    (tree.adapters / "first" / "missing.txt").write_text("of an earlier attempt\n")
    assert tree.build() == [TOGETHER]
    assert tree.files() == ALL
    assert tree.stamp.exists()


def test_of_another_profile_nothing_is_taken(tree: Tree) -> None:
    tree.build()
    assert tree.build(profile="ci") == [TOGETHER]
    library = tree.adapters / "first" / "liblagometer_first.so"
    assert "--profile ci " in library.read_text()
    tree.build(profile="ci", FAILING="first")
    assert not library.exists()


def test_one_that_does_not_build_is_left_out_with_its_reason(tree: Tree) -> None:
    tree.build()
    assert tree.build(FAILING="second") == [TOGETHER, "--package lagometer-second"]
    assert tree.files() == {"first/liblagometer_first.so", "second/missing.txt"}, "an old one must not stay"
    reason = (tree.adapters / "second" / "missing.txt").read_text()
    assert reason.startswith("cargo build failed (error: could not compile `second`); to see all of it: ")
    assert not tree.stamp.exists(), "it is tried again with the next build"


def test_what_one_needs_and_cannot_be_had_stops_no_other(tree: Tree) -> None:
    """Cargo then begins nothing at all."""
    calls = tree.build(NOTHING="1", FAILING="first")
    assert calls == [TOGETHER, "--package lagometer-first", "--package lagometer-second"]
    assert tree.files() == {"first/missing.txt", "second/liblagometer_second.so", "second/router"}
