# SPDX-License-Identifier: Apache-2.0
"""The rows of estimates.parquet: what is known about every cell of a campaign (docs/FORMAT.md).

Quantiles of latency and response time. If messages were lost, also quantiles of latency that count losses as
infinite. With a deadline, also the share of messages that missed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.stats.interval.confidence import (
    CONFIDENCE,
    FIGURES,
    NOT_ENOUGH,
    OK,
    PERMILLE,
    TRIALS_MIN,
    Numbers,
    Pool,
    QuantileEstimate,
    Stop,
)
from lagometer.stats.interval.misses import Mask, miss_limits, missed_in_order
from lagometer.store import format as form

INFINITE_NS = np.iinfo(np.int64).max  # the latency of a message that never arrives
MISS_SHARE = "deadline_miss_share"
_BEGIN = {"latency": "publish_ns", "response": "intended_ns"}
_TIMES = ("intended_ns", "publish_ns", "taken_ns")


def lost_quantity(quantile: str) -> str:
    """The quantity's name for a latency quantile that counts lost messages as infinite."""
    return f"latency_{quantile}_lost"


def estimates(
    cells: pl.DataFrame,
    samples: Callable[[str, int], pl.DataFrame],
    stops: Mapping[str, Stop] | None = None,
) -> pl.DataFrame:
    """estimates.parquet: for each cell and edge, the figures over all valid trials with their intervals.

    cells: cells.parquet; only valid trials are used. samples: returns the samples of a trial, like
    Campaign.samples. Only one trial is in memory at a time; of one cell, only the times, in four bytes each
    where that is enough. stops: for cells whose number of trials was not fixed.
    """
    rows: list[dict[str, object]] = []
    for cell in cells["cell"].unique(maintain_order=True):
        trial_rows = cells.filter(pl.col("cell") == cell)
        edges = [
            _Edge.of(name, trial_rows) for name in trial_rows["edge"].unique(maintain_order=True).to_list()
        ]
        for trial in trial_rows.filter("valid")["trial"].unique().sort():
            measured = samples(cell, trial).filter(pl.col("phase") == "measure")
            for edge in edges:
                edge.add(measured.filter(pl.col("edge") == edge.name))
        stop = (stops or {}).get(cell)
        for edge in edges:
            rows += [{"cell": cell, "edge": edge.name, **row} for row in edge.rows(stop)]
    return pl.DataFrame(rows, schema=form.ESTIMATES_SCHEMA, orient="row")


@dataclass
class _Edge:
    """One edge of a cell, and what the valid trials read so far contribute to it.

    loses: whether any message was lost or censored. deadline_ns: None without one. miss_shares: one per valid
    trial. due: how many messages the shares are based on; 0 if unknown. bound_ns: how far off a time that
    spans two clocks may be, the most over all trials.
    """

    name: str
    loses: bool
    deadline_ns: int | None
    miss_shares: Sequence[float]
    due: int
    bound_ns: int = 0
    series: dict[str, list[npt.NDArray[np.integer[Any]]]] = field(
        default_factory=lambda: {figure: [] for figure in FIGURES}
    )
    with_lost: list[Numbers] = field(default_factory=list)
    missed: list[Mask] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, cell_rows: pl.DataFrame) -> _Edge:
        """The edge before any samples are read."""
        valid = cell_rows.filter(pl.col("valid") & (pl.col("edge") == name))
        shares = _known(valid, MISS_SHARE) if "deadline_ns" in valid.columns else []
        return cls(
            name=name,
            loses=sum(sum(_known(valid, column)) for column in ("lost", "censored")) > 0,
            deadline_ns=int(_known(valid, "deadline_ns")[0]) if shares else None,
            miss_shares=shares,
            due=int(sum(_known(valid, "deadline_due"))),
            bound_ns=int(max(_known(valid, "clock_bound_ns"), default=0)),
        )

    def add(self, measured: pl.DataFrame) -> None:
        """Adds one trial: the edge's messages of the measure phase."""
        delivered = measured.filter(pl.col("outcome") == "delivered")
        for figure, begin in _BEGIN.items():
            times = delivered.select((pl.col("taken_ns") - pl.col(begin)).alias("time"))["time"]
            self.series[figure].append(_narrow(times.drop_nulls().to_numpy()))
        if self.loses or self.deadline_ns is not None:
            measured = _as_due(measured)
        if self.loses:
            self.with_lost.append(_with_the_lost(measured))
        if self.deadline_ns is not None:
            self.missed.append(missed_in_order(measured, self.deadline_ns))

    def rows(self, stop: Stop | None) -> Iterator[dict[str, object]]:
        """The edge's rows of estimates.parquet; frees the memory."""
        alpha = stop.alpha if stop is not None else 1.0 - CONFIDENCE
        stopped = stop.why if stop is not None else None
        independence = 0.0
        for figure, trials in self.series.items():
            pool = Pool(trials)
            trials.clear()  # a cell may need more memory than is left
            if pool.n or figure == "latency":  # a closed loop has no response time
                yield from (
                    _row(f"{figure}_{name}", pool.estimate(permille, alpha), stopped, self.bound_ns)
                    for name, permille in PERMILLE.items()
                )
                independence = pool.independence() if pool.n else 0.0
        if self.loses:
            pool = Pool(self.with_lost)
            self.with_lost.clear()
            yield from (
                _row(lost_quantity(name), pool.estimate(permille, alpha), stopped, self.bound_ns)
                for name, permille in PERMILLE.items()
            )
        if self.deadline_ns is not None:
            yield self._misses(independence, alpha, stopped)

    def _misses(self, independence: float, alpha: float, stopped: str | None) -> dict[str, object]:
        trials = len(self.miss_shares)
        due = self.due or sum(len(mask) for mask in self.missed)
        enough = trials >= TRIALS_MIN
        low = high = None
        if enough:
            worth = max(float(trials), independence * due)  # a trial is worth at least one message
            low, high = miss_limits(self.miss_shares, self.missed, due, worth, alpha)
        return {
            "quantity": MISS_SHARE,
            "confidence": CONFIDENCE,
            "trials": trials,
            "n": due,
            "status": OK if enough else NOT_ENOUGH,
            "needed_trials": None if enough else TRIALS_MIN,
            "stopped": stopped,
            "estimate_share": float(np.mean(self.miss_shares)) if enough else None,
            "low_share": low,
            "high_share": high,
        }


def _known(rows: pl.DataFrame, column: str) -> list[float]:
    """The numbers in a column that an older lagometer may not have written."""
    return rows[column].drop_nulls().to_list() if column in rows.columns else []


def _as_due(measured: pl.DataFrame) -> pl.DataFrame:
    """An edge's messages in the order in which they were due, if any is missing.

    End to end and of chains, the samples have those that did not arrive after all others. The bootstrap would
    take them for one long outage, however they were scattered.
    """
    if (measured["outcome"] == "delivered").all():
        return measured
    own = measured.lazy().filter(~pl.col("outcome").is_in(form.APART)).select("outcome", *_TIMES).collect()
    due_ns = pl.coalesce("intended_ns", "publish_ns")
    if own.select(due_ns).to_series().is_sorted():  # as of nearly every single edge
        return own
    return own.sort(due_ns, maintain_order=True)


def _with_the_lost(measured: pl.DataFrame) -> Numbers:
    """The latencies of an edge's messages, in the same order; infinite for messages that never arrived. Empty
    if the latency of one that arrived is unknown: the others would all seem lost."""
    arrived = pl.col("outcome") == "delivered"
    latency = pl.when(arrived).then(pl.col("taken_ns") - pl.col("publish_ns")).otherwise(INFINITE_NS)
    sent = measured.filter(pl.col("outcome").is_in(["delivered", "lost", "censored"]))
    latencies = sent.select(latency.alias("latency"))["latency"]
    return np.zeros(0, dtype=np.int64) if latencies.null_count() else latencies.to_numpy()


def _narrow(numbers: Numbers) -> npt.NDArray[np.integer[Any]]:
    """The same numbers in half the space if they are times from 0 to 4.29 s, as they nearly always are."""
    fits = len(numbers) > 0 and int(numbers.min()) >= 0 and int(numbers.max()) <= np.iinfo(np.uint32).max
    return numbers.astype(np.uint32) if fits else numbers


def _row(quantity: str, estimate: QuantileEstimate, stopped: str | None, bound_ns: int) -> dict[str, object]:
    """The row of one quantile; null stands for infinite. The interval includes the clocks' bound, because
    their error may have the same sign in all trials."""
    return {
        "quantity": quantity,
        "estimate_ns": _finite(estimate.estimate_ns),
        "low_ns": _moved(estimate.low_ns, -bound_ns),
        "high_ns": _moved(estimate.high_ns, bound_ns),
        "confidence": CONFIDENCE,  # of the whole procedure, including earlier looks
        "trials": estimate.trials,
        "n": estimate.n,
        "status": estimate.status,
        "needed_trials": estimate.needed_trials,
        "needed_messages": estimate.needed_messages,
        "stopped": stopped,
    }


def _moved(value_ns: int | None, by_ns: int) -> int | None:
    finite_ns = _finite(value_ns)
    return None if finite_ns is None else finite_ns + by_ns


def _finite(value_ns: int | None) -> int | None:
    return None if value_ns == INFINITE_NS else value_ns
