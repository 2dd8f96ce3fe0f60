# SPDX-License-Identifier: Apache-2.0
"""The table at a glance in the terminal: side by side where there is room, else one after another."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from lagometer.cli.show.findings import mark
from lagometer.cli.show.glance import PER_PAYLOAD, render_glance, times
from lagometer.store.reader import open_campaign
from lagometer.summary.findings.footnotes import footnotes
from lagometer.summary.summarise import summarise
from lagometer.units import duration_text, span_text

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, write_campaign  # noqa: E402


def printed(directory: Path, width: int | None) -> str:
    """What is printed into a terminal of this width, or into a file."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=width is not None, color_system=None)
    summary = summarise(open_campaign(directory))
    render_glance(summary.glance, console, summary.findings)
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


def test_an_interval_stands_beneath_its_figure(tmp_path: Path) -> None:
    shape = Shape(
        adapters=("shm", "cyclonedds"), payloads_bytes=(64,), reliabilities=("best_effort",), trials=7
    )
    directory = write_campaign(tmp_path, shape)
    glance = summarise(open_campaign(directory)).glance
    assert glance is not None
    [figure] = glance.rows[1].figures
    assert figure is not None
    lines = printed(directory, None).splitlines()
    assert "below each figure its 95 % interval" in " ".join(lines[:4])
    [place] = [number for number, line in enumerate(lines) if line.strip().startswith("cyclonedds")]
    ends = {each.figure: (each.low, each.high) for each in figure.intervals}
    for name in ("latency_p50_ns", "cpu_per_message_ns"):
        low, high = ends[name]
        assert low is not None and high is not None and span_text(low, high) in lines[place + 1], name
    low, high = ends["times_floor_p50"]
    assert low is not None and high is not None and f"{times(low)} – {times(high)}" in lines[place + 1]


@pytest.mark.parametrize(
    ("low_ns", "high_ns", "text"),
    [(37_900, 38_640, "37.9 – 38.6 µs"), (940, 1_250, "940 ns – 1.25 µs"), (5, 12, "5 – 12 ns")],
)
def test_a_unit_that_both_ends_share_is_named_once(low_ns: float, high_ns: float, text: str) -> None:
    assert span_text(low_ns, high_ns) == text


@pytest.mark.parametrize("width", [None, 80])
def test_the_footnotes_of_findings_stand_beside_p50(directory: Path, width: int | None) -> None:
    summary = summarise(open_campaign(directory))
    notes = footnotes(summary.findings)
    assert summary.glance is not None and notes
    figures = [each for row in summary.glance.rows for each in row.figures if each is not None]
    text = printed(directory, width)
    assert "a number in brackets is a finding, listed below" in " ".join(text.split())
    beside = [f"{duration_text(each.latency_p50_ns)}{mark(notes.get(each.cell, ()))}" for each in figures]
    assert any("[" in each for each in beside)
    assert [each for each in beside if each not in text] == []
    assert text.count("[") == sum("[" in each for each in beside)
    if width is not None:
        assert max(map(len, text.splitlines())) <= width


def test_many_footnotes_are_cut_short() -> None:
    assert [mark(range(1, count + 1)) for count in (0, 1, 3, 4)] == ["", " [1]", " [1,2,3]", " [1,2,3,…]"]


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
