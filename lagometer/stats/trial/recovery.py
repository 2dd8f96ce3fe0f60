# SPDX-License-Identifier: Apache-2.0
"""How long messages take to get through again after an outage of an emulated link
(docs/methodology/links.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Outage:
    """begin_ns, end_ns: of the outage. until_ns: the start of the next one, or the end of the trial. On the
    clock of the samples."""

    begin_ns: int
    end_ns: int
    until_ns: int


def outages_of(changes: Sequence[tuple[int, bool]], measure_begin_ns: int, drain_end_ns: int) -> list[Outage]:
    """The outages of a link that ended within the trial.

    changes: the time of each change from the start of the measure phase, and whether everything is lost from
    then on.
    """
    spans: list[tuple[int, int]] = []
    begin_ns: int | None = None
    for at_ns, all_lost in changes:
        if all_lost and begin_ns is None:
            begin_ns = at_ns
        elif not all_lost and begin_ns is not None:
            spans.append((measure_begin_ns + begin_ns, measure_begin_ns + at_ns))
            begin_ns = None
    last_ns = drain_end_ns if begin_ns is None else measure_begin_ns + begin_ns
    until = [*(begin for begin, _ in spans), last_ns][1:]
    return [Outage(begin, end, next_ns) for (begin, end), next_ns in zip(spans, until, strict=True)]


def recoveries(
    samples: pl.DataFrame, edges: Sequence[str], outages: Sequence[Outage]
) -> list[Mapping[str, Any]]:
    """For each edge: the time from each outage's end until the first message was taken that was published
    after the outage began. Earlier messages may have been under way all the time. None if no such message was
    taken before the next outage or the end of the trial."""
    if not outages:
        return []
    taken = samples.filter(
        pl.col("taken_ns").is_not_null() & pl.col("publish_ns").is_not_null()
    ).with_columns(pl.col("edge").cast(pl.String()))
    return [
        {"edge": edge, "recovered_ns": [_first_ns(taken.filter(edge=edge), outage) for outage in outages]}
        for edge in edges
    ]


def _first_ns(taken: pl.DataFrame, outage: Outage) -> int | None:
    times_ns = taken.filter(
        (pl.col("publish_ns") >= outage.begin_ns)
        & (pl.col("taken_ns") >= outage.end_ns)
        & (pl.col("taken_ns") < outage.until_ns)
    )["taken_ns"]
    return min(times_ns.to_list()) - outage.end_ns if len(times_ns) else None
