# SPDX-License-Identifier: Apache-2.0
"""What a test lacks on a machine is a skip, and a failure where LAGOMETER_REQUIRE names it."""

from __future__ import annotations

import re
from pathlib import Path

import needs
import pytest

TESTS = Path(__file__).resolve().parents[2]
CI = needs.ROOT / ".ci" / "run"
# What the proofs of throttling, interference and tuning need may not be absent where a change is judged.
PROOFS = {"root", "realtime", "tuning", "stress-ng", "iperf3"}
Failed, Skipped = pytest.fail.Exception, pytest.skip.Exception


def outcome_of(name: str, required: str, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """How `need` ends a test on a machine without any program."""
    monkeypatch.setenv("LAGOMETER_REQUIRE", required)
    monkeypatch.setenv("PATH", "")
    with pytest.raises((Failed, Skipped)) as caught:
        needs.need(name)
    return caught.value


@pytest.mark.parametrize("name", ["stress-ng", "iperf3", "no-such-program"])
def test_a_program_that_is_required_and_absent_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = outcome_of(name, "netns,another", monkeypatch)
    assert isinstance(skipped, Skipped) and str(skipped) == f"skipped: the program {name}"
    failed = outcome_of(name, f"netns,{name}", monkeypatch)
    assert isinstance(failed, Failed) and str(failed).endswith(f"names {name}, but: the program {name}")


@pytest.mark.parametrize("name", ["netns", "mount", "root", "realtime", "tuning", "rust"])
def test_a_right_that_is_required_and_absent_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    obstacle = "what this machine lacks"
    monkeypatch.setattr(needs, "_RIGHTS", {**needs._RIGHTS, name: lambda: obstacle})
    skipped = outcome_of(name, "another", monkeypatch)
    assert isinstance(skipped, Skipped) and str(skipped) == f"skipped: {obstacle}"
    failed = outcome_of(name, name, monkeypatch)
    assert isinstance(failed, Failed) and obstacle in str(failed)


def test_without_root_nothing_can_be_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert str(outcome_of("root", "", monkeypatch)) == "skipped: root"
    assert str(outcome_of("tuning", "", monkeypatch)) == "skipped: root"


def required_in_ci() -> set[str]:
    """The names in `.ci/run`."""
    return {
        name
        for line in re.findall(r"^required\+?=(.*)$", CI.read_text(encoding="utf-8"), re.MULTILINE)
        for name in line.strip(",").split(",")
    }


def test_ci_requires_what_proofs_need() -> None:
    assert required_in_ci() >= PROOFS


def test_ci_requires_nothing_that_no_test_needs() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py"))
    asked = set(re.findall(r"(?:need|require)\(\s*\"([a-z0-9+-]+)\"", sources))
    # The generator of a kind of load is chosen by its name.
    asked |= {*needs.MIDDLEWARE, *needs.IN_PYTHON, *re.findall(r'need\("([a-z0-9-]+)" if', sources)}
    assert required_in_ci() <= asked | {"chromium"}


def test_no_test_skips_by_itself() -> None:
    """But through needs.py, so that a skip can be made red."""
    skip = re.compile(r"pytest\.skip\(|mark\.skip|importorskip")
    others = [path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)]
    skipping = [
        str(path.relative_to(TESTS)) for path in others if skip.search(path.read_text(encoding="utf-8"))
    ]
    assert skipping == ["needs.py"]
