# SPDX-License-Identifier: Apache-2.0
"""The samples that a report needs, as arrays: one query reads many small files, or one large file."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign

Numbers = npt.NDArray[np.int64]
CPU_UNKNOWN = 65535
CURVE_COLUMNS = ("edge", "publish_ns", "taken_ns", "phase", "outcome")
SERIES_COLUMNS = ("sequence", "intended_ns", "published_ns", "cpu_publish", "cpu_taken")

_PATH = "path_of_file"

_taken, _publish = pl.col("taken_ns"), pl.col("publish_ns")
_CURVE = (
    pl.col("edge"),
    pl.col("edge").to_physical().alias("edge_code"),
    ((pl.col("phase") == "measure") & _publish.is_not_null()).alias("measured"),
    ((pl.col("outcome") == "delivered") & _taken.is_not_null()).alias("arrived"),
    _publish.fill_null(0),
    (_taken - _publish).fill_null(0).alias("latency_ns"),
)
_SERIES = (
    (pl.col("outcome") == "lost").alias("lost"),
    pl.col("sequence").fill_null(0),
    pl.col("cpu_publish").fill_null(CPU_UNKNOWN),
    pl.col("cpu_taken").fill_null(CPU_UNKNOWN),
    pl.col("intended_ns"),
    pl.col("published_ns"),
)


@dataclass(frozen=True)
class Wanted:
    """One file of samples. series: also reads more than latencies; payload: also reads its bytes."""

    cell: str
    trial: int
    series: bool
    payload: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read from the file."""
        series_columns = SERIES_COLUMNS if self.series else ()
        return (*CURVE_COLUMNS, *series_columns, *(("payload_bytes",) if self.payload else ()))

    @property
    def expressions(self) -> tuple[pl.Expr, ...]:
        """The expressions over these columns."""
        series_expressions = _SERIES if self.series else ()
        return (*_CURVE, *series_expressions, *((pl.col("payload_bytes"),) if self.payload else ()))


@dataclass(frozen=True)
class EdgeRows:
    """The measured rows of one edge in sending order; `rows` has the columns of `Wanted.expressions`."""

    rows: pl.DataFrame

    @cached_property
    def arrived(self) -> npt.NDArray[np.bool_] | None:
        """Which rows count for latency; None if all do."""
        arrived = self.array("arrived")
        return None if bool(arrived.all()) else arrived

    @cached_property
    def publish_ns(self) -> Numbers:
        """When each message was published."""
        return self.array("publish_ns")

    @cached_property
    def latencies(self) -> Numbers:
        """Publish to taken, of the messages that count, in sending order."""
        return self.of_arrived(self.array("latency_ns"))

    def array(self, column: str) -> npt.NDArray[Any]:
        """A column, all rows."""
        return self.rows[column].to_numpy()

    def of_arrived(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The elements of an array of all rows that belong to messages that count."""
        return values if self.arrived is None else values[self.arrived]

    def places(self, numbers: npt.NDArray[np.int64]) -> list[int]:
        """The row numbers of some messages, given by their indices among those that count."""
        if self.arrived is None:
            return [int(number) for number in numbers]
        places: list[int] = np.flatnonzero(self.arrived)[numbers].tolist()
        return places


Read = dict[str, EdgeRows] | CampaignError


def read_files(campaign: Campaign, files: Sequence[Wanted]) -> list[tuple[pl.DataFrame, Read]]:
    """The edges of each file, or why it can't be read, and all rows of the file."""
    try:
        frames: Sequence[pl.DataFrame | CampaignError] = _read_together(campaign, files)
    except (CampaignError, OSError, pl.exceptions.PolarsError):
        # One of them is not in our format: read each separately, so that the others can be read.
        frames = [_read_alone(campaign, file) for file in files]
    return [
        (pl.DataFrame(), frame) if isinstance(frame, CampaignError) else (frame, dict(_by_edge(frame)))
        for frame in frames
    ]


def _read_together(campaign: Campaign, files: Sequence[Wanted]) -> list[pl.DataFrame]:
    """One query for all files with the same needs: a query per file takes a third longer."""
    frames: dict[Wanted, pl.DataFrame] = {}
    for columns in dict.fromkeys(file.columns for file in files):
        same_columns = [file for file in files if file.columns == columns]
        paths = [str(campaign.samples_path(file.cell, file.trial)) for file in same_columns]
        query = pl.scan_parquet(paths, glob=False, hive_partitioning=False, include_file_paths=_PATH)
        if len(paths) == 1:
            frames[same_columns[0]] = query.select(same_columns[0].expressions).collect()
            continue
        rows = query.select(*same_columns[0].expressions, _PATH).collect()
        frames |= zip(same_columns, _parts(rows, paths), strict=True)
    return [frames[file] for file in files]


def _parts(rows: pl.DataFrame, paths: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The rows of each file; files must be contiguous, otherwise CampaignError."""
    path_of, wanted = rows[_PATH], rows.drop(_PATH)
    begin = 0
    for path in paths:
        end = _end_of(path, path_of, begin)
        if end > begin and path_of[end - 1] != path:
            break
        yield wanted.slice(begin, end - begin)
        begin = end
    if begin != len(rows):
        raise CampaignError(f"{paths[0]} and the files after it: read out of order")


def _end_of(path: str, path_of: pl.Series, begin: int) -> int:
    """Where the rows of a file end that begin at `begin`, if it has any."""
    return bisect.bisect_left(range(len(path_of)), True, begin, key=lambda place: path_of[place] != path)


def _read_alone(campaign: Campaign, wanted: Wanted) -> pl.DataFrame | CampaignError:
    try:
        return campaign.samples(wanted.cell, wanted.trial, wanted.columns).select(wanted.expressions)
    except CampaignError as error:
        return error
    except pl.exceptions.PolarsError as error:
        return CampaignError(f"{campaign.samples_path(wanted.cell, wanted.trial)}: cannot be read: {error}")


def _by_edge(samples: pl.DataFrame) -> Iterator[tuple[str, EdgeRows]]:
    """The measured rows of each edge; an edge without such a row is missing."""
    codes = samples["edge_code"].to_numpy()
    borders = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
    stretches = [(begin, end) for begin, end in itertools.pairwise(borders) if end > begin]
    names = [str(samples["edge"][begin]) for begin, _ in stretches]
    if len(set(names)) == len(names):  # our own format: one edge after the other, so slices suffice
        parts = [samples.slice(begin, end - begin) for begin, end in stretches]
    else:
        names = list(dict.fromkeys(names))
        parts = [samples.filter(pl.col("edge") == name) for name in names]
    for name, part in zip(names, parts, strict=True):
        rows = _measured(part)
        if not rows.is_empty():
            yield name, EdgeRows(rows)


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the measure phase with a sending time, in sending order; mostly one contiguous range."""
    wanted = rows["measured"].to_numpy()
    first, count = int(wanted.argmax()), int(np.count_nonzero(wanted))
    stretch = bool(wanted[first : first + count].all())
    rows = rows.slice(first, count) if stretch else rows.filter(rows["measured"])
    publish = rows["publish_ns"].to_numpy()
    ascending = bool(np.all(publish[1:] >= publish[:-1]))
    return rows if ascending else rows.sort("publish_ns", maintain_order=True)
