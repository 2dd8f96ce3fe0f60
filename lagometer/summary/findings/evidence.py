# SPDX-License-Identifier: Apache-2.0
"""What a finding may look at: a cell's figures, factors and settings, and observations of its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from lagometer.store.format import ARROW
from lagometer.store.in_force import reported, value_of
from lagometer.store.observed import KERNEL_COUNTERS

KERNEL_COLUMNS = tuple(f"kernel_{name}" for name in KERNEL_COUNTERS)

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Said:
    """A finding for one cell, in sentences. trials: in how many it was seen.

    kind: its code word. number: what shows it. fix: what to change. source: where this is documented.
    """

    kind: str
    trials: int
    what: str
    number: str
    fix: str
    source: str


@dataclass(frozen=True)
class Trial:
    """One trial. rows: its rows of `cells.parquet`, one per edge. line: its line in the journal."""

    rows: Sequence[Json]
    line: Json

    @property
    def valid(self) -> bool:
        """Whether it counts."""
        return bool(self.line.get("valid"))

    def reasons(self, word: str) -> list[str]:
        """The reasons with this code word, without the word itself."""
        return _with_word(self.line.get("reasons"), word)

    def warnings(self, word: str) -> list[str]:
        """The warnings with this code word, without the word itself."""
        return _with_word(self.line.get("warnings"), word)

    def count(self, column: str) -> int:
        """The sum over the edges; 0 if unknown."""
        return sum(int(row.get(column) or 0) for row in self._edges)

    @cached_property
    def _edges(self) -> list[Json]:
        return [row for row in self.rows if ARROW in str(row.get("edge"))]

    def way_with_most(self, column: str) -> Json | None:
        """Of the rows of whole ways (end to end, named chains), which overlap, the one that counts most; None
        if none counts any."""
        rows = [row for row in self.rows if ARROW not in str(row.get("edge")) and row.get(column)]
        return max(rows, key=lambda row: int(row[column]), default=None)

    def figure(self, column: str) -> float | None:
        """The largest value over the edges; None if no edge has it."""
        known = [float(row[column]) for row in self.rows if row.get(column) is not None]
        return max(known, default=None)

    @property
    def frames_dropped_by_link(self) -> int:
        """What emulated links dropped, from their verification to the trial's end; 0 without a link."""
        links = self.line.get("links")
        effects = [link.get("did") or {} for link in links] if isinstance(links, list) else []
        program = [effect.get("program") or {} for effect in effects]
        counts = [
            *(effect.get(name) for effect in effects for name in ("filter_dropped", "program_missed")),
            *((effect.get("shaper") or {}).get("drops") for effect in effects),
            *(did.get(name) for did in program for name in ("lost", "overflowed", "unsent")),
        ]
        return sum(int(count) for count in counts if count)

    def kernel(self, name: str) -> int:
        """A kernel counter over the trial; 0 if it was not read."""
        for row in self.rows:
            value = row.get(f"kernel_{name}")
            if value is not None:
                return int(value)
        network = (self.line.get("evidence") or {}).get("network") or {}
        return int(network.get(name) or 0)

    def load(self, name: str) -> float | None:
        """What the machine did in that time (`store.observed.MachineLoad`)."""
        value = ((self.line.get("evidence") or {}).get("load") or {}).get(name)
        return None if value is None else float(value)

    @property
    def last_looks(self) -> list[Json]:
        """What each host showed when the trial ended early (docs/FORMAT.md); empty if it did not."""
        looks = self.line.get("last_look")
        return [look for look in looks if isinstance(look, dict)] if isinstance(looks, list) else []

    @property
    def watched(self) -> bool:
        """Whether the kernel's counters were read; they are not in a campaign from another tool."""
        if (self.line.get("evidence") or {}).get("network"):
            return True
        return any(row.get(name) is not None for row in self.rows for name in KERNEL_COLUMNS)

    @property
    def private(self) -> bool:
        """Whether the kernel's counters belong to the trial alone."""
        return bool((self.line.get("evidence") or {}).get("private"))


def _with_word(texts: object, word: str) -> list[str]:
    if not texts:
        return []
    strings = [str(text) for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
    return [rest.strip() for head, _, rest in (text.partition(":") for text in strings) if head == word]


@dataclass(frozen=True)
class CellEvidence:
    """One cell. settings: effective settings of its objects by name, the first value of each.

    sysctls: of the machine. versions: of the middleware, by adapter. topics: what each carries, if the
    workload says it. asked: the options the study gives, by adapter. environment: the variables its variant
    sets. options: what the sidecars declare about options, by adapter. objects: what the adapters' objects
    report. hosts: the agents' reports about the cell's hosts. emulated: those of its hosts that are
    namespaces on one machine. devices: by the names of its hosts, what they are limited to.
    """

    cell: str
    factors: Json
    trials: Sequence[Trial]
    settings: Json = field(default_factory=dict)
    sysctls: Json = field(default_factory=dict)
    versions: Json = field(default_factory=dict)
    topics: Json = field(default_factory=dict)
    asked: Mapping[str, Json] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    hosts: Mapping[str, Json] = field(default_factory=dict)
    objects: Sequence[Json] = ()
    emulated: Sequence[str] = ()
    devices: Mapping[str, Json] = field(default_factory=dict)

    @cached_property
    def valid(self) -> list[Trial]:
        """The trials that count."""
        return [trial for trial in self.trials if trial.valid]

    @property
    def adapter(self) -> str:
        """The adapter, or `publisher+subscriber` if they differ; of several topics, all, separated by `,`."""
        return str(self.factors.get("adapter", "unknown"))

    @property
    def adapters(self) -> list[str]:
        """All adapters, including those of topics with their own."""
        return list(dict.fromkeys(name for name in self.adapter.replace(",", "+").split("+")))

    @property
    def described(self) -> bool:
        """Whether any object reported what is in force; none does if no trial got that far."""
        return bool(self.objects)

    def reported(self, adapter: str, setting: str) -> list[object]:
        """The values an adapter reports for a setting: its contexts', or otherwise its endpoints'."""
        return reported(self.objects, adapter, setting)

    @property
    def payload_bytes(self) -> int | None:
        """The payload, if the study sets it and no topic has its own."""
        value = self.factors.get("payload_bytes")
        return value if isinstance(value, int) and not self.topics else None

    def factor(self, name: str) -> object:
        """A factor's value; if topics have their own payloads, the largest."""
        if name != "payload_bytes" or not self.topics:
            return self.factors.get(name)
        sizes = [topic.get("payload_bytes") for topic in self.topics.values()]
        return max((size["max"] if isinstance(size, dict) else size for size in sizes if size), default=None)

    def of_topics(self, name: str) -> object:
        """What all topics have for a factor of theirs; None if they differ or nothing tells it."""
        values = [topic.get(name) for topic in self.topics.values()] or [self.factors.get(name)]
        return values[0] if all(value == values[0] for value in values) else None

    @property
    def transports(self) -> set[str]:
        """What carried the messages, as observed."""
        return {str(row["transport"]) for trial in self.trials for row in trial.rows if row.get("transport")}

    def kernel(self, name: str) -> tuple[list[Trial], int]:
        """The trials in which this kernel counter is above zero, including failed ones, and its sum."""
        trials = [trial for trial in self.trials if trial.kernel(name) > 0]
        return trials, sum(trial.kernel(name) for trial in trials)

    def middle(self, column: str) -> float | None:
        """A figure's median over valid trials; None unless every trial has it."""
        known = [trial.figure(column) for trial in self.valid]
        figures = [value for value in known if value is not None]
        return median(figures) if figures and len(figures) == len(known) else None

    def sysctl(self, name: str) -> int | None:
        """A numeric kernel setting."""
        value = self.sysctls.get(name)
        if isinstance(value, int):
            return value
        return int(value) if isinstance(value, str) and value.strip().isdigit() else None

    def receive_buffer_bytes(self) -> int | None:
        """A socket's receive buffer: as the adapter reports it, otherwise the kernel's default."""
        for name, value in self.settings.items():
            reports_it = name == "SO_RCVBUF" or name.endswith("receive_buffer_bytes")
            if reports_it and isinstance(value, int) and value > 0:
                return value
        return self.sysctl("net.core.rmem_default")


def cells_of(
    manifest: Json, environment: Json, rows: Iterable[Json], journal: Iterable[Json]
) -> Iterator[CellEvidence]:
    """The evidence of each cell, in the study's order."""
    by_trial: dict[tuple[str, int], list[Json]] = {}
    for row in rows:
        by_trial.setdefault((str(row["cell"]), int(row["trial"])), []).append(row)
    lines: dict[str, list[Json]] = {}
    for line in journal:
        lines.setdefault(str(line["cell"]), []).append(line)
    sysctls = environment.get("sysctls")
    for cell in manifest.get("cells", []):
        name = str(cell["id"])
        factors = cell.get("factors")
        yield CellEvidence(
            cell=name,
            factors=_in_force(cell),
            trials=[
                Trial(by_trial.get((name, int(line["trial"])), []), line) for line in lines.get(name, [])
            ],
            settings=_flat((manifest.get("settings") or {}).get(name) or []),
            objects=(manifest.get("settings") or {}).get(name) or [],
            sysctls=sysctls if isinstance(sysctls, dict) else {},
            versions=manifest.get("versions") or {},
            topics=cell.get("topics") or {},
            asked=_asked(manifest.get("study") or {}, factors or {}),
            environment=_environment(manifest.get("study") or {}, factors or {}),
            options=manifest.get("options") or {},
            hosts={
                host: report
                for host, report in (manifest.get("hosts") or {}).items()
                if host in str((factors or {}).get("hosts") or "").split("+")
            },
            emulated=_emulated(manifest.get("study") or {}, factors or {}),
            devices=_devices(manifest.get("study") or {}, factors or {}),
        )


def _in_force(cell: Json) -> Json:
    """The factors that the study sets, and the defaults of those that say what topics carry."""
    named = {key: value for key, value in (cell.get("factors") or {}).items() if value is not None}
    return {**(cell.get("defaults") or {}), **named}


def _emulated(study: Json, factors: Json) -> list[str]:
    hosts = study.get("hosts") or {}
    named = str(factors.get("hosts") or "").split("+")
    return [name for name in named if (hosts.get(name) or {}).get("emulated")]


def _devices(study: Json, factors: Json) -> dict[str, Json]:
    hosts = study.get("hosts") or {}
    named = str(factors.get("hosts") or "").split("+")
    return {name: hosts[name]["device"] for name in named if (hosts.get(name) or {}).get("device")}


def _asked(study: Json, factors: Json) -> dict[str, dict[str, Any]]:
    """A cell's options: the study's or its part's, overridden by its variant's."""
    part, variant = _own(study, factors)
    option_sets = [
        options for options in (part.get("options"), variant.get("options")) if isinstance(options, dict)
    ]
    merged: dict[str, dict[str, Any]] = {}
    for options in option_sets:
        for adapter, values in options.items():
            merged.setdefault(adapter, {}).update(values)
    return merged


def _environment(study: Json, factors: Json) -> dict[str, str]:
    """The environment variables that a cell's variant sets."""
    variables = _own(study, factors)[1].get("environment") or {}
    return {str(name): str(value) for name, value in variables.items()}


def _own(study: Json, factors: Json) -> tuple[Json, Json]:
    """The study or part a cell belongs to, and its variant."""
    part = (study.get("parts") or {}).get(factors.get("part"), study)
    return part, (part.get("variants") or {}).get(factors.get("variant")) or {}


def of_reasons(cell: CellEvidence, known: Iterable[tuple[str, str, str]]) -> Iterator[Said]:
    """A finding for each reason of failed trials in `known` (code word, what happened, what to change)."""
    if not any(trial.line.get("reasons") for trial in cell.trials):
        return
    for word, description, fix in known:
        trials = [trial for trial in cell.trials if trial.reasons(word)]
        if trials:
            number = trials[0].reasons(word)[0] or f"{len(trials)} trials"
            yield Said(word, len(trials), description, number, fix, "docs/methodology/validity.md")


def _flat(entries: Iterable[Json]) -> dict[str, Any]:
    """Each setting's value in force: the first that objects report."""
    values: dict[str, Any] = {}
    for entry in entries:
        for name, setting in (entry.get("settings") or {}).items():
            values.setdefault(str(name), value_of(setting))
    return values
