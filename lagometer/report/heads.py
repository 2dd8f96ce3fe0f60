# SPDX-License-Identifier: Apache-2.0
"""What is not a figure: the head of the campaign, its cells, its failures, settings and machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lagometer.report.data import (
    Campaign,
    Cell,
    Exclusion,
    Fact,
    Factor,
    Failure,
    Observation,
    PasteFile,
    ReasonCount,
    Row,
    Setting,
    Settings,
)
from lagometer.report.floor import BARE_TRANSPORTS
from lagometer.report.limits import LOG_CHARACTERS_MAX
from lagometer.report.words import factor_text, plain_text
from lagometer.stats.noise import NOISES
from lagometer.stats.validity import REASONS, WARNINGS
from lagometer.store.format import END_TO_END

Json = Mapping[str, Any]


def campaign_head(manifest: Json, environment: Json) -> Campaign:
    """The head line's facts."""
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
        versions={
            str(key): plain_text(value) or "unknown" for key, value in _items(manifest.get("versions"))
        },
        machine=", ".join(str(each) for each in machine if each) or "unknown machine",
        study_text=str(manifest.get("study_text") or ""),
    )


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def cell_factors(manifest: Json) -> dict[str, dict[str, object]]:
    """The factors that are set, of each cell in the order of the manifest."""
    return {
        str(cell["id"]): {key: value for key, value in _items(cell.get("factors")) if value is not None}
        for cell in manifest.get("cells", [])
    }


def cells(
    factors: Mapping[str, Json],
    rows: Sequence[Row],
    journal: Iterable[Json],
    payloads_bytes: Mapping[str, int],
) -> list[Cell]:
    """Every cell of the campaign, also one of which nothing was measured.

    `payloads_bytes` are those that were received, for a study that leaves the payload at its default.
    """
    edges: dict[str, dict[str, None]] = {}
    trials: dict[str, set[int]] = {}
    for row in rows:
        edges.setdefault(row.cell, {})[row.edge] = None
        trials.setdefault(row.cell, set()).update([] if row.trial is None else [row.trial])
    for line in journal:
        trials.setdefault(str(line["cell"]), set()).add(int(line["trial"]))
    result = []
    for name, values in factors.items():
        payload = values.get("payload_bytes", payloads_bytes.get(name))
        adapter = str(values.get("adapter", "unknown"))
        found = sorted(edges.get(name, {}), key=lambda edge: edge != END_TO_END)
        result.append(
            Cell(
                id=name,
                adapter=adapter,
                bare=adapter in BARE_TRANSPORTS,
                payload_bytes=payload if isinstance(payload, int) else None,
                factors={key: factor_text(key, value) for key, value in values.items()},
                edges=found,
                trials=sorted(trials.get(name, set())),
            )
        )
    return result


def factor_values(factors: Mapping[str, Json]) -> list[Factor]:
    """The factors that occur, each with its values: numbers ascending, words in the order of the study."""
    found: dict[str, dict[Any, None]] = {}
    for each in factors.values():
        for name, value in each.items():
            found.setdefault(name, {})[value] = None
    values = {name: list(known) for name, known in found.items()}
    for known in values.values():
        if all(isinstance(value, (int, float)) for value in known):
            known.sort()
    return [
        Factor(name=name, values=[factor_text(name, value) for value in known])
        for name, known in values.items()
    ]


def failures(directory: Path, journal: Iterable[Json]) -> list[Failure]:
    """The trials that did not count, with the end of what their workers said."""
    found = []
    for line in journal:
        if line.get("valid"):
            continue
        log = directory / "samples" / str(line["cell"]) / f"{line['trial']}.log"
        text = log.read_text(encoding="utf-8", errors="replace").strip() if log.is_file() else ""
        reasons = [str(reason) for reason in line.get("reasons") or ["no reason was recorded"]]
        found.append(
            Failure(
                cell=str(line["cell"]),
                trial=int(line["trial"]),
                reasons=reasons,
                log=text[-LOG_CHARACTERS_MAX:] or None,
            )
        )
    return found


def reason_counts(journal: Iterable[Json], rows: Sequence[Row]) -> list[ReasonCount]:
    """How many trials each reason, warning and kind of noise was found in, the most frequent first."""
    trials: dict[tuple[str, str], set[tuple[str, object]]] = {}

    def add(kind: str, texts: Iterable[object], trial: tuple[str, object]) -> None:
        for text in texts:
            trials.setdefault((kind, str(text).partition(":")[0]), set()).add(trial)

    for line in journal:
        add("failure", line.get("reasons") or (), (str(line["cell"]), line["trial"]))
    for row in rows:
        add("warning", row.warnings, (row.cell, row.trial))
        add("noise", row.noise, (row.cell, row.trial))
    meanings = {"failure": REASONS, "warning": WARNINGS, "noise": NOISES}
    counted = [
        ReasonCount(kind=kind, word=word, meaning=meanings[kind].get(word, ""), trials=len(found))
        for (kind, word), found in trials.items()
    ]
    return sorted(counted, key=lambda each: (tuple(meanings).index(each.kind), -each.trials, each.word))


def exclusions(manifest: Json) -> list[Exclusion]:
    """The combinations that cannot exist."""
    return [
        Exclusion(cell=str(each["cell"]), reason=str(each["reason"])) for each in manifest.get("excluded", [])
    ]


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
    """Files to paste: a list of {file, text}, one such, or mere text."""
    if isinstance(value, str):
        return [PasteFile(file="settings", text=value)] if value.strip() else []
    listed = value if isinstance(value, list) else [value]
    return [
        PasteFile(file=str(each.get("file", "settings")), text=str(each.get("text", "")))
        for each in listed
        if isinstance(each, dict)
    ]


def settings(manifest: Json) -> list[Settings]:
    """Effective settings, adapters in the order of the study's cells.

    Cells in which an object had the same ones share an entry, and so do objects of one kind that agree.
    """
    held: dict[tuple[str, str, str], list[str]] = {}
    for cell in cell_factors(manifest):
        for each in (manifest.get("settings") or {}).get(cell) or []:
            content = json.dumps(
                [each.get("settings"), each.get("observed"), each.get("paste")],
                sort_keys=True,
                ensure_ascii=False,
            )
            named = held.setdefault((str(each.get("adapter")), str(each.get("object")), content), [])
            named += [cell] if cell not in named else []
    merged: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for (adapter, described, content), cell_names in held.items():
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
                settings=[_setting(name, entry) for name, entry in _items(effective)],
                observed=[_observation(name, values) for name, values in _items(observed)],
                paste=_paste(paste),
            )
        )
    places = {entry.adapter: place for place, entry in reversed(list(enumerate(entries)))}
    return sorted(entries, key=lambda entry: (places[entry.adapter], entry.object.split(" ")[0]))


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
            nested += [_fact(name, str(key), each) for key, each in value.items()]
        else:
            plain.append(_fact("machine", str(name), value))
    return plain + nested
