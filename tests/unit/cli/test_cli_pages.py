# SPDX-License-Identifier: Apache-2.0
"""A page that can't be written: which code the command ends with, and what it says helps."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from small_campaign import carry_on, take_up

from lagometer.cli import report, run
from lagometer.cli.pages import hindered_report, writing_page
from lagometer.errors import BadInput, CannotStore, Internal, SetupMissing
from lagometer.report import build, page
from lagometer.run import campaign as campaigns
from lagometer.run.campaign import Tally


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished campaign of made-up trials, and a page's bundle."""
    out = tmp_path / "a campaign"
    carry_on(take_up(out))
    bundle = tmp_path / "page.html"
    bundle.write_text(page.PLACEHOLDER)
    monkeypatch.setattr(page, "BUNDLE", bundle)
    monkeypatch.setattr(build, "build_report", lambda _campaign, _readers: None)
    monkeypatch.setattr(page, "script_json", lambda _report: "{}")
    return out


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(content: bytes, path: Path) -> int:
        what = f"No space left on device; {len(content)} bytes were to be written"
        raise OSError(errno.ENOSPC, what, str(path))

    monkeypatch.setattr(page, "write_bytes_atomic", full)


def ended(
    monkeypatch: pytest.MonkeyPatch, directory: Path, tally: dict[str, Any], *, as_json: bool = True
) -> int:
    """Has `lagometer run` end with this tally."""

    class Ended:
        def __init__(self, _assignment: object) -> None:
            self.tally = Tally(dir=str(directory), **tally)

        def carry_out(self) -> None:
            pass

    class Assignment:
        pass

    assignment: Any = Assignment()
    assignment.directory = directory
    monkeypatch.setattr(campaigns, "CampaignRun", Ended)
    return run.carry_out(assignment, report=True, as_json=as_json)


def test_a_report_without_room_is_not_stored_and_says_what_helps(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hindered_report(directory) is None
    assert (directory / page.REPORT_NAME).is_file()
    fill_the_disk(monkeypatch)
    error = hindered_report(directory)
    assert isinstance(error, CannotStore)
    assert str(directory / page.REPORT_NAME) in str(error)
    assert "No space left on device; 2 bytes were to be written" in str(error)
    again = f"lagometer report '{directory}' --out FILE"
    assert f"the results are safe; free some space, or write the page elsewhere: {again}" in str(error)
    with pytest.raises(CannotStore, match=r"lagometer report '.*' --out FILE"):
        report.command(directory)


@pytest.mark.parametrize(
    ("tally", "code"),
    [
        ({"valid": 2}, 5),
        ({"valid": 1, "failed": 1}, 5),
        ({"valid": 1, "interrupted": True}, 130),
        ({}, 0),  # nothing was measured: there is no report
    ],
)
def test_a_run_whose_report_is_not_stored_ends_so(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tally: dict[str, Any],
    code: int,
) -> None:
    fill_the_disk(monkeypatch)
    assert ended(monkeypatch, directory, tally) == code
    output, errors = capsys.readouterr()
    told = json.loads(output)
    assert told["report"] is None
    assert ("No space left" in (told["report_problem"] or "")) == bool(tally)
    assert ("the results are safe" in errors) == bool(tally)


def test_the_table_is_printed_before_the_report_is_said_to_be_missing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_the_disk(monkeypatch)
    monkeypatch.setattr(run, "_print", lambda *_given: print("the table"))
    assert ended(monkeypatch, directory, {"valid": 2}, as_json=False) == 5
    output, errors = capsys.readouterr()
    assert output == "the table\n"
    assert errors.startswith("lagometer: ") and errors.count("\n") == 1


def test_a_missing_bundle_is_said_and_the_run_is_as_good(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, directory, {"valid": 2}) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["report"], told["report_problem"]) == (str(directory / page.REPORT_NAME), None)
    monkeypatch.setattr(page, "BUNDLE", directory / "absent")
    assert ended(monkeypatch, directory, {"valid": 2}) == 0
    assert ended(monkeypatch, directory, {"valid": 2, "failed": 1}) == 3
    assert "make setup" in capsys.readouterr().err
    with pytest.raises(SetupMissing):
        report.command(directory)


def test_a_defect_in_the_report_is_not_hidden(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_campaign: object, _readers: object) -> None:
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr(build, "build_report", broken)
    error = hindered_report(directory)
    assert isinstance(error, Internal)
    assert "ZeroDivisionError: by accident" in str(error)
    assert ended(monkeypatch, directory, {"valid": 2}) == Internal.exit_code


def test_what_can_not_be_written_or_read_has_its_own_code(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a folder"):
        report.command(directory, tmp_path / "absent" / "report.html")
    with pytest.raises(BadInput, match="not a campaign"):
        report.command(tmp_path)
    said = r"x\.html: can't be written: Permission denied .*elsewhere: again"
    with pytest.raises(CannotStore, match=said), writing_page(tmp_path / "x.html", "again"):
        raise PermissionError(errno.EACCES, "Permission denied")
