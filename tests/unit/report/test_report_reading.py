# SPDX-License-Identifier: Apache-2.0
"""Files of samples that are read together give what each gives by itself."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lagometer.report.samples.reading import Wanted, read_files
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign

EDGES = ("source→relay", "relay→sink")


def samples(messages: int, first: int) -> pl.DataFrame:
    """So many on each of two edges, the first of them a warm-up, every fifth lost."""
    sequence = range(first, first + messages)
    publish = [1_000_000 * number for number in sequence]
    lost = [number % 5 == 0 for number in sequence]
    columns = {
        "sequence": list(sequence),
        "publish_ns": publish,
        "taken_ns": [None if gone else sent + 7 * first for gone, sent in zip(lost, publish, strict=True)],
        "phase": ["warm-up" if number == first else "measure" for number in sequence],
        "outcome": ["lost" if gone else "delivered" for gone in lost],
    }
    one = pl.DataFrame(columns, schema_overrides={name: form.SAMPLES_SCHEMA[name] for name in columns})
    both = pl.concat(one.with_columns(pl.lit(name, pl.Categorical()).alias("edge")) for name in EDGES)
    absent = {name: kind for name, kind in form.SAMPLES_SCHEMA.items() if name not in both.columns}
    return both.with_columns(pl.lit(None, kind).alias(name) for name, kind in absent.items()).select(
        *form.SAMPLES_SCHEMA
    )


def campaign(folder: Path, sizes: list[int]) -> Campaign:
    """A file of each size, as the trials of one cell."""
    (folder / form.SAMPLES / "c").mkdir(parents=True)
    for trial, messages in enumerate(sizes):
        form.write_samples(
            samples(messages, 1 + 1000 * trial), folder / form.SAMPLES / "c" / f"{trial}.parquet"
        )
    rows = [
        {"cell": "c", "trial": trial, "edge": edge, "valid": True}
        for trial in range(len(sizes))
        for edge in EDGES
    ]
    return Campaign(folder, {}, {}, form.cells_of_rows(rows), ())


def assert_as_alone(found: Campaign, files: list[Wanted]) -> None:
    together = read_files(found, files)
    assert len(together) == len(files)
    for wanted, (rows, edges) in zip(files, together, strict=True):
        ((rows_alone, edges_alone),) = read_files(found, [wanted])
        if isinstance(edges_alone, CampaignError):
            assert isinstance(edges, CampaignError) and str(edges) == str(edges_alone)
            continue
        assert not isinstance(edges, CampaignError)
        assert_frame_equal(rows, rows_alone)
        assert list(edges) == list(edges_alone)
        for name, each in edges.items():
            assert each.latencies.tolist() == edges_alone[name].latencies.tolist()


@pytest.mark.parametrize("sizes", [[3, 1, 400, 2], [0, 5, 0, 0, 6, 0], [1], [0], [0, 0], [2] * 40])
@pytest.mark.parametrize("payload", [False, True])
def test_each_gets_its_own_rows(tmp_path: Path, sizes: list[int], payload: bool) -> None:
    found = campaign(tmp_path, sizes)
    files = [Wanted("c", trial, trial % 3 == 0, payload) for trial in range(len(sizes))]
    assert_as_alone(found, files)
    for trial, (_, edges) in enumerate(read_files(found, files)):
        assert not isinstance(edges, CampaignError)
        arrived = [7 * (1 + 1000 * trial)] * sum(
            (1 + 1000 * trial + n) % 5 != 0 for n in range(1, sizes[trial])
        )
        assert all(each.latencies.tolist() == arrived for each in edges.values())


def test_a_file_that_cannot_be_read_takes_no_other_along(tmp_path: Path) -> None:
    found = campaign(tmp_path, [3, 4, 5, 6])
    folder = tmp_path / form.SAMPLES / "c"
    (folder / "1.parquet").write_bytes(b"PAR1 no more")
    (folder / "2.parquet").unlink()
    files = [Wanted("c", trial, True, False) for trial in range(4)]
    assert_as_alone(found, files)
    read = [edges for _, edges in read_files(found, files)]
    assert [isinstance(edges, CampaignError) for edges in read] == [False, True, True, False]


def test_a_file_with_a_column_more_is_read(tmp_path: Path) -> None:
    """As a later version may write it."""
    found = campaign(tmp_path, [3, 4])
    path = tmp_path / form.SAMPLES / "c" / "1.parquet"
    pl.read_parquet(path).with_columns(more=pl.lit(1)).write_parquet(path)
    files = [Wanted("c", trial, True, False) for trial in range(2)]
    assert_as_alone(found, files)
    assert not any(isinstance(edges, CampaignError) for _, edges in read_files(found, files))
