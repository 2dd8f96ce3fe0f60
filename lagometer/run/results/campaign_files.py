# SPDX-License-Identifier: Apache-2.0
"""The files of a campaign while it runs (docs/FORMAT.md): the manifest, and trials in three places.

The study's own trials are in the campaign's folder. Those of the control cell and the long ones are in
separate folders with the same layout, so no reader of a study's cells can confuse them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl

from lagometer.errors import BadInput
from lagometer.run.results.effective import add_observed, described
from lagometer.run.results.trial_store import TrialStore, adapters_in_use, host_facts
from lagometer.run.worker.outcome import TrialOutcome
from lagometer.store import format as form
from lagometer.store.environment import collect, completed
from lagometer.store.reader import read_manifest
from lagometer.store.storing import storing
from lagometer.study.schema import key_defaults


class Results:
    """The files of one campaign, owned by the process that runs it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest: dict[str, Any] = {}
        self._environment: dict[str, Any] = {}
        self.trials = TrialStore(directory)
        self.control = TrialStore(directory / form.CONTROL)
        self.long = TrialStore(directory / form.LONG)
        self._lock = -1

    def lock(self) -> None:
        """Keeps other conductors out of the folder until `close` or this process's end, however it ends.

        Raises `BadInput` if another one uses the folder, `CannotStore`.
        """
        with storing(self.directory):
            self._lock = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadInput(
                "another lagometer is using this folder",
                where=f"--out {self.directory}",
                hint="wait for its end, or name another folder",
            ) from error

    def close(self) -> None:
        """Releases the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Writes the initial files of a campaign. Raises `CannotStore`.

        The manifest comes first, because a folder with a manifest can be resumed.
        """
        self.manifest = {
            **manifest,
            "format_version": form.FORMAT_VERSION,
            "state": "running",
            "finished": None,
        }
        self.manifest |= {"versions": {}, "settings": {}, "hosts": {}}
        with storing(self.directory):
            self._write_manifest()
            self._environment = collect()
            form.write_json_atomic(self._environment, self.directory / form.ENVIRONMENT)
        self.trials.write_cells()

    def reopen(self, manifest: Mapping[str, Any]) -> None:
        """Continues a campaign where it ended. Raises `BadInput` if it belongs to another study,
        `StoreError`."""
        previous = read_manifest(self.directory)
        if "sources" in previous:
            raise BadInput(
                "is merged from several campaigns",
                where=f"--out {self.directory}",
                hint="continue one of those, then merge again",
            )
        if not same_study(previous.get("study"), manifest["study"]):
            raise BadInput(
                "contains another study, or an older version of this one",
                where=f"--out {self.directory}",
                hint="run without --resume: the old folder is kept and moved aside",
            )
        known = {cell["id"] for cell in previous["cells"]}
        added = [cell for cell in manifest["cells"] if cell["id"] not in known]
        self.manifest = {**previous, "state": "running", "finished": None}
        self.manifest["cells"] = [*previous["cells"], *added]
        self.manifest["excluded"] = _still_excluded(previous.get("excluded", []), manifest, known)
        path = self.directory / form.ENVIRONMENT
        self._environment = json.loads(path.read_text(encoding="utf-8")) if path.exists() else collect()
        for part in (self.trials, self.control, self.long):
            part.reopen()
        with storing(self.directory):
            form.write_json_atomic(self._environment, self.directory / form.ENVIRONMENT)
            self._write_manifest()
        self._write_cells()

    def learn(self, cell: str, outcome: TrialOutcome) -> None:
        """Keeps what the first trial of a cell reports about versions, hosts and effective settings.

        Observed values are kept for each trial.
        """
        for adapter in adapters_in_use(outcome):
            self.manifest["versions"].setdefault(adapter["name"], adapter["library_version"])
        for host in outcome.hosts:
            facts = host_facts(host, outcome.workers)
            known_host = self.manifest.setdefault("hosts", {}).setdefault(host.name, facts)
            for key in ("adapters", "files"):
                known_host[key] = {**facts[key], **known_host.get(key, {})}
        entries = described(outcome)
        known_entries = self.manifest["settings"].get(cell)
        if known_entries is not None:
            add_observed(known_entries, entries)
        elif entries:
            self.manifest["settings"][cell] = entries

    def checkpoint(self) -> None:
        """Writes the versions and settings known so far. Raises `CannotStore`."""
        with storing(self.directory):
            self._write_manifest()

    def finish(self, state: str) -> None:
        """Notes how the campaign ended: `finished` or `interrupted`. Raises `CannotStore`."""
        self.manifest["state"] = state
        self.manifest["finished"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._environment = completed(self._environment)
        self._write_cells()
        with storing(self.directory):
            form.write_json_atomic(self._environment, self.directory / form.ENVIRONMENT)
            self._write_manifest()

    def write_estimates(self, estimates: pl.DataFrame) -> None:
        """Writes estimates.parquet. Raises `CannotStore`."""
        with storing(self.directory):
            form.write_cells(estimates, self.directory / form.ESTIMATES)

    def _write_cells(self) -> None:
        self.trials.write_cells()
        for part in (self.control, self.long):
            if part.done:
                part.write_cells()

    def _write_manifest(self) -> None:
        form.write_json_atomic(self.manifest, self.directory / form.MANIFEST)


def _still_excluded(
    before: Sequence[Mapping[str, str]], manifest: Mapping[str, Any], measured: Collection[str]
) -> list[Mapping[str, str]]:
    """The excluded cells of a continued campaign. What was missing may be there now, and the reverse. A cell
    with a place among those that are measured keeps it, and cells that are not selected now stay."""
    runs = {*measured, *(cell["id"] for cell in manifest["cells"])}
    now = {item["cell"]: item for item in manifest["excluded"]}
    kept = [now.pop(item["cell"], item) for item in before if item["cell"] not in runs]
    return [*kept, *(item for cell, item in now.items() if cell not in runs)]


def same_study(before: object, now: Mapping[str, Any]) -> bool:
    """Whether a manifest contains this study. A key that an older lagometer did not know has its default."""
    if not isinstance(before, Mapping):
        return False
    defaults = key_defaults()
    return set(before) <= set(now) and all(
        before[name] == value if name in before else value in (defaults.get(name), None)
        for name, value in now.items()
    )
