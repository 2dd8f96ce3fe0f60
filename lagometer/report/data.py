# SPDX-License-Identifier: Apache-2.0
"""What the report's page is given, typed. `web/src/data.ts` is generated from these models (see
`typescript`).

Every time is in nanoseconds unless its name says otherwise. `None` means that the figure does not exist: not
observed, or a quantile with fewer than 10 samples beyond it. It never stands for zero.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen record; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    all trials.
    """

    cells: int
    trials: int
    trials_valid: int
    trials_failed: int
    excluded: int
    messages: int


class Factor(Model):
    """One factor of the matrix and the values that occur, in the study's order."""

    name: str
    values: list[str]


class Cell(Model):
    """One point of the matrix. `factors` are text, as they are shown; `bare` marks a bare transport (the
    floor).
    """

    id: str
    adapter: str
    bare: bool
    payload_bytes: int | None
    factors: dict[str, str]
    edges: list[str]
    trials: list[int]


class Row(Model):
    """The figures of one edge: of one trial, or (`trial` is null) of a cell over its valid trials.

    Over trials: counts are summed, `max` is the largest, `min` the smallest, every other figure is the
    median of the trials' figures, and null unless each valid trial has it. `floor_latency_p50_ns` is the
    smallest such median among the bare transports with the same placement, dispatch, payload and touch;
    `floor_cell` says which.
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


class Curve(Model):
    """Quantiles of an edge over the delivered messages of all valid trials of a cell together.

    `probabilities` end at the last one with 10 samples beyond it; `latency_ns` are order statistics (type 1).
    """

    cell: str
    edge: str
    trials: int
    n: int
    probabilities: list[float]
    latency_ns: list[int]


class SlowMessage(Model):
    """One of the slowest messages of a series."""

    sequence: int
    time_ns: int
    latency_ns: int
    send_lag_ns: int | None
    blocked_ns: int | None
    cpu_publish: int | None
    cpu_taken: int | None


class Migration(Model):
    """A message before which the sender or the receiver had moved to another CPU."""

    time_ns: int
    side: str
    cpu_from: int
    cpu_to: int


class Period(Model):
    """A regular repetition in the latency: its spacing, and the probability that noise alone shows such
    a line.
    """

    period_ns: int
    p_value: float
    share_of_variance: float


class Series(Model):
    """The messages of one edge in one trial, in sending order. Times count from the trial's first measured
    message.

    Where fewer than `n` messages are given, each run of messages keeps its fastest and slowest, and the
    slowest 20 of all are always kept. `lost_time_us` are the sending times of messages that never arrived
    (at most 200). The counts of migrations are null where the edge joins several senders or receivers, so
    that they can't be told.
    """

    cell: str
    trial: int
    edge: str
    n: int
    time_us: list[int]
    latency_ns: list[int]
    lost: int
    lost_time_us: list[int]
    slowest: list[SlowMessage]
    migrations_sender: int | None
    migrations_receiver: int | None
    migrations: list[Migration]
    period: Period | None


class Failure(Model):
    """A trial that did not count, and why."""

    cell: str
    trial: int
    reasons: list[str]
    log: str | None


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


class Settings(Model):
    """Effective settings of one kind of object of an adapter, and the cells in which they held."""

    adapter: str
    object: str
    cells: list[str]
    settings: list[Setting]
    paste: list[PasteFile]


class Fact(Model):
    """One fact about the machine, as text; null where it could not be read."""

    section: str
    name: str
    value: str | None


class Report(Model):
    """Everything that the page shows."""

    format: int
    campaign: Campaign
    counts: Counts
    factors: list[Factor]
    cells: list[Cell]
    rows: list[Row]
    curves: list[Curve]
    series: list[Series]
    failures: list[Failure]
    exclusions: list[Exclusion]
    settings: list[Settings]
    environment: list[Fact]
    thinned: list[str]
