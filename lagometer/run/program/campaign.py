# SPDX-License-Identifier: Apache-2.0
"""Writes what the probes of programs recorded as a campaign: a cell for each edge, a trial for each run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lagometer import __version__
from lagometer.run.program.running import Look
from lagometer.stats.program.edges import ProgramEdge, Programs
from lagometer.stats.trial.way import UNATTRIBUTED
from lagometer.store import format as form
from lagometer.store.environment import collect
from lagometer.store.probes import ProbeLog, ros2_of
from lagometer.store.storing import make_folders
from lagometer.units import signed_duration_text

PROBED = "probed"  # the first part of the cell's id, and the manifest's key
UNATTRIBUTED_MAX = 0.5


@dataclass(frozen=True)
class Carried:
    """One run of a command under the probe. exit_code: negative for the signal that ended it; None if
    lagometer ended it; interrupted: by the user, so no further run is wanted."""

    command: Sequence[str]
    name: str
    started: datetime
    seconds: float
    exit_code: int | None
    look: Look
    programs: Programs
    interrupted: bool = False


def write_campaign(runs: Sequence[Carried], directory: Path) -> None:
    """Writes the runs of one command into `directory`, which does not exist yet. Raises OSError."""
    make_folders(directory)
    entries = []
    for trial, carried in enumerate(runs):
        for edge in carried.programs.edges:
            cell = cell_of(carried.name, edge.name)
            path = directory / form.SAMPLES / cell / f"{trial}.parquet"
            make_folders(path.parent)
            whole = edge.samples.with_columns(pl.lit(form.END_TO_END).cast(pl.Categorical).alias("edge"))
            form.write_samples(pl.concat([edge.samples, whole]), path)
            layers_path = directory / form.LAYER_FILES / cell / f"{trial}.parquet"
            make_folders(layers_path.parent)
            form.write_layers(edge.layers, layers_path)
            entries.append(_entry(carried, edge, cell, trial, str(path.relative_to(directory))))
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries]
    form.write_bytes_atomic("".join(lines).encode(), directory / form.JOURNAL)
    form.write_cells(
        form.cells_of_rows([row for entry in entries for row in entry["rows"]]), directory / form.CELLS
    )
    form.write_json_atomic(collect(), directory / form.ENVIRONMENT)
    form.write_json_atomic(_manifest(runs), directory / form.MANIFEST)


def cell_of(name: str, edge: str) -> str:
    """The cell of an edge: `probed/NAME/writer→reader/topic`."""
    parts = [part for part in edge.replace(" ", "/", 1).split("/") if part.strip(".")]
    return "/".join([PROBED, name, *parts])


def _entry(carried: Carried, edge: ProgramEdge, cell: str, trial: int, path: str) -> dict[str, Any]:
    """The journal's line of one edge in one run."""
    entry_warnings = [
        *warnings(carried),
        *_warnings_of(edge.followed, edge.measured_layers, int(str(edge.figures["n"]))),
    ]
    started = carried.started.isoformat(timespec="seconds")
    common = {
        "cell": cell,
        "trial": trial,
        "valid": True,
        "reasons": [],
        "warnings": entry_warnings,
        "started": started,
    }
    return {
        **common,
        "seconds": carried.seconds,
        "path": path,
        "adapters": [],
        "rows": [
            {**edge.figures, **common, "workload": PROBED, "edge": name}
            for name in (edge.name, form.END_TO_END)
        ],
    }


def warnings(carried: Carried) -> Iterator[str]:
    """What a reader of the figures needs to know."""
    look, programs = carried.look, carried.programs
    overflow = sum(log.overflow for log in look.logs)
    if overflow:
        yield f"probe: {overflow:,} calls found no room; what came after is missing. Use --room"
    if look.stopped:
        yield "probe: it was stopped early, since its files would have filled the memory"
    for problem in look.unreadable:
        yield f"probe: {problem}"
    yield from look.left
    for name, log in zip(programs.names, look.logs, strict=True):
        ros2 = ros2_of(log)
        if ros2 is not None and ros2.refused is not None:
            yield f"probe: ROS 2's own layers in {name} are not stamped: {ros2.refused}"
    if look.clock.was_set:
        yield (
            f"probe: the wall clock was set by {signed_duration_text(look.clock.drift_ns)} meanwhile; "
            "messages are found by its time, so some may be several and are left out; "
            "if it was set more than once, some may be missing"
        )
    if programs.strange:
        yield f"probe: no writer was seen for {programs.strange:,} messages that were taken"
    if programs.ambiguous:
        yield f"probe: {programs.ambiguous:,} messages may be several, and are left out"


def _warnings_of(followed: int, layers: pl.DataFrame, taken: int) -> Iterator[str]:
    """What a reader of one edge's layers needs to know."""
    if taken and followed == 0:
        yield "probe: no message was seen on a socket: shared memory, within one process, or Zenoh"
    timed_layers = layers.with_columns((pl.col("end_ns") - pl.col("begin_ns")).alias("ns"))
    unknown_ns = int(timed_layers.filter(pl.col("layer").cast(pl.String()) == UNATTRIBUTED)["ns"].sum())
    if taken and unknown_ns > UNATTRIBUTED_MAX * int(timed_layers["ns"].sum()):
        yield "probe: most of the time is in no layer that can be seen"


def _manifest(runs: Sequence[Carried]) -> dict[str, Any]:
    first = runs[0]
    cells: dict[str, int] = {}
    for trial, carried in enumerate(runs):
        for edge in carried.programs.edges:
            cells[cell_of(carried.name, edge.name)] = trial + 1
    command = shlex.join(first.command)
    return {
        "format_version": form.FORMAT_VERSION,
        "name": first.name,
        "created": first.started.isoformat(timespec="seconds"),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "state": "finished",
        "study": {"name": first.name, "description": f"the programs of `{command}` under the probe"},
        "study_text": "",
        "study_path": None,
        "seed": None,
        "lagometer_version": __version__,
        "versions": {},
        "settings": {},
        "cells": [
            {"id": cell, "factors": {"workload": PROBED}, "trials": trials}
            for cell, trials in sorted(cells.items())
        ],
        "excluded": [],
        PROBED: [told(carried) for carried in runs],
    }


def told(carried: Carried) -> dict[str, Any]:
    """The command, its programs, and their topics; for the manifest and for `--json`."""
    programs = carried.programs
    listed = []
    for index, (name, log) in enumerate(zip(programs.names, carried.look.logs, strict=True)):
        listed.append(
            {
                "name": name,
                "process": log.process,
                "command": list(log.program),
                "threads": {str(thread): text for thread, text in sorted(log.names.items())},
                "calls": len(log.calls),
                "lost_calls": log.overflow,
                "ros2": _ros2(log),
                "writers": list(_endpoints(programs, index, True)),
                "readers": list(_endpoints(programs, index, False)),
            }
        )
    clock = carried.look.clock
    return {
        "command": list(carried.command),
        "exit_code": carried.exit_code,
        "seconds": carried.seconds,
        "programs": listed,
        "clock": {"error_ns": clock.error_ns, "drift_ns": clock.drift_ns},
        "views": {edge.name: {"from": edge.begins, "to": edge.ends} for edge in programs.edges},
        "taken_from_elsewhere": programs.strange,
        "ambiguous": programs.ambiguous,
    }


def _ros2(log: ProbeLog) -> Mapping[str, Any] | None:
    ros2 = ros2_of(log)
    return None if ros2 is None else {**asdict(ros2), "nodes": list(ros2.nodes)}


def _endpoints(programs: Programs, program: int, writes: bool) -> Iterator[Mapping[str, Any]]:
    counts = programs.written if writes else programs.taken
    for place, endpoint in enumerate(programs.endpoints):
        if endpoint.program == program and endpoint.writes == writes:
            yield {
                "topic": endpoint.topic,
                "type": endpoint.type,
                "guid": endpoint.guid.hex(),
                "qos": None if endpoint.qos is None else asdict(endpoint.qos),
                "messages": counts[place],
            }


def median_size(samples: pl.DataFrame) -> int | None:
    """The median size of the messages whose size was seen on a socket; None if there is none."""
    sizes = samples["payload_bytes"].drop_nulls().to_numpy()
    return int(np.median(sizes)) if len(sizes) else None
