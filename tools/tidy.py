# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over engine and adapters, on all cores at once.

    tools/tidy.py          every file
    LAGOMETER_TIDY=changed tools/tidy.py      for CI: what changed, and a few others

It skips a file whose translation unit is the same as when it last passed. The key is the preprocessed source,
the configuration and clang-tidy's version, so a changed header affects all files that include it.

`changed`: files that changed since the branch left LAGOMETER_BASE (default: origin/HEAD), or in the last
COMMITS commits if that yields nothing, and files that include changed ones; at most CHANGED_MAX of them.
The commit's hash selects OTHERS more, so that every file has its turn over time. `make nightly` checks every
file.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
CACHE = ROOT / "build" / "tidy"
# Only ours: the build folder also has an adapters/, with headers that ROS 2's generators write.
CHANGED, EVERY = "changed", "all"
COMMITS = 10
CHANGED_MAX = 24
OTHERS = 6
HEADERS = f"^{re.escape(str(ROOT))}/(engine|adapters)/"


def database(build: Path = BUILD) -> Path:
    """The folder with the compiler's commands, one per file: if the build joins files, one that is configured
    separately."""
    if not re.search(r"^CMAKE_UNITY_BUILD:\w+=ON$", (build / "CMakeCache.txt").read_text(), re.MULTILINE):
        return build
    apart = build.parent / "apart"
    command = ["cmake", "--preset", "release", "-B", str(apart), "-DCMAKE_UNITY_BUILD=OFF"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    # Generated files are in the build folder.
    commands_of_files = apart / "compile_commands.json"
    commands_of_files.write_text(commands_of_files.read_text().replace(str(apart), str(build)))
    return apart


def commands(folder: Path) -> dict[Path, list[str]]:
    """The compiler's command for each of our source files that ships."""
    found = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        file = Path(entry["directory"], entry["file"]).resolve()
        if file.is_relative_to(ROOT / "engine") or file.is_relative_to(ROOT / "adapters"):
            found[file] = shlex.split(entry["command"])
    return found


def git(*arguments: str, root: Path = ROOT) -> str | None:
    """The output of git; None if it fails."""
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def changed_files(root: Path = ROOT) -> tuple[str, set[Path]]:
    """The base of the comparison, and the files that changed since, including uncommitted ones."""
    head = git("rev-parse", "HEAD", root=root)
    base = git("merge-base", "HEAD", os.environ.get("LAGOMETER_BASE", "origin/HEAD"), root=root)
    if base in (None, head):
        count = int(git("rev-list", "--count", "--first-parent", "HEAD", root=root) or 1)
        base = git("rev-parse", f"HEAD~{min(COMMITS, count - 1)}", root=root)
    names = git("diff", "--name-only", base, root=root) if base else None
    return (base or "?")[:9], {root / name for name in (names or "").splitlines()}


def includes_of(file: Path, by_name: dict[str, list[Path]], seen: set[Path]) -> set[Path]:
    """Adds to `seen` our files that a file includes, also indirectly; a name that is not next to the file
    matches every file of that name."""
    if file in seen or not file.exists():
        return seen
    seen.add(file)
    for target in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', file.read_text("utf-8"), re.MULTILINE):
        beside = (file.parent / target).resolve()
        for found in [beside] if beside.exists() else by_name.get(Path(target).name, []):
            includes_of(found, by_name, seen)
    return seen


def chosen(
    files: list[Path], changed: set[Path], includes: dict[Path, set[Path]], commit: str
) -> tuple[list[Path], list[Path]]:
    """The files to check for a change, and others in turn.

    A file that changed itself comes before a file that includes a changed one.
    """
    direct = [file for file in files if file in changed]
    through = [file for file in files if file not in changed and includes.get(file, set()) & changed]
    touched = [*direct, *through][:CHANGED_MAX]
    left = [file for file in files if file not in touched]
    first = int(commit[:8] or "0", 16) % len(left) if left else 0
    return touched, (left[first:] + left[:first])[:OTHERS]


def selected(files: list[Path]) -> list[Path]:
    """The files that LAGOMETER_TIDY selects; prints which."""
    wanted = os.environ.get("LAGOMETER_TIDY", EVERY)
    if wanted == EVERY:
        return files
    if wanted != CHANGED:
        raise SystemExit(f"tidy: LAGOMETER_TIDY is '{wanted}', expected {CHANGED} or {EVERY}")
    base, changed = changed_files()
    by_name: dict[str, list[Path]] = {}
    for part in ("engine", "adapters"):
        for header in (ROOT / part).rglob("*.h*"):
            by_name.setdefault(header.name, []).append(header)
    includes = {file: includes_of(file, by_name, set()) for file in files}
    touched, others = chosen(files, changed, includes, git("rev-parse", "HEAD") or "")
    print(
        f"clang-tidy: {len(touched)} of {len(files)} files for changes since {base}, {len(others)} others"
        " by turn; all: tools/lint tidy, make nightly",
        flush=True,
    )
    return [*touched, *others]


def key(command: list[str], salt: bytes) -> str:
    """Hash of clang-tidy's input."""
    output = command.index("-o")
    preprocess = [*command[:output], *command[output + 2 :], "-E"]
    text = subprocess.run(preprocess, cwd=BUILD, check=True, stdout=subprocess.PIPE).stdout
    return hashlib.sha256(salt + text).hexdigest()


def tidy(file: Path, folder: Path, command: list[str], salt: bytes) -> str:
    """The findings in one file, empty if there are none. folder: from `database`."""
    stamp = CACHE / key(command, salt)
    if stamp.exists():
        return ""
    result = subprocess.run(
        ["clang-tidy", "--quiet", f"--header-filter={HEADERS}", "-p", str(folder), str(file)],
        check=False,
        capture_output=True,
        text=True,
    )
    if result.returncode == 0:
        stamp.touch()
        return ""
    return result.stdout or result.stderr


def main() -> int:
    """0 without findings, or if clang-tidy is missing and LAGOMETER_REQUIRE is not set (CI sets it)."""
    program = shutil.which("clang-tidy")
    if program is None:
        print("clang-tidy: skipped: it needs the package clang-tidy", file=sys.stderr)
        return 1 if os.environ.get("LAGOMETER_REQUIRE") else 0
    version = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes() + HEADERS.encode()
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = database()
    by_file = commands(folder)
    files = selected(sorted(by_file))
    findings = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(tidy, file, folder, by_file[file], salt) for file in files]
        for job in concurrent.futures.as_completed(jobs):
            text = job.result()
            if text:
                findings += 1
                print(text)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
