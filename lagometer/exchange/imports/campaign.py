# SPDX-License-Identifier: Apache-2.0
"""Another tool's figures as a campaign folder, marked as imported: never our own measurements.

It has no samples, and invents nothing: figures that a file does not contain are null, and the manifest says
why. Nothing passed our validity checks, which the warning `imported` says on every row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lagometer import __version__
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.source import Source
from lagometer.exchange.imports.trial import Imported, Trial, check_order, part
from lagometer.store import format as form

IMPORTED = "imported"  # the folder of the imported files, and the first part of a cell's id


def warning(tool: str) -> str:
    """The warning on every row of an imported campaign."""
    return f"{IMPORTED}: figures of {tool}, not measured by lagometer"


def write_campaign(
    format_name: str, sources: Sequence[Source], imported: Imported, directory: Path
) -> list[str]:
    """Writes the campaign into `directory`, which must not exist yet; returns its cells.

    Raises ExchangeError, OSError.
    """
    if not imported.trials:
        raise ExchangeError(f"{sources[0].path}: holds no result; there is nothing to import")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / IMPORTED).mkdir()
    for index, source in enumerate(sources):
        (directory / IMPORTED / f"{index}-{source.path.name}").write_bytes(source.content)
    rows = _rows(imported)
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in _entries(rows, imported.tool)]
    form.write_bytes_atomic("".join(lines).encode(), directory / form.JOURNAL)
    form.write_cells(form.cells_of_rows(rows), directory / form.CELLS)
    form.write_json_atomic({}, directory / form.ENVIRONMENT)
    form.write_json_atomic(clean(_manifest(format_name, sources, imported, rows)), directory / form.MANIFEST)
    return list(dict.fromkeys(row["cell"] for row in rows))


def clean(value: Any) -> Any:
    """A value that JSON and Parquet can hold: lone surrogates and NaN become text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    return [clean(item) for item in value] if isinstance(value, list | tuple) else value


def cell_id(tool: str, trial: Trial) -> str:
    """`imported/<tool>/…`."""
    return "/".join([IMPORTED, part(tool), *(part(text) for text in trial.parts)])


def _rows(imported: Imported) -> list[dict[str, Any]]:
    """A row of cells.parquet for each trial; trials of the same cell are numbered in order."""
    numbers: dict[tuple[str, str], int] = {}
    rows = []
    for trial in imported.trials:
        check_order(trial.figures, str(trial.files[0].path))
        cell = cell_id(imported.tool, trial)
        trial_number = numbers.get((cell, trial.edge), 0)
        numbers[cell, trial.edge] = trial_number + 1
        rows.append(
            {
                "cell": cell,
                "trial": trial_number,
                "edge": trial.edge,
                "valid": True,
                "reasons": [],
                "warnings": clean(
                    [warning(imported.tool), *(f"{IMPORTED}: {text}" for text in trial.warnings)]
                ),
                **trial.figures,
                **clean(trial.factors),
                "imported_from": imported.tool,
            }
        )
    return rows


def _entries(rows: Sequence[Mapping[str, Any]], tool: str) -> list[dict[str, Any]]:
    """The lines of the journal: one per trial, with the rows of all its edges."""
    keys = ("cell", "trial", "valid", "reasons", "warnings")
    entries: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        entry = {**{key: row[key] for key in keys}, IMPORTED: tool, "adapters": [], "rows": []}
        entries.setdefault((row["cell"], row["trial"]), entry)["rows"].append(row)
    return list(entries.values())


def _manifest(
    format_name: str, sources: Sequence[Source], imported: Imported, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    cells: dict[str, dict[str, Any]] = {}
    for trial, row in zip(imported.trials, rows, strict=True):
        cell = cells.setdefault(row["cell"], {"id": row["cell"], "factors": dict(trial.factors), "trials": 0})
        cell["trials"] = max(cell["trials"], row["trial"] + 1)
    trials = [
        {"cell": row["cell"], "trial": row["trial"], "files": [source.path.name for source in trial.files]}
        for trial, row in zip(imported.trials, rows, strict=True)
    ]
    about = zip(sources, imported.about, strict=True)
    return {
        "format_version": form.FORMAT_VERSION,
        "name": f"imported from {imported.tool}",
        "created": now,
        "finished": now,
        "state": "finished",
        "study": {"name": IMPORTED, "description": warning(imported.tool)},
        "study_text": "",
        "study_path": None,
        "seed": None,
        "lagometer_version": __version__,
        "versions": {},
        "settings": {},
        "cells": list(cells.values()),
        "excluded": [],
        IMPORTED: {
            "from": imported.tool,
            "version": imported.version,
            "format": format_name,
            "logs": [{"file": source.path.name, **details} for source, details in about],
            "trials": trials,
            "absent": {
                name: reason for names, reason in imported.absent.items() for name in names.split(", ")
            },
            "notes": list(imported.notes),
        },
    }
