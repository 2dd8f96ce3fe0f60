# SPDX-License-Identifier: Apache-2.0
"""`.ci/run` and its report: every section is carried out and counted, and what was slow is named."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needs import ROOT

SETUP = """#!/bin/sh
[ "${BREAK-}" != set-up ] || { echo broken; exit 1; }
mkdir -p .venv/bin build/release/adapters/oxide
ln -sf "$INTERPRETER" .venv/bin/python
printf '#!/bin/sh\\nmkdir -p out/tiny; echo page >out/tiny/report.html\\n' >.venv/bin/lagometer
chmod +x .venv/bin/lagometer
[ "${BREAK-}" = rust ] || : >build/release/adapters/oxide/liblagometer_oxide.so
"""
MAKE = """#!/bin/sh
echo "make $* LAGOMETER_TIDY=${LAGOMETER_TIDY-}" >>made
case $1,${BREAK-} in
    lint,lint) exit 1 ;;
    test,tests) echo '7 passed, 2 failed, 1 skipped'; exit 1 ;;
    test,counts) echo 'killed'; exit 0 ;;
    test,code) echo '9 passed, 0 failed, 1 skipped'; exit 1 ;;
    test,*) echo '9 passed, 0 failed, 1 skipped' ;;
esac
"""
STEPS = """#!/bin/sh
[ "${BREAK-}" != study ] || exit 1
shift 2
"$@"
"""
JUNIT = {
    "pytest-side-by-side": [("tests.unit.test_a", "test_x[1]", 3.0), ("tests.unit.test_a.TestB", "y", 4.0)],
    "pytest-alone": [("tests.unit.test_a", "test_z", 1.0), ("tests.web.test_c", "test_z", 0.5)],
    "ctest-guard": [("", "Recorder.Keeps", 2.0), ("", "Recorder.Grows", 0.25)],
    "vitest": [("src/table.test.ts", "sorts", 0.125)],
}
SECTIONS = ["set-up", "adapters in Rust", "lint", "tests", "tiny study"]


def write_junit(folder: Path) -> None:
    folder.mkdir(parents=True)
    for runner, cases in JUNIT.items():
        text = "".join(f'<testcase classname="{a}" name="{b}" time="{c}"/>' for a, b, c in cases)
        (folder / f"{runner}.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    (folder / "broken.xml").write_text("<testsuites>")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of .ci/run alone, in which all that it calls is a stand-in."""
    for folder in (".ci", "tools", "programs", "adapters/oxide"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (".ci/run", ".ci/budget", "tools/ci_report.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("adapter.json", "Cargo.toml"):
        (tmp_path / "adapters" / "oxide" / name).write_text("{}")
    for name, text in (("tools/setup", SETUP), ("tools/fresh_steps", STEPS), ("programs/make", MAKE)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(tree: Path, broken: str, python: bool = True) -> tuple[int, list[str]]:
    """Exit code and output of .ci/run with a section broken. python: whether the machine has one."""
    programs = tree / "programs"
    if not python:
        (programs / "python3").write_text("#!/bin/sh\nexit 127\n")
        (programs / "python3").chmod(0o755)
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "BREAK": broken, "INTERPRETER": sys.executable}
    done = subprocess.run(
        [str(tree / ".ci" / "run")], env=environment, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout.splitlines()


def ci_json(tree: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tree / "out" / "ci.json").read_text())
    return found


def test_a_run_in_which_all_is_well(tree: Path) -> None:
    code, lines = run(tree, "nothing")
    assert (code, lines[-1]) == (0, "13 passed, 0 failed, 1 skipped"), lines
    told = ci_json(tree)
    assert [part["name"] for part in told["sections"]] == SECTIONS
    assert {part["verdict"] for part in told["sections"]} == {"ok"}
    assert (told["passed"], told["failed"], told["skipped"]) == (13, 0, 1)
    made = (tree / "made").read_text().splitlines()
    assert made == ["make lint LAGOMETER_TIDY=changed", "make test LAGOMETER_TIDY="]


@pytest.mark.parametrize(
    ("broken", "summary", "section"),
    [
        ("rust", "12 passed, 1 failed, 1 skipped", "adapters in Rust"),
        ("lint", "12 passed, 1 failed, 1 skipped", "lint"),
        ("tests", "11 passed, 2 failed, 1 skipped", "tests"),
        ("code", "13 passed, 1 failed, 1 skipped", "tests"),  # it fails, although no test of it did
        ("study", "12 passed, 1 failed, 1 skipped", "tiny study"),
    ],
)
def test_one_broken_section_fails_the_run_and_stops_no_other(
    tree: Path, broken: str, summary: str, section: str
) -> None:
    code, lines = run(tree, broken)
    assert (code, lines[-1]) == (1, summary), lines
    verdicts = {part["name"]: part["verdict"] for part in ci_json(tree)["sections"]}
    assert list(verdicts) == SECTIONS
    assert [name for name, verdict in verdicts.items() if verdict != "ok"] == [section]


def test_tests_that_print_no_sum_are_a_failure(tree: Path) -> None:
    code, lines = run(tree, "counts")
    assert (code, lines[-1]) == (1, "4 passed, 1 failed, 0 skipped"), lines


@pytest.mark.parametrize("python", [True, False])
def test_a_set_up_that_breaks_off_is_counted_with_and_without_a_python(tree: Path, python: bool) -> None:
    """Neither the adapters nor the study can be there then; without a Python the report fails, too."""
    code, lines = run(tree, "set-up", python)
    assert (code, lines[-1]) == (1, f"10 passed, {3 if python else 4} failed, 1 skipped"), lines
    assert any(line.startswith("set-up") and "FAILED" in line for line in lines)
    assert (tree / "out" / "ci.json").exists() == python


NIGHTLY_MAKE = """#!/bin/sh
echo "make $* LAGOMETER_LONG=${LAGOMETER_LONG-}" >>made
echo "${LAGOMETER_REQUIRE-}" >>required
[ "$1" != kills ] || { echo 'two were lost'; exit 1; }
"""


def nightly(tree: Path, *names: str, **variables: str) -> tuple[int, list[str]]:
    """Exit code and output of tools/nightly, in which kills fail."""
    shutil.copy(ROOT / "tools" / "nightly", tree / "tools")
    (tree / "programs" / "make").write_text(NIGHTLY_MAKE)
    environment = {"PATH": f"{tree / 'programs'}:/usr/bin:/bin", "INTERPRETER": sys.executable, **variables}
    command = [str(tree / "tools" / "nightly"), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_night_goes_on_after_a_failure_and_names_it(tree: Path) -> None:
    code, lines = nightly(tree)
    assert (code, lines[-1]) == (1, "nightly: FAILED: kills; their logs are in out/nightly/"), lines
    assert "two were lost" in lines
    told = json.loads((tree / "out" / "nightly.json").read_text())
    verdicts = {part["name"]: part["verdict"] for part in told["sections"]}
    assert [name for name, verdict in verdicts.items() if verdict != "ok"] == ["kills"]
    assert list(verdicts)[-4:] == ["asan", "ubsan", "tsan", "fresh"]
    assert (told["passed"], told["failed"]) == (len(verdicts) - 1, 1)
    assert "make test LAGOMETER_LONG=1" in (tree / "made").read_text().splitlines()


def test_a_night_of_chosen_parts(tree: Path) -> None:
    code, lines = nightly(tree, "asan", "fidelity")
    assert (code, lines[-1]) == (0, "nightly: PASS"), lines
    made = (tree / "made").read_text().splitlines()
    assert made == ["make asan LAGOMETER_LONG=", "make fidelity LAGOMETER_LONG="]
    code, lines = nightly(tree, "asan", "sleep")
    assert code == 2 and "unknown part 'sleep'" in lines[0]


# Targets of the Makefile that check nothing.
NO_CHECKS = {"help", "setup", "bench", "nightly", "lock", "clean"}


def test_a_night_has_every_check_that_can_be_made_and_no_other(tree: Path) -> None:
    nightly(tree)
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = [line.partition(":")[0] for line in text.splitlines() if " ## " in line]
    targets = {word for words in listed for word in words.split()}
    assert targets > NO_CHECKS
    assert {line.split()[1] for line in (tree / "made").read_text().splitlines()} == targets - NO_CHECKS


def test_what_crosses_a_network_is_tested_by_one_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^network_tests := (.*)$", text, re.MULTILINE)
    assert found is not None and "$(network_tests:%=tests/integration/campaign/test_%.py)" in text
    folder, names = ROOT / "tests" / "integration" / "campaign", set(found[1].split())
    assert {name for name in names if not (folder / f"test_{name}.py").is_file()} == set()
    of_networks = {
        path.stem.removeprefix("test_")
        for word in ("host", "bridge", "security", "capture", "device")
        for path in folder.glob(f"test_*{word}*.py")
    }
    assert of_networks <= names


def test_a_night_requires_what_a_landing_requires(tree: Path) -> None:
    """Otherwise a middleware that was not built would only be skipped."""
    nightly(tree, "asan")
    nightly(tree, "asan", LAGOMETER_REQUIRE="netns")
    nightly(tree, "asan", LAGOMETER_REQUIRE="")
    [required, less, nothing] = (tree / "required").read_text().splitlines()
    assert {"netns", "rust", "dust_dds", "fastdds", "tun"} <= set(required.split(","))
    assert (less, nothing) == ("netns", "")


def report(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "tools" / "ci_report.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_what_is_over_its_budget_is_named_and_the_slowest_files_come_first(tree: Path) -> None:
    write_junit(tree / "build" / "test-results")
    (tree / ".ci" / "budget").write_text("# seconds  section\n100  lint\n20   tiny study\n")
    (tree / "sections").write_text("lint\tok\t100\ntests\tFAILED\t7\ntiny study\tok\t23\n")
    done = report(tree, str(tree / "sections"), "1", "2", "3")
    assert done.returncode == 0, done.stderr
    assert "over budget: tiny study by 3 s; whoever adds makes room (docs/CONTRIBUTING.md)" in done.stdout
    told = ci_json(tree)
    assert told["over_budget"] == ["tiny study"]
    assert (told["total_s"], told["budget_s"]) == (130, 120)
    assert [(each["file"], each["seconds"]) for each in told["slowest_files"]] == [
        ("tests/unit/test_a.py", 8.0),
        ("guard: Recorder", 2.2),
        ("tests/web/test_c.py", 0.5),
        ("src/table.test.ts", 0.1),
    ]


def test_the_25_slowest_files_are_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [(f"tests.unit.test_{number}", "test_x", float(number)) for number in range(30)]
    monkeypatch.setattr(sys.modules[__name__], "JUNIT", {"pytest-side-by-side": files})
    write_junit(tree / "build" / "test-results")
    (tree / "sections").write_text("tests\tok\t7\n")
    assert report(tree, str(tree / "sections"), "1", "0", "0").returncode == 0
    slowest = [each["seconds"] for each in ci_json(tree)["slowest_files"]]
    assert slowest == [float(number) for number in range(29, 4, -1)]


def test_a_failed_test_is_named_with_what_it_says(tree: Path) -> None:
    folder = tree / "build" / "test-results"
    folder.mkdir(parents=True)
    cases = {
        "test_x[1]": '<failure message="[1/2] missed\n  its rate"/>',
        "test_y": "<error>a fixture broke</error>",
        "test_z": '<skipped message="not built"/>',
    }
    text = "".join(
        f'<testcase classname="tests.unit.test_a" name="{name}">{outcome}</testcase>'
        for name, outcome in cases.items()
    )
    (folder / "pytest-alone.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    (tree / "sections").write_text("tests\tFAILED\t7\n")
    done = report(tree, str(tree / "sections"), "0", "2", "1")
    assert done.returncode == 0, done.stderr
    names = [f"tests/unit/test_a.py::{name}" for name in ("test_x[1]", "test_y")]
    reasons = ["[1/2] missed its rate", "a fixture broke"]
    assert ci_json(tree)["failures"] == [
        {"test": name, "says": said} for name, said in zip(names, reasons, strict=True)
    ]
    for name, said in zip(names, reasons, strict=True):
        assert f"failed: {name}\n  {said}\n" in done.stdout


def test_durations_are_recorded_for_what_takes_long(tree: Path) -> None:
    assert report(tree, "--record").returncode == 1
    write_junit(tree / "build" / "test-results")
    (tree / "tests").mkdir()
    assert report(tree, "--record").returncode == 0
    assert json.loads((tree / "tests" / "durations.json").read_text()) == {"test_a.py": 8}


def test_the_budget_is_of_45_minutes_and_names_sections_that_there_are() -> None:
    rows = [line.split(maxsplit=1) for line in (ROOT / ".ci" / "budget").read_text().splitlines()]
    budget = {name: int(seconds) for seconds, name in rows if seconds != "#"}
    assert list(budget) == SECTIONS
    assert sum(budget.values()) <= 45 * 60
