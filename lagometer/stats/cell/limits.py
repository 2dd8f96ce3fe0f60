# SPDX-License-Identifier: Apache-2.0
"""Whether the cells of one campaign meet limits such as p99 > 2 ms, judged by the figures' intervals.

A limit is *met* if the whole 95 % interval lies beyond it, *not met* if the whole interval lies on this side,
and undecided otherwise (docs/methodology/limits.md).
"""

from __future__ import annotations

import fnmatch
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
import polars as pl

from lagometer.stats.cell.campaign_estimates import campaign_estimates, safe_alpha
from lagometer.stats.cell.jitter import jitter_ns
from lagometer.stats.interval.confidence import OK, TRIALS_MIN, Numbers, Pool
from lagometer.stats.interval.medians import median_interval
from lagometer.stats.interval.misses import Mask, miss_limits
from lagometer.store import format as form
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign
from lagometer.units import duration_text

MET, NOT_MET, UNKNOWN = "met", "not-met", "unknown"
QUANTILES = ("p50", "p90", "p99", "p999")
SHARES = {"lost": ("lost",), "undelivered": ("lost", "overwritten", "censored", "rejected")}
COLUMNS = {"cpu": "cpu_per_message_ns", "memory": "memory_pss_bytes"}
UNITS = {
    **dict.fromkeys((*QUANTILES, "max", "jitter", "cpu"), "ns"),
    **dict.fromkeys(SHARES, "share"),
    "memory": "bytes",
}
CROSSES = "the interval crosses the limit"
_SAMPLES = ("edge", "phase", "outcome", "sequence", "publish_ns", "taken_ns")


@dataclass(frozen=True)
class AbsoluteLimit:
    """A condition on one figure of a cell, such as p99 > 2 ms.

    quantity: one of UNITS. value: in that unit. text: as written. cells: a glob of cell ids.
    """

    quantity: str
    above: bool
    value: float
    text: str
    cells: str = "*"


@dataclass(frozen=True)
class Figure:
    """A cell's end-to-end figure over its valid trials; `low` and `high` are None without an interval.

    certain: the figure is a fact about these messages and needs no interval. why: a remark on the figure, or
    why it has no interval.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    certain: bool = False
    why: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The result of a limit in one cell: `met`, `not-met`, or `unknown` with a reason; figures in `unit`."""

    limit: str
    cell: str
    verdict: str
    quantity: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    why: str | None


def judge_limits(campaign: Campaign, limits: Sequence[AbsoluteLimit]) -> list[Judgement]:
    """Judges every limit in every cell that matches its glob, in the study's order.

    A cell is `unknown` if it has no valid trial, or lacks the samples the figure needs.
    """
    estimates = cache(partial(campaign_estimates, campaign))
    named_cells = {cell: _Cell(campaign, cell, estimates) for cell in cell_ids(campaign)}
    return [
        _judged(limit, name, cell.figure(limit.quantity))
        for limit in limits
        for name, cell in named_cells.items()
        if fnmatch.fnmatchcase(name, limit.cells)
    ]


def cell_ids(campaign: Campaign) -> list[str]:
    """The cells of a campaign: first those of its study, then any others that were measured."""
    listed = [str(item.get("id")) for item in campaign.manifest.get("cells", [])]
    return list(dict.fromkeys([*listed, *campaign.cells["cell"].unique(maintain_order=True)]))


def verdict_of(limit: AbsoluteLimit, figure: Figure) -> str:
    """`met`, `not-met` or `unknown`."""
    low, high = (figure.value, figure.value) if figure.certain else (figure.low, figure.high)
    if low is None or high is None:
        return UNKNOWN
    if limit.above:
        return MET if low > limit.value else NOT_MET if high <= limit.value else UNKNOWN
    return MET if high < limit.value else NOT_MET if low >= limit.value else UNKNOWN


def _judged(limit: AbsoluteLimit, cell: str, figure: Figure) -> Judgement:
    verdict = verdict_of(limit, figure)
    crosses = verdict == UNKNOWN and figure.low is not None
    return Judgement(
        limit=limit.text,
        cell=cell,
        verdict=verdict,
        quantity=limit.quantity,
        unit=UNITS[limit.quantity],
        value=figure.value,
        low=figure.low,
        high=figure.high,
        why=CROSSES if crosses else figure.why,
    )


class _Cell:
    """One cell of a campaign; figures are computed on demand."""

    def __init__(self, campaign: Campaign, cell: str, estimates: Callable[[], pl.DataFrame]) -> None:
        self._campaign, self._cell, self._estimates = campaign, cell, estimates
        chosen = (pl.col("cell") == cell) & (pl.col("edge") == form.END_TO_END) & pl.col("valid")
        self._rows = campaign.cells.filter(chosen).sort("trial")

    def figure(self, quantity: str) -> Figure:
        if self._rows.is_empty():
            return Figure(why="no valid trial")
        try:
            if quantity in QUANTILES:
                return self._quantile(quantity)
            if quantity in SHARES:
                return self._share(SHARES[quantity], with_rejected=quantity != "lost")
            if quantity == "jitter":
                return self._of_trials([jitter_ns(samples) for samples in self._delivered()])
        except CampaignError as error:
            return Figure(why=str(error))
        if quantity == "max":
            return self._largest()
        return self._of_trials(self._column(COLUMNS[quantity]))

    def _column(self, name: str) -> list[float | None]:
        if name not in self._rows.columns:  # an older lagometer did not write it
            return [None] * self._rows.height
        values: list[float | None] = self._rows[name].to_list()
        return values

    def _quantile(self, quantity: str) -> Figure:
        row = (
            self._estimates()
            .filter(
                (pl.col("cell") == self._cell)
                & (pl.col("edge") == form.END_TO_END)
                & (pl.col("quantity") == f"latency_{quantity}")
            )
            .row(0, named=True)
        )
        unknown = sum(bool(count) for count in self._column("n")) - row["trials"]
        if unknown and not row["trials"]:
            return Figure(why="not known of any trial")
        if row["status"] == OK:
            remarks = [self._growing(), self._not_known(unknown) if unknown > 0 else None]
            why = "; ".join(remark for remark in remarks if remark) or None
            return Figure(row["estimate_ns"], row["low_ns"], row["high_ns"], why=why)
        trial_values = [
            latency_ns for latency_ns in self._column(f"latency_{quantity}_ns") if latency_ns is not None
        ]
        value = statistics.median_low(trial_values) if trial_values else None
        needed = f"; {row['needed_trials']} would be enough" if row["needed_trials"] else ""
        return Figure(value, why=f"no interval from {self._trials()}{needed}")

    def _growing(self) -> str | None:
        """A remark that the figure depends on the length of a trial, if a queue builds up."""
        warnings = self._rows["warnings"].to_list() if "warnings" in self._rows.columns else []
        count = sum(
            any(text.startswith(f"queue-builds-up: {form.END_TO_END},") for text in texts or ())
            for texts in warnings
        )
        return (
            f"a queue builds up in {count} of {self._trials()}: it depends on their length" if count else None
        )

    def _largest(self) -> Figure:
        """A fact about these messages, known as well as the clocks of both ends are."""
        columns = (self._column("latency_max_ns"), self._column("clock_bound_ns"), self._column("n"))
        trials = [each for each in zip(*columns, strict=True) if each[2]]
        known = [(maximum, bound or 0) for maximum, bound, _ in trials if maximum is not None]
        if not known:
            return Figure(why="not known of any trial" if trials else "no message arrived")
        value = max(maximum for maximum, _ in known)
        if len(known) < len(trials):
            return Figure(value, why=self._not_known(len(trials) - len(known)))
        count = int(self._rows["n"].sum())
        why = f"the largest of {count:,} messages: a fact about them, no promise about others"
        bound_ns = max(bound for _, bound in known)
        if not bound_ns:
            return Figure(value, certain=True, why=why)
        low_ns, high_ns = (max(maximum + sign * bound for maximum, bound in known) for sign in (-1, 1))
        why += f"; the offset of its ends' clocks is known to ± {duration_text(bound_ns)}"
        return Figure(value, low_ns, high_ns, why=why)

    def _of_trials(self, values: Sequence[float | None]) -> Figure:
        """The median over trials, with its interval if every trial has the figure."""
        known = [figure for figure in values if figure is not None]
        if not known:
            return Figure(why="not known of any trial")
        value = float(statistics.median(known))
        ends = median_interval(values, safe_alpha(self._campaign))
        if ends is not None:
            return Figure(value, *ends)
        if len(known) < len(values):
            return Figure(value, why=self._not_known(len(values) - len(known)))
        return Figure(value, why=self._too_few())

    def _share(self, outcomes: Sequence[str], with_rejected: bool) -> Figure:
        masks = [_absent(samples, outcomes, with_rejected) for samples in self._samples]
        masks = [mask for mask in masks if len(mask)]
        if not masks:
            return Figure(why="nothing was sent")
        shares = [float(mask.mean()) for mask in masks]
        if len(masks) < TRIALS_MIN:
            return Figure(float(np.mean(shares)), why=self._too_few())
        sent = sum(len(mask) for mask in masks)
        together = Pool([_latencies(delivered) for delivered in self._delivered()]).independence()
        worth = max(float(len(masks)), together * sent)
        low, high = miss_limits(shares, masks, sent, worth, safe_alpha(self._campaign))
        return Figure(float(np.mean(shares)), low, high)

    def _not_known(self, trials: int) -> str:
        return f"not known of {trials} of {self._trials()}"

    def _trials(self) -> str:
        return f"{self._rows.height} trial{'s' if self._rows.height > 1 else ''}"

    def _too_few(self) -> str:
        return f"no interval from {self._trials()}; {TRIALS_MIN} would be enough"

    @cached_property
    def _samples(self) -> list[pl.DataFrame]:
        """The end-to-end messages of the measure phase, one table per valid trial."""
        chosen = (pl.col("edge") == form.END_TO_END) & (pl.col("phase") == "measure")
        trials = self._rows["trial"].to_list()
        return [self._campaign.samples(self._cell, trial, _SAMPLES).filter(chosen) for trial in trials]

    def _delivered(self) -> Iterator[pl.DataFrame]:
        return (samples.filter(pl.col("outcome") == "delivered") for samples in self._samples)


def _absent(measured: pl.DataFrame, outcomes: Sequence[str], with_rejected: bool) -> Mask:
    """For each message sent, in sending order, whether it had one of these outcomes."""
    others = [*form.APART, *([] if with_rejected else ["rejected"])]
    sent = measured.filter(~pl.col("outcome").is_in(others)).sort("publish_ns", maintain_order=True)
    return sent.select(absent=pl.col("outcome").is_in(list(outcomes)))["absent"].to_numpy()


def _latencies(delivered: pl.DataFrame) -> Numbers:
    return (delivered["taken_ns"] - delivered["publish_ns"]).drop_nulls().to_numpy().astype(np.int64)
