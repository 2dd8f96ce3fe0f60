# SPDX-License-Identifier: Apache-2.0
"""What is known of every cell of a campaign: the rows of estimates.parquet (docs/FORMAT.md).

Quantiles of latency and response time; where messages were lost, those of latency with losses as infinite;
with a deadline, the share of messages that missed it.
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

INFINITE_NS = np.iinfo(np.int64).max  # how long a message takes that never comes
MISS_SHARE = "deadline_miss_share"
_BEGIN = {"latency": "publish_ns", "response": "intended_ns"}


def lost_quantity(quantile: str) -> str:
    """The quantity's name of a quantile of latency with lost messages as infinite."""
    return f"latency_{quantile}_lost"


def estimates(
    cells: pl.DataFrame,
    samples: Callable[[str, int], pl.DataFrame],
    stops: Mapping[str, Stop] | None = None,
) -> pl.DataFrame:
    """estimates.parquet: of each cell and edge the figures of all valid trials with their intervals.

    cells: cells.parquet; its valid trials are used. samples: gives those of a trial, as Campaign.samples; of
    these one trial is in memory at a time, of one cell the times, in four bytes each where that is enough.
    stops: of cells whose number of trials was not fixed.
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
    """One edge of a cell, and what was gathered of it from the valid trials so far.

    loses: whether any message was lost or censored. deadline_ns: None without one. miss_shares: of each valid
    trial; due: messages that they are of, 0 where that is not known. bound_ns: how far off a time may be that
    is between two clocks, the most of all trials.
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
        """The edge before any sample was read."""
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
        """Takes over one trial: the edge's messages of the measure phase."""
        delivered = measured.filter(pl.col("outcome") == "delivered")
        for figure, begin in _BEGIN.items():
            times = delivered.select((pl.col("taken_ns") - pl.col(begin)).alias("time"))["time"]
            self.series[figure].append(_narrow(times.drop_nulls().to_numpy()))
        if self.loses:
            self.with_lost.append(_with_the_lost(measured))
        if self.deadline_ns is not None:
            self.missed.append(missed_in_order(measured, self.deadline_ns))

    def rows(self, stop: Stop | None) -> Iterator[dict[str, object]]:
        """Its rows of estimates.parquet; gives the memory free."""
        alpha = stop.alpha if stop is not None else 1.0 - CONFIDENCE
        stopped = stop.why if stop is not None else None
        independence = 0.0
        for figure, trials in self.series.items():
            pool = Pool(trials)
            trials.clear()  # a cell may be larger than what is left of the memory
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
            worth = max(float(trials), independence * due)  # a trial is worth one message at the least
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
    """The numbers of a column that an older lagometer may not have written."""
    return rows[column].drop_nulls().to_list() if column in rows.columns else []


def _with_the_lost(measured: pl.DataFrame) -> Numbers:
    """The latencies of an edge's messages in the order of the samples; infinite where one never came."""
    arrived = pl.col("outcome") == "delivered"
    latency = pl.when(arrived).then(pl.col("taken_ns") - pl.col("publish_ns")).otherwise(INFINITE_NS)
    sent = measured.filter(pl.col("outcome").is_in(["delivered", "lost", "censored"]))
    return sent.select(latency.alias("latency"))["latency"].drop_nulls().to_numpy()


def _narrow(numbers: Numbers) -> npt.NDArray[np.integer[Any]]:
    """The same numbers in half the room, where they are times from 0 to 4.29 s: nearly always."""
    fits = len(numbers) > 0 and int(numbers.min()) >= 0 and int(numbers.max()) <= np.iinfo(np.uint32).max
    return numbers.astype(np.uint32) if fits else numbers


def _row(quantity: str, estimate: QuantileEstimate, stopped: str | None, bound_ns: int) -> dict[str, object]:
    """One quantile; what is infinite is null. Its interval has the bound of the clocks in it: in all trials
    they may be off to the same side."""
    return {
        "quantity": quantity,
        "estimate_ns": _finite(estimate.estimate_ns),
        "low_ns": _moved(estimate.low_ns, -bound_ns),
        "high_ns": _moved(estimate.high_ns, bound_ns),
        "confidence": CONFIDENCE,  # of the whole procedure, the looks before included
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
