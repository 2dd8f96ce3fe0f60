# SPDX-License-Identifier: Apache-2.0
"""The table in the terminal, from a synthetic campaign: figures, failures, exclusions, widths."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from lagometer.cli.show import command as show
from lagometer.errors import BadInput
from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.store import format as form
from lagometer.units import duration_text, signed_duration_text
from tests.fixtures.small_trial import pipeline

GOOD, BAD = "udp/pipeline-3/64B", "udp/pipeline-3/1MB"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("show")
    frames = []
    for cell, lost in ((BAD, ()), (GOOD, (7,))):
        trial, _, _ = pipeline(50, lost=lost)
        reasons = ("worker-died: sink, signal 9",) if cell == BAD else ()
        facts = trial.facts({0}, {"sink"}, cell=cell, reasons=reasons, period_ns=20_000)
        frames.append(summarise(samples(trial.lanes(), facts), facts))
    form.write_cells(pl.concat(frames), folder / form.CELLS)
    manifest = {
        "format_version": 1,
        "name": "shown",
        "state": "finished",
        "cells": [{"id": GOOD}, {"id": BAD}],
        "excluded": [{"cell": "null/x", "reason": "null [for] one process"}],
    }
    form.write_json_atomic(manifest, folder / form.MANIFEST)
    return folder


def shown(campaign: Path, **options: str | int | bool | None) -> str:
    width = int(options.pop("width", 200) or 0)
    terminal = bool(options.pop("terminal", False))
    console = Console(width=width, force_terminal=terminal, no_color=True, record=True, highlight=False)
    with console.capture() as captured:
        show.render(campaign, console, **options)  # type: ignore[arg-type]
    return re.sub(r"\x1b\[[0-9;]*m", "", captured.get())


@pytest.mark.parametrize("width", [200, 60])
def test_messages_that_nobody_was_there_to_pass_on_stand_beside_the_lost(
    campaign: Path, tmp_path: Path, width: int
) -> None:
    assert "unreachable" not in shown(campaign, width=width, terminal=True)
    copy = shutil.copytree(campaign, tmp_path / "copy")
    cells = pl.read_parquet(copy / form.CELLS)
    whole = pl.when(pl.col("edge") == form.END_TO_END).then(pl.lit(31, dtype=pl.Int64)).otherwise(0)
    form.write_cells(cells.with_columns(unreachable=whole), copy / form.CELLS)
    text = shown(copy, width=width, terminal=True)
    assert re.search(rf"{GOOD} +49 +1 +31 +9|lost 1 +unreachable 31 ", text), text


def test_the_table_has_figures_reasons_and_exclusions(campaign: Path) -> None:
    text = shown(campaign)
    assert re.search(rf"{GOOD} +49 +1 +9\.0[23] µs +102 ns +- +- +9\.05 µs +100 ns +50 kHz", text)
    assert f"{BAD} #0\n      worker-died: sink, signal 9" in text
    assert "lost (1 trial)" in text
    assert "\n  null [for] one process\n      null/x\n" in text


def test_a_failed_trial_shows_no_figures(campaign: Path) -> None:
    assert not re.search(rf"{BAD} +\d+ ", shown(campaign))


def test_a_file_gets_the_whole_table_and_a_narrow_terminal_gets_it_cell_by_cell(campaign: Path) -> None:
    assert shown(campaign, width=40).count(f" {GOOD} ") == 1
    narrow = shown(campaign, width=48, terminal=True).splitlines()
    assert max(map(len, narrow)) <= 48
    assert any("p50 9.0" in line.replace("\u00a0", " ") for line in narrow)
    assert any("CPU/msg 102 ns" in line.replace("\u00a0", " ") for line in narrow)


def test_edges_and_cells_are_chosen_by_glob(campaign: Path) -> None:
    assert "source→relay" in shown(campaign, edge="*")
    assert "end-to-end" not in shown(campaign, edge="*relay*")
    assert BAD not in shown(campaign, cell="*/64B")
    with pytest.raises(BadInput, match="no edge matches 'x'"):
        shown(campaign, edge="x")


def test_json_says_the_same(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show.command(campaign, json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["failed"], len(found["rows"]), len(found["excluded"])) == (1, 1, 2, 1)
    assert found["rows"][0]["cell"] == GOOD  # the study's order, not the order in which they ran


def test_no_campaign_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a campaign"):
        show.render(tmp_path, Console())


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (48_210, "48.2 µs"),
        (999_400, "999 µs"),
        (999_700, "1.00 ms"),
        (1_053_000, "1.05 ms"),
        (2_000_000_000, "2.00 s"),
        (-1_500, "-1.50 µs"),
    ],
)
def test_durations_have_three_figures(value_ns: float | None, text: str) -> None:
    assert duration_text(value_ns) == text


@pytest.mark.parametrize(("value_ns", "text"), [(62_000, "+62.0 µs"), (-1_500, "-1.50 µs"), (0, "0 ns")])
def test_a_change_of_a_clock_has_its_sign(value_ns: float, text: str) -> None:
    assert signed_duration_text(value_ns) == text
