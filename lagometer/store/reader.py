# SPDX-License-Identifier: Apache-2.0
"""Opens the folder of a campaign, whether this lagometer made it or another, finished or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from lagometer.store import format as form
from lagometer.store.errors import CampaignError


@dataclass(frozen=True)
class Campaign:
    """One run of a study, as it lies in a folder."""

    directory: Path
    manifest: dict[str, Any]
    environment: dict[str, Any]  # empty if there is none
    cells: pl.DataFrame  # cells.parquet; no rows before the first trial is finished
    journal: tuple[dict[str, Any], ...]  # one object per finished trial, oldest first

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.manifest.get("name", self.directory.name))

    @property
    def excluded(self) -> list[dict[str, str]]:
        """Combinations that can't exist: `cell` and `reason` of each."""
        return [item for item in self.manifest.get("excluded", []) if isinstance(item, dict)]

    def samples_path(self, cell: str, trial: int) -> Path:
        """Where the samples of a trial lie. Raises CampaignError if the cell's id leads out of the folder."""
        root = (self.directory / form.SAMPLES).resolve()
        path = (root / cell / f"{trial}.parquet").resolve()
        if not path.is_relative_to(root):
            raise CampaignError(f"{self.directory}: cell {cell!r} is not a folder name below {form.SAMPLES}/")
        return path

    def samples(self, cell: str, trial: int) -> pl.DataFrame:
        """The samples of a trial. Raises CampaignError if there are none."""
        path = self.samples_path(cell, trial)
        if not path.is_file():
            raise CampaignError(
                f"{path}: no samples of this trial; it failed before its records were handed over"
            )
        return _parquet(path, ("edge", "sequence", "publish_ns", "taken_ns"))


def open_campaign(directory: Path | str) -> Campaign:
    """Reads everything but the samples. Raises CampaignError: missing, foreign, newer or damaged."""
    directory = Path(directory)
    if not directory.is_dir():
        raise CampaignError(
            f"{directory}: no such folder; give the folder that `lagometer run` wrote (--out)"
        )
    manifest_path = directory / form.MANIFEST
    if not manifest_path.is_file():
        raise CampaignError(f"{directory}: not a campaign, there is no {form.MANIFEST} in it")
    manifest = _json_object(manifest_path)
    _check_version(manifest, manifest_path)
    environment_path, cells_path = directory / form.ENVIRONMENT, directory / form.CELLS
    return Campaign(
        directory=directory,
        manifest=manifest,
        environment=_json_object(environment_path) if environment_path.exists() else {},
        cells=_parquet(cells_path, ("cell", "trial", "edge", "valid", "n"))
        if cells_path.exists()
        else form.empty_cells(),
        journal=_journal(directory / form.JOURNAL),
    )


def _check_version(manifest: dict[str, Any], path: Path) -> None:
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CampaignError(
            f"{path}: key format_version is {version!r}, expected a whole number; not a campaign's manifest"
        )
    if version > form.FORMAT_VERSION:
        raise CampaignError(
            f"{path}: format version {version}, but this lagometer reads up to {form.FORMAT_VERSION}; "
            f"use lagometer {manifest.get('lagometer_version', 'of a later version')}"
        )


def _json_object(path: Path) -> dict[str, Any]:
    value = _reading(path, lambda: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(value, dict):
        raise CampaignError(f"{path}: a JSON object was expected, found {type(value).__name__}")
    return value


def _journal(path: Path) -> tuple[dict[str, Any], ...]:
    if not path.exists():
        return ()
    lines: list[str] = _reading(path, lambda: path.read_text(encoding="utf-8").splitlines())
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            # A power cut may leave the last line unfinished: that trial is not in the journal.
            if number == len(lines):
                break
            raise CampaignError(f"{path}:{number}: not JSON ({error}); the journal is damaged") from error
        if not isinstance(entry, dict):
            raise CampaignError(f"{path}:{number}: a JSON object was expected; the journal is damaged")
        entries.append(entry)
    return tuple(entries)


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
