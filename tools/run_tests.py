# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of all languages and prints the sum as the last line: `N passed, N failed, N skipped`.

Each runner's output is passed through as it arrives; the counts come from the JUnit files that it writes. A
runner that dies or writes no file counts as one failure, so nothing is lost silently.

Python's tests run in parallel, and share the CPUs with trials that others measure. If a few fail, they run
again alone and are named before the sum, whatever the result; if many fail, the fault is ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results"
ANEW_MAX = 20


@dataclass(frozen=True)
class Counts:
    """The result of one runner, or of all."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclass(frozen=True)
class Runner:
    """A command that runs tests and writes a JUnit file."""

    name: str
    command: list[str]
    junit: Path
    directory: Path = ROOT


def runners() -> list[Runner]:
    """All runners except Python's; the release build's tests first, since everything else depends on them."""
    found = []
    for preset in ("release", "guard"):
        build = ROOT / "build" / preset
        junit = RESULTS / f"ctest-{preset}.xml"
        if (build / "CTestTestfile.cmake").exists():
            options = ["--output-on-failure", "--no-tests=error", "--parallel", "2"]
            command = ["ctest", "--test-dir", str(build), *options, "--output-junit", str(junit)]
            found.append(Runner(f"C++ ({preset})", command, junit))
    web = ROOT / "web"
    npm = ROOT / ".venv" / "bin" / "npm"
    if (web / "node_modules" / ".bin" / "vitest").exists():
        junit = RESULTS / "vitest.xml"
        arguments = ["--", "--reporter=default", "--reporter=junit", f"--outputFile.junit={junit}"]
        found.append(Runner("web", [str(npm), "test", "--silent", *arguments], junit, web))
    return found


def python_runner(name: str, *options: str) -> Runner:
    """pytest with these options."""
    junit = RESULTS / f"pytest-{name.replace(' ', '-')}.xml"
    command = [sys.executable, "-m", "pytest", "--durations=20", f"--junitxml={junit}", *options]
    return Runner(f"Python, {name}", command, junit)


def count(junit: Path) -> Counts:
    """The test cases of a JUnit file, by outcome.

    Raises ElementTree.ParseError or OSError if the file is broken or missing.
    """
    passed = failed = skipped = 0
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        reason = case.find("skipped")
        # ctest reports the tests of a program that was not built as skipped.
        lost = reason is not None and "Unable to find" in reason.get("message", "")
        if lost or case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif reason is not None or case.get("status") in ("disabled", "notrun"):
            skipped += 1
        else:
            passed += 1
    return Counts(passed, failed, skipped)


def failed_in(junit: Path) -> list[str]:
    """The names of the failed test cases; empty if the file is broken or missing."""
    try:
        cases = ElementTree.parse(junit).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return []
    failed = [case for case in cases if any(case.find(word) is not None for word in ("failure", "error"))]
    return [f"{case.get('classname')}::{case.get('name')}" for case in failed]


def run(runner: Runner) -> tuple[Counts, list[str]]:
    """Runs one runner to its end and counts; the line is its result."""
    begin = time.monotonic()
    counts = run_to_end(runner)
    return counts, [f"{runner.name}: {counts} in {time.monotonic() - begin:.0f} s"]


def run_to_end(runner: Runner) -> Counts:
    """Runs one runner; one that dies or leaves no result counts as one failure."""
    runner.junit.unlink(missing_ok=True)
    print(f"\n=== {runner.name} tests", flush=True)
    code = subprocess.run(runner.command, cwd=runner.directory, check=False).returncode
    try:
        counts = count(runner.junit)
    except (OSError, ElementTree.ParseError) as error:
        print(f"{runner.name}: ended with code {code} and left no readable result: {error}", flush=True)
        return Counts(failed=1)
    if code != 0 and counts.failed == 0:
        print(f"{runner.name}: ended with code {code} although no test failed", flush=True)
        counts += Counts(failed=1)
    return counts


def read_ahead(arguments: list[str]) -> subprocess.Popen[bytes]:
    """Reads Python's tests once, on what the tests of other languages leave of the machine.

    Otherwise the processes that run them side by side would all compile each file, in a fresh clone.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *arguments]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(["nice", "-n", "19", *command], cwd=ROOT, **quiet)


def files_alone() -> list[str]:
    """The files of tests that run alone, so that for these few not all have to be read again."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in found if "mark.alone" in path.read_text(encoding="utf-8")]


def run_python(arguments: list[str]) -> tuple[Counts, list[str]]:
    """The result of Python's tests, and a line for each run and each test that ran again.

    Most wait more than they compute, so they run in parallel, three per CPU. Those that compute take turns
    (tests/seats.py), and those that change or judge the machine are marked `alone`.
    """
    workers = str(3 * len(os.sched_getaffinity(0)))
    beside = python_runner(
        "side by side", "--cache-clear", "-m", "not alone", "-n", workers, "--dist", "worksteal", *arguments
    )
    counts, lines = run(beside)
    names = failed_in(beside.junit)
    if 0 < counts.failed == len(names) <= ANEW_MAX:
        lines += [f"  failed side by side, run again: {name}" for name in names]
        failed_alone = ["--last-failed", "--last-failed-no-failures", "none"]
        again, line = run(python_runner("again", *failed_alone, *arguments))
        lines += line
        if again.passed + again.failed == len(names):
            counts = Counts(counts.passed + again.passed, again.failed, counts.skipped)
    files = [] if arguments else files_alone()
    alone, line = run(python_runner("alone", "-m", "alone", *files, *arguments))
    return counts + alone, [*lines, *line]


def main() -> int:
    """Runs everything; 0 if nothing failed."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    total = Counts()
    lines = []
    ahead = read_ahead(sys.argv[1:])
    for runner in runners():
        counts, line = run(runner)
        total += counts
        lines += line
    ahead.wait()
    counts, line = run_python(sys.argv[1:])
    total += counts
    lines += line
    print("\n=== sum")
    print("\n".join(lines))
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
