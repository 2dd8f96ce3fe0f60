# SPDX-License-Identifier: Apache-2.0
"""The trials of one folder: journal, cells.parquet, samples. A trial is in all of them or in none.

The order of writing (docs/FORMAT.md) makes a finished trial survive a power cut. First the samples are
written next to their place, synced and renamed, and their folder is synced; then the journal's line is
written and synced. That line makes a trial finished. cells.parquet follows from the journal and can be
recreated at any time.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from lagometer.errors import BadInput
from lagometer.run.companions.links import link_done
from lagometer.run.hosts.part import HostOutcome
from lagometer.run.resources import TrialResources
from lagometer.run.worker.outcome import TrialOutcome, WorkerOutcome
from lagometer.stats.trial.layer_times import LayerTimes
from lagometer.stats.trial.layers import LayerStamps
from lagometer.stats.trial.scheduling import SchedulerTimes
from lagometer.stats.trial.seen_calls import SeenCalls
from lagometer.stats.trial.timelines import Timelines
from lagometer.stats.verdict.validity import is_saturated
from lagometer.store import format as form
from lagometer.store.storing import Journal, make_folders, storing

Key = tuple[str, int]
# After a trial, cells.parquet is rewritten unless that would take more than about this share of the time.
CELLS_SHARE_MAX = 0.05
_TRIAL_FILE = re.compile(r"(0|[1-9][0-9]*)\.(parquet|log|[^/]+\.pcapng)")


@dataclass(frozen=True)
class Finished:
    """A finished trial. spent_s: its total duration, including the calculation of its figures."""

    valid: bool
    reasons: tuple[str, ...]
    overhead_s: float
    spent_s: float

    @property
    def saturated(self) -> bool:
        """Whether its sources fell behind, in a study that keeps such trials: neither valid nor failed."""
        return not self.valid and is_saturated(self.reasons)


@dataclass(frozen=True)
class BesideSamples:
    """What a trial has in addition to its samples, None if missing. events, exchanges: as in the schemas in
    `format`; outages: how long after each outage of a link messages arrived again, for the journal; calls:
    likewise, how much the probes saw; log: whether the trial's log is kept even if it did not fail."""

    stamps: LayerStamps | None = None
    layers: LayerTimes | None = None
    events: pl.DataFrame | None = None
    exchanges: pl.DataFrame | None = None
    resources: TrialResources | None = None
    scheduler: SchedulerTimes | None = None
    calls: SeenCalls | None = None
    outages: Sequence[Mapping[str, Any]] = ()
    timelines: Timelines | None = None
    log: bool = False

    def write(self, paths: Sequence[Path]) -> None:
        """Writes each one to its place, in the order of `BESIDE`. Raises OSError."""
        stamps = self.stamps.frame if self.stamps is not None else None
        layers = self.layers.frame if self.layers is not None else None
        resources = self.resources.frame if self.resources is not None else None
        scheduler = self.scheduler.frame if self.scheduler is not None else None
        timelines = self.timelines.frame if self.timelines is not None else None
        writers = (
            *(form.write_stamps, form.write_layers, form.write_events, form.write_exchanges),
            *(form.write_resources, form.write_scheduler, form.write_parquet),
        )
        frames = (stamps, layers, self.events, self.exchanges, resources, scheduler, timelines)
        for frame, path, write in zip(frames, paths, writers, strict=True):
            if frame is not None:
                make_folders(path.parent)
                write(frame, path)


class TrialStore:
    """The finished trials below one folder, owned by the process that runs them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._journal = Journal(directory / form.JOURNAL)
        self._rows_reopened: list[Mapping[str, Any]] = []
        self._cells: list[pl.DataFrame] = []
        self._done: dict[Key, Finished] = {}
        self._cells_written_s = self._cells_cost_s = 0.0

    @property
    def done(self) -> Mapping[Key, Finished]:
        """The finished trials, in the order in which they ran."""
        return self._done

    def samples_path(self, key: Key) -> Path:
        """The path of a trial's samples."""
        return self.directory / form.SAMPLES / key[0] / f"{key[1]}.parquet"

    def _path(self, folder: str, key: Key) -> Path:
        return self.directory / folder / key[0] / f"{key[1]}.parquet"

    def packets_path(self, key: Key, host: str) -> Path:
        """The path for the packets of a trial on one host until the trial is stored."""
        return self.directory / form.CAPTURES / key[0] / f".{key[1]}.{host}.pcapng.partial"

    def samples(self, key: Key) -> pl.DataFrame:
        """The samples of a finished trial. Raises `BadInput`."""
        try:
            return pl.read_parquet(self.samples_path(key), glob=False, hive_partitioning=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BadInput(
                f"can't be read: {error}", where=str(self.samples_path(key)), hint="run without --resume"
            ) from error

    def reopen(self) -> None:
        """Takes over the folder's contents: trials in the journal are finished, anything else is removed.

        Raises `BadInput` for a damaged journal, `CannotStore`.
        """
        entries = self._journal.read()
        rows: list[Mapping[str, Any]] = []
        for entry in entries:
            key = (str(entry["cell"]), int(entry["trial"]))
            if key in self._done:
                raise BadInput(
                    f"is damaged: {key[0]} #{key[1]} is in it twice",
                    where=str(self.directory / form.JOURNAL),
                    hint="run without --resume",
                )
            rows += entry["rows"]
            seconds = float(entry["seconds"])
            self._done[key] = Finished(
                valid=bool(entry["valid"]),
                reasons=tuple(entry["reasons"]),
                overhead_s=float(entry["overhead_s"]),
                spent_s=float(entry.get("spent_s", seconds)),
            )
        self._rows_reopened = rows
        with storing(self.directory):
            self._remove_unfinished()
            self._sync_folders()

    def store(
        self,
        key: Key,
        outcome: TrialOutcome,
        samples: pl.DataFrame,
        rows: pl.DataFrame,
        began_s: float,
        extras: BesideSamples = BesideSamples(),
    ) -> None:
        """Adds one trial. Raises `CannotStore`; the folder is then in its previous state.

        began_s: when work on the trial began, on the clock of `time.monotonic`.
        """
        path = self.samples_path(key)
        log = path.with_suffix(".log")
        others = [self._path(folder, key) for folder in form.BESIDE]
        partial_captures = [host.packets for host in outcome.hosts if host.packets is not None]
        final_captures = [path.with_name(path.name[1 : -len(form.PARTIAL)]) for path in partial_captures]
        journal_bytes = self._journal.size()
        self._cells.append(rows)
        try:
            with storing(path):
                make_folders(path.parent)
                form.write_samples(samples, path)
                extras.write(others)
                for written, final in zip(partial_captures, final_captures, strict=True):
                    form.keep_file(written, final)
                if outcome.reasons or extras.log:
                    form.write_bytes_atomic(_log_text(outcome).encode(), log)
                spent_s = time.monotonic() - began_s
                entry = journal_entry(key, outcome, rows, str(path.relative_to(self.directory)))
                entry["outages"] = list(extras.outages)
                if extras.stamps is not None:
                    entry["layer_stamps"] = extras.stamps.counts.as_json()
                if extras.layers is not None:
                    entry["layers"] = extras.layers.counts.as_json()
                if extras.calls is not None:
                    entry["system_calls"] = extras.calls.as_json()
                if extras.resources is not None:
                    entry["resources"] = extras.resources.journal
                if extras.scheduler is not None:
                    entry["scheduler"] = extras.scheduler.counts.as_json()
                if extras.timelines is not None:
                    entry["timelines"] = extras.timelines.counts.as_json()
                self._journal.append({**entry, "spent_s": spent_s, "rows": rows.to_dicts()})
                if self._cells_are_due():
                    self._write_cells()
        except BaseException:
            self._cells.pop()
            with contextlib.suppress(OSError):
                self._journal.cut(journal_bytes)
                for written in (path, log, *others, *partial_captures, *final_captures):
                    written.unlink(missing_ok=True)
            raise
        reasons = tuple(rows["reasons"][0].to_list())
        self._done[key] = Finished(bool(rows["valid"].all()), reasons, outcome.overhead_s, spent_s)

    def write_cells(self) -> None:
        """Writes cells.parquet. Raises `CannotStore`."""
        with storing(self.directory):
            self._write_cells()

    def _cells_are_due(self) -> bool:
        """Whether it is time to rewrite cells.parquet: 100,000 rows after each trial would cost more than the
        trials."""
        return time.monotonic() - self._cells_written_s > self._cells_cost_s / CELLS_SHARE_MAX

    def _write_cells(self) -> None:
        began_s = time.monotonic()
        if self._rows_reopened:
            self._cells.insert(0, form.cells_of_rows(self._rows_reopened))
            self._rows_reopened = []
        # The list stays as it is: a trial that can't be stored is removed from its end.
        cells = pl.concat(self._cells, how="diagonal") if self._cells else form.empty_cells()
        form.write_cells(cells, self.directory / form.CELLS)
        self._cells_written_s = time.monotonic()
        self._cells_cost_s = self._cells_written_s - began_s

    def _remove_unfinished(self) -> None:
        """Removes what a kill or a power cut left of trials that are not in the journal."""
        for path in self.directory.glob(".*.partial"):
            path.unlink(missing_ok=True)
        for root in self._roots():
            for path in root.rglob(".*.partial"):
                path.unlink(missing_ok=True)
            for path in root.rglob("*"):
                match = _TRIAL_FILE.fullmatch(path.name)
                cell = str(path.parent.relative_to(root))
                if match and path.is_file() and (cell, int(match[1])) not in self._done:
                    path.unlink()

    def _roots(self) -> tuple[Path, ...]:
        """The folders that contain files of trials."""
        return tuple(self.directory / folder for folder in (form.SAMPLES, *form.BESIDE, form.CAPTURES))

    def _sync_folders(self) -> None:
        """Syncs folders that a killed process made: whoever finds a folder relies on it."""
        below = [folder for root in self._roots() for folder in (root, *root.rglob("*"))]
        for folder in (self.directory, *below):
            if folder.is_dir():
                form.sync_folder(folder)


def journal_entry(key: Key, outcome: TrialOutcome, rows: pl.DataFrame, path: str) -> dict[str, Any]:
    """What the journal keeps of a trial in addition to its rows. `path`: of its samples."""
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
        "path": path,
        "isolation": dict(outcome.isolation),
        "hosts": [_host(host, outcome.workers) for host in outcome.hosts],
        "adapters": adapters_in_use(outcome),
        "scheduling": {
            worker.name: worker.ready.scheduling for worker in outcome.workers if worker.ready is not None
        },
        "threads": {name: worker_done.threads for name, worker_done in done},
        "startup_ns": {worker.name: dict(worker.startup_ns) for worker in outcome.workers},
        "counters": {
            name: {
                "writers": [writer.model_dump() for writer in worker_done.writers],
                "readers": [reader.model_dump() for reader in worker_done.readers],
                "context_switches": worker_done.context_switches.model_dump(),
                "resident_bytes_max": worker_done.resident_bytes_max,
                "cpu_ns": worker_done.cpu_ns,
            }
            for name, worker_done in done
        },
        "interference": asdict(outcome.load) if outcome.load is not None else None,
        "daemons": [daemon.as_json() for daemon in outcome.daemons],
        "captured": {host.name: asdict(host.captured) for host in outcome.hosts if host.captured is not None},
        "links": [{"host": host, **link_done(link)} for host, link in outcome.links],
        "devices": [{"host": host.name, **host.limited} for host in outcome.hosts if host.limited],
        "evidence": outcome.evidence.as_json() if outcome.evidence is not None else None,
        "last_look": [
            {
                "host": host.name,
                **host.last_look.as_json([outcome.workers[each].name for each in host.workers]),
            }
            for host in outcome.hosts
            if host.last_look is not None
        ],
    }


def _host(host: HostOutcome, workers: Sequence[WorkerOutcome]) -> dict[str, Any]:
    """Returns a host's workers, its clock's offset from the conductor's, and its limit for real-time
    threads."""
    names = [workers[index].name for index in host.workers]
    limit = host.evidence.realtime_limit if host.evidence is not None else None
    return {
        "name": host.name,
        "workers": names,
        "clock": asdict(host.clock),
        "realtime_limit": asdict(limit) if limit is not None else None,
        "services": [report.as_json() for report in host.services],
    }


def host_facts(host: HostOutcome, workers: Sequence[WorkerOutcome]) -> dict[str, Any]:
    """Returns what the manifest keeps of a host: its agent's report, and its adapters' libraries."""
    adapters = adapters_of([workers[index] for index in host.workers])
    hello = {
        name: host.hello.get(name)
        for name in ("host", "machine", "version", "cpus", "limits", "synchronisation")
    }
    versions = {adapter["name"]: adapter["library_version"] for adapter in adapters}
    return {**hello, "adapters": versions, "files": dict(host.files)}


def adapters_in_use(outcome: TrialOutcome) -> list[dict[str, Any]]:
    """Returns the adapters of a trial, each once."""
    return adapters_of(outcome.workers)


def adapters_of(workers: Sequence[WorkerOutcome]) -> list[dict[str, Any]]:
    """Returns the adapters of these workers, each once."""
    by_name = {
        adapter.name: adapter
        for worker in workers
        if worker.ready is not None
        for adapter in worker.ready.adapters
    }
    return [
        {"name": adapter.name, "version": adapter.version, "library_version": adapter.library_version}
        for adapter in by_name.values()
    ]


def _log_text(outcome: TrialOutcome) -> str:
    """Returns why a trial failed, and the stderr of its workers and daemons, each under its name."""
    parts = [f"reason: {reason}\n" for reason in outcome.reasons]
    parts += [f"--- {worker.name} ---\n{worker.stderr}\n" for worker in outcome.workers]
    parts += [f"--- daemon {daemon.name} ---\n{daemon.output}\n" for daemon in outcome.daemons]
    parts += [f"--- link on {host} ---\n{link.output}\n" for host, link in outcome.links]
    return "".join(parts)
