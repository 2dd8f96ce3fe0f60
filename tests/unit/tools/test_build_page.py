# SPDX-License-Identifier: Apache-2.0
"""The page of an installation: taken from a source distribution as it is, built from a checkout's sources."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = Path("lagometer") / "report" / "bundle" / "page.html"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """What a source distribution has of it, without web/, so that nothing can be built."""
    folder = tmp_path / "sources"
    (folder / PAGE).parent.mkdir(parents=True)
    (folder / PAGE).write_text("the page")
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "build_page.py", folder / "tools")
    return folder


def built(sources: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(sources / "tools" / "build_page.py"), str(into)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_source_distribution_has_the_page_ready(sources: Path, tmp_path: Path) -> None:
    done = built(sources, tmp_path / "build")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "build" / PAGE).read_text() == "the page"


def test_a_page_in_a_checkout_is_only_used_if_none_can_be_built(sources: Path, tmp_path: Path) -> None:
    (sources / ".git").mkdir()
    done = built(sources, tmp_path / "build")
    assert done.returncode == 0
    assert "the report's page could not be built" in done.stderr
    (sources / PAGE).unlink()
    assert built(sources, tmp_path / "build").returncode == 1


def test_a_source_distribution_includes_the_page() -> None:
    """git ignores the page, and what git ignores is left out unless it is named."""
    assert f'sdist.include = ["{PAGE.as_posix()}"]' in (ROOT / "pyproject.toml").read_text()
