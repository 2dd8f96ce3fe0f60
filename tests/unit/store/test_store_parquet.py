# SPDX-License-Identifier: Apache-2.0
"""Samples lie as differences: whatever the numbers are, every reader gets them back as they were."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from lagometer.store import format as form

ROWS_MAX = 400  # several of the encoding's blocks of 128
EXAMPLES = 100 if "LAGOMETER_LONG" in os.environ else 30
EDGES = ("source→sink", form.END_TO_END, "näher→ferner")


def numbers(low: int, high: int) -> st.SearchStrategy[int | None]:
    """Extremes, whose differences don't fit into 64 bits, beside nulls and what a campaign has."""
    usual = st.integers(5_000_000_000_000, 5_000_001_000_000)
    return st.one_of(st.none(), usual, st.sampled_from((low, high)), st.integers(low, high))


@st.composite
def samples(draw: st.DrawFn) -> pl.DataFrame:
    """A frame of samples' schema; chunks of it have dictionaries of their own."""
    count = draw(st.integers(0, ROWS_MAX))
    signed, unsigned = numbers(-(2**63), 2**63 - 1), numbers(0, 2**64 - 1)
    columns = {
        "edge": draw(st.lists(st.sampled_from(EDGES), min_size=count, max_size=count)),
        "publish_ns": draw(st.lists(signed, min_size=count, max_size=count)),
        "sequence": draw(st.lists(unsigned, min_size=count, max_size=count)),
        "cpu_taken": draw(st.lists(st.none() | st.integers(0, 65_535), min_size=count, max_size=count)),
    }
    absent = {name: [None] * count for name in form.SAMPLES_SCHEMA if name not in columns}
    whole = pl.DataFrame({**columns, **absent}, schema_overrides=form.SAMPLES_SCHEMA)
    half = count // 2
    chunks = pl.concat([whole.slice(half), whole.slice(0, half)], rechunk=False)
    return chunks.select(*form.SAMPLES_SCHEMA)


def test_times_lie_as_differences_and_are_half_as_large(tmp_path: Path) -> None:
    times = pl.Series("publish_ns", range(5_000_000_000_000, 5_000_300_000_000, 100_000))
    absent = [pl.lit(None, dtype=kind).alias(name) for name, kind in form.SAMPLES_SCHEMA.items()]
    frame = pl.DataFrame({"publish_ns": times}).with_columns(
        each for each in absent if each.meta.output_name() != "publish_ns"
    )
    form.write_samples(frame.select(*form.SAMPLES_SCHEMA), tmp_path / "0.parquet")
    group = pq.ParquetFile(tmp_path / "0.parquet").metadata.row_group(0)
    column = group.column(list(form.SAMPLES_SCHEMA).index("publish_ns"))
    assert column.path_in_schema == "publish_ns"
    assert "DELTA_BINARY_PACKED" in column.encodings
    assert column.total_uncompressed_size < len(times) * 8 / 2


@settings(deadline=None, max_examples=EXAMPLES)
@given(frame=samples())
def test_every_reader_gets_back_what_was_written(frame: pl.DataFrame) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.parquet"
        assert form.write_samples(frame, path) == path.stat().st_size
        ours = pl.read_parquet(path)
        assert dict(ours.schema) == form.SAMPLES_SCHEMA
        assert ours.equals(frame)
        columns = ["publish_ns", "sequence", "cpu_taken"]
        expected = frame.select(*columns).rows()
        table = pq.read_table(path, columns=columns)
        assert list(zip(*(table[name].to_pylist() for name in columns), strict=True)) == expected
        assert duckdb.sql(f"select {', '.join(columns)} from '{path}'").fetchall() == expected
