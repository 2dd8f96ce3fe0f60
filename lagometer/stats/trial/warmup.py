# SPDX-License-Identifier: Apache-2.0
"""How much of a measure phase still counts as warm-up: a fixed number of messages, or until it is steady.

The workers' own warm-up phase is over before the measure phase begins, so it is the minimum. Messages
excluded here stay in the samples, as phase `warm-up`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from lagometer.stats.interval.confidence import Numbers
from lagometer.stats.interval.steady import MESSAGES_MIN, steady_start
from lagometer.store import format as form
from lagometer.store.facts import TrialFacts


@dataclass(frozen=True)
class WarmUp:
    """What a study requests.

    discard: the first messages of each edge in the measure phase that do not count. latest_ns: the latest
    time after the common start by which a steady state must begin; None: do not look for one.
    """

    discard: int = 0
    latest_ns: int | None = None


@dataclass(frozen=True)
class Steadiness:
    """The result.

    steady_ns: the time after the common start at which counting begins; None if a steady state was not looked
    for, or if there were too few messages to tell. steady: whether there is one; None likewise.
    """

    steady_ns: int | None = None
    steady: bool | None = None


def without_warm_up(
    samples: pl.DataFrame, facts: TrialFacts, wanted: WarmUp
) -> tuple[pl.DataFrame, Steadiness]:
    """The samples with all warm-up marked as such, and when they are steady."""
    if not wanted.discard and wanted.latest_ns is None:
        return samples, Steadiness()
    due = pl.coalesce("intended_ns", "publish_ns", "taken_ns")
    if wanted.discard:
        place = due.rank("ordinal").over("edge", "phase")
        samples = _marked(samples, place <= wanted.discard)
    steady_ns, steady = None, None
    if wanted.latest_ns is not None:
        start_ns, steady = _steady_start_ns(samples, facts.begin_ns + wanted.latest_ns)
        if start_ns is not None:
            samples = _marked(samples, due < start_ns)
            steady_ns = start_ns - facts.begin_ns
    return samples, Steadiness(steady_ns, steady)


def noted(rows: pl.DataFrame, steadiness: Steadiness) -> pl.DataFrame:
    """The rows of cells.parquet with the result."""
    warnings = ["not-steady: the counted part begins at the latest end of the warm-up"]
    if steadiness.steady is not False:
        warnings = []
    return rows.with_columns(
        steady_ns=pl.lit(steadiness.steady_ns, dtype=pl.Int64()),
        steady=pl.lit(steadiness.steady, dtype=pl.Boolean()),
        warnings=pl.col("warnings").list.concat(pl.lit(warnings, dtype=pl.List(pl.String()))),
    )


def _steady_start_ns(samples: pl.DataFrame, latest_ns: int) -> tuple[int | None, bool | None]:
    """When counting begins, and whether it is steady; judged by the chains: they cross the whole trial."""
    chains = samples.filter(
        (pl.col("edge") == form.END_TO_END)
        & (pl.col("phase") == "measure")
        & (pl.col("outcome") == "delivered")
    )
    chains = chains.select(
        due=pl.coalesce("intended_ns", "publish_ns"), latency=pl.col("taken_ns") - pl.col("publish_ns")
    )
    chains = chains.drop_nulls("latency").sort("due", maintain_order=True)
    if chains.height < MESSAGES_MIN:
        return None, None
    due: Numbers = chains["due"].to_numpy()
    latest = int(np.searchsorted(due, latest_ns, side="right")) - 1
    start = steady_start(chains["latency"].to_numpy(), max(latest, 0))
    if start is not None:
        return int(due[start]), True
    return int(due[min(max(latest, 0), len(due) // 2)]), False


def _marked(samples: pl.DataFrame, early: pl.Expr) -> pl.DataFrame:
    marked = pl.when((pl.col("phase") == "measure") & early).then(pl.lit("warm-up"))
    phase = marked.otherwise(pl.col("phase").cast(pl.String())).cast(form.SAMPLES_SCHEMA["phase"])
    return samples.with_columns(phase=phase)
