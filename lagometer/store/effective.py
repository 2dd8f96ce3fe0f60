# SPDX-License-Identifier: Apache-2.0
"""What the manifest says about a cell's adapters: the settings in force, and other observed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OBSERVED = "observed"
Place = tuple[str, str, str]  # adapter, object, name
Manifest = Mapping[str, Any]


def effective_of_both(
    a: tuple[Manifest, str], b: tuple[Manifest, str]
) -> tuple[dict[Place, object], dict[Place, object]]:
    """The values in force in two cells, each given as a manifest and an id, by place.

    A setting has its value. An observed value has the name `observed: …`, and is a list if workers or trials
    reported several values. It is left out if either cell was measured by a lagometer that did not store it.
    """
    described = _described(*a), _described(*b)
    all_observed = all(OBSERVED in entry for entries in described for entry in entries)
    effective_a, effective_b = (dict(_told(entries, all_observed)) for entries in described)
    return effective_a, effective_b


def _described(manifest: Manifest, cell: str) -> list[Mapping[str, Any]]:
    by_cell = manifest.get("settings")
    return list(by_cell.get(cell) or ()) if isinstance(by_cell, Mapping) else []


def _told(entries: list[Mapping[str, Any]], with_observed: bool) -> Iterator[tuple[Place, object]]:
    for description in entries:
        prefix = str(description.get("adapter")), str(description.get("object"))
        for name, entry in (description.get("settings") or {}).items():
            value = entry["value"] if isinstance(entry, Mapping) and "value" in entry else entry
            yield (*prefix, str(name)), value
        for name, values in description[OBSERVED].items() if with_observed else ():
            yield (*prefix, f"{OBSERVED}: {name}"), values[0] if len(values) == 1 else values
