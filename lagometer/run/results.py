# SPDX-License-Identifier: Apache-2.0
"""What a campaign has stored so far: each trial is in all of its files or in none (docs/FORMAT.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl

from lagometer.errors import BadInput
from lagometer.run.outcome import TrialOutcome
from lagometer.run.storing import Journal, storing
from lagometer.store import format as form
from lagometer.store.environment import completed
from lagometer.store.reader import open_campaign

Key = tuple[str, int]


class Results:
    """The files of one campaign, owned by the process that carries it out."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest: dict[str, Any] = {}
        self._environment: dict[str, Any] = {}
        self._journal = Journal(directory / form.JOURNAL)
        self._cells: list[pl.DataFrame] = []
        self._done: dict[Key, bool] = {}
        self._reasons: dict[Key, list[str]] = {}

    @property
    def done(self) -> Mapping[Key, bool]:
        """The finished trials, and whether each is valid."""
        return self._done

    def reasons(self, key: Key) -> list[str]:
        """Returns why a finished trial is not valid."""
        return list(self._reasons.get(key, ()))

    def create(self, manifest: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
        """Writes the files that a campaign begins with. Raises `CannotStore`."""
        self.manifest = {
            **manifest,
            "format_version": form.FORMAT_VERSION,
            "state": "running",
            "finished": None,
        }
        self.manifest |= {"versions": {}, "settings": {}}
        self._environment = dict(environment)
        with storing(self.directory):
            form.write_json_atomic(self._environment, self.directory / form.ENVIRONMENT)
            form.write_cells(form.empty_cells(), self.directory / form.CELLS)
            self._write_manifest()

    def reopen(self, manifest: Mapping[str, Any]) -> None:
        """Takes up a campaign where it ended. Raises `BadInput` if it is another study's, `StoreError`."""
        before = open_campaign(self.directory)
        if before.manifest.get("study") != manifest["study"]:
            raise BadInput(
                "holds another study, or this one before it was changed",
                where=f"--out {self.directory}",
                mend="run without --resume: the old folder is kept and moved aside",
            )
        known = {cell["id"] for cell in before.manifest["cells"]}
        added = [cell for cell in manifest["cells"] if cell["id"] not in known]
        self.manifest = {**before.manifest, "state": "running", "finished": None}
        self.manifest["cells"] = [*before.manifest["cells"], *added]
        self._environment = before.environment
        for entry in self._journal.read():
            rows = entry["rows"]
            assert isinstance(rows, list)
            self._cells.append(_rows_to_frame(rows))
            key = (str(entry["cell"]), int(str(entry["trial"])))
            self._done[key] = bool(entry["valid"])
            self._reasons[key] = [str(reason) for reason in entry["reasons"]]  # type: ignore[attr-defined]
        with storing(self.directory):
            self._write_cells()
            self._write_manifest()

    def store(self, key: Key, outcome: TrialOutcome, samples: pl.DataFrame, rows: pl.DataFrame) -> None:
        """Adds one trial. Raises `CannotStore`; the campaign is then as it was before the trial."""
        cell, trial = key
        folder = self.directory / form.SAMPLES / cell
        path, log = folder / f"{trial}.parquet", folder / f"{trial}.log"
        journal_bytes = self._journal.size()
        self._cells.append(rows)
        try:
            with storing(path):
                folder.mkdir(parents=True, exist_ok=True)
                form.write_samples(samples, path)
                if outcome.reasons:
                    form.write_bytes_atomic(_log_text(outcome).encode(), log)
                self._journal.append(self._entry(key, outcome, rows, path))
                self._write_cells()
        except BaseException:
            self._cells.pop()
            with contextlib.suppress(OSError):
                self._journal.cut(journal_bytes)
                path.unlink(missing_ok=True)
                log.unlink(missing_ok=True)
            raise
        self._done[key] = bool(rows["valid"].all())
        self._learn(cell, outcome)

    def checkpoint(self) -> None:
        """Writes what was learnt of versions and settings. Raises `CannotStore`."""
        with storing(self.directory):
            self._write_manifest()

    def finish(self, state: str) -> None:
        """Notes how the campaign ended: `finished` or `interrupted`. Raises `CannotStore`."""
        self.manifest["state"] = state
        self.manifest["finished"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._environment = completed(self._environment)
        with storing(self.directory):
            self._write_manifest()
            form.write_json_atomic(self._environment, self.directory / form.ENVIRONMENT)

    def _write_cells(self) -> None:
        cells = pl.concat(self._cells, how="diagonal") if self._cells else form.empty_cells()
        form.write_cells(cells, self.directory / form.CELLS)

    def _write_manifest(self) -> None:
        form.write_json_atomic(self.manifest, self.directory / form.MANIFEST)

    def _entry(self, key: Key, outcome: TrialOutcome, rows: pl.DataFrame, path: Path) -> dict[str, object]:
        done = [(worker.name, worker.done) for worker in outcome.workers if worker.done is not None]
        return {
            "cell": key[0],
            "trial": key[1],
            "valid": bool(rows["valid"].all()),
            "reasons": rows["reasons"][0].to_list(),
            "warnings": rows["warnings"][0].to_list(),
            "started": outcome.started,
            "overhead_s": outcome.overhead_s,
            "phases_s": dict(outcome.phases_s),
            "seconds": outcome.seconds,
            "path": str(path.relative_to(self.directory)),
            "isolation": dict(outcome.isolation),
            "adapters": _adapters_in_use(outcome),
            "scheduling": {w.name: w.ready.scheduling for w in outcome.workers if w.ready is not None},
            "threads": {name: said.threads for name, said in done},
            "counters": {
                name: {
                    "writers": [writer.model_dump() for writer in said.writers],
                    "readers": [reader.model_dump() for reader in said.readers],
                    "context_switches": said.context_switches.model_dump(),
                    "resident_bytes_max": said.resident_bytes_max,
                    "cpu_ns": said.cpu_ns,
                }
                for name, said in done
            },
            "rows": rows.to_dicts(),
        }

    def _learn(self, cell: str, outcome: TrialOutcome) -> None:
        """Keeps what the first trial of a cell tells about versions and effective settings."""
        for adapter in _adapters_in_use(outcome):
            self.manifest["versions"].setdefault(adapter["name"], adapter["library_version"])
        settings = [
            _flat(each) for worker in outcome.workers if worker.ready for each in worker.ready.settings
        ]
        if settings and cell not in self.manifest["settings"]:
            self.manifest["settings"][cell] = [
                each for place, each in enumerate(settings) if each not in settings[:place]
            ]


def _flat(said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one object's effective settings as the manifest has them: adapter, object, settings, paste."""
    effective = said.get("effective")
    effective = effective if isinstance(effective, dict) else {}
    return {
        "adapter": said.get("adapter"),
        "object": said.get("object"),
        "settings": effective.get("settings", said.get("settings", {})),
        "paste": effective.get("paste", said.get("paste", [])),
    }


def _adapters_in_use(outcome: TrialOutcome) -> list[dict[str, Any]]:
    """Returns the adapters of a trial, each once."""
    found = {
        adapter.name: adapter
        for worker in outcome.workers
        if worker.ready is not None
        for adapter in worker.ready.adapters
    }
    return [
        {"name": each.name, "version": each.version, "library_version": each.library_version}
        for each in found.values()
    ]


def _rows_to_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    schema = form.cells_schema(rows[0]) if rows else form.cells_schema()
    return pl.DataFrame([{**dict.fromkeys(schema), **row} for row in rows], schema=schema, orient="row")


def _log_text(outcome: TrialOutcome) -> str:
    """Returns what the workers of a failed trial said on stderr, each under its name."""
    parts = [f"reason: {reason}\n" for reason in outcome.reasons]
    parts += [f"--- {worker.name} ---\n{worker.stderr}\n" for worker in outcome.workers]
    return "".join(parts)
