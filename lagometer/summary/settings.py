# SPDX-License-Identifier: Apache-2.0
"""Effective settings of the adapters' objects; equal ones are listed once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lagometer.summary.campaign import cell_factors, items
from lagometer.summary.data import Observation, PasteFile, Setting, Settings
from lagometer.units import plain_text

Json = Mapping[str, Any]


def _setting(name: str, entry: object) -> Setting:
    if not (isinstance(entry, dict) and "value" in entry):
        return Setting(name=name, value=plain_text(entry) or "null", default=None, changed=False)
    default = entry.get("default")
    return Setting(
        name=name,
        value=plain_text(entry["value"]) or "null",
        default=plain_text(default),
        changed="default" in entry and entry["value"] != default,
    )


def _observation(name: str, values: object) -> Observation:
    listed = values if isinstance(values, list) else [values]
    return Observation(name=name, values=[plain_text(value) or "null" for value in listed])


def _paste(value: object) -> list[PasteFile]:
    """Files to paste: a list of {file, text}, one of them, or plain text."""
    if isinstance(value, str):
        return [PasteFile(file="settings", text=value)] if value.strip() else []
    listed = value if isinstance(value, list) else [value]
    return [
        PasteFile(file=str(entry.get("file", "settings")), text=str(entry.get("text", "")))
        for entry in listed
        if isinstance(entry, dict)
    ]


def settings(manifest: Json) -> list[Settings]:
    """Effective settings, with adapters in the order of the study's cells.

    Cells in which an object had the same settings share an entry, and so do objects of one kind that agree.
    """
    by_content: dict[tuple[str, str, str], list[str]] = {}
    for cell in cell_factors(manifest):
        for record in (manifest.get("settings") or {}).get(cell) or []:
            content = json.dumps(
                [record.get("settings"), record.get("observed"), record.get("paste")],
                sort_keys=True,
                ensure_ascii=False,
            )
            cell_ids = by_content.setdefault(
                (str(record.get("adapter")), str(record.get("object")), content), []
            )
            cell_ids += [cell] if cell not in cell_ids else []
    merged: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for (adapter, described, content), cell_names in by_content.items():
        kind, _, name = described.partition(" ")
        merged.setdefault((adapter, kind, content, tuple(cell_names)), []).append(name)
    entries = []
    for (adapter, kind, content, cells_held), names in merged.items():
        effective, observed, paste = json.loads(content)
        entries.append(
            Settings(
                adapter=adapter,
                object=" ".join([kind, ", ".join(name for name in names if name)]).strip(),
                cells=list(cells_held),
                settings=[_setting(name, entry) for name, entry in items(effective)],
                observed=[_observation(name, values) for name, values in items(observed)],
                paste=_paste(paste),
            )
        )
    places = {entry.adapter: place for place, entry in reversed(list(enumerate(entries)))}
    return sorted(entries, key=lambda entry: (places[entry.adapter], entry.object.split(" ")[0]))
