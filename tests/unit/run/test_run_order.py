# SPDX-License-Identifier: Apache-2.0
"""The order of trials, progress on closed streams, signals as questions."""

from __future__ import annotations

import io
import os
import select
import signal
from pathlib import Path

import pytest
from study_adapters import write_adapters

from lagometer.errors import Interrupted
from lagometer.run.interruption import Interruption
from lagometer.run.order import trial_order
from lagometer.run.progress import CampaignProgress
from lagometer.study import Cell, expand, study_from_mapping


@pytest.fixture
def cells(tmp_path: Path) -> tuple[Cell, ...]:
    matrix = {"adapter": ["shm", "fastdds"], "workload": "pipeline-2", "payload": ["64B", "1KB", "4KB"]}
    return expand(study_from_mapping({"name": "x", "matrix": matrix}, "test"), write_adapters(tmp_path)).cells


def test_each_block_holds_every_cell_once(cells: tuple[Cell, ...]) -> None:
    order = trial_order(cells, trials=5, seed=1)
    blocks = [order[begin : begin + len(cells)] for begin in range(0, len(order), len(cells))]
    assert len(blocks) == 5
    for trial, block in enumerate(blocks):
        assert {number for _, number in block} == {trial}
        assert sorted(cell.id for cell, _ in block) == sorted(cell.id for cell in cells)
    assert len({tuple(cell.id for cell, _ in block) for block in blocks}) > 1


def test_the_seed_alone_decides(cells: tuple[Cell, ...]) -> None:
    assert trial_order(cells, 3, 7) == trial_order(cells, 3, 7)
    assert trial_order(cells, 3, 7) != trial_order(cells, 3, 8)


def test_progress_is_a_plain_line_for_each_trial() -> None:
    stream = io.StringIO()
    with CampaignProgress(2, 1.0, stream).shown() as progress:
        progress.begin("a/b", 0)
        progress.end("a/b", 0, True, [], 2.0)
        progress.end("a/[c]", 1, False, ["worker-died: sink"], 2.0)
    assert stream.getvalue().splitlines() == [
        "[1/2] a/b #0 valid, 0:00:02 left",
        "[2/2] a/[c] #1 failed (worker-died: sink), 0:00:00 left",
    ]


def test_progress_outlives_its_reader() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        with CampaignProgress(1, 1.0, stream).shown() as progress:
            progress.note("hello")
            progress.end("a", 0, True, [], 1.0)
        assert progress is not None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_asked_for_and_the_second_is_final(number: signal.Signals) -> None:
    inherited = signal.signal(number, signal.SIG_DFL)  # in a shell's background SIGINT is ignored
    with Interruption() as interruption:
        interruption.check()
        signal.raise_signal(number)
        assert select.select([interruption.descriptor()], [], [], 5)[0]
        with pytest.raises(Interrupted, match=number.name):
            interruption.check()
        assert signal.getsignal(number) is signal.SIG_DFL
    assert signal.signal(number, inherited) is signal.SIG_DFL
