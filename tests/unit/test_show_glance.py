# SPDX-License-Identifier: Apache-2.0
"""The table at a glance in the terminal: side by side where there is room, else one after another."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from lagometer.cli.show_glance import PER_PAYLOAD, render_glance, times
from lagometer.store.reader import open_campaign

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
from synthetic_campaign import Shape, write_campaign  # noqa: E402


def printed(directory: Path, width: int | None) -> str:
    """What is printed into a terminal of this width, or into a file."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=width is not None, color_system=None)
    render_glance(open_campaign(directory), console)
    return text.getvalue()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(adapters=("shm", "cyclonedds"), payloads_bytes=(64, 65536), messages=1200)
    made: Path = write_campaign(tmp_path_factory.mktemp("campaign"), shape)
    return made


def test_a_file_gets_one_table(directory: Path) -> None:
    text = printed(directory, None)
    assert text.count("cyclonedds") == 2, "once per reliability"
    assert text.count("× floor") == 2 * PER_PAYLOAD.count("× floor")
    assert "1.00" in text


def test_a_narrow_terminal_gets_a_table_per_payload(directory: Path) -> None:
    text = printed(directory, 110)
    assert text.count("cyclonedds") == 4
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (1.0, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (74.6, "74.6"),
        (99.96, "100"),
        (1234.5, "1234"),
    ],
)
def test_multiples_have_three_figures(value: float | None, text: str) -> None:
    assert times(value) == text
