# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram logs (`.hlog`, version 1.3 with histograms in V2): one interval per valid trial and edge.

The tag names cell and edge (comma and space, which a tag can't contain, become `;` and `_`). Values are in
nanoseconds; the column Interval_Max is in milliseconds, as the log format requires. A histogram has no values
below 0, which latencies between two clocks may be: such an interval is left out, and a comment names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.histogram import encoded
from lagometer.exchange.tables import trials
from lagometer.store.format import write_bytes_atomic
from lagometer.store.reader import Campaign

NS_PER_MS = 1e6
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
BELOW = "#[Latencies below 0 (two clocks), which a histogram can't hold, left out: "
COLUMNS = ("edge", "publish_ns", "taken_ns", "phase", "outcome")


def write_hlog(campaign: Campaign, path: Path) -> list[Path]:
    """Writes the log and returns its path. Raises CampaignError, OSError, ExchangeError (nothing fits it)."""
    if path.exists():
        raise ExchangeError(f"{path}: already exists; name another file with --out")
    lines = list(_lines(campaign))
    below = [line for line in lines if line.startswith(BELOW)]
    if below and not any(line.startswith("Tag=") for line in lines):
        raise ExchangeError(f"{path}: not written, since every interval is left out; {below[0][2:-1]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomic("".join(f"{line}\n" for line in lines).encode(), path)
    return [path]


def tag(cell: str, edge: str) -> str:
    """The name of a cell's edge in the log."""
    return f"{cell}#{edge}".replace(",", ";").replace(" ", "_")


def _lines(campaign: Campaign) -> Iterator[str]:
    started = _starts(campaign)
    base_s = min(started.values(), default=0.0)
    yield f"#[Campaign {campaign.name}: latency in ns, publish to taken, messages of the measure phase]"
    yield "#[Histogram log format version 1.3]"
    yield f"#[StartTime: {base_s:.3f} (seconds since epoch)]"
    yield f"#[BaseTime: {base_s:.3f} (seconds since epoch)]"
    for cell, trial, reasons in _failed(campaign):
        yield f"#[Not valid, left out: {cell} trial {trial}: {'; '.join(reasons)}]"
    yield LEGEND
    for cell, trial in trials(campaign):
        if (cell, trial) in started:
            yield from _trial_lines(campaign, cell, trial, started[cell, trial] - base_s)


def _trial_lines(campaign: Campaign, cell: str, trial: int, start_s: float) -> Iterator[str]:
    samples = campaign.samples(cell, trial, COLUMNS)
    measured = samples.filter((pl.col("phase") == "measure") & pl.col("publish_ns").is_not_null())
    if measured.is_empty():
        return
    arrived = measured.filter((pl.col("outcome") == "delivered") & pl.col("taken_ns").is_not_null())
    first, last = measured["publish_ns"].min(), measured["publish_ns"].max()
    assert isinstance(first, int) and isinstance(last, int)
    length_s = max(0.001, (last - first) / 1e9)
    for edge in arrived["edge"].cast(pl.String).unique(maintain_order=True):
        edge_rows = arrived.filter(pl.col("edge") == edge)
        latency = (edge_rows["taken_ns"] - edge_rows["publish_ns"]).to_numpy()
        if latency.min() < 0:
            yield f"{BELOW}{cell} trial {trial} edge {edge}; export csv or jsonl]"
            continue
        highest_ms = int(latency.max()) / NS_PER_MS
        yield f"Tag={tag(cell, edge)},{start_s:.3f},{length_s:.3f},{highest_ms:.6f},{encoded(latency)}"


def _starts(campaign: Campaign) -> dict[tuple[str, int], float]:
    """The start of each valid trial, in seconds since the epoch."""
    valid = campaign.cells.filter(pl.col("valid")).select("cell", "trial", "started").unique()
    return {
        (cell, trial): datetime.fromisoformat(started).timestamp() if started else 0.0
        for cell, trial, started in valid.iter_rows()
    }


def _failed(campaign: Campaign) -> Iterator[tuple[str, int, list[str]]]:
    failed = campaign.cells.filter(~pl.col("valid")).unique(["cell", "trial"], maintain_order=True)
    for row in failed.select("cell", "trial", "reasons").iter_rows():
        yield row[0], row[1], [str(reason) for reason in row[2] or []]
