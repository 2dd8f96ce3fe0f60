# SPDX-License-Identifier: Apache-2.0
"""The answer first: the fastest middleware of each payload, and a terminal of 80 columns."""

from __future__ import annotations

import io
import re
from pathlib import Path

import polars as pl
import pytest

from lagometer.cli import common
from lagometer.cli.show import command as show
from lagometer.store.reader import open_campaign
from lagometer.summary.answer import answers
from lagometer.summary.data import Fastest
from lagometer.summary.summarise import summarise
from tests.fixtures import synthetic_campaign

DDS = "cyclonedds/pipeline-3/64B/500Hz/best_effort/process-per-node"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = synthetic_campaign.Shape(
        adapters=("shm", "udp", "cyclonedds", "fastdds"),
        payloads_bytes=(64, 16384),
        reliabilities=("best_effort",),
        trials=7,
        messages=200,
        control_blocks=2,
        machine_floor=True,
    )
    made: Path = synthetic_campaign.write_campaign(tmp_path_factory.mktemp("answer") / "c", shape)
    return made


def fastest(directory: Path) -> list[Fastest]:
    return summarise(open_campaign(directory)).fastest


def edited(directory: Path, folder: Path, *columns: pl.Expr) -> Path:
    """The campaign without its samples, with other columns."""
    folder.mkdir()
    for name in ("manifest.json", "environment.json", "journal.jsonl"):
        (folder / name).write_bytes((directory / name).read_bytes())
    pl.read_parquet(directory / "cells.parquet").with_columns(*columns).write_parquet(
        folder / "cells.parquet"
    )
    return folder


def test_the_fastest_of_each_payload_has_its_interval_and_its_cost(directory: Path) -> None:
    found = fastest(directory)
    assert [(each.payload_bytes, each.adapter, each.among) for each in found] == [
        (64, "cyclonedds", 2),
        (16384, "cyclonedds", 2),
    ]
    summary = summarise(open_campaign(directory))
    row = next(
        each for each in summary.rows if each.cell == DDS and each.trial is None and each.edge == "end-to-end"
    )
    first = found[0]
    assert (first.cell, first.latency_p50_ns, first.cpu_per_message_ns) == (
        DDS,
        row.latency_p50_ns,
        row.cpu_per_message_ns,
    )
    assert first.low_ns is not None and first.high_ns is not None
    assert first.low_ns < first.latency_p50_ns < first.high_ns
    assert first.times_floor_p50 is not None and first.times_floor_p50 > 1.0
    assert first.not_told_apart == [] and not first.queue_builds_up


def test_what_overlaps_is_not_told_apart(directory: Path, tmp_path: Path) -> None:
    alike = edited(directory, tmp_path / "alike")
    estimates = summarise(open_campaign(directory))
    assert estimates.glance is not None
    # Without samples there are no intervals, and nothing is claimed of them.
    assert all(each.low_ns is None and each.not_told_apart == [] for each in fastest(alike))
    figures = [figure for row in estimates.glance.rows if not row.bare for figure in [row.figures[0]]]
    wide = [
        figure.model_copy(
            update={
                "intervals": [each.model_copy(update={"low": 1.0, "high": 1e9}) for each in figure.intervals]
            }
        )
        for figure in figures
        if figure is not None
    ]
    rows = [row for row in estimates.glance.rows if not row.bare]
    glance = estimates.glance.model_copy(
        update={
            "payloads_bytes": [64],
            "rows": [
                row.model_copy(update={"figures": [each]}) for row, each in zip(rows, wide, strict=True)
            ],
        }
    )
    (found,) = answers(glance, estimates.rows, estimates.queues)
    assert (found.adapter, found.not_told_apart) == ("cyclonedds", ["fastdds"])
    assert found.remarks == ["the intervals of fastdds overlap with it"]


def test_between_two_clocks_the_bound_stands_beside_it(directory: Path, tmp_path: Path) -> None:
    """Without samples, so without intervals, which would contain the bounds."""

    def first_with(name: str, bound_ns: int | None) -> Fastest:
        bound = pl.lit(bound_ns).cast(pl.Int64).alias("clock_bound_ns")
        lost = pl.lit(0).cast(pl.Int64).alias("lost")
        kind = pl.lit("hard").alias("clock_bound")
        return fastest(edited(directory, tmp_path / name, bound, lost, kind))[0]

    known = first_with("one-clock", None)
    assert (known.adapter, known.remarks) == ("cyclonedds", [])
    near = first_with("near", 20_000)
    assert near.not_told_apart == ["fastdds"]
    assert near.remarks == [
        "the clocks are not known well enough to tell it from fastdds",
        "its ends have two clocks, whose offset is known to ± 20.0 µs",
    ]
    assert first_with("narrower", 10_000).not_told_apart == []
    assert first_with("far", 10**9).remarks[1] == (
        "its ends have two clocks, whose offset is known to ± 1.00 s, which is more than the figure itself"
    )


def test_a_queue_comes_last_and_losses_are_told(directory: Path, tmp_path: Path) -> None:
    mine = pl.col("cell") == DDS
    warning = pl.lit(["queue-builds-up: end-to-end, median response time grows by 330 ms a second"])
    slower = edited(
        directory,
        tmp_path / "queue",
        pl.when(mine).then(warning).otherwise(pl.col("warnings")).alias("warnings"),
        pl.when(mine).then(0.33e9).alias("response_growth_ns_per_s"),
        pl.when(~mine).then(20).otherwise(0).cast(pl.Int64).alias("lost"),
    )
    first = fastest(slower)[0]
    assert (first.adapter, first.queue_builds_up, first.lost_share) == ("fastdds", False, pytest.approx(0.1))
    assert first.remarks == [f"{100.0 * (first.lost_share or 0.0):.2g} % of its messages did not arrive"]


def printed(directory: Path, *, terminal: bool = False, wide: bool = False) -> str:
    """What `show` prints into a file, or a terminal of 80 columns."""
    console = common.output_console(wide)
    console.file, console.width, console.no_color = io.StringIO(), 80, True
    console._force_terminal = terminal
    console.soft_wrap = wide or not terminal
    show.render(directory, console)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).replace("\u00a0", " ")


def test_the_answer_is_printed_first(directory: Path) -> None:
    lines = printed(directory).splitlines()
    assert lines[1] == "fastest middleware, end to end: p50 with its 95 % interval"
    assert lines[2] == "  64 B   cyclonedds, of 2"
    assert re.fullmatch(
        r" +[\d.]+ µs \([\d.]+ – [\d.]+ µs\), CPU/msg [\d.]+ µs, [\d.]+ × the floor", lines[3]
    ), lines[3]
    assert lines[4] == "  16 KB  cyclonedds, of 2"


def test_everything_fits_80_columns_of_a_terminal(directory: Path) -> None:
    narrow = printed(directory, terminal=True)
    assert max(map(len, narrow.splitlines())) <= 80
    # A figure and its unit are not torn apart.
    assert not re.search(r"(?m)^ *(ns|µs|ms|s|KB|MiB)\b", narrow)
    # What stands in a table of many columns has its name beside it.
    assert narrow.count(DDS) >= 7
    assert re.search(r"p50 [\d.]+ µs .*CPU/msg", narrow)
    whole = printed(directory, terminal=True, wide=True)
    assert any(len(line) > 100 and DDS in line for line in whole.splitlines())


def test_the_console_of_a_terminal_keeps_words_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for wide, lines in ((False, 2), (True, 1)):
        console = common.output_console(wide)
        console._force_terminal = True
        console.file, console.width = io.StringIO(), 80
        console.print("word " * 25, soft_wrap=True)
        written = [line.strip() for line in console.file.getvalue().strip().splitlines()]
        assert len(written) == lines, written
        assert all(set(line.split()) == {"word"} for line in written)
