# SPDX-License-Identifier: Apache-2.0
"""The campaign itself: its head, cells, factors, exclusions and machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lagometer.store.format import END_TO_END
from lagometer.summary.data import Campaign, Cell, Exclusion, Fact, Factor, Row
from lagometer.summary.floor_ratio import BARE_TRANSPORTS
from lagometer.units import factor_text, plain_text

Json = Mapping[str, Any]


_SIZE = re.compile(r"(pipeline|fanout|fanin)-([0-9]+)")
# What the number in a built-in workload's name counts.
_COUNTED = {"pipeline": "nodes", "fanout": "subscribers", "fanin": "publishers"}


def campaign_head(manifest: Json, environment: Json) -> Campaign:
    """The facts in the head line."""
    study = manifest.get("study")
    description = study.get("description") if isinstance(study, dict) else None
    cpu = environment.get("cpu")
    machine = [environment.get("hostname"), cpu.get("model") if isinstance(cpu, dict) else None]
    return Campaign(
        name=str(manifest.get("name") or "unnamed"),
        description=plain_text(description) or None,
        created=str(manifest.get("created") or ""),
        finished=plain_text(manifest.get("finished")),
        state=str(manifest.get("state") or "unknown"),
        seed=manifest.get("seed") if isinstance(manifest.get("seed"), int) else None,
        lagometer_version=str(manifest.get("lagometer_version") or "unknown"),
        versions={str(key): plain_text(value) or "unknown" for key, value in items(manifest.get("versions"))},
        machine=", ".join(str(part) for part in machine if part) or "unknown machine",
        study_text=str(manifest.get("study_text") or ""),
    )


def items(value: object) -> list[tuple[str, Any]]:
    """The entries of a JSON object; none for anything else."""
    return list(value.items()) if isinstance(value, dict) else []


def cell_factors(manifest: Json) -> dict[str, dict[str, object]]:
    """The factors that are set in each cell, in the order of the manifest."""
    return {
        str(cell["id"]): {key: value for key, value in items(cell.get("factors")) if value is not None}
        for cell in manifest.get("cells", [])
    }


def forwarding(manifest: Json, cell: str) -> frozenset[tuple[str, str]] | None:
    """The pairs of a cell's edges between which a bridge between domains or adapters is; None if the manifest
    does not list them: there is none, or the campaign is older than they are."""
    listed = (each for each in manifest.get("cells", []) if each["id"] == cell)
    pairs = next((each.get("forwarding") for each in listed), None)
    return None if pairs is None else frozenset((str(taken), str(published)) for taken, published in pairs)


def cells(
    factors: Mapping[str, Json],
    rows: Sequence[Row],
    journal: Iterable[Json],
) -> list[Cell]:
    """Every cell of the campaign, including cells in which nothing was measured."""
    edges: dict[str, dict[str, None]] = {}
    trials: dict[str, set[int]] = {}
    for row in rows:
        edges.setdefault(row.cell, {})[row.edge] = None
        trials.setdefault(row.cell, set()).update([] if row.trial is None else [row.trial])
    for line in journal:
        trials.setdefault(str(line["cell"]), set()).add(int(line["trial"]))
    result = []
    for name, values in factors.items():
        payload = values.get("payload_bytes")
        adapter = str(values.get("adapter", "unknown"))
        edge_names = sorted(edges.get(name, {}), key=lambda edge: edge != END_TO_END)
        result.append(
            Cell(
                id=name,
                adapter=adapter,
                bare=adapter in BARE_TRANSPORTS,
                payload_bytes=payload if isinstance(payload, int) else None,
                factors={key: factor_text(key, value) for key, value in values.items()},
                axes=_axes(values),
                edges=edge_names,
                trials=sorted(trials.get(name, set())),
            )
        )
    return result


def _axes(values: Json) -> dict[str, float]:
    """The properties of a cell that a chart can use as an axis."""
    axes = {
        name: float(value)
        for name in ("payload_bytes", "rate_hz", "depth")
        if isinstance(value := values.get(name), (int, float))
    }
    size = _SIZE.fullmatch(str(values.get("workload")))
    return {**axes, _COUNTED[size[1]]: float(size[2])} if size is not None else axes


def factor_values(factors: Mapping[str, Json]) -> list[Factor]:
    """The factors that occur, each with its values: numbers ascending, words in the study's order."""
    distinct: dict[str, dict[Any, None]] = {}
    for cell_values in factors.values():
        for name, value in cell_values.items():
            distinct.setdefault(name, {})[value] = None
    values = {name: list(known) for name, known in distinct.items()}
    for known in values.values():
        if all(isinstance(value, (int, float)) for value in known):
            known.sort()
    return [
        Factor(name=name, values=[factor_text(name, value) for value in known])
        for name, known in values.items()
    ]


def exclusions(manifest: Json) -> list[Exclusion]:
    """The combinations that cannot exist."""
    return [
        Exclusion(cell=str(entry["cell"]), reason=str(entry["reason"]))
        for entry in manifest.get("excluded", [])
    ]


def _fact(section: str, name: str, value: object) -> Fact:
    text = plain_text(value)
    if name.endswith("_bytes") and isinstance(value, int):
        name, text = name.removesuffix("_bytes"), f"{value / 1024**3:.1f} GiB"
    return Fact(section=section, name=name, value=text)


def environment_facts(environment: Json) -> list[Fact]:
    """The machine as a flat list; a nested object becomes a section."""
    plain, nested = [], []
    for name, value in environment.items():
        if isinstance(value, dict) and value:
            nested += [_fact(name, str(key), entry) for key, entry in value.items()]
        else:
            plain.append(_fact("machine", str(name), value))
    return plain + nested
