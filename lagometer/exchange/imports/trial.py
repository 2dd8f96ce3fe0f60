# SPDX-License-Identifier: Apache-2.0
"""The result of reading files: trials with figures, and what the files do not contain."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.source import Source
from lagometer.stats.trial.estimate import PERMILLE, moments
from lagometer.stats.trial.quantile import quantile
from lagometer.store import format as form

Numbers = npt.NDArray[np.int64]
LIMIT_NS = 2**62
QUANTILES = tuple(f"latency_{name}_ns" for name in PERMILLE)
HALVED = (
    "halved: each latency is half of a round trip, not one way as measured; quantiles of halves are "
    "not quantiles of one way"
)


@dataclass(frozen=True)
class Trial:
    """One run of another tool, or one cell of it.

    parts: the cell's id below `imported/<tool>`. figures: columns of cells.parquet; a missing one is null.
    factors: likewise, the study's factors. files: the sources that it was read from.
    """

    parts: Sequence[str]
    figures: Mapping[str, Any]
    files: Sequence[Source]
    factors: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    edge: str = form.END_TO_END


@dataclass(frozen=True)
class Imported:
    """Everything from one import.

    tool: the tool that measured the figures; version: its version according to the files, None if unknown.
    about: one mapping per source, in order, for the manifest. absent: figure (or several, joined by `, `) →
    why it is null.
    """

    tool: str
    version: str | None
    trials: Sequence[Trial]
    about: Sequence[Mapping[str, Any]]
    absent: Mapping[str, str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Options:
    """The user's options. unit: of values in files that name none, `ns`, `us`, `ms` or `s`."""

    unit: str | None = None


def figures_of(latencies_ns: Numbers) -> dict[str, Any]:
    """The figures of raw latencies, with the same definitions as for our own samples."""
    ordered = np.sort(latencies_ns)
    statistics = moments(ordered)
    return {
        "n": len(ordered),
        "latency_min_ns": int(ordered[0]),
        "latency_max_ns": int(ordered[-1]),
        **{f"latency_{name}_ns": quantile(ordered, permille) for name, permille in PERMILLE.items()},
        "latency_mean_ns": statistics.mean,
        "latency_sd_ns": statistics.sd,
        "latency_skewness": statistics.skewness,
        "latency_kurtosis": statistics.kurtosis,
    }


def check_order(figures: Mapping[str, Any], where: str) -> None:
    """Checks that minimum, quantiles and maximum ascend and are in range. Raises ExchangeError."""
    names = [f"latency_{name}_ns" for name in form.LATENCY_ORDER]
    values = [(name, figures[name]) for name in names if figures.get(name) is not None]
    for name, value in values:
        if not -LIMIT_NS < value < LIMIT_NS:
            raise ExchangeError(f"{where}: {name} of {value:g} can't be; is the file whole?")
    for (previous, low), (name, high) in itertools.pairwise(values):
        if low > high:
            raise ExchangeError(
                f"{where}: {previous} ({low}) is more than {name} ({high}); is the file whole?"
            )


def part(text: str) -> str:
    """A part of a cell's id: characters that a folder's name can't contain become `_`."""
    return re.sub(r"[^\w.+:-]", "_", text).strip(".")[:100] or "_"
