# SPDX-License-Identifier: Apache-2.0
"""What a trial warns of that its workers say of themselves: an adapter that was built to be tested alone."""

from __future__ import annotations

from needs import ROOT

from lagometer.run.facts import builds_for_tests
from lagometer.run.worker.messages import AdapterInUse, Ready
from lagometer.run.worker.outcome import WorkerOutcome
from lagometer.study.adapters import NOT_FOR_MEASURING

FOR_TESTS = f"1.10.2 (opt-level 1{NOT_FOR_MEASURING}"


def worker(index: int, *adapters: AdapterInUse) -> WorkerOutcome:
    return WorkerOutcome(index, str(index), Ready(event="ready", adapters=list(adapters)), None, None, "")


def test_an_adapter_that_is_built_for_tests_is_warned_of_once() -> None:
    oxide = AdapterInUse(name="oxide", library_version=FOR_TESTS)
    other = AdapterInUse(name="other", library_version="1.10.2")
    old = AdapterInUse(name="old")
    lost = WorkerOutcome(3, "3", None, None, None, "")
    warned = builds_for_tests([worker(0, oxide, other), worker(1, oxide), worker(2, old), lost])
    assert warned == [f"build: oxide {FOR_TESTS}; to measure: tools/setup --rust"]


def test_the_build_script_writes_what_is_looked_for() -> None:
    script = (ROOT / "adapters" / "rust" / "build_script.rs").read_text(encoding="utf-8")
    assert f'" (opt-level {{}}{NOT_FOR_MEASURING}"' in script
