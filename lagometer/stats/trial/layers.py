# SPDX-License-Identifier: Apache-2.0
"""Matches stamps of the middleware's layers with messages (docs/FORMAT.md, "stamps").

A middleware identifies a message by a key: its writer and the sequence number the writer gave it, or the
writer and the sending time if readers get no sequence number. Senders and receivers record the key next to
our own stream and sequence; stamps from the middleware's own threads have only the key. So the key joins
them. If key and envelope contradict each other for a message, its stamps are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import polars as pl

from lagometer.store import records as rec
from lagometer.store.facts import TrialFacts
from lagometer.store.format import STAMPS_SCHEMA
from lagometer.store.records import Lane

LAYERS = {1: "serialise", 2: "write", 3: "signalled", 4: "woken", 5: "take", 6: "deserialise"}
VENDOR_FROM = 4096
LAYER_END = 0x8000_0000
BY_SEQUENCE, BY_TIME = 1, 2
KEY = ("writer_id", "by", "key")
MESSAGE = ("stream", "sequence")


@dataclass(frozen=True)
class LayerCounts:
    """The result of the join.

    recorded: stamps. overflow: stamps that did not fit. received: messages taken, once per reader. joined:
    those whose sender's stamps were found by the key. strange: those whose key belongs to another message;
    their stamps are left out. unknown: those without a key, or with a key no sender recorded, unless their
    sender or their reader has no keys at all. ambiguous: keys that several messages have. unmatched: stamps
    whose key belongs to no message.
    """

    recorded: int = 0
    overflow: int = 0
    received: int = 0
    joined: int = 0
    strange: int = 0
    unknown: int = 0
    ambiguous: int = 0
    unmatched: int = 0

    def as_json(self) -> Mapping[str, int]:
        """For the journal."""
        return asdict(self)

    def warnings(self) -> Iterator[str]:
        """What a reader of the stamps needs to know."""
        if self.overflow:
            yield f"layer stamps: {self.overflow} found no room"
        if self.strange:
            yield f"layer stamps: {self.strange} messages have another's key; their stamps are left out"
        if self.unknown:
            yield f"layer stamps: of {self.unknown} of {self.received} messages the sender's were not found"
        if self.ambiguous:
            yield f"layer stamps: {self.ambiguous} keys belong to several messages; they join nothing"
        if self.unmatched:
            yield f"layer stamps: {self.unmatched} belong to no message that was recorded"


@dataclass(frozen=True)
class LayerStamps:
    """The stamps of a trial as `STAMPS_SCHEMA`, and how they were joined."""

    frame: pl.DataFrame
    counts: LayerCounts


@dataclass(frozen=True)
class Matches:
    """Received messages and what their keys say: `messages` has `lane`, stream, sequence and `fate` (joined,
    strange, unknown; keyless: the middleware gave one of the two sides no key for any message).
    `ambiguous`: keys that several sent messages have."""

    messages: pl.DataFrame
    ambiguous: int

    def count(self, fate: str) -> int:
        """How many messages had this result."""
        return int((self.messages["fate"] == fate).sum())


def with_keys(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds what identifies a message: `by` (0: nothing) and `key`, from the middleware's data."""
    by_sequence = pl.col("middleware_sequence") != 0
    by_time = pl.col("source_time_ns") != 0
    return frame.with_columns(
        pl.when(by_sequence).then(BY_SEQUENCE).when(by_time).then(BY_TIME).otherwise(0).alias("by"),
        pl.when(by_sequence)
        .then(pl.col("middleware_sequence"))
        .otherwise(pl.col("source_time_ns").cast(pl.UInt64, strict=False))
        .alias("key"),
    )


def match(sent: pl.DataFrame, received: pl.DataFrame) -> Matches:
    """Joins received and sent messages by the key alone, and says whether the envelopes agree.

    Both have `stream`, `sequence` and the key's parts (`writer_id`, `middleware_sequence`, `source_time_ns`);
    `received` also has `lane`, one value per reader. The order of rows does not matter.
    """
    table, ambiguous = _key_table(with_keys(sent), KEY)
    messages = with_keys(received).unique(["lane", *MESSAGE, *KEY], maintain_order=True)
    joined = messages.join(
        table.rename({"stream": "stream_of_key", "sequence": "sequence_of_key"}), on=KEY, how="left"
    )
    # Then the envelopes alone say which message it is.
    silent = pl.col("stream").is_in(_streams_without_keys(sent).implode())
    keyless = silent | (pl.col("by").max().over("lane", "stream") == 0)
    same = (pl.col("stream") == pl.col("stream_of_key")) & (pl.col("sequence") == pl.col("sequence_of_key"))
    fate = (
        pl.when(pl.col("stream_of_key").is_null())
        .then(pl.when(keyless).then(pl.lit("keyless")).otherwise(pl.lit("unknown")))
        .when(same)
        .then(pl.lit("joined"))
        .otherwise(pl.lit("strange"))
    )
    return Matches(joined.select("lane", *MESSAGE, fate.alias("fate")), ambiguous)


def _streams_without_keys(sent: pl.DataFrame) -> pl.Series:
    return with_keys(sent).group_by("stream").agg(pl.col("by").max()).filter(pl.col("by") == 0)["stream"]


def _key_table(keyed: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """The message of each key that has only one, and how many keys have several."""
    known = keyed.filter(
        (pl.col("by") != 0)
        & (pl.col("sequence") != rec.SEQUENCE_UNKNOWN)
        & (pl.col("stream") != rec.STREAM_UNKNOWN)
    )
    table = known.select(*key, *MESSAGE).unique()
    several = table.filter(table.select(key).is_duplicated())
    return table.join(several, on=list(key), how="anti"), several.select(key).n_unique()


def layer_stamps(lanes: Sequence[Lane], facts: TrialFacts) -> LayerStamps | None:
    """The stamps of a trial, each with its message; None if none were requested."""
    stamp_lanes = [lane for lane in lanes if lane.kind in rec.KINDS_OF_STAMPS]
    if not stamp_lanes:
        return None
    sent, sent_unmatched = _resolved(stamp_lanes, rec.KIND_SENT_STAMPS)
    received, received_unmatched = _resolved(stamp_lanes, rec.KIND_RECEIVED_STAMPS)
    matches = match(sent, received)
    strange = matches.messages.filter(pl.col("fate") == "strange")
    parts = [pl.DataFrame(schema=STAMPS_SCHEMA)]
    for edge in facts.edges:
        lane = _lane_number(edge.receiver_node, edge.reader)
        wrong = strange.filter((pl.col("lane") == lane) & (pl.col("stream") == edge.stream))["sequence"]
        right = (pl.col("stream") == edge.stream) & ~pl.col("sequence").is_in(wrong.implode())
        parts.append(_rows(sent.filter(right), edge.name, "sender"))
        if edge.one_clock:
            parts.append(_rows(received.filter(right & (pl.col("lane") == lane)), edge.name, "receiver"))
    counts = LayerCounts(
        recorded=_stamp_count(sent) + _stamp_count(received) + sent_unmatched + received_unmatched,
        overflow=sum(lane.overflow for lane in stamp_lanes),
        received=len(matches.messages),
        joined=matches.count("joined"),
        strange=matches.count("strange"),
        unknown=matches.count("unknown"),
        ambiguous=matches.ambiguous,
        unmatched=sent_unmatched + received_unmatched,
    )
    return LayerStamps(pl.concat(parts), counts)


def _stamp_count(stamps: pl.DataFrame) -> int:
    return stamps.filter(pl.col("layer") != 0).height


def _lane_number(node: int, endpoint: int) -> int:
    """One number for a reader; for a writer its stream is enough."""
    return (node << 32) | endpoint


def _resolved(lanes: Sequence[Lane], kind: int) -> tuple[pl.DataFrame, int]:
    """The stamps of one side with the stream and sequence of their messages, and how many have no message."""
    frames = [_frame(lane) for lane in lanes if lane.kind == kind]
    stamps = with_keys(pl.concat(frames) if frames else _frame(Lane(kind, 0, 0, rec.make_records(kind, []))))
    has_sequence = pl.col("sequence") != rec.SEQUENCE_UNKNOWN
    known, key_only = stamps.filter(has_sequence), stamps.filter(~has_sequence)
    if key_only.is_empty():
        return known, 0
    # A stamp without a writer refers to the endpoint's own writer, or to the one it receives from.
    named, _ = _key_table(known, ("lane", *KEY))
    unnamed, _ = _key_table(known, ("lane", "by", "key"))
    has_writer = pl.col("writer_id") != 0
    unresolved = key_only.drop(*MESSAGE)
    resolved = pl.concat(
        [
            unresolved.filter(has_writer).join(named, on=["lane", *KEY], how="inner"),
            unresolved.filter(~has_writer).join(unnamed, on=["lane", "by", "key"], how="inner"),
        ]
    )
    return pl.concat([known, resolved.select(known.columns)]), len(key_only) - len(resolved)


def _frame(lane: Lane) -> pl.DataFrame:
    names = [name for name in rec.STAMP_DTYPE.names or () if name != "zeros"]
    number = lane.endpoint if lane.kind == rec.KIND_SENT_STAMPS else _lane_number(lane.node, lane.endpoint)
    frame = pl.DataFrame({name: lane.records[name].copy() for name in names})
    return frame.with_columns(pl.lit(number, dtype=pl.UInt64).alias("lane"))


def _rows(stamps: pl.DataFrame, edge: str, side: str) -> pl.DataFrame:
    """Rows of the file, sorted by sequence and time; rows that only carry the key are not stamps."""
    entries = stamps.filter(pl.col("layer") != 0)
    names = {number: layer_name(number) for number in entries["layer"].unique()}
    named = entries.with_columns(
        pl.lit(edge).alias("edge"),
        pl.lit(side).alias("side"),
        ((pl.col("layer") & LAYER_END) != 0).alias("end"),
        pl.col("layer").replace_strict(names, return_dtype=pl.String).alias("layer"),
        pl.when(pl.col("cpu") != rec.CPU_UNKNOWN).then(pl.col("cpu")).alias("cpu"),
    )
    return named.sort("sequence", "time_ns", maintain_order=True).select(
        pl.col(name).cast(dtype) for name, dtype in STAMPS_SCHEMA.items()
    )


def layer_name(layer: int) -> str:
    """A layer's name in the file, whether the layer is entered or left."""
    number = layer & ~LAYER_END
    if number >= VENDOR_FROM:
        return f"vendor-{number - VENDOR_FROM}"
    return LAYERS.get(number, f"layer-{number}")
