# SPDX-License-Identifier: Apache-2.0
"""The file that a benchmark leaves: it names the commit that was measured, as it was at the start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import results


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    done = subprocess.run(["git", "-C", str(root), *identity, *arguments], capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "One")
    return tmp_path


def test_a_commit_is_named_whole_and_changes_are_said(checkout: Path, tmp_path: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert results.commit(checkout) == head
    (checkout / "new").write_text("not known to git")
    assert results.commit(checkout) == f"{head}-dirty"
    (checkout / "new").unlink()
    (checkout / "file").write_text("two")
    assert results.commit(checkout) == f"{head}-dirty"


def test_outside_of_a_checkout_there_is_none(tmp_path: Path) -> None:
    assert results.commit(tmp_path) is None


def test_the_commit_is_that_of_the_start(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "ROOT", checkout)
    monkeypatch.setattr(results, "COMMIT_MEASURED", results.commit(checkout))
    began = git(checkout, "rev-parse", "HEAD")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Two")
    written = results.write_result("some", True, [{"a": 1}], smoke=True)
    document = json.loads(written.read_text())
    assert document["commit"] == began
    assert (document["pass"], document["rows"], document["smoke"]) == (True, [{"a": 1}], True)
