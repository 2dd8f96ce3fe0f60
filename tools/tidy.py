# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over engine and adapters, all cores at once.

A file whose translation unit is the same as when it last passed is not looked at again: the key is the
preprocessed source, the configuration and clang-tidy's version, so a changed header counts for all that
include it.
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
# Ours alone: the build folder, too, has an adapters/, with headers that ROS 2's generators write.
HEADERS = f"^{re.escape(str(ROOT))}/(engine|adapters)/"


def commands() -> dict[Path, list[str]]:
    """The compiler's command for each source file of ours that ships."""
    database = json.loads((BUILD / "compile_commands.json").read_text())
    found = {}
    for entry in database:
        file = Path(entry["directory"], entry["file"]).resolve()
        if file.is_relative_to(ROOT / "engine") or file.is_relative_to(ROOT / "adapters"):
            found[file] = shlex.split(entry["command"])
    return found


def key(command: list[str], salt: bytes) -> str:
    """Hash of what clang-tidy would see."""
    output = command.index("-o")
    preprocess = [*command[:output], *command[output + 2 :], "-E"]
    text = subprocess.run(preprocess, cwd=BUILD, check=True, stdout=subprocess.PIPE).stdout
    return hashlib.sha256(salt + text).hexdigest()


def tidy(file: Path, command: list[str], salt: bytes) -> str:
    """The findings in one file, empty if there are none."""
    stamp = CACHE / key(command, salt)
    if stamp.exists():
        return ""
    result = subprocess.run(
        ["clang-tidy", "--quiet", f"--header-filter={HEADERS}", "-p", str(BUILD), str(file)],
        check=False,
        capture_output=True,
        text=True,
    )
    if result.returncode == 0:
        stamp.touch()
        return ""
    return result.stdout or result.stderr


def main() -> int:
    """0 if there are no findings, or clang-tidy is absent and LAGOMETER_REQUIRE is not set (CI sets it)."""
    program = shutil.which("clang-tidy")
    if program is None:
        print("clang-tidy: skipped: it needs the package clang-tidy", file=sys.stderr)
        return 1 if os.environ.get("LAGOMETER_REQUIRE") else 0
    version = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes() + HEADERS.encode()
    CACHE.mkdir(parents=True, exist_ok=True)
    findings = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(tidy, file, command, salt) for file, command in commands().items()]
        for job in concurrent.futures.as_completed(jobs):
            text = job.result()
            if text:
                findings += 1
                print(text)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
