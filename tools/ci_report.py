# SPDX-License-Identifier: Apache-2.0
"""The result of .ci/run or `make nightly`: a table of its sections against their budget, the test files that
took longest, which tests failed and why, and all of it as JSON. Uses only the standard library.

    tools/ci_report.py SECTIONS PASSED FAILED SKIPPED [--out out/ci.json] [--budget .ci/budget]
    tools/ci_report.py --record      writes the seconds of each Python test file to tests/durations.json, so
                                     that the long ones begin first

SECTIONS has a line for each section: name, verdict, seconds, separated by tabs.
"""

from __future__ import annotations

import argparse
import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results"
DURATIONS = ROOT / "tests" / "durations.json"
SLOWEST = 25
REASON_CHARACTERS = 600  # of what a failed test says; its whole output stands further up
RECORDED_FROM_S = 5  # shorter tests need no entry


@dataclass(frozen=True)
class Section:
    """One part of the run. budget_s: its budget from .ci/budget, None without one."""

    name: str
    verdict: str
    seconds: int
    budget_s: int | None

    @property
    def is_over(self) -> bool:
        """Whether it exceeded its budget."""
        return self.budget_s is not None and self.seconds > self.budget_s


def budgets(path: Path) -> dict[str, int]:
    """Section → seconds; empty without such a table."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): int(seconds) for seconds, name in rows}


def sections(text: str, budget: Mapping[str, int]) -> list[Section]:
    """The sections in order. Raises ValueError for an invalid line."""
    found = []
    for line in text.splitlines():
        name, verdict, seconds = line.split("\t")
        found.append(Section(name, verdict, int(seconds), budget.get(name)))
    return found


def test_cases(folder: Path) -> Iterator[tuple[str, ElementTree.Element]]:
    """Yields the file and the JUnit entry of each test.

    A broken JUnit file has none here: tools/run_tests.py counts it as a failure.
    """
    for junit in sorted(folder.glob("*.xml")):
        try:
            cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            continue
        for case in cases:
            yield file_of(junit.stem, case.get("classname", ""), case.get("name", "")), case


def seconds_by_file(folder: Path) -> dict[str, float]:
    """The time of the tests of each file; C++ tests by suite."""
    total: dict[str, float] = {}
    for name, case in test_cases(folder):
        total[name] = total.get(name, 0.0) + float(case.get("time") or 0)
    return total


def failures(folder: Path) -> list[tuple[str, str]]:
    """The failed tests, each with the beginning of what it says."""
    found = []
    for name, case in test_cases(folder):
        for entry in (*case.iter("failure"), *case.iter("error")):
            said = entry.get("message") or entry.text or "no reason is given"
            found.append((f"{name}::{case.get('name')}", " ".join(said.split())[:REASON_CHARACTERS]))
    return found


def file_of(runner: str, module: str, name: str) -> str:
    """The file of a test case; for a C++ test its suite, since ctest does not know files."""
    if runner.startswith("ctest-"):
        return f"{runner.removeprefix('ctest-')}: {name.partition('.')[0]}"
    if runner.startswith("pytest-"):
        parts = module.split(".")
        while len(parts) > 1 and not parts[-1].startswith("test_"):
            parts.pop()  # a class of tests
        return "/".join(parts) + ".py"
    return module or name


def slowest(folder: Path, count: int = SLOWEST) -> list[tuple[str, float]]:
    """The files that took longest, longest first."""
    ordered = sorted(seconds_by_file(folder).items(), key=lambda item: (-item[1], item[0]))
    return [(name, round(seconds, 1)) for name, seconds in ordered[:count]]


def table(parts: Iterable[Section]) -> list[str]:
    """Lines to print."""
    lines = [f"{'section':<28} {'verdict':<8} {'seconds':>7} {'budget':>7}"]
    for part in parts:
        budget = "–" if part.budget_s is None else str(part.budget_s)
        over = "  OVER ITS BUDGET" if part.is_over else ""
        lines.append(f"{part.name:<28} {part.verdict:<8} {part.seconds:>7} {budget:>7}{over}")
    return lines


def report(given: argparse.Namespace) -> int:
    """Prints the tables and writes the JSON."""
    parts = sections(Path(given.sections).read_text(encoding="utf-8"), budgets(given.budget))
    files = slowest(RESULTS)
    total_s = sum(part.seconds for part in parts)
    budget_s = sum(part.budget_s or 0 for part in parts)
    print("\n".join(table(parts)))
    if files:
        print(f"\nthe {len(files)} slowest files of tests (side by side, so their sum is more than the time)")
        print("\n".join(f"{seconds:8.1f} s  {name}" for name, seconds in files))
    failed = failures(RESULTS)
    for name, said in failed:
        print(f"\nfailed: {name}\n  {said}")
    print(f"\ntotal {total_s} s" + (f", budget {budget_s} s" if budget_s else ""))
    over = [part for part in parts if part.is_over]
    if over:
        said = ", ".join(f"{part.name} by {part.seconds - (part.budget_s or 0)} s" for part in over)
        print(f"over budget: {said}; whoever adds makes room (docs/CONTRIBUTING.md)")
    document = {
        "sections": [asdict(part) for part in parts],
        "slowest_files": [{"file": name, "seconds": seconds} for name, seconds in files],
        "failures": [{"test": name, "says": said} for name, said in failed],
        "passed": given.passed,
        "failed": given.failed,
        "skipped": given.skipped,
        "total_s": total_s,
        "budget_s": budget_s,
        "over_budget": [part.name for part in over],
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def record() -> int:
    """Writes tests/durations.json from the last run; fails if there was none."""
    found = seconds_by_file(RESULTS)
    # By name only: a moved file keeps its entry.
    python = {Path(name).name: round(seconds) for name, seconds in found.items() if name.endswith(".py")}
    kept = {name: seconds for name, seconds in sorted(python.items()) if seconds >= RECORDED_FROM_S}
    if not kept:
        print(f"ci_report: no tests of Python in {RESULTS}: run make test first", file=sys.stderr)
        return 1
    DURATIONS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


def main() -> int:
    """Reports, or records."""
    parser = argparse.ArgumentParser(description="What a run came to.")
    parser.add_argument("sections", nargs="?")
    for word in ("passed", "failed", "skipped"):
        parser.add_argument(word, type=int, nargs="?", default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "ci.json")
    parser.add_argument("--budget", type=Path, default=ROOT / ".ci" / "budget")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if given.record:
        return record()
    if given.sections is None:
        parser.error("the file of the sections is missing")
    return report(given)


if __name__ == "__main__":
    sys.exit(main())
