# SPDX-License-Identifier: Apache-2.0
"""When the set-up configures the build again: tools/setup in a tree of its own, with a CMake that records."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCK = "requirements/run.txt"

# Installing leaves a mark, as a package manager would; what is missing is what has no mark.
PACKAGES = """#!/bin/sh
for set in $(printf %s "$2" | tr , ' '); do
    if [ "$1" = install ]; then : >"installed-$set"; elif [ ! -e "installed-$set" ]; then echo "of-$set"; fi
done
"""
CMAKE = """#!/bin/sh
if [ "$1" = --build ]; then exit 0; fi
mkdir -p "build/$2"
: >"build/$2/build.ninja"
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\\nLAGOMETER_TESTS:BOOL=OFF\\n' "$PWD" >"build/$2/CMakeCache.txt"
echo "$*" >>configured
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with the set-up alone, and with an environment that has all that its lock file asks for."""
    root = tmp_path / "checkout"
    for folder in ("tools", "requirements", "programs"):
        (root / folder).mkdir(parents=True)
    (root / "tools" / "setup").write_bytes((ROOT / "tools" / "setup").read_bytes())
    for path, text in (
        ("tools/packages", PACKAGES),
        ("programs/cmake", CMAKE),
        ("programs/ninja", "#!/bin/sh\n"),
    ):
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    (root / "tools" / "setup").chmod(0o755)
    (root / "CMakePresets.json").write_text("{}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    for lock in (LOCK, "requirements/clients.txt"):
        (root / lock).write_text("")
        mark = hashlib.sha256(b"").hexdigest()[:32]
        (root / ".venv" / f".{Path(lock).name}").write_text(f"{mark}\n")
    return root


def configurations(root: Path, *options: str) -> int:
    """How many times the build was configured so far, after another set-up."""
    path = f"{root / 'programs'}:{os.environ['PATH']}"
    subprocess.run(
        [str(root / "tools" / "setup"), *options],
        env=os.environ | {"PATH": path},
        check=True,
        capture_output=True,
        timeout=60,
    )
    return len((root / "configured").read_text().splitlines())


def test_more_middleware_configures_the_build_anew(tree: Path) -> None:
    """Its packages are installed before CMake is asked, so nothing is missing either time."""
    assert configurations(tree) == 1
    assert configurations(tree) == 1
    assert configurations(tree, "--rack") == 2
    assert configurations(tree, "--rack") == 2


def test_more_middleware_is_looked_for_from_then_on(tree: Path) -> None:
    assert configurations(tree, "--rack") == 1
    assert configurations(tree) == 1


def test_a_package_that_comes_later_configures_the_build_anew(tree: Path) -> None:
    assert configurations(tree) == 1
    (tree / "installed-build").unlink()
    (tree / "tools" / "packages").write_text(PACKAGES.replace(': >"installed-$set"', ":"))
    assert configurations(tree) == 2


def test_the_profile_of_the_adapters_in_rust_is_kept_until_another_is_asked_for(tree: Path) -> None:
    def last() -> str:
        return (tree / "configured").read_text().splitlines()[-1]

    assert configurations(tree, "--rust-ci") == 1
    assert last().endswith("-DLAGOMETER_RUST_ADAPTERS=ON -DLAGOMETER_RUST_PROFILE=ci -DCMAKE_UNITY_BUILD=ON")
    assert configurations(tree) == 1
    assert configurations(tree, "--rust") == 2
    assert last().endswith("-DLAGOMETER_RUST_PROFILE=release -DCMAKE_UNITY_BUILD=OFF")
