# SPDX-License-Identifier: Apache-2.0
"""The tool that runs every pair of middleware that may meet says what works, and why what does not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from needs import ROOT, need

from lagometer.conformance.interoperability import FAILS, WORKS, Pair, Party

KIND = "Imu"


def the_tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "interoperability.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def environment(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs and adapters of this build."""
    monkeypatch.setenv("LAGOMETER_WORKER", str(build / "engine" / "lagometer-worker"))
    monkeypatch.setenv("LAGOMETER_SUPERVISOR", str(build / "engine" / "lagometer-supervisor"))
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(build / "adapters"))


def test_those_that_understand_each_other_work(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("netns")
    parties = [Party("cyclonedds"), Party("fastdds")]
    for party in parties:
        need(party.adapter)
    environment(build, monkeypatch)
    verdicts, versions = the_tool().run(parties, [KIND], tmp_path)
    names = [party.name for party in parties]
    assert set(verdicts) == {Pair(one, other, KIND) for one in names for other in names}
    assert {verdict.verdict for verdict in verdicts.values()} == {WORKS}, verdicts
    assert set(versions) == set(names)


def test_those_that_do_not_fail_with_what_came_of_it(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ways of one adapter that have no transport in common stand for any two that do not talk."""
    need("netns")
    need("fastdds")
    environment(build, monkeypatch)
    by_memory, by_tcp = Party("fastdds", {"transport": "shm"}), Party("fastdds", {"transport": "tcp"})
    verdicts, _ = the_tool().run([by_memory, by_tcp], [KIND], tmp_path)
    for party in (by_memory, by_tcp):
        assert verdicts[Pair(party.name, party.name, KIND)].verdict == WORKS, verdicts
    for one, other in ((by_memory, by_tcp), (by_tcp, by_memory)):
        verdict = verdicts[Pair(one.name, other.name, KIND)]
        assert verdict.verdict == FAILS
        assert verdict.why.startswith("endpoints-missing"), verdict
