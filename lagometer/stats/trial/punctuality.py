# SPDX-License-Identifier: Apache-2.0
"""How sources kept their schedules: messages dropped, and schedules that moved.

A source with the policy `skip` also numbers the messages it drops, so gaps in the sequence show how many it
dropped, and when. A number that an edge lacks may as well be of a message that was sent while its reader was
away; so what was sent is taken from an edge whose reader was always there, or from all edges together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lagometer.store import format as form
from lagometer.store.facts import EdgeSpec, TrialFacts


@dataclass(frozen=True)
class Skipped:
    """What a source dropped of the messages of the measure phase while somebody was there to read them.

    before: `sequence` of each message that it sent in that phase, and `skipped`: how many it dropped just
    before. last: how many it dropped after the last message.
    """

    before: pl.DataFrame
    last: int

    @property
    def count(self) -> int:
        """How many messages it dropped."""
        return int(self.before["skipped"].sum()) + self.last


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
        skipped = skipped_on([edge], samples, facts).count
        columns[edge.name] = {"skipped": skipped, "shift_ns": writer.shift_ns}
        if edge.stream in facts.source_streams and edge.stream not in sources:
            skipped = skipped_on(edges_of(edge.stream, facts), samples, facts).count
            sources[edge.stream] = {"skipped": skipped, "shift_ns": writer.shift_ns}
    if sources:
        columns[form.END_TO_END] = {
            "skipped": sum(source["skipped"] for source in sources.values()),
            "shift_ns": max(source["shift_ns"] for source in sources.values()),
        }
    return columns


def edges_of(stream: int, facts: TrialFacts) -> list[EdgeSpec]:
    """The edges of a stream."""
    return [edge for edge in facts.edges if edge.stream == stream]


def skipped_on(readers: Sequence[EdgeSpec], samples: pl.DataFrame, facts: TrialFacts) -> Skipped:
    """What the source of these edges, all of one stream, dropped while the reader of any of them was there: a
    reader that was to get both the message before and the one after. What was due while a service's server
    was away does not count.

    Dropped messages between two others are assumed to be due at even intervals; with a period, they are.
    """
    streams = {edge.stream for edge in readers}
    skipped = sum(writer.skipped for writer in facts.writers if writer.stream in streams)
    if not skipped:
        return Skipped(pl.DataFrame(schema={"sequence": pl.UInt64(), "skipped": pl.Int64()}), 0)
    edges = edges_of(readers[0].stream, facts)
    sent = _sent(next(([edge] for edge in edges if _has_all(edge)), edges), samples)
    always_there = next(([reader] for reader in readers if _has_all(reader)), readers)
    concerned = [_concerned(reader, sent, samples) for reader in always_there]
    number, due_ns = pl.col("sequence").cast(pl.Int64()), pl.col("due_ns")
    gaps = sent.with_columns(
        counts=pl.any_horizontal(counts for counts, _ in concerned),
        gap=number - number.shift(1, fill_value=-1) - 1,
        between_ns=due_ns - due_ns.shift(1),
        early_ns=(facts.measure_begin_ns - due_ns.shift(1)) * (number - number.shift(1)),
    )
    # Those of a gap that were due before the measure phase.
    early = ((pl.col("early_ns") + pl.col("between_ns") - 1) // pl.col("between_ns") - 1).fill_null(0)
    before = gaps.filter("counts").select("sequence", skipped=pl.col("gap") - early.clip(0, pl.col("gap")))
    # Sources end with the measure phase, so what is in no gap was due in it.
    last = max(0, skipped - int(gaps["gap"].sum())) if any(to_the_end for _, to_the_end in concerned) else 0
    return Skipped(before, last)


def _has_all(edge: EdgeSpec) -> bool:
    """Whether an edge has a row for each message of its stream."""
    return edge.is_whole and edge.calls_ns is None


def _sent(edges: Sequence[EdgeSpec], samples: pl.DataFrame) -> pl.DataFrame:
    """The messages of a stream, in order, that any of these edges has a row for."""
    is_sent = ~pl.col("outcome").is_in(["duplicate", "unmatched"])
    rows = samples.filter(pl.col("edge").is_in([edge.name for edge in edges]) & is_sent).select(
        "sequence", "phase", due_ns=pl.coalesce("intended_ns", "publish_ns")
    )
    return (rows if len(edges) == 1 else rows.unique("sequence")).sort("sequence")


def _concerned(reader: EdgeSpec, sent: pl.DataFrame, samples: pl.DataFrame) -> tuple[pl.Series, bool]:
    """Whether what was dropped before each message of the measure phase concerns a reader, and whether what
    was dropped after the last one does."""
    if _has_all(reader):
        return sent["phase"] == "measure", True
    is_own = (pl.col("edge") == reader.name) & ~pl.col("outcome").is_in(form.APART)
    own = samples.filter(is_own).select("sequence", own_phase="phase")
    joined = sent.join(own, on="sequence", how="left", maintain_order="left")
    here = joined["own_phase"].is_not_null()
    counts = here & here.shift(1, fill_value=reader.receiver_joined_ns is None)
    counts &= (joined["own_phase"] == "measure").fill_null(value=False)
    return counts, reader.receiver_left_ns is None and bool(here.tail(1).any())
