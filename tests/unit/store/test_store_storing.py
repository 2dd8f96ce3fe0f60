# SPDX-License-Identifier: Apache-2.0
"""The folder of a campaign: nothing is overwritten, nothing is half there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lagometer.agent.isolation import remove_stale_directories, runtime_directory
from lagometer.errors import BadInput, CannotStore
from lagometer.store.storing import Journal, prepare_folder


def test_an_existing_folder_moves_aside(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for number in range(3):
        moved = prepare_folder(out, resume=False)
        assert moved == (tmp_path / f"out.{number}" if number else None)
        (out / "mark").write_text(str(number))
    assert [(tmp_path / name / "mark").read_text() for name in ("out.1", "out.2", "out")] == ["0", "1", "2"]


def test_an_empty_folder_is_used_as_it_is(tmp_path: Path) -> None:
    assert prepare_folder(tmp_path, resume=False) is None
    assert tmp_path.is_dir()


def test_resume_leaves_a_campaign_where_it_is_and_moves_anything_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text("{}")
    assert prepare_folder(out, resume=True) is None
    (out / "manifest.json").rename(out / "something")
    assert prepare_folder(out, resume=True) == tmp_path / "out.1"


def test_the_working_folder_is_not_moved_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    (inner / "file").touch()
    for place in (Path(), inner, tmp_path / "a"):
        with pytest.raises(BadInput, match="is the current folder or contains it"):
            prepare_folder(place, resume=False)
    assert (inner / "file").exists()


def test_a_place_that_cannot_be_made_is_cannot_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStore, match="file"):
        prepare_folder(tmp_path / "file" / "out", resume=False)


def test_the_journal_forgets_a_line_that_a_power_cut_left(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    assert journal.read() == []
    journal.append({"cell": "a", "trial": 0})
    journal.append({"cell": "b→", "trial": 1})
    whole = (tmp_path / "journal.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(whole + b'{"cell": "c", "tri')
    assert [entry["cell"] for entry in journal.read()] == ["a", "b→"]
    assert (tmp_path / "journal.jsonl").read_bytes() == whole


def test_a_damaged_journal_is_said(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b"nonsense\n{}\n")
    with pytest.raises(BadInput, match=r"journal\.jsonl:1: not JSON .* damaged"):
        Journal(tmp_path / "journal.jsonl").read()


def test_a_line_that_is_no_number_is_not_journalled(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        journal.append({"overhead_s": float("nan")})
    assert journal.size() == 0


def test_runtime_directories_of_dead_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / "lagometer-1-0").mkdir()  # process 1 lives
    (tmp_path / "lagometer-999999999-0").mkdir()
    (tmp_path / "lagometer-mine").mkdir()
    assert remove_stale_directories(tmp_path) == [tmp_path / "lagometer-999999999-0"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lagometer-1-0", "lagometer-mine"]


def test_a_process_that_ended_is_dead_though_nobody_asked_how(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert Path(f"/proc/{ended.pid}").exists()
        folder = tmp_path / f"lagometer-{ended.pid}-0"
        folder.mkdir()
        assert remove_stale_directories(tmp_path) == [folder]
    finally:
        ended.wait()


def test_the_hosts_runtime_directory_goes_with_the_trial() -> None:
    with runtime_directory("host", 7) as directory:
        assert Path(directory).is_dir()
        (Path(directory) / "socket").touch()
    assert not Path(directory).exists()
