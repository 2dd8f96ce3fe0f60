# SPDX-License-Identifier: Apache-2.0
"""What `lagometer plan` says of a study: how many trials, and which control."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from study_adapters import write_adapters

from lagometer.cli import plan

PARTS = """
name: sizes
matrix: {adapter: [shm, fastdds], workload: pipeline-2}
parts:
  small: {trials: 6, matrix: {payload: 64B}}
  large: {trials: 30, matrix: {payload: 4MB, rate: 10Hz}}
"""


@pytest.fixture(autouse=True)
def adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_adapters(tmp_path / "adapters")
    monkeypatch.setenv("LAGOMETER_ADAPTER_PATH", str(tmp_path / "adapters"))
    monkeypatch.chdir(tmp_path)


def planned(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str], **options: Any
) -> tuple[str, dict[str, Any]]:
    """The plan as text and as JSON."""
    path = folder / "study.yaml"
    path.write_text(text)
    plan.command(path, **options)
    printed = capsys.readouterr().out
    plan.command(path, json=True, **options)
    return printed, json.loads(capsys.readouterr().out)


def test_trials_are_those_of_the_cells_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not of the study around the parts, which has one trial."""
    printed, told = planned(tmp_path, PARTS, capsys)
    assert "sizes: 4 cells, 6 to 30 trials each, about" in printed
    assert (told["trials"], told["trials_max"]) == (6, 30)
    printed, told = planned(tmp_path, PARTS, capsys, select=["small/*"])
    assert "sizes: 2 cells, 6 trials each, about" in printed
    assert (told["trials"], told["trials_max"]) == (6, 6)
    printed, told = planned(tmp_path, PARTS, capsys, select=["nothing"])
    assert "sizes: 0 cells, 1 trial each" in printed and told["trials"] == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("", "1 trial each, about"),
        ("trials: 3", "3 trials each, about"),
        ("trials_valid: 5", "5 to 15 trials each, about"),
        ("precision: 5%", "6 to 60 trials each, "),
    ],
)
def test_trials_of_a_study_without_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: str, said: str
) -> None:
    text = f"name: x\nmatrix: {{adapter: shm, workload: pipeline-2}}\n{keys}\n"
    assert f"x: 1 cells, {said}" in planned(tmp_path, text, capsys)[0]


CONTROLLED = "name: x\nmatrix: {{adapter: shm, workload: pipeline-2}}\ncontrol: {control}\n"


def test_a_control_that_can_not_run_is_named_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    control = "{adapter: udp, workload: pingpong, reliability: reliable}"
    printed, told = planned(tmp_path, CONTROLLED.format(control=control), capsys)
    reason = "udp does not offer reliability 'reliable' (it offers: best_effort)"
    assert f"\nno control, udp/pingpong/reliable can't run here: {reason}\n" in printed
    assert told["control"] == {"cell": "udp/pingpong/reliable", "excluded": reason}


@pytest.mark.parametrize(
    ("control", "told_of"), [("none", None), ("floor", {"cell": "shm/pingpong", "excluded": None})]
)
def test_any_other_control_is_in_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], control: str, told_of: dict[str, Any] | None
) -> None:
    printed, told = planned(tmp_path, CONTROLLED.format(control=control), capsys)
    assert "control" not in printed and told["control"] == told_of
