# SPDX-License-Identifier: Apache-2.0
"""How old data gets before newer data replaces it (docs/methodology/deadlines.md)."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from lagometer.store import format as form
from lagometer.store.facts import TrialFacts

_MESSAGE = ("stream", "sequence")


def edge_age_max_ns(samples: pl.DataFrame, name: str) -> int | None:
    """The longest time from a message's publish call until newer data is taken on the same edge."""
    return _longest(
        samples.filter(
            (pl.col("edge") == name)
            & (pl.col("phase") == "measure")
            & (pl.col("outcome") == "delivered")
            & pl.col("publish_ns").is_not_null()
        )
    )


def chain_age_max_ns(samples: pl.DataFrame, facts: TrialFacts) -> int | None:
    """The longest age of any source's data at any edge into a sink.

    A message taken there depends on all its causes and theirs; of each source, it holds the newest of those.
    That data is replaced when a message with newer data from the same source is taken on the same edge. None
    if no source's data was replaced at any sink, or if hosts have separate clocks.
    """
    if len({clock for edge in facts.edges for clock in (edge.sender_clock, edge.receiver_clock)}) > 1:
        return None  # a source and a sink may have separate clocks
    into_sinks = facts.sink_edges
    fused = samples["causes"].null_count() < samples.height
    if len(facts.source_streams) == 1 and len(into_sinks) == 1 and not fused:
        return edge_age_max_ns(samples, form.END_TO_END)  # its rows are exactly that
    sent = _sent(samples, facts)
    taken = samples.filter(
        pl.col("edge").is_in(list(into_sinks))
        & (pl.col("outcome") == "delivered")
        & pl.col("publish_ns").is_not_null()
    ).select(_stream(facts), "sequence", "edge", "taken_ns")
    taken = taken.with_row_index("result")
    held = (
        _roots(taken.select("result", *_MESSAGE), _causes(sent), facts)
        .join(sent.filter("measured"), on=_MESSAGE)
        .group_by("result", "stream")
        .agg(pl.col("publish_ns").max())
        .join(taken.select("result", "edge", "taken_ns"), on="result")
    )
    return _most(_longest(part) for part in held.partition_by("stream", "edge"))


def _longest(taken: pl.DataFrame) -> int | None:
    """The longest time from publish_ns until newer data's taken_ns; None with fewer than two."""
    if taken.height < 2:
        return None
    ordered = taken.sort("taken_ns")
    # Overtaken data replaces nothing, nor does the same message when it is used again.
    newest_before = pl.col("publish_ns").cum_max().shift(1)
    fresh = ordered.filter(newest_before.is_null() | (pl.col("publish_ns") > newest_before))
    age_ns = fresh.select(pl.col("taken_ns").shift(-1) - pl.col("publish_ns")).to_series().max()
    return age_ns if isinstance(age_ns, int) else None


def _most(ages_ns: Iterable[int | None]) -> int | None:
    return max((age_ns for age_ns in ages_ns if age_ns is not None), default=None)


def _stream(facts: TrialFacts) -> pl.Expr:
    streams = {edge.name: edge.stream for edge in facts.edges}
    return (
        pl.col("edge")
        .cast(pl.String())
        .replace_strict(streams, default=None, return_dtype=pl.UInt32())
        .alias("stream")
    )


def _sent(samples: pl.DataFrame, facts: TrialFacts) -> pl.DataFrame:
    """Every sent message once: stream, sequence, publish_ns, measured, and its causes."""
    columns = ("sequence", "publish_ns", "causes", "cause_stream", "cause_sequence")
    return (
        samples.filter((pl.col("edge") != form.END_TO_END) & pl.col("publish_ns").is_not_null())
        .select(_stream(facts), *columns, measured=pl.col("phase") == "measure")
        .unique(_MESSAGE)
    )


def _causes(sent: pl.DataFrame) -> pl.DataFrame:
    """One row for each message and each of its causes: of_stream, of_sequence."""
    several = sent.filter(pl.col("causes").is_not_null()).explode("causes")
    cause = pl.col("causes").struct
    return pl.concat(
        [
            several.select(*_MESSAGE, of_stream=cause.field("stream"), of_sequence=cause.field("sequence")),
            sent.filter(pl.col("causes").is_null() & pl.col("cause_stream").is_not_null()).select(
                *_MESSAGE, of_stream="cause_stream", of_sequence="cause_sequence"
            ),
        ]
    )


def _roots(results: pl.DataFrame, causes: pl.DataFrame, facts: TrialFacts) -> pl.DataFrame:
    """For each result, the source messages it depends on, directly or indirectly."""
    from_source = pl.col("stream").is_in(list(facts.source_streams))
    parts = [results.filter(from_source)]
    pending = results.filter(~from_source)
    for _ in facts.edges:  # no way is longer: only the closed loop is a cycle
        if pending.is_empty():
            break
        caused = pending.join(causes, on=_MESSAGE).select(
            "result", stream="of_stream", sequence="of_sequence"
        )
        caused = caused.unique()
        parts.append(caused.filter(from_source))
        pending = caused.filter(~from_source)
    return pl.concat(parts).unique()
