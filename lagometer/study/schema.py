# SPDX-License-Identifier: Apache-2.0
"""A study as a typed value, and the keys at its top level.

The file is read by tables of keys and not by a model class, since every error has to name its line and the
nearest valid word, and since a scalar's meaning depends on its key alone (see document.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagometer import units
from lagometer.study.graph import Graph
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import name_parser, text_parser
from lagometer.units import UnitError

CELLS_MAX = 100_000
TRIALS_MAX = 100_000
HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS


@dataclass(frozen=True)
class Study:
    """A study, checked as far as it can be without adapters.

    duration_ns, warmup_ns, drain_ns: phases of one trial; discovery_timeout_ns: the longest wait for
    endpoints to match; priority: of SCHED_FIFO; options: adapter → option → value; exclude: globs over cell
    ids; matrix: the factors that are varied or set, by name, in id order; graphs: the workload graphs by
    name, rate and work not filled in; source: the file's name, or what stands for it in errors; text: the
    file, empty for a study without one; lines: dotted key → line, for errors that are found later.
    """

    name: str
    duration_ns: int
    warmup_ns: int
    drain_ns: int
    trials: int
    seed: int
    discovery_timeout_ns: int
    priority: int
    matrix: Mapping[str, tuple[object, ...]]
    graphs: Mapping[str, Graph]
    description: str = ""
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    source: str = "study"
    path: Path | None = None
    text: str = ""
    lines: Mapping[str, int | None] = field(default_factory=dict, compare=False)

    def where(self, key: str) -> str:
        """The place of a dotted key, for an error."""
        line = self.lines.get(key)
        return f"{self.source}:{line}: {key}" if line is not None else f"{self.source}: {key}"

    def trial_ns(self) -> int:
        """Warm-up, measure and drain of one trial."""
        return self.warmup_ns + self.duration_ns + self.drain_ns

    def as_json(self) -> dict[str, object]:
        """The whole study as resolved, defaults filled in, for manifest.json."""
        return {
            "name": self.name,
            "description": self.description,
            "duration_ns": self.duration_ns,
            "warmup_ns": self.warmup_ns,
            "drain_ns": self.drain_ns,
            "trials": self.trials,
            "seed": self.seed,
            "discovery_timeout_ns": self.discovery_timeout_ns,
            "priority": self.priority,
            "options": {name: dict(given) for name, given in self.options.items()},
            "exclude": list(self.exclude),
            "matrix": {name: list(values) for name, values in self.matrix.items()},
        }


@dataclass(frozen=True)
class TopLevelKey:
    """A key at the top level of a study that takes one value.

    field: of `Study`; parse: raises UnitError; default: as a user would write it, None if the key must be
    given.
    """

    name: str
    field: str
    parse: Callable[[str], object]
    default: str | None
    description: str
    schema: Mapping[str, object]


def _duration(minimum_ns: int, maximum_ns: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        duration_ns = units.parse_duration_ns(text)
        if not minimum_ns <= duration_ns <= maximum_ns:
            longest = f"{maximum_ns // HOUR_NS}h"
            raise UnitError(f"'{text}' is not between {units.format_duration(minimum_ns)} and {longest}")
        return duration_ns

    return parse


def _count(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = units.parse_count(text)
        if not minimum <= number <= maximum:
            raise UnitError(f"'{text}' is not between {minimum} and {maximum}")
        return number

    return parse


_TEXT = {"type": "string"}
_TIME = {"type": ["string", "integer"]}


def _whole(minimum: int, maximum: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


TOP_LEVEL_KEYS: tuple[TopLevelKey, ...] = (
    TopLevelKey("name", "name", name_parser("a study"), None, "the study's name", _TEXT),
    TopLevelKey("description", "description", text_parser, "", "what the study is to find out", _TEXT),
    TopLevelKey(
        "duration", "duration_ns", _duration(1_000_000, DAY_NS), "2s", "measure phase of one trial", _TIME
    ),
    TopLevelKey(
        "warmup", "warmup_ns", _duration(0, HOUR_NS), "300ms", "sent before measuring, and not counted", _TIME
    ),
    TopLevelKey(
        "drain",
        "drain_ns",
        _duration(0, HOUR_NS),
        "200ms",
        "after measuring: waits for what is under way",
        _TIME,
    ),
    TopLevelKey(
        "trials", "trials", _count(1, TRIALS_MAX), "1", "executions of each cell", _whole(1, TRIALS_MAX)
    ),
    TopLevelKey(
        "seed", "seed", _count(0, 2**63 - 1), "1", "of the random order of trials", _whole(0, 2**63 - 1)
    ),
    TopLevelKey(
        "discovery_timeout",
        "discovery_timeout_ns",
        _duration(1_000_000, HOUR_NS),
        "10s",
        "the longest wait until all endpoints are matched",
        _TIME,
    ),
    TopLevelKey(
        "priority",
        "priority",
        _count(1, 99),
        "20",
        "SCHED_FIFO priority of the nodes' threads",
        _whole(1, 99),
    ),
)
# The keys that take more than one value.
NESTED_KEYS: Mapping[str, str] = {
    "options": "settings per adapter: `options: {cyclonedds: {max_message_size: 65500}}`",
    "exclude": "globs over cell ids that are left out",
    "matrix": "the factors; the cells are every combination of their values",
}
KEY_NAMES: tuple[str, ...] = (*(key.name for key in TOP_LEVEL_KEYS), *NESTED_KEYS)
