# SPDX-License-Identifier: Apache-2.0
"""What `make alarms` calls a false alarm: a kind of finding in a cell of which it is not known to be true."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lagometer.study import discover_adapters, expand, load_study
from lagometer.summary.data import Finding

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import alarms


def finding(kind: str, cell: str, what: str = "w") -> Finding:
    return Finding(
        footnote=1,
        cell=cell,
        kind=kind,
        trials=1,
        of_trials=1,
        what=what,
        number="7 of 8",
        fix="f",
        source="s",
    )


@pytest.mark.parametrize(
    ("kind", "cell", "what", "sort"),
    [
        ("best-effort-over-udp", "fastdds/64B/default", "w", alarms.TRUE),
        ("best-effort-over-udp", "cyclonedds/64B/default", "w", alarms.ALARM),
        ("message-exceeds-receive-buffer", "udp/1MB/default", "w", alarms.TRUE),
        ("message-exceeds-receive-buffer", "udp/64B/default", "w", alarms.ALARM),
        ("hypervisor-stole-time", "shm/64B/default", "w", alarms.MACHINE),
        ("rate-beyond-the-sender", "shm/64B/default", "the call took too long", alarms.ALARM),
        (
            "rate-beyond-the-sender",
            "shm/64B/default",
            "its thread did not get to run in time",
            alarms.MACHINE,
        ),
        ("lost-in-a-queue", "ecal-py/64B/default", "w", alarms.TRUE),
        ("lost-in-a-queue", "iceoryx/64B/default", "w", alarms.ALARM),
        ("taken-twice", "shm/1MB/default", "w", alarms.ALARM),
    ],
)
def test_a_finding_is_of_a_sort(kind: str, cell: str, what: str, sort: str) -> None:
    found, reason = alarms.sort_of(finding(kind, cell, what))
    assert found == sort and reason


@pytest.mark.parametrize(("kind", "code"), [("best-effort-over-udp", 0), ("out-of-order", 1)])
def test_one_false_alarm_is_a_failure(
    kind: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(study: object, out: Path) -> dict[str, Any]:
        found = [finding(kind, "fastdds/64B/default"), finding("too-hot", "shm/64B/default")]
        counts = {"cells": 2, "adapters": ["fastdds", "shm"], "not_here": [], "valid": 2}
        return {"findings": found, **counts, "trials": 2, "preempted": 1}

    monkeypatch.setattr(alarms, "measured", measured)
    monkeypatch.setenv("LAGOMETER_BENCHMARKS_OUT", str(tmp_path))
    assert alarms.main(["--smoke"]) == code
    printed = capsys.readouterr().out
    assert f"{code} false alarms in 2 cells" in printed and kind in printed and "of the machine: 1" in printed
    told = json.loads((tmp_path / "alarms.json").read_text())
    assert (told["pass"], told["alarms"]) == (code == 0, code)


def test_the_short_form_is_the_racks_smallest_payload() -> None:
    rack = load_study(alarms.RACK)
    short = alarms.shortened(rack)
    assert short.matrix["payload"] == (64,) and 64 in rack.matrix["payload"]
    assert short.matrix["profile"] == ("default",)
    assert short.matrix["adapter"] == rack.matrix["adapter"]
    assert short.duration_ns < rack.duration_ns
    expansion = expand(short, discover_adapters())  # refuses a pattern that excludes nothing
    assert all("/64B/" in each.cell for each in expansion.excluded)
