# SPDX-License-Identifier: Apache-2.0
"""The log format of Apex.AI performance_test: a head of `key: value` lines, then a row per second, as CSV.

It writes the columns of versions 1.2 to 2.3, and both names that the head has had for the transport. Their
meaning comes from its source (analysis_result.cpp, statistics_tracker.hpp): latencies are in milliseconds;
`latency_variance (ms)` is the variance in s² times 1000, here over n as up to 1.4; counts are per second, of
loops of one second. Figures that lagometer does not measure (getrusage, CPU load) are `nan`.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from lagometer import __version__
from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.tables import trials
from lagometer.store.format import APART, write_bytes_atomic
from lagometer.store.reader import Campaign

START = "---EXPERIMENT-START---"
LOOP_NS = 1_000_000_000
RESOURCES = (
    *("ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt"),
    *(
        "ru_nswap",
        "ru_inblock",
        "ru_oublock",
        "ru_msgsnd",
        "ru_msgrcv",
        "ru_nsignals",
        "ru_nvcsw",
        "ru_nivcsw",
    ),
)
COLUMNS = (
    *("T_experiment", "T_loop", "received", "sent", "lost", "relative_loss", "data_received"),
    *("latency_min (ms)", "latency_max (ms)", "latency_mean (ms)", "latency_variance (ms)"),
    *RESOURCES,
    "cpu_usage (%)",
)
NEEDED = ("edge", "publish_ns", "taken_ns", "payload_bytes", "phase", "outcome")


def write_logs(campaign: Campaign, directory: Path) -> list[Path]:
    """Writes a log per valid trial and edge, `<cell>/<trial>.<edge>.csv`. Raises CampaignError, OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    valid = {
        (row["cell"], row["trial"]): row
        for row in campaign.cells.filter(pl.col("valid")).iter_rows(named=True)
    }
    written = []
    for cell, trial in trials(campaign):
        if (cell, trial) not in valid:
            continue
        samples = campaign.samples(cell, trial, NEEDED)
        measured = samples.filter((pl.col("phase") == "measure") & pl.col("publish_ns").is_not_null())
        for edge in measured["edge"].cast(pl.String).unique(maintain_order=True):
            name = re.sub(r"[^\w→:.-]", "_", edge)
            path = directory / cell / f"{trial}.{name}.csv"
            if path.exists():
                raise ExchangeError(f"{path}: already exists; name another folder with --out")
            path.parent.mkdir(parents=True, exist_ok=True)
            text = _log(valid[cell, trial], edge, path.name, measured.filter(pl.col("edge") == edge))
            write_bytes_atomic(text.encode(), path)
            written.append(path)
    return written


def _log(row: Mapping[str, Any], edge: str, name: str, samples: pl.DataFrame) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in _head(row, edge, name))
    table = "".join(",\t\t".join(cells) + "\n" for cells in _loops(samples))
    return f"{head}\n{START}\n" + ",\t".join(COLUMNS) + "\n" + table


def _head(row: Mapping[str, Any], edge: str, name: str) -> Iterator[tuple[str, str]]:
    """The keys that performance_test writes, as far as a campaign knows them."""
    identity = f"{row['cell']}/{row['trial']}/{edge}"
    yield "Experiment id", str(uuid.uuid5(uuid.NAMESPACE_URL, f"lagometer:{identity}"))
    yield "Performance Test Version", f"lagometer {__version__}"
    yield "Logfile name", name
    yield "Communicator", str(row.get("adapter") or "unknown")
    yield "Communication mean", str(row.get("adapter") or "unknown")
    yield "RMW Implementation", "N/A"
    yield "DDS domain id", _text(row.get("domain"))
    quality = {
        "Reliability": row.get("reliability"),
        "Durability": row.get("durability"),
        "History kind": row.get("history"),
        "History depth": row.get("depth"),
    }
    yield "QOS", " ".join(f"{key}: {_text(value).upper()}" for key, value in quality.items())
    yield "Publishing rate", _text(row.get("rate_hz"))
    yield "Topic name", edge
    yield "Msg name", f"{row.get('type') or 'bytes'}-{_text(row.get('payload_bytes'))}"
    yield "Lagometer cell", str(row["cell"])
    yield "Lagometer trial", str(row["trial"])


def _text(value: object) -> str:
    if value is None:
        return "default"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _loops(samples: pl.DataFrame) -> Iterator[list[str]]:
    """A row per second of sending."""
    begin = samples["publish_ns"].min()
    latency_s = (pl.col("taken_ns") - pl.col("publish_ns")) / 1e9
    delivered = (pl.col("outcome") == "delivered") & pl.col("taken_ns").is_not_null()
    arrived = latency_s.filter(delivered)
    loops = (
        samples.with_columns(loop=(pl.col("publish_ns") - begin) // LOOP_NS)
        .group_by("loop")
        .agg(
            received=delivered.sum(),
            sent=(~pl.col("outcome").cast(pl.String).is_in(["rejected", *APART])).sum(),
            lost=(pl.col("outcome").cast(pl.String).is_in(["lost", "overwritten"])).sum(),
            data=pl.col("payload_bytes").filter(delivered).cast(pl.Int64()).sum(),
            least=arrived.min(),
            most=arrived.max(),
            mean=arrived.mean(),
            variance=arrived.var(ddof=0),
        )
        .sort("loop")
    )
    for row in loops.iter_rows(named=True):
        share = row["lost"] / row["sent"] if row["sent"] else math.nan
        figures = (row[name] for name in ("least", "most", "mean", "variance"))
        yield [
            f"{row['loop'] + 1:.6f}",
            f"{LOOP_NS / 1e9:.6f}",
            *(str(row[name]) for name in ("received", "sent", "lost")),
            f"{share:.6f}",
            str(row["data"]),
            *(repr(math.nan if value is None else value * 1000) for value in figures),
            *("nan" for _ in (*RESOURCES, "cpu")),
        ]
