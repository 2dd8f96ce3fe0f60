# SPDX-License-Identifier: Apache-2.0
"""Curves and series of the page, typed. `web/src/sample-data.ts` is generated from these models.

Every time is in nanoseconds unless its name says otherwise.
"""

from __future__ import annotations

from lagometer.summary.model import Model


class Curve(Model):
    """Quantiles of an edge over the delivered messages of all valid trials of a cell together.

    `probabilities` end at the last one with 10 samples beyond it; `latency_ns` are order statistics (type 1).
    The band is the 95 % interval of the quantile at each of `band_probabilities`, point by point; empty
    where the trials are too few.
    """

    cell: str
    edge: str
    trials: int
    n: int
    probabilities: list[float]
    latency_ns: list[int]
    band_probabilities: list[float]
    band_low_ns: list[int]
    band_high_ns: list[int]


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
