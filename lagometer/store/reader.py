# SPDX-License-Identifier: Apache-2.0
"""Opens a campaign's folder, whether this lagometer or another wrote it, finished or not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic_core import from_json

from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.versions import check_version, completed_cells

SAMPLES_REQUIRED = ("edge", "sequence", "publish_ns", "taken_ns")


@dataclass(frozen=True)
class Campaign:
    """One run of a study, as stored in a folder."""

    directory: Path
    manifest: dict[str, Any]
    environment: dict[str, Any]  # empty if there is none
    cells: pl.DataFrame  # cells.parquet; no rows before the first trial is finished
    journal: tuple[dict[str, Any], ...]  # one object per finished trial, oldest first

    @property
    def control(self) -> Campaign | None:
        """The trials of the control cell, as a separate campaign; None if there are none."""
        return self._part(form.CONTROL)

    @property
    def long_trials(self) -> Campaign | None:
        """The long trials, as a separate campaign; None if there are none."""
        return self._part(form.LONG)

    def _part(self, name: str) -> Campaign | None:
        folder = self.directory / name
        if not (folder / form.JOURNAL).is_file():
            return None
        journal = read_journal(folder / form.JOURNAL)
        cells = _cells(folder / form.CELLS, journal)
        return Campaign(folder, self.manifest, self.environment, cells, journal)

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.manifest.get("name", self.directory.name))

    @property
    def imported_from(self) -> str | None:
        """The tool these aggregates come from; None for lagometer's own measurements, which have samples."""
        if "imported_from" not in self.cells.columns or self.cells.is_empty():
            return None
        tools = self.cells["imported_from"]
        return " and ".join(tools.unique().sort()) if tools.null_count() == 0 else None

    @property
    def excluded(self) -> list[dict[str, str]]:
        """Combinations that can't exist: the `cell` and `reason` of each."""
        return [item for item in self.manifest.get("excluded", []) if isinstance(item, dict)]

    def has(self, folder: str) -> bool:
        """Whether there is this folder of files beside the samples; without it, no trial has one."""
        return (self.directory / folder).is_dir()

    def samples_path(self, cell: str, trial: int) -> Path:
        """The path of a trial's samples. Raises CampaignError if the cell's id leads out of the folder."""
        return self._path_below(form.SAMPLES, cell, trial)

    def stamps_path(self, cell: str, trial: int) -> Path:
        """The path of a trial's layer stamps, if the study requested them. Raises like `samples_path`."""
        return self._path_below(form.STAMPS, cell, trial)

    def layers_path(self, cell: str, trial: int) -> Path:
        """The path of a trial's layers, if the study requested them. Raises like `samples_path`."""
        return self._path_below(form.LAYER_FILES, cell, trial)

    def scheduler_path(self, cell: str, trial: int) -> Path:
        """The path of the scheduler's share of a trial's layers, if requested. Raises like `samples_path`."""
        return self._path_below(form.SCHEDULER, cell, trial)

    def timelines_path(self, cell: str, trial: int) -> Path:
        """The path of the calls and states of a trial's chosen messages. Raises like `samples_path`."""
        return self._path_below(form.TIMELINES, cell, trial)

    def resources_path(self, cell: str, trial: int) -> Path:
        """The path of the costs of a trial's processes, if they were observed. Raises like `samples_path`."""
        return self._path_below(form.RESOURCES, cell, trial)

    def events_path(self, cell: str, trial: int) -> Path:
        """The path of a trial's events, if its middleware reported any. Raises like `samples_path`."""
        return self._path_below(form.EVENTS, cell, trial)

    def exchanges_path(self, cell: str, trial: int) -> Path:
        """The path of a trial's exchanges, if its hosts have separate clocks. Raises like `samples_path`."""
        return self._path_below(form.EXCHANGES, cell, trial)

    def path_beside(self, folder: str, cell: str, trial: int) -> Path:
        """The path of a trial's file in one of the folders `BESIDE`. Raises like `samples_path`."""
        return self._path_below(folder, cell, trial)

    def packets_paths(self, cell: str, trial: int) -> list[Path]:
        """A trial's packet files, one per host, if the study requested them. Raises like `samples_path`."""
        folder = self._path_below(form.CAPTURES, cell, trial).parent
        return sorted(folder.glob(f"{trial}.*.pcapng"))

    def _path_below(self, folder: str, cell: str, trial: int) -> Path:
        # By the names alone, without a system call: a campaign may have thousands of files.
        root = os.path.abspath(self.directory / folder)  # noqa: PTH100
        path = os.path.normpath(os.path.join(root, cell, f"{trial}.parquet"))  # noqa: PTH118
        if not path.startswith(root + os.sep):
            raise CampaignError(f"{self.directory}: cell {cell!r} is not a folder name below {folder}/")
        return Path(path)

    def samples(self, cell: str, trial: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The samples of a trial, or some of their columns. Raises CampaignError if there are none.

        A column that an older lagometer did not write is null.
        """
        path = self.samples_path(cell, trial)
        if not path.is_file():
            raise CampaignError(f"{path}: no samples of this trial; {self._why_absent(cell, trial)}")
        if columns is None:
            return _parquet(path, SAMPLES_REQUIRED)
        return _samples_columns(path, columns)

    def _why_absent(self, cell: str, trial: int) -> str:
        """Why there is no samples file."""
        if self.imported_from is not None:
            return f"its figures were imported from {self.imported_from}, whose logs have none"
        if self.cells.filter((pl.col("cell") == cell) & (pl.col("trial") == trial) & pl.col("valid")).height:
            return "it is valid, so the file was removed, or left behind when the folder was copied"
        return "it failed before its records were delivered"


def open_campaign(directory: Path | str) -> Campaign:
    """Reads everything but the samples. Raises CampaignError: missing, foreign, newer or damaged."""
    directory = Path(directory)
    manifest = read_manifest(directory)
    environment_path = directory / form.ENVIRONMENT
    journal = read_journal(directory / form.JOURNAL)
    return Campaign(
        directory=directory,
        manifest=manifest,
        environment=_json_object(environment_path) if environment_path.exists() else {},
        cells=_cells(directory / form.CELLS, journal),
        journal=journal,
    )


def read_manifest(directory: Path) -> dict[str, Any]:
    """The campaign's manifest. Raises CampaignError: missing, foreign, newer or damaged."""
    if not directory.is_dir():
        raise CampaignError(
            f"{directory}: no such folder; give the folder that `lagometer run` wrote (--out)"
        )
    manifest_path = directory / form.MANIFEST
    if not manifest_path.is_file():
        raise CampaignError(f"{directory}: not a campaign, there is no {form.MANIFEST} in it")
    manifest = _json_object(manifest_path)
    check_version(manifest, manifest_path)
    return manifest


def _json_object(path: Path) -> dict[str, Any]:
    value = _reading(path, lambda: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(value, dict):
        raise CampaignError(f"{path}: a JSON object was expected, found {type(value).__name__}")
    return value


def read_journal(path: Path) -> tuple[dict[str, Any], ...]:
    """The finished trials, oldest first. Raises CampaignError for a damaged file.

    Only complete lines count. A kill or a power cut may leave the last line unfinished: it may contain half a
    character, zeros or half an object.
    """
    if not path.exists():
        return ()
    content: bytes = _reading(path, path.read_bytes)
    lines = content.split(b"\n")[:-1]
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = from_json(line)  # a large campaign has tens of megabytes
        except ValueError as error:
            if number == len(lines):
                break
            raise CampaignError(f"{path}:{number}: not JSON ({error}); the journal is damaged") from error
        if not isinstance(entry, dict):
            raise CampaignError(f"{path}:{number}: a JSON object was expected; the journal is damaged")
        entries.append(entry)
    return tuple(entries)


def _cells(path: Path, journal: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """cells.parquet, followed by the rows of trials that finished after it was written."""
    empty = form.empty_cells()
    cells = empty
    if path.exists():
        cells = completed_cells(_parquet(path, ("cell", "trial", "edge", "valid", "n")))
    known = set(cells.select("cell", "trial").unique().iter_rows())
    rows = [
        row
        for entry in journal
        if (entry.get("cell"), entry.get("trial")) not in known
        for row in entry.get("rows", ())
    ]
    return pl.concat([cells, form.cells_of_rows(rows)], how="diagonal_relaxed") if rows else cells


def _samples_columns(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Only these columns, in this order."""
    present = set(_reading(path, lambda: pl.read_parquet_schema(path)))
    absent = [name for name in SAMPLES_REQUIRED if name not in present]
    if absent:
        raise CampaignError(f"{path}: column {absent[0]!r} is missing; not a file of a campaign")
    present_columns = [name for name in columns if name in present]
    frame: pl.DataFrame = _reading(
        path, lambda: pl.read_parquet(path, columns=present_columns, glob=False, hive_partitioning=False)
    )
    nulls = (
        pl.lit(None, form.SAMPLES_SCHEMA.get(name)).alias(name) for name in columns if name not in present
    )
    return frame.with_columns(nulls).select(columns)


def _parquet(path: Path, required: tuple[str, ...]) -> pl.DataFrame:
    frame: pl.DataFrame = _reading(path, lambda: pl.read_parquet(path, glob=False, hive_partitioning=False))
    absent = [name for name in required if name not in frame.columns]
    if absent:
        raise CampaignError(f"{path}: column {absent[0]!r} is missing; not a file of a campaign")
    return frame


def _reading(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (
        OSError,
        ValueError,
        RecursionError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise CampaignError(f"{path}: cannot be read: {error}") from error
