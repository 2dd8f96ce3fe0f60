# SPDX-License-Identifier: Apache-2.0
"""Joins campaigns of one study, from one machine or several, into one folder.

A trial is identified by its machine, its cell, when it started and what it left. So a duplicate trial is kept
once, and none is lost. If a machine appears twice, the numbers of its trials continue. With more than one
machine, `machine` is a factor: `machine-1a2b3c4d` ends the cell's id, like any factor that varies.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign

MACHINE = "machine"
SOURCES = "sources"  # the key in the manifest, and the folder
KEY_CHARACTERS = 8
# The keys of a study in which two campaigns may differ and still have measured the same.
FREE_KEYS = frozenset({"name", "description", "seed", "trials"})
PARTS = ("", form.CONTROL, form.LONG)
NO_DEFAULTS: Mapping[str, object] = {}
OWN_FILES = frozenset({form.JOURNAL, form.CELLS, form.ESTIMATES, "report.html"})

Json = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One trial of a source. machine: its key. cell: without the factor `machine`."""

    machine: str
    cell: str
    trial: int
    folder: Campaign
    entry: Mapping[str, Any]

    @property
    def samples(self) -> Path:
        """The path of its samples, if it left any."""
        return self.folder.samples_path(str(self.entry["cell"]), int(self.entry["trial"]))

    def fingerprint(self) -> str:
        """What distinguishes it from any other trial, whatever its number and its cell's id are here."""
        path = self.samples
        samples_hash = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        entry_values = [
            self.entry.get(name) for name in ("started", "overhead_s", "seconds", "valid", "reasons")
        ]
        return json.dumps([self.machine, self.cell, samples_hash, entry_values], sort_keys=True)


@dataclass
class Merged:
    """What a merge has included so far."""

    trials: int = 0
    twice: int = 0
    machines: dict[str, str] = field(default_factory=dict)  # key: host name


def merge(
    campaigns: Sequence[Campaign], directory: Path, defaults: Mapping[str, object] = NO_DEFAULTS
) -> Merged:
    """Writes the campaigns as one into `directory`, which must be empty or missing.

    defaults: for the keys of a study that an older lagometer did not write. Raises CampaignError if the
    campaigns are not from the same study, OSError if the result can't be stored.
    """
    _refuse_other_studies(campaigns, defaults)
    machines = [_machines(campaign) for campaign in campaigns]
    merged = Merged(
        machines={key: host for campaign_machines in machines for key, host in campaign_machines.items()}
    )
    directory.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    for part in PARTS:
        folders = [_part(campaign, part) for campaign in campaigns]
        trials = [trial for folder in folders if folder is not None for trial in _trials(folder)]
        if part == "" or trials:
            part_counts = _write_part(trials, directory / part, merged)
            counts = part_counts if part == "" else counts
    manifest = _manifest(campaigns, merged, counts)
    manifest[SOURCES] = _copy_sources(campaigns, directory)
    form.write_json_atomic(_environment(campaigns), directory / form.ENVIRONMENT)
    form.write_json_atomic(manifest, directory / form.MANIFEST)
    return merged


def _refuse_other_studies(campaigns: Sequence[Campaign], defaults: Mapping[str, object]) -> None:
    first = campaigns[0]
    for other in campaigns[1:]:
        one, two = (campaign.manifest.get("study") or {} for campaign in (first, other))
        differing = [
            name
            for name in dict.fromkeys((*one, *two))
            if name not in FREE_KEYS
            and one.get(name, defaults.get(name)) != two.get(name, defaults.get(name))
        ]
        if differing:
            raise CampaignError(
                f"{other.directory}: another study than that of {first.directory}; they differ in "
                f"{', '.join(differing)}; merge campaigns of one study, compare those of two"
            )


def _part(campaign: Campaign, part: str) -> Campaign | None:
    if part == "":
        return campaign
    return campaign.control if part == form.CONTROL else campaign.long_trials


def _machines(campaign: Campaign) -> dict[str, str]:
    """The machines of a campaign: key and host name."""
    known = campaign.manifest.get("machines")
    if known:
        return {str(machine["key"]): str(machine["hostname"]) for machine in known}
    return {_key(campaign): str(campaign.environment.get("hostname") or "unknown")}


def _key(campaign: Campaign) -> str:
    """Names the machine of a campaign that is not merged."""
    environment = campaign.environment
    identity = environment.get("machine_id")
    if not isinstance(identity, str) or not identity:
        # Without an id, use what is least likely to change: taking one machine for two beats two for one.
        known = [environment.get(name) for name in ("hostname", "cpu", "memory_bytes")]
        identity = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    return identity[:KEY_CHARACTERS]


def _trials(folder: Campaign) -> list[Trial]:
    """The trials in the journal of a folder."""
    default_machine = next(iter(_machines(folder)))
    trials = []
    for entry in folder.journal:
        machine = str(entry.get(MACHINE) or default_machine)
        cell = _without_machine(str(entry["cell"]))
        trials.append(Trial(machine, cell, int(entry["trial"]), folder, entry))
    return trials


def _without_machine(cell: str) -> str:
    return cell.rpartition(f"/{MACHINE}-")[0] if f"/{MACHINE}-" in cell else cell


def _write_part(trials: Sequence[Trial], directory: Path, merged: Merged) -> dict[str, int]:
    """Writes journal, cells and samples of one part (main, control, long); returns trial counts by cell."""
    directory.mkdir(parents=True, exist_ok=True)
    fingerprints: set[str] = set()
    numbers: dict[str, set[int]] = {}
    rows: list[pl.DataFrame] = []
    lines: list[bytes] = []
    for trial in trials:
        fingerprint = trial.fingerprint()
        if fingerprint in fingerprints:
            merged.twice += 1
            continue
        fingerprints.add(fingerprint)
        cell = cell_id(trial.cell, trial.machine, merged)
        used_numbers = numbers.setdefault(cell, set())
        number = trial.trial if trial.trial not in used_numbers else max(used_numbers) + 1
        used_numbers.add(number)
        rows.append(_rows(trial, cell, number))
        lines.append(_line(trial, cell, number, rows[-1]))
        _copy_samples(trial, directory / form.SAMPLES / cell, number)
        for folder in form.BESIDE:
            _copy_beside(trial, folder, directory / folder / cell, number)
        _copy_packets(trial, directory / form.CAPTURES / cell, number)
    form.write_bytes_atomic(b"".join(lines), directory / form.JOURNAL)
    cells = pl.concat(rows, how="diagonal_relaxed") if rows else form.empty_cells()
    form.write_cells(cells, directory / form.CELLS)
    merged.trials += len(lines)
    return {cell: len(used_numbers) for cell, used_numbers in numbers.items()}


def cell_id(cell: str, machine: str, merged: Merged) -> str:
    """The id of a cell in the merged campaign; it contains the machine only if there are several."""
    return f"{cell}/{MACHINE}-{machine}" if len(merged.machines) > 1 else cell


def _rows(trial: Trial, cell: str, number: int) -> pl.DataFrame:
    entry = trial.entry
    is_trial = (pl.col("cell") == str(entry["cell"])) & (pl.col("trial") == int(entry["trial"]))
    return trial.folder.cells.filter(is_trial).with_columns(
        cell=pl.lit(cell),
        trial=pl.lit(number, dtype=pl.Int64()),
        machine=pl.lit(trial.machine, dtype=pl.String()),
    )


def _line(trial: Trial, cell: str, number: int, rows: pl.DataFrame) -> bytes:
    place = {"cell": cell, "trial": number, MACHINE: trial.machine, "rows": rows.to_dicts()}
    if "path" in trial.entry:
        place["path"] = f"{form.SAMPLES}/{cell}/{number}.parquet"
    return json.dumps({**trial.entry, **place}, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _copy_samples(trial: Trial, folder: Path, number: int) -> None:
    source = trial.samples
    for path in (source, source.with_suffix(".log")):
        if path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / f"{number}{path.suffix}")


def _copy_beside(trial: Trial, kind: str, folder: Path, number: int) -> None:
    """Copies the files next to the samples, each kind in its own folder."""
    source = trial.folder.path_beside(kind, str(trial.entry["cell"]), int(trial.entry["trial"]))
    if source.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / f"{number}.parquet")


def _copy_packets(trial: Trial, folder: Path, number: int) -> None:
    """Copies the packets of its hosts."""
    for source in trial.folder.packets_paths(str(trial.entry["cell"]), int(trial.entry["trial"])):
        _, host = source.name.split(".", 1)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / f"{number}.{host}")


def _manifest(campaigns: Sequence[Campaign], merged: Merged, counts: Mapping[str, int]) -> Json:
    """The first campaign's manifest, with the cells, versions and settings of all."""
    heads = [campaign.manifest for campaign in campaigns]
    cells: dict[str, Json] = {}
    settings: Json = {}
    for campaign in campaigns:
        machine_keys = list(_machines(campaign))
        for cell in campaign.manifest.get("cells", []):
            named_machine = (cell.get("factors") or {}).get(MACHINE)
            machine = named_machine or machine_keys[0]
            name = cell_id(_without_machine(cell["id"]), machine, merged)
            factors = {**(cell.get("factors") or {}), MACHINE: machine}
            cells[name] = {**cell, "id": name, "factors": factors, "trials": counts.get(name, 0)}
            cell_settings = (campaign.manifest.get("settings") or {}).get(cell["id"])
            if cell_settings is not None:
                settings.setdefault(name, cell_settings)
    excluded = [item for head in heads for item in head.get("excluded", [])]
    finished = all(head.get("state") == "finished" for head in heads)
    return {
        **heads[0],
        "format_version": form.FORMAT_VERSION,
        "created": min(str(head.get("created") or "") for head in heads),
        "finished": max(str(head.get("finished") or "") for head in heads) or None,
        "state": "finished" if finished else "interrupted",
        "versions": _versions(heads),
        "settings": settings,
        "cells": list(cells.values()),
        "excluded": [item for place, item in enumerate(excluded) if item not in excluded[:place]],
        "machines": [{"key": key, "hostname": host} for key, host in merged.machines.items()],
        **_machine_speed(heads),
    }


def _machine_speed(heads: Sequence[Json]) -> Json:
    """Null if the speeds differ, so that nobody misattributes one; each source keeps its own."""
    speeds = [head.get("machine_speed") for head in heads]
    return {} if all(speed == speeds[0] for speed in speeds) else {"machine_speed": None}


def _versions(heads: Sequence[Json]) -> dict[str, str]:
    """For each adapter, all versions that were in use."""
    by_adapter: dict[str, dict[str, None]] = {}
    for head in heads:
        for adapter, version in (head.get("versions") or {}).items():
            by_adapter.setdefault(adapter, {}).update(dict.fromkeys(str(version).split(", ")))
    return {adapter: ", ".join(versions) for adapter, versions in by_adapter.items()}


def _environment(campaigns: Sequence[Campaign]) -> Json:
    """What is the same on all machines; differing values are null, so that nobody misattributes them."""
    environments = [campaign.environment for campaign in campaigns]
    names = dict.fromkeys(name for environment in environments for name in environment)
    common: Json = {}
    for name in names:
        values = [environment.get(name) for environment in environments]
        common[name] = values[0] if all(value == values[0] for value in values) else None
    hosts = dict.fromkeys(str(environment.get("hostname") or "unknown") for environment in environments)
    common["hostname"] = ", ".join(hosts)
    return common


def _copy_sources(campaigns: Sequence[Campaign], directory: Path) -> list[Json]:
    """Keeps the rest of each source (above all its environment) under `sources/`; returns the sources."""
    sources: dict[str, Json] = {}
    for campaign in campaigns:
        for folder in _source_folders(campaign):
            manifest = (folder / form.MANIFEST).read_bytes()
            environment = folder / form.ENVIRONMENT
            machine = environment.read_bytes() if environment.is_file() else b""
            digest = hashlib.sha256(manifest + b"\0" + machine).hexdigest()
            if digest in sources:
                continue
            target = directory / SOURCES / str(len(sources))
            target.mkdir(parents=True, exist_ok=True)
            for path in sorted(folder.iterdir()):
                if path.is_file() and path.name not in OWN_FILES and not path.name.startswith("."):
                    shutil.copyfile(path, target / path.name)
            head = json.loads(manifest)
            sources[digest] = {"folder": f"{SOURCES}/{len(sources)}"} | {
                name: head.get(name) for name in ("name", "created", "finished", "state", "lagometer_version")
            }
    return list(sources.values())


def _source_folders(campaign: Campaign) -> list[Path]:
    """The campaign's own folder, or the folders that a merged one keeps of its sources."""
    if SOURCES not in campaign.manifest:
        return [campaign.directory]
    return [campaign.directory / str(source["folder"]) for source in campaign.manifest[SOURCES]]
