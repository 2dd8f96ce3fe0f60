# SPDX-License-Identifier: Apache-2.0
"""A campaign's files: written whole or not at all, read back by other tools, refused when damaged."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from needs import require

from lagometer.stats.trial.edges import samples
from lagometer.stats.trial.estimate import summarise
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import open_campaign
from tests.fixtures.small_trial import fused, pipeline

CELL = "udp/pipeline-2/64B"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign of one trial, with causes in its samples."""
    trial = fused()
    facts = trial.facts({0, 1}, {"sink"})
    frame = samples(trial.lanes(), facts)
    folder = tmp_path / "campaign"
    (folder / "samples" / CELL).mkdir(parents=True)
    form.write_samples(frame, folder / "samples" / CELL / "0.parquet")
    form.write_cells(summarise(frame, facts), folder / form.CELLS)
    form.write_json_atomic(
        {
            "format_version": 1,
            "name": "small",
            "state": "finished",
            "cells": [{"id": CELL, "factors": {}, "trials": 1}],
            "excluded": [{"cell": "null/x", "reason": "null is for one process"}],
        },
        folder / form.MANIFEST,
    )
    (folder / form.JOURNAL).write_text(json.dumps({"cell": CELL, "trial": 0, "valid": True}) + "\n")
    return folder


def test_cells_are_read_back_by_pandas_polars_and_duckdb(campaign: Path) -> None:
    path = campaign / form.CELLS
    ours = pl.read_parquet(path)
    theirs = pd.read_parquet(path)
    rows = duckdb.sql(f"select edge, n, latency_min_ns, adapter, reasons from '{path}'").fetchall()
    assert list(theirs.columns) == ours.columns == list(form.cells_schema())
    for column in ("edge", "n", "latency_min_ns", "adapter"):
        assert theirs[column].tolist() == ours[column].to_list()
    assert rows == ours.select("edge", "n", "latency_min_ns", "adapter", "reasons").rows()
    assert theirs["latency_p99_ns"].isna().all()


def test_samples_are_read_back_by_pandas_polars_and_duckdb(campaign: Path) -> None:
    path = campaign / "samples" / CELL / "0.parquet"
    ours = pl.read_parquet(path)
    theirs = pd.read_parquet(path)
    assert dict(ours.schema) == form.SAMPLES_SCHEMA
    assert theirs["edge"].astype(str).tolist() == ours["edge"].cast(pl.String()).to_list()
    assert theirs["sequence"].tolist() == ours["sequence"].to_list()
    query = f"select edge, max(taken_ns - publish_ns), count(*) from '{path}'"
    query += " where outcome = 'delivered' group by edge"
    by_duckdb = {edge: (latency, count) for edge, latency, count in duckdb.sql(query).fetchall()}
    assert by_duckdb["end-to-end"] == (300, 2)
    lists = duckdb.sql(f"select causes from '{path}' where causes is not null order by sequence").fetchall()
    assert lists[0][0] == [{"stream": 0, "sequence": 0}, {"stream": 1, "sequence": 1}]


def test_a_campaign_is_opened(campaign: Path) -> None:
    opened = open_campaign(campaign)
    assert (opened.name, opened.cells.height, len(opened.journal)) == ("small", 4, 1)
    assert opened.samples(CELL, 0).height > 0
    assert opened.environment == {}
    with pytest.raises(CampaignError, match="no samples of this trial"):
        opened.samples(CELL, 1)
    with pytest.raises(CampaignError, match="not a folder name"):
        opened.samples("../../etc", 0)


def test_an_unfinished_last_line_of_the_journal_is_not_a_trial(campaign: Path) -> None:
    with (campaign / form.JOURNAL).open("a") as stream:
        stream.write('{"cell": "ud')
    assert len(open_campaign(campaign).journal) == 1
    (campaign / form.JOURNAL).write_text('{"cell": "ud\n{}\n')
    with pytest.raises(CampaignError, match=r"journal\.jsonl:1: not JSON"):
        open_campaign(campaign)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("manifest.json", None, "not a campaign"),
        ("manifest.json", b"{", "cannot be read"),
        ("manifest.json", b"[]", "a JSON object was expected"),
        ("manifest.json", b"\xff\xfe", "cannot be read"),
        ("manifest.json", b"[" * 100_000, "cannot be read"),
        ("manifest.json", b"{}", "format_version is None"),
        ("manifest.json", b'{"format_version": 99, "lagometer_version": "7.0"}', "use lagometer 7.0"),
        ("cells.parquet", b"", "cannot be read"),
        ("cells.parquet", b"PAR1" + b"\0" * 40 + b"PAR1", "cannot be read"),
        ("environment.json", b"nonsense", "cannot be read"),
    ],
)
def test_what_is_no_campaign_is_refused_by_name(
    campaign: Path, file: str, content: bytes | None, message: str
) -> None:
    (campaign / file).unlink(missing_ok=True)
    if content is not None:
        (campaign / file).write_bytes(content)
    with pytest.raises(CampaignError, match=message) as refused:
        open_campaign(campaign)
    assert str(campaign) in str(refused.value)


def test_a_missing_folder_and_a_foreign_table_are_refused(campaign: Path, tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="no such folder"):
        open_campaign(tmp_path / "nowhere")
    pl.DataFrame({"a": [1]}).write_parquet(campaign / form.CELLS)
    with pytest.raises(CampaignError, match="column 'cell' is missing"):
        open_campaign(campaign)


@pytest.mark.parametrize("damage", range(0, 2000, 97))
def test_damaged_samples_are_an_error_or_a_table_but_never_a_crash(campaign: Path, damage: int) -> None:
    path = campaign / "samples" / CELL / "0.parquet"
    content = bytearray(path.read_bytes())
    content[-1 - damage % len(content)] ^= 0x5A
    path.write_bytes(content)
    try:
        open_campaign(campaign).samples(CELL, 0)
    except CampaignError as error:
        assert str(path) in str(error)


def test_an_odd_folder_name_is_no_pattern(campaign: Path) -> None:
    odd = campaign.rename(campaign.with_name("a=1 [b]*"))
    assert open_campaign(odd).samples(CELL, 0).width == len(form.SAMPLES_SCHEMA)


def test_a_failed_write_leaves_the_old_file_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "manifest.json"
    form.write_json_atomic({"a": 1}, path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="bytes were to be written") as refused:
        form.write_json_atomic({"a": 2}, path)
    monkeypatch.undo()
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, str(path))
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]


def test_a_full_disk_leaves_the_old_cells(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True
    )
    require(
        "mount", mounted.returncode == 0, f"the right to mount a tmpfs ({mounted.stderr.decode().strip()})"
    )
    try:
        form.write_cells(form.empty_cells(), disk / form.CELLS)
        with pytest.raises(OSError, match="bytes were to be written") as refused:
            form.write_bytes_atomic(os.urandom(200_000), disk / form.CELLS)
        assert refused.value.errno == errno.ENOSPC
        assert "200000" in str(refused.value)
        assert pl.read_parquet(disk / form.CELLS).is_empty()
        assert [entry.name for entry in disk.iterdir()] == [form.CELLS]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_rows_of_any_trials_go_together() -> None:
    trial, _, _ = pipeline(3)
    facts = trial.facts({0}, {"sink"})
    rows = summarise(samples(trial.lanes(), facts), facts)
    assert pl.concat([form.empty_cells(), rows, rows]).height == 6


@pytest.mark.parametrize("lost", ["nothing", "the journal's end", "cells.parquet"])
def test_the_former_name_of_a_column_is_read(campaign: Path, lost: str) -> None:
    """Until k could be chosen it was ten, and the column was called so; in cells.parquet and the journal."""
    cells = pl.read_parquet(campaign / form.CELLS)
    former = cells.with_columns(
        deadline_ns=pl.lit(5_000_000), deadline_missed=pl.lit(2), deadline_met_of_10_min=pl.lit(8)
    ).drop("deadline_k", "deadline_met_of_k_min", "deadline_due")
    former = former.with_columns(pl.col("^deadline_.*$").exclude("deadline_miss_share").cast(pl.Int64()))
    second = former.with_columns(
        trial=pl.lit(1, dtype=pl.Int64()), deadline_ns=pl.lit(None, dtype=pl.Int64())
    )
    entries = [
        {"cell": CELL, "trial": trial, "valid": True, "rows": rows.to_dicts()}
        for trial, rows in enumerate((former, second))
    ]
    (campaign / form.JOURNAL).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    kept = {"nothing": pl.concat([former, second]), "the journal's end": former}
    (campaign / form.CELLS).unlink()
    if lost in kept:
        form.write_cells(kept[lost], campaign / form.CELLS)
    found = open_campaign(campaign).cells.sort("trial")
    assert list(form.cells_schema()) == found.columns[: len(form.cells_schema())]
    assert form.FORMER_MET_MIN not in found.columns
    assert set(found.filter(pl.col("trial") == 0).select("deadline_k", "deadline_met_of_k_min").rows()) == {
        (10, 8)
    }
    assert set(found.filter(pl.col("trial") == 1)["deadline_k"]) == {None}
    assert found["deadline_due"].null_count() == found.height
