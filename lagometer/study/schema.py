# SPDX-License-Identifier: Apache-2.0
"""A study as a typed value, and its top-level keys.

Tables of keys read the file, not a model class: every error must name its line and the nearest valid word,
and the meaning of a scalar depends only on its key (see document.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagometer.study.cell import Cell
from lagometer.study.graph import Graph
from lagometer.study.hosts import Host
from lagometer.study.links import Link
from lagometer.study.load_shape import ContentFile
from lagometer.study.schedule import Recording
from lagometer.study.schema_values import (
    DAY_NS,
    HOUR_NS,
    TEXT_SCHEMA,
    TIME_SCHEMA,
    WARMUP_BOUNDS_SCHEMA,
    duration_between,
    parse_discovery_ns,
    parse_precision,
    parse_resources,
    parse_switch,
    parse_warmup_ns,
    unless_told,
    whole_schema,
)
from lagometer.study.sidecar import OptionValue
from lagometer.study.values import count_between, name_parser, text_parser, word_parser
from lagometer.study.variants import Variant

CELLS_MAX = 100_000
TRIALS_MAX = 100_000
TRIES_PER_VALID = 3  # of `trials_valid`, without a `trials_max`
ADAPTIVE_TRIALS_MIN = 6  # fewer say too little about the spread between trials to base a decision on
DISCARD_MAX = 1_000_000_000
DEADLINE_K, DEADLINE_K_MAX = 10, 1_000_000
# Measured on two CPUs: 100 processes of Cyclone DDS took 13.5 s to match, of Fast DDS 27.8 s.
DISCOVERY_NS_MIN = 10 * 10**9
DISCOVERY_NS_PER_PARTICIPANT = 500_000_000
DISCOVERY_NS_PER_ENDPOINT = 20_000_000


@dataclass(frozen=True)
class Study:
    """A study, checked as far as possible without adapters.

    duration_ns, warmup_ns, drain_ns: phases of one trial; discovery_timeout_ns: the longest wait for
    endpoints to match; priority: of SCHED_FIFO; options: adapter → option → value; variants,
    hosts: by name;
    exclude: globs over cell ids; matrix: the factors that are varied or set, by name, in id order; graphs:
    the workload graphs by name, rate and work not filled in; source: the file's name, or its replacement in
    errors; text: the file, empty for a study without one; lines: dotted key → line, for errors that are
    found later.

    warmup_ns: the worker's own phase, the minimum; warmup_max_ns: the latest end of warm-up that a
    steady-state test may find, counted from the common start, None without the test; discard: first messages
    of each edge's measure phase that count as warm-up; precision: half-width of the interval of p50 over p50
    at which a cell has enough trials, None if each has exactly `trials`; trials_min, trials_max,
    cell_time_ns: its bounds; control: the factors of the cell that runs between blocks, None for no such
    cell; long_trial_ns: measure phase of one long trial per family of cells, 0 for none, None: by the
    campaign; recordings: of recorded schedules, by name; contents: files that payloads are filled from, by
    name; deadline_ns: from due to taken, or None.
    """

    name: str
    duration_ns: int
    warmup_ns: int
    drain_ns: int
    trials: int
    seed: int
    discovery_timeout_ns: int | None
    priority: int
    matrix: Mapping[str, tuple[object, ...]]
    graphs: Mapping[str, Graph]
    description: str = ""
    warmup_max_ns: int | None = None
    discard: int = 0
    trials_valid: int | None = None  # a cell gets trials until this many are valid, at most trials_max
    precision: float | None = None
    trials_min: int = ADAPTIVE_TRIALS_MIN
    trials_max: int = 60
    cell_time_ns: int | None = None
    control: Mapping[str, object] | None = None
    long_trial_ns: int | None = None
    saturation: str = "fail"  # a trial whose sources fall behind fails (`fail`), or is saturated (`keep`)
    deadline_ns: int | None = None
    deadline_k: int = DEADLINE_K  # reports the fewest that met it among this many in a row
    needs: str = ""  # a requirement for running it; its cells are excluded
    layers: bool = False  # adapters and a preloaded probe stamp where each message spends its time
    scheduler: bool = False  # records the kernel's scheduler, where that is allowed
    resources: str = "on"  # what processes cost: `off`, `on`, `counters`: with the processor's counters
    capture: bool = False  # copies every packet of a trial into a file
    transfer: bool = True  # plain TCP of the same bytes beside each cell that crosses a network
    machine_floor_ns: int | None = None  # how long to measure it; 0: not at all, None: the campaign decides
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    contents: Mapping[str, ContentFile] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    variants: Mapping[str, Variant] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)  # those that the factor names, by name
    scale: str | None = None  # the name of the chosen scale
    parts: Mapping[str, Study] = field(
        default_factory=dict
    )  # by name: each with a matrix and phases of its own
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

    def of(self, cell: Cell) -> Study:
        """The study, or its part, that a cell belongs to."""
        return self.parts.get(cell.factors.part, self)

    def discovery_ns(self, cell: Cell) -> int:
        """The longest wait for all to match. Unless set, it grows with participants and endpoints."""
        if self.discovery_timeout_ns is not None:
            return self.discovery_timeout_ns
        endpoints = len(cell.graph.streams) + len(cell.graph.edges())
        participants = cell.graph.node_names if cell.factors.participants == "per-node" else cell.workers
        grown_ns = DISCOVERY_NS_PER_PARTICIPANT * len(participants) + DISCOVERY_NS_PER_ENDPOINT * endpoints
        return min(DISCOVERY_NS_MIN + grown_ns, HOUR_NS)

    def fewest_trials(self) -> int:
        """The minimum number of executions of each cell."""
        if self.trials_valid is not None:
            return self.trials_valid
        return self.trials if self.precision is None else max(self.trials_min, self.trials)

    def most_trials(self) -> int:
        """The maximum number of executions of any cell."""
        return self.trials if self.precision is None and self.trials_valid is None else self.trials_max

    def as_json(self) -> dict[str, object]:
        """The whole study as resolved, with defaults filled in, for manifest.json."""
        return {
            "name": self.name,
            "description": self.description,
            "duration_ns": self.duration_ns,
            "warmup_ns": self.warmup_ns,
            "warmup_max_ns": self.warmup_max_ns,
            "discard": self.discard,
            "drain_ns": self.drain_ns,
            "trials": self.trials,
            "trials_valid": self.trials_valid,
            "precision": self.precision,
            "trials_min": self.trials_min,
            "trials_max": self.trials_max,
            "cell_time_ns": self.cell_time_ns,
            "long_trial_ns": self.long_trial_ns,
            "saturation": self.saturation,
            "deadline_ns": self.deadline_ns,
            "deadline_k": self.deadline_k,
            "layers": self.layers,
            "scheduler": self.scheduler,
            "resources": self.resources,
            "capture": self.capture,
            "transfer": self.transfer,
            "needs": self.needs,
            "machine_floor_ns": self.machine_floor_ns,
            "control": dict(self.control) if self.control is not None else None,
            "seed": self.seed,
            "discovery_timeout_ns": self.discovery_timeout_ns,
            "priority": self.priority,
            "options": {name: dict(settings) for name, settings in self.options.items()},
            "variants": {name: variant.as_json() for name, variant in self.variants.items()},
            "hosts": {name: host.as_json() for name, host in self.hosts.items()},
            "links": {name: link.as_json() for name, link in self.links.items()},
            "scale": self.scale,
            "parts": {name: part.as_json() for name, part in self.parts.items()},
            "exclude": list(self.exclude),
            "recordings": {name: recording.as_json() for name, recording in self.recordings.items()},
            "contents": {name: content.as_json() for name, content in self.contents.items()},
            "matrix": {name: list(values) for name, values in self.matrix.items()},
        }


@dataclass(frozen=True)
class TopLevelKey:
    """A top-level key of a study that takes one value.

    field: of `Study`; parse: raises UnitError; default: as a user would write it, None if the key is
    required; absent: the value if the default is empty.
    """

    name: str
    field: str
    parse: Callable[[str], object]
    default: str | None
    description: str
    schema: Mapping[str, object]
    absent: object = ""


TOP_LEVEL_KEYS: tuple[TopLevelKey, ...] = (
    TopLevelKey("name", "name", name_parser("a study"), None, "the study's name", TEXT_SCHEMA),
    TopLevelKey("description", "description", text_parser, "", "what the study should find out", TEXT_SCHEMA),
    TopLevelKey(
        "duration",
        "duration_ns",
        duration_between(1_000_000, DAY_NS),
        "2s",
        "measure phase of one trial",
        TIME_SCHEMA,
    ),
    TopLevelKey(
        "warmup",
        "warmup_ns",
        parse_warmup_ns,
        "300ms",
        "sent before measuring, not counted: a time; `auto` or `{min: …, max: …}`: with a steady-state test",
        {"anyOf": [TIME_SCHEMA, WARMUP_BOUNDS_SCHEMA]},
    ),
    TopLevelKey(
        "discard",
        "discard",
        count_between(0, DISCARD_MAX),
        "0",
        "first messages of each edge's measure phase that are not counted either",
        whole_schema(0, DISCARD_MAX),
    ),
    TopLevelKey(
        "drain",
        "drain_ns",
        duration_between(0, HOUR_NS),
        "200ms",
        "wait after measuring for messages under way",
        TIME_SCHEMA,
    ),
    TopLevelKey(
        "trials",
        "trials",
        count_between(1, TRIALS_MAX),
        "1",
        "executions of each cell",
        whole_schema(1, TRIALS_MAX),
    ),
    TopLevelKey(
        "trials_valid",
        "trials_valid",
        count_between(1, TRIALS_MAX),
        "",
        "instead of `trials`: a cell gets trials until so many are valid, up to `trials_max`",
        whole_schema(1, TRIALS_MAX),
        absent=None,
    ),
    TopLevelKey(
        "precision",
        "precision",
        parse_precision,
        "",
        "half-width of the interval of p50 over p50, like 5%: a cell gets as many trials as that takes",
        {"type": "string", "pattern": "^[0-9.]+ *%$"},
        absent=None,
    ),
    TopLevelKey(
        "trials_min",
        "trials_min",
        count_between(1, TRIALS_MAX),
        str(ADAPTIVE_TRIALS_MIN),
        "with `precision`: the minimum number of executions of a cell",
        whole_schema(ADAPTIVE_TRIALS_MIN, TRIALS_MAX),
    ),
    TopLevelKey(
        "trials_max",
        "trials_max",
        count_between(1, TRIALS_MAX),
        "60",
        "with `precision` or `trials_valid`: the maximum number of executions of a cell",
        whole_schema(1, TRIALS_MAX),
    ),
    TopLevelKey(
        "cell_time",
        "cell_time_ns",
        duration_between(1_000_000, 7 * DAY_NS),
        "",
        "with `precision`: no trial of a cell begins that would bring its total time above this",
        TIME_SCHEMA,
        absent=None,
    ),
    TopLevelKey(
        "long_trial",
        "long_trial_ns",
        unless_told(duration_between(1_000_000, DAY_NS)),
        "auto",
        "measure phase of one long trial per adapter and workload, a check on the short ones: a time, off, "
        "or auto (with `precision` a tenth of the campaign for all of them)",
        TIME_SCHEMA,
    ),
    TopLevelKey(
        "machine_floor",
        "machine_floor_ns",
        unless_told(duration_between(10_000_000, HOUR_NS)),
        "auto",
        "how long the CPUs' wake-up latency is measured first: a time, off, or auto (10s, at most a tenth of "
        "the campaign)",
        TIME_SCHEMA,
    ),
    TopLevelKey(
        "saturation",
        "saturation",
        word_parser(("fail", "keep")),
        "fail",
        "a trial whose sources publish less than 99 % of their schedule: fail, or keep it as saturated",
        {"enum": ["fail", "keep"]},
    ),
    TopLevelKey(
        "deadline",
        "deadline_ns",
        duration_between(1, HOUR_NS),
        "",
        "from when a message is due until it is taken: how often and how long in a row it was missed",
        TIME_SCHEMA,
        absent=None,
    ),
    TopLevelKey(
        "deadline_k",
        "deadline_k",
        count_between(1, DEADLINE_K_MAX),
        str(DEADLINE_K),
        "with `deadline`: the k of (m, k), the minimum of deadlines met in any k consecutive messages",
        whole_schema(1, DEADLINE_K_MAX),
    ),
    TopLevelKey(
        "layers",
        "layers",
        parse_switch,
        "off",
        "on: a probe and the adapters stamp when each message is in which layer of the middleware",
        {"enum": ["on", "off", True, False]},
    ),
    TopLevelKey(
        "scheduler",
        "scheduler",
        parse_switch,
        "off",
        "with `layers: on`: the kernel's scheduler is recorded, so that each layer tells how long a thread "
        "slept, waited for its CPU, and ran, and who ran instead; where the kernel allows it",
        {"enum": ["on", "off", True, False]},
    ),
    TopLevelKey(
        "resources",
        "resources",
        parse_resources,
        "on",
        "what the processes of a trial cost: off, on (looked at outside of the measure phase), or counters "
        "(those of the processor too, which cost something at each switch between threads)",
        {"enum": ["on", "off", "counters", True, False]},
    ),
    TopLevelKey(
        "capture",
        "capture",
        parse_switch,
        "off",
        "on: every packet of a trial is copied into a file, one for each host, and counted",
        {"enum": ["on", "off", True, False]},
    ),
    TopLevelKey(
        "transfer",
        "transfer",
        parse_switch,
        "on",
        "plain TCP of the same bytes beside each cell whose messages cross an emulated link, or go to "
        "another machine, as its floor: on or off",
        {"enum": ["on", "off", True, False]},
    ),
    TopLevelKey(
        "needs",
        "needs",
        text_parser,
        "",
        "what this study, or part, requires and this machine lacks: its cells are excluded with this reason",
        TEXT_SCHEMA,
    ),
    TopLevelKey(
        "seed",
        "seed",
        count_between(0, 2**63 - 1),
        "1",
        "seed of the random order of trials",
        whole_schema(0, 2**63 - 1),
    ),
    TopLevelKey(
        "discovery_timeout",
        "discovery_timeout_ns",
        parse_discovery_ns,
        "auto",
        "maximum wait until all endpoints are matched: a time, or auto (10s, and more with processes and "
        "endpoints)",
        TIME_SCHEMA,
    ),
    TopLevelKey(
        "priority",
        "priority",
        count_between(1, 99),
        "20",
        "SCHED_FIFO priority of the nodes' threads",
        whole_schema(1, 99),
    ),
)
CONTROL_NONE, CONTROL_FLOOR = "none", "floor"
# The floor of most cells: shared memory, one message in flight at a time.
FLOOR: Mapping[str, object] = {"adapter": "shm", "workload": "pingpong"}
# The keys that take more than one value.
NESTED_KEYS: Mapping[str, str] = {
    "options": "settings per adapter: `options: {cyclonedds: {max_message_size: 65500}}`",
    "variants": "sets of options for the factor `variant`: `variants: {udp: {fastdds: {transport: udp}}}`; "
    "`env: {NAME: value}` in one sets variables of the workers",
    "hosts": "places that workers run on: `hosts: {robot: {launcher: local}, base: {launcher: local, "
    "runs: [pong]}}`, or a file with this key alone; a cell has all, or those of the factor `hosts`",
    "links": "emulated links: `links: {radio: {rate: 20Mbit, delay: 5ms, jitter: 1ms, loss: 1%}}`; the "
    "factor `link` names them",
    "control": "a cell that runs between blocks: `none`, `floor` (shm, pingpong), or factors",
    "parts": "studies within the study, each with keys that replace those above it: "
    "`parts: {large: {duration: 10s, matrix: {payload: 4MB}}}`",
    "scales": "the study in other sizes, for `--scale`: `scales: {quick: {trials: 1, matrix: {rate: 10Hz}}}`",
    "exclude": "globs over cell ids to leave out",
    "matrix": "the factors; the cells are every combination of their values",
}


def key_defaults() -> dict[str, object]:
    """The value of each key of a resolved study that a study does not set; also for older lagometers."""
    keys = {key.field: key.parse(key.default) if key.default else key.absent for key in TOP_LEVEL_KEYS}
    return {
        **keys,
        "recordings": {},
        "contents": {},
        "variants": {},
        "hosts": {},
        "links": {},
        "scale": None,
        "parts": {},
    }


KEY_NAMES: tuple[str, ...] = (*(key.name for key in TOP_LEVEL_KEYS), *NESTED_KEYS)
