# SPDX-License-Identifier: Apache-2.0
"""What the probes of programs told, as a campaign of one cell: its edges are those between programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lagometer import __version__
from lagometer.run.program.running import Look
from lagometer.stats.program.edges import DRIFT_MAX_NS, Programs
from lagometer.stats.trial.way import UNATTRIBUTED
from lagometer.store import format as form
from lagometer.store.environment import collect
from lagometer.store.storing import make_folders

PROBED = "probed"  # the first part of the cell's id, and the manifest's key
UNATTRIBUTED_MAX = 0.5


@dataclass(frozen=True)
class Carried:
    """One command under the probe. exit_code: negative for the signal that ended it; None if it was ended."""

    command: Sequence[str]
    name: str
    started: datetime
    seconds: float
    exit_code: int | None
    look: Look
    programs: Programs


def write_campaign(carried: Carried, directory: Path) -> None:
    """Writes the campaign into `directory`, which is not there yet. Raises OSError."""
    cell = f"{PROBED}/{carried.name}"
    rows = rows_of(carried, cell)
    make_folders(directory)
    samples_path = directory / form.SAMPLES / cell / "0.parquet"
    layers_path = directory / form.LAYER_FILES / cell / "0.parquet"
    edges = carried.programs.edges
    for path, frames, schema, write in (
        (samples_path, [edge.samples for edge in edges], form.SAMPLES_SCHEMA, form.write_samples),
        (layers_path, [edge.layers for edge in edges], form.LAYERS_SCHEMA, form.write_layers),
    ):
        make_folders(path.parent)
        write(pl.concat([pl.DataFrame(schema=schema), *frames]), path)
    entry = {
        "cell": cell,
        "trial": 0,
        "valid": True,
        "reasons": [],
        "warnings": list(warnings(carried)),
        "started": carried.started.isoformat(timespec="seconds"),
        "seconds": carried.seconds,
        "path": str(samples_path.relative_to(directory)),
        "adapters": [],
        "rows": rows,
    }
    form.write_bytes_atomic((json.dumps(entry, ensure_ascii=False) + "\n").encode(), directory / form.JOURNAL)
    form.write_cells(form.cells_of_rows(rows), directory / form.CELLS)
    form.write_json_atomic(collect(), directory / form.ENVIRONMENT)
    form.write_json_atomic(_manifest(carried, cell), directory / form.MANIFEST)


def rows_of(carried: Carried, cell: str) -> list[dict[str, Any]]:
    """A row of cells.parquet for each edge."""
    said = list(warnings(carried))
    return [
        {
            "cell": cell,
            "trial": 0,
            "edge": edge.name,
            "valid": True,
            "reasons": [],
            "warnings": [*said, *_warnings_of(edge.followed, edge.layers, int(str(edge.figures["n"])))],
            "started": carried.started.isoformat(timespec="seconds"),
            "workload": PROBED,
            **edge.figures,
        }
        for edge in carried.programs.edges
    ]


def warnings(carried: Carried) -> Iterator[str]:
    """What a reader of the figures must know."""
    look, programs = carried.look, carried.programs
    overflow = sum(log.overflow for log in look.logs)
    if overflow:
        yield f"probe: {overflow:,} calls found no room; what came after is missing. Use --room"
    if look.stopped:
        yield "probe: it was stopped early, since its files would have filled the memory"
    for each in look.unreadable:
        yield f"probe: {each}"
    if abs(look.clock.drift_ns) > DRIFT_MAX_NS:
        yield (
            f"probe: the clock of the time of day was set by {look.clock.drift_ns / 1e6:.1f} ms meanwhile; "
            "messages are found by that time, so some may be missing"
        )
    if programs.strange:
        yield f"probe: of {programs.strange:,} messages that were taken nobody was seen writing them"
    if programs.ambiguous:
        yield f"probe: {programs.ambiguous:,} messages may be several, and are left out"


def _warnings_of(followed: int, layers: pl.DataFrame, taken: int) -> Iterator[str]:
    """What a reader of one edge's layers must know."""
    if taken and followed == 0:
        yield "probe: no message was seen on a socket: shared memory, or within one process"
    spent = layers.with_columns((pl.col("end_ns") - pl.col("begin_ns")).alias("ns"))
    unknown_ns = int(spent.filter(pl.col("layer").cast(pl.String()) == UNATTRIBUTED)["ns"].sum())
    if taken and unknown_ns > UNATTRIBUTED_MAX * int(spent["ns"].sum()):
        yield "probe: most of the time is in no layer that can be seen"


def _manifest(carried: Carried, cell: str) -> dict[str, Any]:
    command = shlex.join(carried.command)
    return {
        "format_version": form.FORMAT_VERSION,
        "name": carried.name,
        "created": carried.started.isoformat(timespec="seconds"),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "state": "finished",
        "study": {"name": carried.name, "description": f"the programs of `{command}` under the probe"},
        "study_text": "",
        "study_path": None,
        "seed": None,
        "lagometer_version": __version__,
        "versions": {},
        "settings": {},
        "cells": [{"id": cell, "factors": {"workload": PROBED}, "trials": 1}],
        "excluded": [],
        PROBED: told(carried),
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
        "taken_from_elsewhere": programs.strange,
        "ambiguous": programs.ambiguous,
    }


def _endpoints(programs: Programs, program: int, writes: bool) -> Iterator[Mapping[str, Any]]:
    counts = programs.written if writes else programs.taken
    for place, each in enumerate(programs.endpoints):
        if each.program == program and each.writes == writes:
            yield {"topic": each.topic, "type": each.type, "guid": each.guid.hex(), "messages": counts[place]}


def median_size(samples: pl.DataFrame) -> int | None:
    """Of the messages whose size was seen on a socket; None if none was."""
    sizes = samples["payload_bytes"].drop_nulls().to_numpy()
    return int(np.median(sizes)) if len(sizes) else None
