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
    Daemons,
    Deadline,
    Feasibility,
    Interference,
    Joined,
    LostTail,
    NodeCosts,
    OnTheWire,
    Queue,
    Saturated,
    Served,
)
from lagometer.summary.model import Model
from lagometer.summary.scheduling_data import CellScheduling
from lagometer.summary.steadiness_data import Control, LongTrial, MachineFloor
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
    """Sizes of the campaign. `messages` counts deliveries on all edges except `end-to-end`, in the measure
    phase, over all trials. `trials_noisy` counts valid trials that something disturbed.
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
    """One point of the matrix. `factors` are text, as displayed. `axes`: the numeric ones, and for a built-in
    workload its `nodes` (pipeline), `subscribers` (fan-out) or `publishers` (fan-in). `bare` marks a bare
    transport (the floor).
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
    """What is known about one figure of a row over trials: its 95 % interval, or how many trials it takes.

    `figure` names the field, or is `times_floor_p50`: p50 as a multiple of the floor's. With an interval,
    both ends are given, in the figure's unit. Without one, `needed_trials` (of the same length) and
    `needed_messages` say what should be enough.
    """

    figure: str
    low: float | None
    high: float | None
    needed_trials: int | None
    needed_messages: int | None


class Row(Model):
    """The figures of one edge: of one trial, or (if `trial` is null) of a cell over its valid trials.

    Over trials, counts are summed, `max` is the largest, `min` the smallest. A quantile of latency or
    response time with an interval is the quantile of all valid trials (docs/methodology/intervals.md). Every
    other figure is the median of the trials' figures (`lost_share`: their mean), and
    null unless each valid trial has it. Only rows over trials have `intervals`. `floor_latency_p50_ns` is the
    smallest p50 among the bare transports with the same placement, dispatch, payload and touch; `floor_cell`
    names its cell. `stopped` is what ended the cell of an adaptive campaign: precision, time or trials.
    `trials_noisy` counts the valid trials that something external disturbed; `noise` says what.
    `clock_bound_ns` is how far off each latency and response time may be whose two ends have separate clocks
    (`clock_bound`: hard, narrow or ptp); null if they share one. `unreachable`, end to end: messages that
    nobody was there to pass on, not among `sent`. `missing`: messages that did not arrive (lost, overwritten,
    censored or rejected); `lost_share`: their share of all that were meant to be sent.
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
    missing: int | None
    lost_share: float | None
    overwritten: int | None
    censored: int | None
    rejected: int | None
    send_failed: int | None
    duplicated: int | None
    reordered: int | None
    corrupted: int | None
    unreachable: int | None
    latency_min_ns: float | None
    latency_p50_ns: float | None
    latency_p90_ns: float | None
    latency_p99_ns: float | None
    latency_p999_ns: float | None
    latency_max_ns: float | None
    latency_mean_ns: float | None
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
    """A reason, a warning or a kind of noise: its code word, its meaning, and how many trials had it.

    `kind`: failure, warning or noise; noise counts in valid trials only. `word` is empty for a warning that
    has none; `meaning` is then its text.
    """

    kind: str
    word: str
    meaning: str
    trials: int


class WithoutNoise(Model):
    """One end-to-end figure of a cell, over all valid trials and over the undisturbed ones alone.

    `of`: `messages`, the quantile of all messages with its 95 % interval; or `trials`, the median of the
    trials' figures, for CPU time per message and if there are too few quiet trials for the former; it has an
    interval from six trials on. `half`: the same median, but no trial was quiet, and the half from which
    others took the least CPU time stands for the quiet ones. Both sides are of the same kind. Cells without
    disturbed trials are not listed.
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
    """A valid trial whose workers were switched out involuntarily this often per message. `times` is the rate
    over the median of its cell (or, for a cell with fewer than three trials, of all such cells).
    """

    cell: str
    trial: int
    per_message: float
    times: float
    stands_out: bool
    latency_p50_ns: float | None
    cell_p50_ns: float | None


class Preemption(Model):
    """How often the workers' threads were switched out, and how much that moved the figures.

    trials_above: how many of `trials` have more than one such switch in 10 messages. trials_outstanding: how
    many are flagged. p50_change and p99_change: the quieter half of each cell's trials compared with all of
    them, as a share; the median over `cells_compared` cells. ranked: the trials that stand furthest above
    comparable ones.
    """

    trials: int
    trials_above: int
    trials_outstanding: int
    per_message_median: float
    cells_compared: int
    p50_change: float | None
    p99_change: float | None
    ranked: list[PreemptedTrial]


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
    """Text to paste, and the file or variable it belongs in."""

    file: str
    text: str


class Observation(Model):
    """What objects reported besides their settings; of several values, each once."""

    name: str
    values: list[str]


class Settings(Model):
    """Effective settings of one kind of object of an adapter, and the cells in which they were in force."""

    adapter: str
    object: str
    cells: list[str]
    settings: list[Setting]
    observed: list[Observation]
    paste: list[PasteFile]


class GlanceFigure(Model):
    """One cell of the at-a-glance table, end to end over its valid trials.

    `times_floor_…`: as a multiple of the same quantile of the floor (of the row's `floor_cell`); null without
    one. `intervals`: of these figures, as far as known.
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

    `figures`: in the order of the table's payloads; null if nothing was measured. `threads` of all processes
    and `memory_pss_bytes` of workers and daemons: at the smallest measured payload.
    """

    adapter: str
    bare: bool
    settings: str
    figures: list[GlanceFigure | None]
    threads: int | None
    memory_pss_bytes: float | None


class Missing(Model):
    """Requested cells of an adapter that have no figures, and why.

    `cells`: which of its cells, named by what distinguishes them; empty if the adapter has no figures at all.
    """

    adapter: str
    cells: list[str]
    reasons: list[str]


class Glance(Model):
    """Every adapter next to the floor, at up to three payloads."""

    payloads_bytes: list[int]
    rows: list[GlanceRow]
    missing: list[Missing]


class Fastest(Model):
    """The fastest middleware for a payload, out of `among` that have figures; bare transports do not count.

    low_ns, high_ns: the 95 % interval of p50, if there is one. not_told_apart: the others whose intervals
    overlap with it. queue_builds_up: its p50 depends on the length of a trial. remarks: what to keep in mind.
    """

    payload_bytes: int
    adapter: str
    settings: str
    cell: str
    latency_p50_ns: float
    low_ns: float | None
    high_ns: float | None
    cpu_per_message_ns: float | None
    times_floor_p50: float | None
    lost_share: float | None
    queue_builds_up: bool
    among: int
    not_told_apart: list[str]
    remarks: list[str]


class Fact(Model):
    """One fact about the machine, as text; null where it could not be read."""

    section: str
    name: str
    value: str | None


class AbilityVerdict(Model):
    """The result for one ability of an adapter. `verdict`: pass, fail, absent (declared so),
    absent-against-manual, not-run; `reason` says why it is not a plain pass.
    """

    ability: str
    verdict: str
    reason: str


class Conformance(Model):
    """What the conformance suite found about an adapter, in the order of the abilities."""

    adapter: str
    version: str | None
    findings: list[AbilityVerdict]


class Finding(Model):
    """What happened in a cell and why, as far as evidence, settings and counters show.

    `kind`: its code word. `what`: a sentence. `number`: what shows it. `fix`: what to change. `source`: where
    this is documented. Seen in `trials` of the cell's `of_trials`, including failed ones. `footnote`: its
    number beside figures; findings that differ only in cell and `number` share one.
    """

    footnote: int
    cell: str
    kind: str
    trials: int
    of_trials: int
    what: str
    number: str
    fix: str
    source: str


class Summary(Model):
    """A campaign as the terminal, `--json` and the report show it: derived once, with each list in display
    order. Cells are in the study's order.

    `rows`: first each cell's rows over its trials, then those of single trials. `trials_needed`: how many
    trials of each cell intervals would take, if no cell has one. `intervals_absent`: why there are none, if
    more trials would not help. `notes`: what could not be read or computed.
    """

    campaign: Campaign
    counts: Counts
    factors: list[Factor]
    cells: list[Cell]
    glance: Glance | None
    fastest: list[Fastest]
    rows: list[Row]
    deadlines: list[Deadline]
    lost_tails: list[LostTail]
    interference: list[Interference]
    daemons: list[Daemons]
    findings: list[Finding]
    failures: list[Failure]
    saturated: list[Saturated]
    chains: list[ChainRow]
    served: list[Served]
    joined: list[Joined]
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
