# SPDX-License-Identifier: Apache-2.0
"""The page's data on whether the machine stayed the same, typed as in `lagometer.summary.data`."""

from __future__ import annotations

from lagometer.summary.model import Model


class ControlTrial(Model):
    """The control cell before one block: its end-to-end figures. `time_s` counts from the first trial."""

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
    """What the machine did during a trial: the share of all CPUs' time that was used (including the trial's
    own), and the share that a hypervisor gave to others. `time_s` counts from the campaign's first trial. Of
    many trials, neighbours stand together, with the most of each share.
    """

    time_s: float
    busy_share: float | None
    stolen_share: float | None


class ControlRange(Model):
    """What the control's valid trials measured, before so many `blocks`: from the smallest to the largest p50
    and CPU time per message, and p50 in the first and in the last of them.
    """

    blocks: int
    p50_min_ns: float
    p50_max_ns: float
    p50_first_ns: float
    p50_last_ns: float
    cpu_per_message_min_ns: float | None
    cpu_per_message_max_ns: float | None


class Control(Model):
    """The control cell over the campaign, and the machine's load in all trials. `spread` is null if no valid
    trial of the control has a p50. Merged campaigns have a control of each machine: then `trials` is empty.
    """

    cells: list[str]
    trials: list[ControlTrial]
    spread: ControlRange | None
    load: list[Load]


class LongFigure(Model):
    """A quantile of a long trial, and its estimate from the short trials with its 95 % interval; without an
    interval, the median of their figures.

    `place`: `inside` the interval, `outside` it, or `beyond` the figures of all short trials, too; null if
    there is no interval to compare with.
    """

    long_ns: float | None
    short_ns: float | None
    low_ns: float | None
    high_ns: float | None
    place: str | None


class LongTrial(Model):
    """A cell's long trial next to the short ones, end to end: a check on the bias of short trials.

    The short trials' CPU time per message is their median, with its interval. `remarks`: warnings.
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
    """Wake-up latency of one CPU: how late a timer's thread runs there when it has nothing else to do. A
    quantile with fewer than 10 wake-ups beyond it is null.
    """

    cpu: int
    n: int
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    max_ns: float


class MachineFloor(Model):
    """The machine's wake-up latency without any middleware, and the time a hypervisor took meanwhile.
    `policy`: of the woken threads, `fifo` or `other`.
    """

    policy: str | None
    cores: list[CoreFloor]
    duration_s: float
    steal_share: float | None
