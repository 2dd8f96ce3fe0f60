# SPDX-License-Identifier: Apache-2.0
"""When the set-up configures the build again: tools/setup in a tree of its own, with a CMake that records."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_support import wait_until

ROOT = Path(__file__).resolve().parents[3]
LOCK = "requirements/run.txt"

# Installing leaves a mark, as a package manager would; what is missing is what has no mark.
PACKAGES = """#!/bin/sh
for set in $(printf %s "$2" | tr , ' '); do
    if [ "$1" = install ]; then : >"installed-$set"; elif [ ! -e "installed-$set" ]; then echo "of-$set"; fi
done
"""
CMAKE = """#!/bin/sh
while [ -n "${BROKEN-}" ]; do [ ! -e cargo.pid ] || exit 1; sleep 0.01; done
if [ "$1" = --build ]; then exit 0; fi
mkdir -p "build/$2"
: >"build/$2/build.ninja"
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\\nLAGOMETER_TESTS:BOOL=OFF\\n' "$PWD" >"build/$2/CMakeCache.txt"
echo "$*" >>configured
"""

# Notes what it is asked to build, and where SLOW is set, goes on for minutes.
CARGO = """#!/bin/sh
[ "$1" != --version ] || { echo 'cargo 1.95.0'; exit 0; }
echo "$CARGO_TARGET_DIR $*" >>crates
echo $$ >cargo.pid
[ -z "${SLOW-}" ] || exec sleep 600
exit 1
"""
JOINED = "-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with the set-up alone, and with an environment that has all that its lock file asks for."""
    root = tmp_path / "checkout"
    for folder in ("tools", "requirements", "programs", "cargo/bin"):
        (root / folder).mkdir(parents=True)
    (root / "tools" / "setup").write_bytes((ROOT / "tools" / "setup").read_bytes())
    for path, text in (
        ("tools/packages", PACKAGES),
        ("programs/cmake", CMAKE),
        ("programs/ninja", "#!/bin/sh\n"),
        ("cargo/bin/cargo", CARGO),
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


def set_up(root: Path, *options: str, **environment: str) -> int:
    """The exit code of a set-up."""
    return run_set_up(root, *options, **environment).returncode


def run_set_up(root: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{root / 'programs'}:{os.environ['PATH']}"
    return subprocess.run(
        [str(root / "tools" / "setup"), *options],
        env=os.environ | {"PATH": path, "CARGO_HOME": str(root / "cargo")} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def configurations(root: Path, *options: str) -> int:
    """How many times the build was configured so far, after another set-up."""
    assert set_up(root, *options) == 0
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
    assert last().endswith(f"-DLAGOMETER_RUST_ADAPTERS=ON -DLAGOMETER_RUST_PROFILE=ci {JOINED}")
    assert configurations(tree) == 1
    assert configurations(tree, "--rust") == 2
    apart = "-DCMAKE_UNITY_BUILD=OFF -DCMAKE_UNITY_BUILD_BATCH_SIZE=8"
    assert last().endswith(f"-DLAGOMETER_RUST_PROFILE=release {apart}")


def test_the_crates_begin_while_the_rest_is_set_up(tree: Path) -> None:
    """As CMake builds them later, which names what fails: here that alone fails nothing."""
    assert configurations(tree) == 1
    assert not (tree / "crates").exists(), "nobody asked for adapters in Rust"
    assert configurations(tree, "--rust-ci") == 2
    words = f"build --profile ci --locked --workspace --keep-going --manifest-path {tree}/adapters/Cargo.toml"
    assert (tree / "crates").read_text() == f"{tree}/build/cargo {words}\n"
    script = (ROOT / "adapters" / "rust" / "build.cmake").read_text()
    assert "build --profile ${profile}\n    --locked" in script and "--workspace --keep-going" in script


def test_a_set_up_that_breaks_off_ends_its_cargo(tree: Path) -> None:
    assert set_up(tree, "--rust-ci", SLOW="1", BROKEN="1") == 1
    pid = int((tree / "cargo.pid").read_text())
    assert wait_until(lambda: not is_running(pid), 10)


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_the_bridge_over_zenoh_is_built_once_it_was_asked_for_and_not_before(tree: Path) -> None:
    def last() -> str:
        return (tree / "configured").read_text().splitlines()[-1]

    assert configurations(tree, "--rust-ci") == 1
    assert "LAGOMETER_BRIDGES" not in last()
    assert configurations(tree, "--bridges") == 2
    assert last().endswith(f"-DLAGOMETER_RUST_PROFILE=ci {JOINED} -DLAGOMETER_BRIDGES=ON")
    assert configurations(tree) == 2


PYTHON = """#!/bin/sh
for file in "$@"; do :; done
case "$*" in *" pip install "*) ;; *) exec {python} "$@" ;; esac
if grep -q '^without-wheel' "$file"; then exit 1; fi
sed -n 's/^\\([^ #]*\\)==.*/\\1/p' "$file" >>installed
"""


def test_a_client_that_can_t_be_installed_leaves_the_others(tree: Path) -> None:
    entries = [f"{name}==1.0 \\\n    --hash=sha256:{'0' * 64}\n" for name in ("one", "without-wheel", "two")]
    lock = tree / "requirements" / "clients.txt"
    lock.write_text("# Written by tools/lock\n" + "".join(entries))
    python = tree / ".venv" / "bin" / "python"
    real = python.resolve()
    python.unlink()
    python.write_text(PYTHON.format(python=real))
    python.chmod(0o755)
    result = run_set_up(tree, "--rack", "--no-build")
    assert result.returncode == 0, result.stderr
    assert (tree / "installed").read_text().split() == ["one", "two"]
    assert "are left out: without-wheel==1.0" in result.stderr
