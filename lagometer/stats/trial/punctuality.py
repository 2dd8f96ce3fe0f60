# SPDX-License-Identifier: Apache-2.0
"""How sources kept their schedules: messages dropped, and schedules that moved.

A source with the policy `skip` also numbers the messages it drops, so gaps in the sequence show how many it
dropped, and when.
"""

from __future__ import annotations

import polars as pl

from lagometer.store import format as form
from lagometer.store.facts import TrialFacts


def punctuality(samples: pl.DataFrame, facts: TrialFacts) -> dict[str, dict[str, int]]:
    """The columns `skipped` (in the measure phase) and `shift_ns` of each edge driven by a timer.

    End-to-end has the sum over its sources' skipped messages, and the largest shift.
    """
    writers = {writer.stream: writer for writer in facts.writers if writer.due is not None}
    columns: dict[str, dict[str, int]] = {}
    sources: dict[int, dict[str, int]] = {}
    for edge in facts.edges:
        writer = writers.get(edge.stream)
        if writer is None or facts.closed_loop:
            continue
        skipped = 0
        if writer.skipped:
            skipped = int(skipped_before(samples, edge.name, facts.measure_begin_ns)["skipped"].sum())
            skipped += skipped_last(samples, edge.name, writer.skipped)
        columns[edge.name] = {"skipped": skipped, "shift_ns": writer.shift_ns}
        if edge.stream in facts.source_streams:
            sources[edge.stream] = columns[edge.name]
    if sources:
        columns[form.END_TO_END] = {
            "skipped": sum(source["skipped"] for source in sources.values()),
            "shift_ns": max(source["shift_ns"] for source in sources.values()),
        }
    return columns


def skipped_before(samples: pl.DataFrame, edge: str, measure_begin_ns: int) -> pl.DataFrame:
    """`sequence` of each message of the measure phase on an edge, and `skipped`: how many messages its source
    dropped just before it that were also due in that phase.

    Dropped messages between two others are assumed to be due at even intervals; with a period, they are.
    """
    gaps = _gaps(samples, edge)
    between_ns = pl.col("due_ns") - pl.col("due_ns").shift(1)
    early_ns = (measure_begin_ns - pl.col("due_ns").shift(1)) * (pl.col("skipped") + 1)
    early = ((early_ns + between_ns - 1) // between_ns - 1).fill_null(0).clip(0, pl.col("skipped"))
    gaps = gaps.with_columns(skipped=pl.col("skipped") - early)
    return gaps.filter(pl.col("phase") == "measure").select("sequence", "skipped")


def skipped_last(samples: pl.DataFrame, edge: str, skipped: int) -> int:
    """How many messages a source dropped after the last one it sent, out of all it dropped. Sources end with
    the measure phase, so those messages were due in it."""
    return max(0, skipped - int(_gaps(samples, edge)["skipped"].sum()))


def _gaps(samples: pl.DataFrame, edge: str) -> pl.DataFrame:
    is_sent = ~pl.col("outcome").is_in(["duplicate", "unmatched"])
    sent = samples.filter((pl.col("edge") == edge) & is_sent).sort("sequence")
    number = pl.col("sequence").cast(pl.Int64())
    return sent.select(
        "sequence",
        "phase",
        pl.coalesce("intended_ns", "publish_ns").alias("due_ns"),
        (number - number.shift(1, fill_value=-1) - 1).alias("skipped"),
    )
