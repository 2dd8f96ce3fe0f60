# SPDX-License-Identifier: Apache-2.0
"""The files of a campaign (docs/FORMAT.md): their columns, and how they are written.

Every file appears whole or not at all: it is written next to its final path, synced and renamed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from lagometer.store.observed import KERNEL_COUNTERS, PROCESSOR_COUNTS, RESOURCE_COUNTS, WIRE_COUNTS

FORMAT_VERSION = 1

MANIFEST = "manifest.json"
ENVIRONMENT = "environment.json"
JOURNAL = "journal.jsonl"
CELLS = "cells.parquet"
SAMPLES = "samples"
EVENTS = "events"  # likewise: the middleware's reports about endpoints
EXCHANGES = "exchanges"  # likewise: time stamps that hosts exchanged
CAPTURES = "captures"  # a folder like the samples': packets, one file per trial and host
RESOURCES = "resources"  # likewise: what the processes of a trial cost
STAMPS = "stamps"  # a folder like the samples': when messages were in which layer
PARTIAL = ".partial"  # suffix of a file that is being written; its name begins with a dot
LAYER_FILES = "layers"  # likewise: the way of each message, layer by layer
SCHEDULER = "scheduler"  # likewise: for each stay in a layer, how long its thread slept, waited and ran
TIMELINES = "timelines"  # likewise: single calls and scheduler states while chosen messages were under way
BESIDE = (STAMPS, LAYER_FILES, EVENTS, EXCHANGES, RESOURCES, SCHEDULER, TIMELINES)  # one file for each trial
ESTIMATES = "estimates.parquet"
FLOOR = "floor.json"
CONFORMANCE = "conformance.json"  # written by `lagometer conformance --out`, if requested
CONTROL = "control"  # a folder of the same layout: the trials of the control cell
LONG = "long"  # likewise: the long trials

END_TO_END = "end-to-end"
ARROW = "→"  # in the name of every edge, and of no chain

PHASES = ("warm-up", "measure", "drain")
OUTCOMES = (
    *("delivered", "lost", "overwritten", "censored", "rejected", "duplicate", "unmatched"),
    *("unanswered", "unreachable"),
)
# Rows that are no message of their own, or a call that nobody could answer, or a message that nobody was
# there to pass on: not in counts of messages sent.
APART = ("duplicate", "unmatched", "unanswered", "unreachable")

ROW_GROUP_ROWS = 1 << 18  # of a file's parts, which readers read in parallel

CHAIN_PARTS = ("communication_ns", "computation_ns", "idle_ns")  # of named chains
CAUSE = pl.Struct({"stream": pl.UInt32(), "sequence": pl.UInt64()})
SAMPLES_SCHEMA: dict[str, pl.DataType] = {
    "edge": pl.Categorical(),
    "sequence": pl.UInt64(),
    **{
        name: pl.Int64()
        for name in (
            "intended_ns",
            "publish_ns",
            "published_ns",
            "signalled_ns",
            "woken_ns",
            "taken_ns",
            "handled_ns",
        )
    },
    **{name: pl.UInt16() for name in ("cpu_publish", "cpu_published", "cpu_signalled", "cpu_taken")},
    "payload_bytes": pl.UInt32(),
    "cause_stream": pl.UInt32(),
    "cause_sequence": pl.UInt64(),
    "causes": pl.List(CAUSE),
    "phase": pl.Categorical(),
    "outcome": pl.Categorical(),
    "corrupted": pl.Boolean(),
    "reordered": pl.Boolean(),
    "resent": pl.Boolean(),
    **{name: pl.Int64() for name in ("begun_ns", "started_ns")},
    **{name: pl.Int64() for name in CHAIN_PARTS},
}

STAMPS_SCHEMA: dict[str, pl.DataType] = {
    "edge": pl.Categorical(),
    "sequence": pl.UInt64(),
    "side": pl.Categorical(),
    "layer": pl.Categorical(),
    "end": pl.Boolean(),
    "time_ns": pl.Int64(),
    "cpu": pl.UInt16(),
}

LAYERS_SCHEMA: dict[str, pl.DataType] = {
    "edge": pl.Categorical(),
    "sequence": pl.UInt64(),
    "layer": pl.Categorical(),
    "begin_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "begin_thread": pl.UInt32(),
    "end_thread": pl.UInt32(),
}

SCHEDULER_SCHEMA: dict[str, pl.DataType] = {
    "edge": pl.Categorical(),
    "sequence": pl.UInt64(),
    "layer": pl.Categorical(),
    "begin_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "thread": pl.UInt32(),
    "asleep_ns": pl.Int64(),
    "waiting_ns": pl.Int64(),
    "running_ns": pl.Int64(),
    "instead": pl.List(
        pl.Struct({"name": pl.String(), "thread": pl.Int64(), "cpu": pl.UInt16(), "ran_ns": pl.Int64()})
    ),
}

EVENTS_SCHEMA: dict[str, pl.DataType] = {
    "node": pl.Categorical(),
    "side": pl.Categorical(),
    "endpoint": pl.UInt32(),
    "event": pl.Categorical(),
    "time_ns": pl.Int64(),
    "total": pl.UInt64(),
}
EXCHANGES_SCHEMA: dict[str, pl.DataType] = {
    "host": pl.String(),
    "other": pl.String(),
    "sent_ns": pl.Int64(),
    "received_ns": pl.Int64(),
    "answered_ns": pl.Int64(),
    "returned_ns": pl.Int64(),
    "received_lain_ns": pl.Int64(),
    "returned_lain_ns": pl.Int64(),
}
RESOURCES_SCHEMA: dict[str, pl.DataType] = {
    "host": pl.String(),
    "process": pl.String(),
    "kind": pl.String(),
    "what": pl.String(),
    "name": pl.String(),
    "thread": pl.Int64(),
    "group": pl.String(),
    "share": pl.Float64(),
    **{
        name: pl.Int64()
        for name in (
            *("user_ns", "system_ns", "run_ns", "voluntary_switches", "involuntary_switches"),
            *("minor_faults", "major_faults", "rss_bytes", "pss_bytes", "uss_bytes", "mapped_bytes"),
            *("descriptors", "tcp_sockets", "udp_sockets", "unix_sockets", "other_sockets"),
            *PROCESSOR_COUNTS,
        )
    },
}
EVENT_COLUMNS = (
    "event_lost",
    "event_deadline_missed",
    "event_deadline_missed_offered",
    "event_incompatible_qos",
)

COUNTS = (
    "n",
    "sent",
    "lost",
    "overwritten",
    "censored",
    "rejected",
    "duplicated",
    "reordered",
    "corrupted",
    "resent",
    "unmatched",
    "unanswered",
    "unreachable",
)
LOST_ORDER = ("p50", "p90", "p99", "p999")  # of latency with lost messages counted as infinite
LATENCY_ORDER = ("min", "p25", "p50", "p75", "p90", "p99", "p999", "max")
SENDING_FIGURES = ("response", "send_lag", "blocked")
SENDING_ORDER = ("p50", "p90", "p99", "max")
LAYERS = ("signalled", "woken", "wake", "take", "handle")
LAYER_ORDER = ("p50", "p99")
# Of named chains: the whole, from the first publish to the end of the last callback, its parts, and ages.
CHAIN_FIGURES = ("whole", "communication", "computation", "idle", "half_round_trip")
JOINING_COLUMNS = (
    "join_process_ns",
    "join_participant_ns",
    "join_first_message_ns",
    "joining_gap_max_ns",
    "joining_latency_max_ns",
    "leaving_gap_max_ns",
    "leaving_latency_max_ns",
)
STARTUP_FIGURES = ("process", "participant", "matched", "first_message")
CHAIN_ORDER = ("p50", "p99", "mean")
CHAIN_AGES = ("age_mean_ns", "age_best_ns", "age_worst_ns", "reaction_p50_ns", "reaction_max_ns")

FACTOR_TYPES: dict[str, pl.DataType] = {
    "adapter": pl.String(),
    "workload": pl.String(),
    "work_ns": pl.Int64(),
    "work_spread": pl.String(),
    "payload_bytes": pl.Int64(),
    "content": pl.String(),
    "type": pl.String(),
    "rate_hz": pl.Float64(),
    "schedule": pl.String(),
    "late": pl.String(),
    "reliability": pl.String(),
    "history": pl.String(),
    "depth": pl.Int64(),
    "durability": pl.String(),
    "deadline_period_ns": pl.Int64(),
    "lifespan_ns": pl.Int64(),
    "liveliness": pl.String(),
    "partition": pl.String(),
    "instances": pl.Int64(),
    "dispatch": pl.String(),
    "touch": pl.String(),
    "profile": pl.String(),
    "placement": pl.String(),
    "participants": pl.String(),
    "threads": pl.String(),
    "start": pl.String(),
    "scheduling": pl.String(),
    "cpus": pl.String(),
    "network": pl.String(),
    "domain": pl.Int64(),
    "bridge": pl.String(),
    "security": pl.String(),
    "interference": pl.String(),
    "tuning": pl.String(),
    "hosts": pl.String(),
    "link": pl.String(),
    "variant": pl.String(),
    "part": pl.String(),
}

FIGURES_SCHEMA: dict[str, pl.DataType] = {
    "cell": pl.String(),
    "trial": pl.Int64(),
    "edge": pl.String(),
    "valid": pl.Boolean(),
    "reasons": pl.List(pl.String()),
    "warnings": pl.List(pl.String()),
    **{name: pl.Int64() for name in COUNTS},
    **{f"latency_{name}_ns": pl.Int64() for name in LATENCY_ORDER},
    "latency_mean_ns": pl.Float64(),
    "latency_sd_ns": pl.Float64(),
    "latency_skewness": pl.Float64(),
    "latency_kurtosis": pl.Float64(),
    **{f"{figure}_{name}_ns": pl.Int64() for figure in SENDING_FIGURES for name in SENDING_ORDER},
    **{f"{layer}_{name}_ns": pl.Int64() for layer in LAYERS for name in LAYER_ORDER},
    "rate_intended_hz": pl.Float64(),
    "rate_achieved_hz": pl.Float64(),
    "cpu_per_message_ns": pl.Float64(),
    "taken": pl.Int64(),
    "overhead_s": pl.Float64(),
    "steady_ns": pl.Int64(),
    "steady": pl.Boolean(),
    "started": pl.String(),
    **{f"latency_{name}_lost_ns": pl.Int64() for name in LOST_ORDER},
    "latency_infinite_from": pl.Float64(),
    "noisy": pl.Boolean(),
    "noise": pl.List(pl.String()),
    "transport": pl.String(),
    **{f"kernel_{name}": pl.Int64() for name in KERNEL_COUNTERS},
    "interference_cpu_ns": pl.Int64(),
    "interference_achieved_per_s": pl.Float64(),
    **{name: pl.Int64() for name in ("memory_pss_bytes", "daemon_cpu_ns", "daemon_pss_bytes")},
    "skipped": pl.Int64(),
    "shift_ns": pl.Int64(),
    "data_age_max_ns": pl.Int64(),
    "deadline_ns": pl.Int64(),
    "deadline_missed": pl.Int64(),
    "deadline_miss_share": pl.Float64(),
    "deadline_run_max": pl.Int64(),
    "deadline_due": pl.Int64(),
    "deadline_k": pl.Int64(),
    "deadline_met_of_k_min": pl.Int64(),
    "response_growth_ns_per_s": pl.Float64(),
    "involuntary_switches": pl.Int64(),
    **{name: pl.Int64() for name in EVENT_COLUMNS},
    "discovery_ns": pl.Int64(),
    **{
        f"{figure}_{name}_ns": pl.Float64() if name == "mean" else pl.Int64()
        for figure in CHAIN_FIGURES
        for name in CHAIN_ORDER
    },
    **{name: pl.Float64() if "mean" in name else pl.Int64() for name in CHAIN_AGES},
    "initial_lost": pl.Int64(),
    **{f"startup_{name}_ns": pl.Int64() for name in STARTUP_FIGURES},
    **{name: pl.Int64() for name in JOINING_COLUMNS},
    "fairness_p50_ratio": pl.Float64(),
    "fairness_order_correlation": pl.Float64(),
    "sender_host": pl.String(),
    "receiver_host": pl.String(),
    "clock": pl.String(),
    "clock_bound_ns": pl.Int64(),
    "clock_bound": pl.String(),
    **{f"wire_{name}": pl.Int64() for name in WIRE_COUNTS},
    "wire_bytes_per_payload_byte": pl.Float64(),
    **{f"resources_{name}": pl.Int64() for name in RESOURCE_COUNTS},
}
# Before `deadline_k` was configurable, it was ten and part of a column's name.
FORMER_K, FORMER_MET_MIN = 10, "deadline_met_of_10_min"

ESTIMATES_SCHEMA: dict[str, pl.DataType] = {
    "cell": pl.String(),
    "edge": pl.String(),
    "quantity": pl.String(),
    "estimate_ns": pl.Int64(),
    "low_ns": pl.Int64(),
    "high_ns": pl.Int64(),
    "confidence": pl.Float64(),
    "trials": pl.Int64(),
    "n": pl.Int64(),
    "status": pl.String(),
    "needed_trials": pl.Int64(),
    "needed_messages": pl.Int64(),
    "stopped": pl.String(),
    "estimate_share": pl.Float64(),
    "low_share": pl.Float64(),
    "high_share": pl.Float64(),
}
SHARES = ("estimate_share", "low_share", "high_share")  # of estimates.parquet; missing in the first ones


def of_single_edges() -> pl.Expr:
    """Whether a row is for an edge; `end-to-end` and named chains count the same messages again."""
    return pl.col("edge").cast(pl.String()).str.contains(ARROW, literal=True)


def cells_schema(factors: Iterable[str] = ()) -> dict[str, pl.DataType]:
    """Columns of cells.parquet. Every known factor has one; additional ones are text.

    The types do not depend on the values, so the rows of any two trials can be concatenated.
    """
    extra = {name: pl.String() for name in factors if name not in FACTOR_TYPES and name not in FIGURES_SCHEMA}
    return {**FIGURES_SCHEMA, **FACTOR_TYPES, **extra}


def empty_cells() -> pl.DataFrame:
    """cells.parquet of a campaign without a finished trial."""
    return pl.DataFrame(schema=cells_schema())


def cells_of_rows(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """cells.parquet from the `rows` of the journal; values a row does not have are null."""
    current = [_current(row) for row in rows]
    schema = cells_schema(dict.fromkeys(name for row in current for name in row))
    absent = dict.fromkeys(schema)
    return pl.DataFrame([{**absent, **row} for row in current], schema=schema, orient="row")


def _current(row: Mapping[str, object]) -> Mapping[str, object]:
    """A row with the current column names."""
    if FORMER_MET_MIN not in row:
        return row
    other_columns = {name: value for name, value in row.items() if name != FORMER_MET_MIN}
    k = FORMER_K if row.get("deadline_ns") is not None else None
    return {**other_columns, "deadline_k": k, "deadline_met_of_k_min": row[FORMER_MET_MIN]}


def write_samples(samples: pl.DataFrame, path: Path) -> int:
    """Writes the samples of one trial; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(samples, path)


def write_stamps(stamps: pl.DataFrame, path: Path) -> int:
    """Writes the layer stamps of one trial; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(stamps, path)


def write_layers(layers: pl.DataFrame, path: Path) -> int:
    """Writes the layers of one trial; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(layers, path)


def write_scheduler(stays: pl.DataFrame, path: Path) -> int:
    """Writes the scheduler's share of a trial's layers; returns the bytes. Raises OSError naming the file."""
    return write_parquet(stays, path)


def write_resources(resources: pl.DataFrame, path: Path) -> int:
    """Writes what a trial's processes cost; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(resources, path)


def write_events(events: pl.DataFrame, path: Path) -> int:
    """Writes the events of one trial; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(events, path)


def write_exchanges(exchanges: pl.DataFrame, path: Path) -> int:
    """Writes the exchanges of one trial; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(exchanges, path)


def write_cells(cells: pl.DataFrame, path: Path) -> int:
    """Writes cells.parquet over an older one; returns the bytes written. Raises OSError naming the file."""
    return write_parquet(cells, path)


def write_estimates(estimates: pl.DataFrame, path: Path) -> int:
    """Writes estimates.parquet over an older one; returns the bytes. Raises OSError naming the file."""
    return write_parquet(estimates, path)


def write_json_atomic(value: Mapping[str, object], path: Path) -> int:
    """Writes one JSON object, indented; returns the bytes written. Raises OSError naming the file."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return write_bytes_atomic((text + "\n").encode(), path)


def write_parquet(frame: pl.DataFrame, path: Path) -> int:
    """Writes one table; returns the bytes written. Raises OSError naming the file."""
    return write_bytes_atomic(_parquet(frame), path)


def _parquet(frame: pl.DataFrame) -> bytes:
    """Builds the file in memory, so that its size is known and a full disk shows as a plain OSError.

    Times and sequence numbers mostly ascend: stored as differences, they take half the space and are read in
    half the time. Polars reads that encoding but does not write it.
    """
    import pyarrow as pa  # only writing needs it
    import pyarrow.parquet as pq

    table = frame.rechunk().to_arrow()
    ascending = [field.name for field in table.schema if field.type in (pa.int64(), pa.uint64())]
    buffer = pa.BufferOutputStream()
    pq.write_table(
        table,
        buffer,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        use_dictionary=[name for name in table.column_names if name not in ascending],
        column_encoding=dict.fromkeys(ascending, "DELTA_BINARY_PACKED"),
    )
    content: bytes = buffer.getvalue().to_pybytes()
    return content


def keep_file(partial: Path, path: Path) -> None:
    """Gives a file that was written in pieces its final name, if the file exists. Raises OSError."""
    if not partial.exists():
        return
    descriptor = os.open(partial, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.replace(path)
    sync_folder(path.parent)


def write_bytes_atomic(content: bytes, path: Path) -> int:
    """Replaces `path` with this content, or leaves it and raises OSError: its name, the bytes needed."""
    beside_path = path.with_name(f".{path.name}{PARTIAL}")

    def write() -> None:
        descriptor = os.open(beside_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside_path.replace(path)

    try:
        _naming(path, len(content), write)
    except BaseException:
        beside_path.unlink(missing_ok=True)
        raise
    _naming(path, len(content), lambda: sync_folder(path.parent))
    return len(content)


def _naming(path: Path, needed_bytes: int, action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        message = f"{error.strerror or error}; {needed_bytes} bytes were to be written"
        raise OSError(error.errno, message, str(path)) from error


def sync_folder(folder: Path) -> None:
    """Syncs a folder's entries to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
