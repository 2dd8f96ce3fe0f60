# SPDX-License-Identifier: Apache-2.0
"""The report's data and file, without a browser."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
import pytest

from lagometer.report import build, limits, page, typescript
from lagometer.report.build import build_report
from lagometer.report.data import Report
from lagometer.report.samples import draw, reader_pool
from lagometer.report.samples.reader_pool import begin, processes
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign, open_campaign

ROOT = Path(__file__).parents[3]
from synthetic_campaign import Shape, write_campaign  # noqa: E402

SHAPE = Shape(adapters=("shm", "udp", "cyclonedds", "fastdds"), payloads_bytes=(64, 1024), messages=1200)
PLAIN_BUNDLE = f'<script type="application/json">{page.PLACEHOLDER}</script>'


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = write_campaign(tmp_path_factory.mktemp("campaign"), SHAPE)
    return made


@pytest.fixture(scope="module")
def report(directory: Path) -> Report:
    return build_report(open_campaign(directory))


@pytest.mark.parametrize("file", typescript.FILES)
def test_typescript_types_are_those_of_the_models(file: str) -> None:
    written = (ROOT / "web" / "src" / file).read_text(encoding="utf-8")
    wanted = typescript.render(typescript.FILES[file])
    assert written == wanted, "run: python -m lagometer.report.typescript web/src"


def test_prettier_leaves_the_generated_types_alone() -> None:
    ignored = (ROOT / "web" / ".prettierignore").read_text(encoding="utf-8").splitlines()
    assert {f"src/{file}" for file in typescript.FILES} <= set(ignored)


def test_counts(report: Report, directory: Path) -> None:
    cells = pl.read_parquet(directory / "cells.parquet")
    journal = [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]
    assert report.counts.trials == len(journal)
    assert (
        report.counts.trials_failed == sum(not line["valid"] for line in journal) == len(report.failures) > 0
    )
    assert report.counts.messages == cells.filter(pl.col("edge") != "end-to-end")["n"].sum()
    assert report.counts.excluded == len(report.exclusions) == 2


def test_the_floor_is_the_fastest_bare_transport_of_the_same_work(report: Report) -> None:
    rows = [row for row in report.rows if row.trial is None and row.edge == "end-to-end"]
    for row in rows:
        size = row.cell.split("/")[2]
        bare = [
            each for each in rows if each.cell.split("/")[0] in ("shm", "udp") and f"/{size}/" in each.cell
        ]
        known = [each.latency_p50_ns for each in bare if each.latency_p50_ns is not None]
        assert row.floor_latency_p50_ns == min(known)
        assert row.floor_cell is not None and f"/{size}/" in row.floor_cell


def test_invalid_trials_stay_out_of_curves_and_medians_but_are_listed(report: Report) -> None:
    died = [failure for failure in report.failures if "worker-died" in failure.reasons[0]]
    assert died
    for failure in died:
        rows = [row for row in report.rows if row.cell == failure.cell and row.trial == failure.trial]
        assert [(row.n, row.valid, row.latency_p50_ns) for row in rows] == [(0, False, None)]
        [summary] = [
            r for r in report.rows if r.cell == failure.cell and r.trial is None and r.edge == "end-to-end"
        ]
        assert summary.valid and summary.trials == 1
        [curve] = [each for each in report.curves if each.cell == failure.cell and each.edge == "end-to-end"]
        assert curve.trials == 1 and curve.n == summary.n


def test_curves_end_where_ten_messages_are_left(report: Report, directory: Path) -> None:
    campaign = open_campaign(directory)
    curve = next(each for each in report.curves if each.trials == SHAPE.trials and each.edge == "end-to-end")
    parts = []
    for trial in range(SHAPE.trials):
        frame = campaign.samples(curve.cell, trial)
        frame = frame.filter(
            (pl.col("edge").cast(pl.String) == curve.edge)
            & (pl.col("outcome").cast(pl.String) == "delivered")
        )
        parts.append((frame["taken_ns"] - frame["publish_ns"]).to_numpy())
    values = np.concatenate(parts)
    assert curve.n == len(values)
    assert int((values > curve.latency_ns[-1]).sum()) == 10
    expected = np.quantile(values, [0.5, 0.9, 0.99], method="inverted_cdf")
    found = [curve.latency_ns[curve.probabilities.index(each)] for each in (0.5, 0.9, 0.99)]
    assert found == [int(value) for value in expected]


def test_a_default_payload_is_taken_from_what_arrived(tmp_path: Path) -> None:
    directory = write_campaign(
        tmp_path, Shape(adapters=("shm", "udp"), payloads_bytes=(64,), trials=1, messages=50)
    )
    manifest = json.loads((directory / "manifest.json").read_text())
    for cell in manifest["cells"]:
        cell["factors"]["payload_bytes"] = None
    (directory / "manifest.json").write_text(json.dumps(manifest))
    assert {cell.payload_bytes for cell in build_report(open_campaign(directory)).cells} == {64}


def test_missing_samples_are_said(tmp_path: Path) -> None:
    directory = write_campaign(
        tmp_path, Shape(adapters=("shm", "udp"), payloads_bytes=(64,), trials=1, messages=50)
    )
    for path in (directory / "samples").rglob("0.parquet"):
        path.unlink()
    made = build_report(open_campaign(directory))
    assert not made.series and any("could not be read" in note for note in made.notes)
    assert made.rows[0].n == 50


def unfit_processes(count: int, ended: bool = False) -> ProcessPoolExecutor:
    """Such as end as soon as they begin: no memory, say."""
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=os._exit, initargs=(1,))
    if ended:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os.getpid).result()
    return pool


@pytest.mark.parametrize(
    "make",
    [processes, unfit_processes, partial(unfit_processes, ended=True)],
    ids=["fit", "unfit", "unfit from the start"],
)
def test_processes_draw_what_threads_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[int], ProcessPoolExecutor]
) -> None:
    """With one trial per cell, one of which has no samples; and where no process can be had."""
    shape = Shape(adapters=("shm", "udp"), payloads_bytes=(64, 1024), trials=1, messages=300)
    directory = write_campaign(tmp_path, shape)
    next((directory / "samples").rglob("0.parquet")).unlink()
    monkeypatch.setattr(reader_pool, "cpus", lambda: 2)
    by_threads = build_report(open_campaign(directory))
    assert reader_pool.readers_of(directory) is None
    monkeypatch.setattr(reader_pool, "BYTES_FOR_PROCESSES", 0)
    monkeypatch.setattr(reader_pool, "FILES_FOR_PROCESSES", 2)
    monkeypatch.setattr(draw, "FILES_PER_BATCH", 1)
    begun: list[int] = []

    def counted(count: int) -> ProcessPoolExecutor:
        begun.append(count)
        return make(count)

    monkeypatch.setattr(reader_pool, "processes", counted)
    readers = reader_pool.readers_of(directory)
    assert readers is not None
    with readers:
        by_processes = build_report(open_campaign(directory), readers)
    assert begun == [2]
    assert by_processes == by_threads
    assert by_threads.curves and any("could not be read" in note for note in by_threads.notes)


def test_few_samples_or_several_trials_of_a_cell_have_no_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reader_pool.readers_of(tmp_path) is None
    several = write_campaign(tmp_path, Shape(adapters=("shm",), trials=2, messages=300))
    monkeypatch.setattr(reader_pool, "BYTES_FOR_PROCESSES", 0)
    monkeypatch.setattr(reader_pool, "FILES_FOR_PROCESSES", 1)
    assert reader_pool.readers_of(several) is None
    sample = next((several / "samples").rglob("0.parquet"))
    sample.with_name("1.parquet").unlink()
    sample.unlink()
    sample.symlink_to("nowhere")
    assert reader_pool.readers_of(several) is None


def test_processes_do_not_see_a_terminals_interruption(directory: Path) -> None:
    """Not even while they load Python, when they would say so in a long trace."""

    def blocks(pid: int | str) -> bool:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        (mask,) = [line.split()[1] for line in text.splitlines() if line.startswith("SigBlk:")]
        return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)

    with processes(1) as pool:
        children = list(pool._processes)
        (begun,) = begin(pool, open_campaign(directory), [[]])
        assert children and all(map(blocks, children)) and not blocks("self")
        assert begun.result() == []


def test_an_interruption_does_not_wait_for_what_was_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the processes have hardly begun and the rest of the report is made."""
    directory = write_campaign(tmp_path, Shape(adapters=("shm",), trials=1, messages=300))

    def interrupted(campaign: Campaign) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "known", interrupted)
    readers = processes(2)
    with pytest.raises(KeyboardInterrupt):
        build_report(open_campaign(directory), readers)
    with pytest.raises(RuntimeError, match="after shutdown"):
        readers.submit(int)


def test_a_campaign_without_a_finished_trial_has_a_report(tmp_path: Path) -> None:
    manifest = {"format_version": 1, "name": "empty", "cells": [], "excluded": [], "state": "running"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    made = build_report(open_campaign(tmp_path))
    assert made.counts.trials == 0 and made.rows == []


def test_size_is_bounded_and_what_is_left_out_is_said(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SERIES_POINTS_TOTAL", 2_000)
    monkeypatch.setattr(limits, "ROWS_MAX", 50)
    made = build_report(open_campaign(directory))
    assert len(made.series) == 10 and {each.edge for each in made.series} == {"end-to-end"}
    assert all(len(each.time_us) <= limits.SERIES_POINTS_MIN for each in made.series)
    said = " ".join(made.notes)
    assert "rows of single trials" in said and "are left out" in said and "thinned" in said


def test_text_of_a_campaign_cannot_end_the_script(report: Report) -> None:
    text = page.render(report, PLAIN_BUNDLE)
    assert text.count("</script>") == 1 and "<!--" not in text and "//" not in text
    data = text.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert Report.model_validate_json(data) == report
    assert "</script>" in report.campaign.study_text


def test_written_whole_and_refused_with_reasons(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "page.html"
    monkeypatch.setattr(page, "BUNDLE", bundle)
    with pytest.raises(page.BundleMissing, match="npm run build"):
        page.write_report(directory)
    bundle.write_text(PLAIN_BUNDLE)
    written = page.write_report(directory, tmp_path / "out.html")
    assert written.read_text().startswith("<script") and not list(tmp_path.glob(".*"))
    with pytest.raises(CampaignError, match="not a campaign"):
        page.write_report(tmp_path)
