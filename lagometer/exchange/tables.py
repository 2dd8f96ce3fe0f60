# SPDX-License-Identifier: Apache-2.0
"""A campaign as plain tables, in CSV or JSON lines: `cells` and `samples`, columns as in docs/FORMAT.md.

Integers stay integers, so times are exact to the nanosecond. In CSV a missing value is empty, and a list is
written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import polars as pl

from lagometer.exchange.errors import ExchangeError
from lagometer.store.reader import Campaign

Key = tuple[str, int]


def trials(campaign: Campaign) -> list[Key]:
    """The trials with stored samples, in the order of cells.parquet."""
    keys = campaign.cells.select("cell", "trial").unique(maintain_order=True).iter_rows()
    return [(cell, trial) for cell, trial in keys if campaign.samples_path(cell, trial).is_file()]


def write_csv(campaign: Campaign, directory: Path) -> list[Path]:
    """Writes `cells.csv` and `samples.csv`; returns them. Raises CampaignError, OSError."""
    return _write(campaign, directory, "csv", _append_csv)


def write_json_lines(campaign: Campaign, directory: Path) -> list[Path]:
    """Writes `cells.jsonl` and `samples.jsonl`; returns them. Raises CampaignError, OSError."""
    return _write(campaign, directory, "jsonl", lambda frame, stream, _: frame.write_ndjson(stream))


def _write(
    campaign: Campaign, directory: Path, suffix: str, append: Callable[[pl.DataFrame, IO[bytes], bool], None]
) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.{suffix}" for name in ("cells", "samples")]
    for path in paths:
        if path.exists():
            raise ExchangeError(f"{path}: already exists; name another folder with --out")
    for path, frames in zip(paths, (iter([campaign.cells]), _samples(campaign)), strict=True):
        with path.open("wb") as stream:
            for number, frame in enumerate(frames):
                append(frame, stream, number == 0)
    return paths


def _samples(campaign: Campaign) -> Iterator[pl.DataFrame]:
    """Reads trial by trial, so that a campaign larger than the memory can be written."""
    for cell, trial in trials(campaign):
        key = (pl.lit(cell).alias("cell"), pl.lit(trial, dtype=pl.Int64()).alias("trial"))
        yield campaign.samples(cell, trial).select(*key, pl.all())


def _append_csv(frame: pl.DataFrame, stream: IO[bytes], first: bool) -> None:
    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    flat = frame.with_columns(_as_json(frame[name]) for name in lists)
    flat.write_csv(stream, include_header=first)


def _as_json(column: pl.Series) -> pl.Series:
    values: Iterable[object] = column.to_list()
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return pl.Series(column.name, texts, dtype=pl.String())
