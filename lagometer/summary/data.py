# SPDX-License-Identifier: Apache-2.0
"""What every view of a campaign shows, typed. `web/src/data.ts` is generated from these models (see
`lagometer.report.typescript`).

Every time is in nanoseconds unless its name says otherwise. `None` means that the figure does not exist: not
observed, or a quantile with fewer than 10 samples beyond it. It never stands for zero.
"""

from __future__ import annotations

from lagometer.summary.cell_data import (
    Bridge,
    ChainRow,
    Deadline,
    Feasibility,
    Interference,
    LostTail,
    NodeCosts,
    OnTheWire,
    Queue,
    Saturated,
)
from lagometer.summary.model import Model
from lagometer.summary.scheduling_data import CellScheduling
from lagometer.summary.way_data import CellLayers


class Campaign(Model):
    """Where the figures come from: the head of `manifest.json`."""

    name: str
    description: str | None
    created: str
    finished: str | None
    state: str
    seed: int | None
    lagometer_version: str
    versions: dict[str, str]
    machine: str
    study_text: str


class Counts(Model):
    """Sizes of the campaign. `messages` counts deliveries on all edges but `end-to-end`, measure phase,
    all trials. `trials_noisy` are valid ones that something disturbed.
    """

    cells: int
    trials: int
    trials_valid: int
    trials_saturated: int
    trials_failed: int
    trials_noisy: int
    excluded: int
    messages: int


class Factor(Model):
    """One factor of the matrix and the values that occur, in the study's order."""

    name: str
    values: list[str]


class Cell(Model):
    """One point of the matrix. `factors` are text, as they are shown; `axes`: those that are numbers, and
    `nodes`, of a built-in workload; `bare` marks a bare transport (the floor).
    """

    id: str
    adapter: str
    bare: bool
    payload_bytes: int | None
    factors: dict[str, str]
    axes: dict[str, float]
    edges: list[str]
    trials: list[int]


class Interval(Model):
    """What is known of one figure of a row over trials: its 95 % interval, or how much would do for one.

    `figure` names the field that it belongs to, or `times_floor_p50`: p50 as a multiple of the floor's. With
    an interval, both ends are given, in the figure's unit; without, `needed_trials` (of the same length) and
    `needed_messages` say what should be enough.
    """

    figure: str
    low: float | None
    high: float | None
    needed_trials: int | None
    needed_messages: int | None


class Row(Model):
    """The figures of one edge: of one trial, or (`trial` is null) of a cell over its valid trials.

    Over trials: counts are summed, `max` is the largest, `min` the smallest. A quantile of latency or
    response time that has an interval is the quantile of all valid trials (docs/methodology/intervals.md);
    every other figure is the median of the trials' figures (`lost_share`, lost over sent messages, their
    mean), and null unless each valid trial has it.
    `intervals` are of rows over trials alone. `floor_latency_p50_ns` is the smallest p50 among the bare
    transports with the same placement, dispatch, payload and touch; `floor_cell` says which. `stopped` is
    what ended the cell of an adaptive campaign: precision, time or trials. `trials_noisy` counts the valid
    trials that something beside them disturbed, `noise` says what. `clock_bound_ns` is how far off each
    latency and response time may be whose two ends have clocks of their own (`clock_bound`: hard or narrow),
    null where they have one.
    """

    cell: str
    trial: int | None
    trials: int
    edge: str
    valid: bool
    reasons: list[str]
    warnings: list[str]
    n: int
    sent: int | None
    lost: int | None
    lost_share: float | None
    overwritten: int | None
    censored: int | None
    rejected: int | None
    send_failed: int | None
    duplicated: int | None
    reordered: int | None
    corrupted: int | None
    latency_min_ns: float | None
    latency_p50_ns: float | None
    latency_p90_ns: float | None
    latency_p99_ns: float | None
    latency_p999_ns: float | None
    latency_max_ns: float | None
    response_p50_ns: float | None
    response_p90_ns: float | None
    response_p99_ns: float | None
    response_max_ns: float | None
    send_lag_p50_ns: float | None
    send_lag_p99_ns: float | None
    blocked_p50_ns: float | None
    blocked_p99_ns: float | None
    wake_p50_ns: float | None
    rate_intended_hz: float | None
    rate_achieved_hz: float | None
    cpu_per_message_ns: float | None
    overhead_s: float | None
    floor_cell: str | None
    floor_latency_p50_ns: float | None
    noise: list[str]
    trials_noisy: int
    transport: str | None
    clock_bound_ns: float | None
    clock_bound: str | None
    intervals: list[Interval]
    stopped: str | None


class Failure(Model):
    """A trial that failed, and why."""

    cell: str
    trial: int
    reasons: list[str]
    log: str | None


class ReasonCount(Model):
    """A reason, a warning or a kind of noise: its code word, what it means, and in how many trials it was.

    `kind`: failure, warning or noise.
    """

    kind: str
    word: str
    meaning: str
    trials: int


class WithoutNoise(Model):
    """One figure of a cell end to end, of all valid trials and of those alone that nothing disturbed.

    `of`: `messages`, the quantile of all messages with its 95 % interval; or `trials`, the median of the
    trials' figures, for CPU time per message and where the quiet trials are too few for the former; it has an
    interval from six trials on. Both sides are of the same kind. Cells without disturbed trials, or without
    quiet ones, are not listed.
    """

    cell: str
    figure: str
    of: str
    trials: int
    trials_noisy: int
    all_ns: float | None
    all_low_ns: float | None
    all_high_ns: float | None
    quiet_ns: float | None
    quiet_low_ns: float | None
    quiet_high_ns: float | None


class PreemptedTrial(Model):
    """A valid trial whose workers were switched out involuntarily so often per message; `times` is that over
    the median of its cell (of all cells with fewer than three trials, where it is one of those).
    """

    cell: str
    trial: int
    per_message: float
    times: float
    stands_out: bool
    latency_p50_ns: float | None
    cell_p50_ns: float | None


class Preemption(Model):
    """How much the workers' threads were switched out, and how much that moved the figures.

    trials_above: of `trials`, those with more than one such switch in 10 messages; trials_outstanding: those
    that are flagged. p50_change and p99_change: of the quieter half of each cell's trials against all of
    them, as a share, the median over `cells_compared` cells. ranked: the trials that stand furthest above
    their likes.
    """

    trials: int
    trials_above: int
    trials_outstanding: int
    per_message_median: float
    cells_compared: int
    p50_change: float | None
    p99_change: float | None
    ranked: list[PreemptedTrial]


class ControlTrial(Model):
    """The control cell before one block: its figures end to end. `time_s` counts from the first trial."""

    block: int
    time_s: float
    valid: bool
    n: int
    latency_p50_ns: float | None
    latency_p90_ns: float | None
    latency_p99_ns: float | None
    cpu_per_message_ns: float | None
    remarks: list[str]


class Load(Model):
    """What the machine did during a trial: the share of all CPUs' time that was spent, the trial's own
    included, and that a hypervisor gave to others. `time_s` counts from the campaign's first trial.
    """

    time_s: float
    busy_share: float | None
    stolen_share: float | None


class Control(Model):
    """The control cell over the campaign, and the machine's load in all trials."""

    cell: str
    trials: list[ControlTrial]
    load: list[Load]


class LongFigure(Model):
    """A quantile of a long trial, and the estimate of it from the short trials with its 95 % interval;
    without one the median of their figures.

    `place`: `inside` the interval, `outside` of it, or `beyond` the figures of all short trials, too; null
    where there is no interval to compare it with.
    """

    long_ns: float | None
    short_ns: float | None
    low_ns: float | None
    high_ns: float | None
    place: str | None


class LongTrial(Model):
    """A long trial of a cell beside the short ones, end to end: a check on the bias of short trials.

    CPU time per message of the short ones is their median, with its interval. `remarks`: what to warn of.
    """

    cell: str
    n: int
    p50: LongFigure
    p99: LongFigure
    cpu_per_message_ns: float | None
    short_cpu_per_message_ns: float | None
    short_cpu_per_message_low_ns: float | None
    short_cpu_per_message_high_ns: float | None
    remarks: list[str]


class CoreFloor(Model):
    """Wake-up latency of one CPU: how late a timer's thread runs there, with nothing else to do. A quantile
    with fewer than 10 wake-ups beyond it is null.
    """

    cpu: int
    n: int
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    max_ns: float


class MachineFloor(Model):
    """The wake-up latency that the machine has without any middleware, and the time that a hypervisor took
    meanwhile. `policy`: of the threads that were woken, `fifo` or `other`.
    """

    policy: str | None
    cores: list[CoreFloor]
    duration_s: float
    steal_share: float | None


class Exclusion(Model):
    """A combination that cannot exist, and why."""

    cell: str
    reason: str


class Setting(Model):
    """One effective setting; `changed` if it differs from the vendor's default."""

    name: str
    value: str
    default: str | None
    changed: bool


class PasteFile(Model):
    """Text to paste, and the file or variable that it belongs in."""

    file: str
    text: str


class Observation(Model):
    """What objects told beside their settings; of several values, each once."""

    name: str
    values: list[str]


class Settings(Model):
    """Effective settings of one kind of object of an adapter, and the cells in which they held."""

    adapter: str
    object: str
    cells: list[str]
    settings: list[Setting]
    observed: list[Observation]
    paste: list[PasteFile]


class GlanceFigure(Model):
    """One cell of the table at a glance, end to end over its valid trials.

    `times_floor_…`: as a multiple of the same quantile of the floor (of the row's `floor_cell`); null without
    one. `intervals`: of these figures, as far as they are known.
    """

    cell: str
    latency_p50_ns: float
    latency_p99_ns: float | None
    times_floor_p50: float | None
    times_floor_p99: float | None
    cpu_per_message_ns: float | None
    intervals: list[Interval]


class GlanceRow(Model):
    """One adapter under one set of the other factors. `settings` names those that vary in the campaign.

    `figures`: in the order of the table's payloads, null where nothing was measured. `threads` of all
    processes and `memory_pss_bytes` of workers and daemons: at the smallest payload that was measured.
    """

    adapter: str
    bare: bool
    settings: str
    figures: list[GlanceFigure | None]
    threads: int | None
    memory_pss_bytes: float | None


class Missing(Model):
    """What of an adapter was asked for and has no figures, and why.

    `cells`: which of its cells, named by what sets them apart; empty where nothing of the adapter has any.
    """

    adapter: str
    cells: list[str]
    reasons: list[str]


class Glance(Model):
    """Every adapter beside the floor, at up to three payloads."""

    payloads_bytes: list[int]
    rows: list[GlanceRow]
    missing: list[Missing]


class Fact(Model):
    """One fact about the machine, as text; null where it could not be read."""

    section: str
    name: str
    value: str | None


class AbilityVerdict(Model):
    """What came of one ability of an adapter. `verdict`: pass, fail, absent (declared so),
    absent-against-manual, not-run; `reason` says why it is not a plain pass.
    """

    ability: str
    verdict: str
    reason: str


class Conformance(Model):
    """What the conformance suite found of an adapter, in the order of the abilities."""

    adapter: str
    version: str | None
    findings: list[AbilityVerdict]


class Finding(Model):
    """What happened in a cell and why, as far as evidence, settings and counters tell.

    `kind`: its code word; `what`: a sentence; `number`: what shows it; `fix`: what to change; `source`: where
    this is known from. Seen in `trials` of the cell's `of_trials`, failed ones included.
    """

    cell: str
    kind: str
    trials: int
    of_trials: int
    what: str
    number: str
    fix: str
    source: str


class Summary(Model):
    """A campaign as the terminal, `--json` and the report show it: derived once, each list in the order in
    which it is shown. Cells are in the study's order.

    `rows`: each cell's over its trials first, then those of single trials. `trials_needed`: how many trials
    of each cell would do for intervals, where no cell has one. `intervals_absent`: why there are none, where
    more trials would not help. `notes`: what could not be read or made.
    """

    campaign: Campaign
    counts: Counts
    factors: list[Factor]
    cells: list[Cell]
    glance: Glance | None
    rows: list[Row]
    deadlines: list[Deadline]
    lost_tails: list[LostTail]
    interference: list[Interference]
    findings: list[Finding]
    failures: list[Failure]
    saturated: list[Saturated]
    chains: list[ChainRow]
    wire: list[OnTheWire]
    node_costs: NodeCosts | None
    bridges: list[Bridge]
    layers: list[CellLayers]
    scheduling: list[CellScheduling]
    feasibility: list[Feasibility]
    reasons: list[ReasonCount]
    without_noise: list[WithoutNoise]
    preemption: Preemption | None
    queues: list[Queue]
    control: Control | None
    long_trials: list[LongTrial]
    machine_floor: MachineFloor | None
    trials_needed: int | None
    intervals_absent: str | None
    exclusions: list[Exclusion]
    settings: list[Settings]
    conformance: list[Conformance]
    environment: list[Fact]
    notes: list[str]
