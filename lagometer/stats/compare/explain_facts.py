# SPDX-License-Identifier: Apache-2.0
"""What was counted next to a cell's latencies: wake-ups, CPUs, bytes, threads, lateness."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lagometer.store import format as form
from lagometer.store.reader import Campaign

COLUMNS = (
    "edge",
    "sequence",
    "phase",
    "outcome",
    "publish_ns",
    "signalled_ns",
    "woken_ns",
    "taken_ns",
    "cpu_publish",
    "cpu_taken",
)
NOTABLE = 0.05  # smaller differences of a number are left out
FIGURES = {
    "send_lag_p50_ns": "send lag, p50",
    "blocked_p50_ns": "blocked in publish, p50",
    "handle_p50_ns": "handling, p50",
    "rate_achieved_hz": "rate achieved",
    "cpu_per_message_ns": "CPU per message",
}
UNITS = {"rate_achieved_hz": "Hz"}


@dataclass(frozen=True)
class Fact:
    """Something that differs: numbers in `unit` (`ns`, `Hz`, `B`, empty), or text; None if unknown."""

    what: str
    a: float | str | None
    b: float | str | None
    unit: str = ""


def facts(
    a: Campaign,
    cell_a: str,
    samples_a: Sequence[pl.DataFrame],
    b: Campaign,
    cell_b: str,
    samples_b: Sequence[pl.DataFrame],
) -> list[Fact]:
    """What differs by more than 5 %: text first, then numbers, the largest ratio first."""
    counted_a = {name: (value, unit) for name, value, unit in _counted(a, cell_a, samples_a)}
    counted_b = {name: (value, unit) for name, value, unit in _counted(b, cell_b, samples_b)}
    differing: list[Fact] = []
    for name in dict.fromkeys((*counted_a, *counted_b)):
        (value_a, unit_a), (value_b, unit_b) = (
            counted_a.get(name, (None, "")),
            counted_b.get(name, (None, "")),
        )
        fact = Fact(name, value_a, value_b, unit_a or unit_b)
        if _weight(fact) > NOTABLE:
            differing.append(fact)
    return sorted(differing, key=lambda fact: -_weight(fact))


def _weight(fact: Fact) -> float:
    if fact.a == fact.b or fact.a is None or fact.b is None:
        return 0.0  # a cell from an older lagometer has fewer facts; that is not a difference
    if isinstance(fact.a, str) or isinstance(fact.b, str):
        return math.inf
    if fact.a <= 0.0 or fact.b <= 0.0:
        return 1e9 if max(abs(fact.a), abs(fact.b)) > NOTABLE else 0.0
    return abs(math.log(fact.b / fact.a))


def _counted(
    campaign: Campaign, cell: str, samples: Sequence[pl.DataFrame]
) -> Iterator[tuple[str, float | str | None, str]]:
    rows = campaign.cells.filter((pl.col("cell") == cell) & pl.col("valid"))
    whole = rows.filter(pl.col("edge") == form.END_TO_END)
    for column, name in FIGURES.items():
        yield name, _median(whole[column].to_list()), UNITS.get(column, "ns")
    transports = rows["transport"].drop_nulls().unique().sort().to_list()
    yield "transport, as observed from outside", ", ".join(transports) or None, ""
    noisy = whole["noisy"].drop_nulls()
    yield "noisy trials, share", float(noisy.cast(pl.Float64).mean() or 0.0) if noisy.len() else None, ""  # type: ignore[arg-type]
    entries = [entry for entry in campaign.journal if entry.get("cell") == cell and entry.get("valid")]
    yield from _of_workers(entries, _taken_while_measuring(rows))
    yield from _of_loopback(entries, whole)
    yield from _of_cpus(samples)


def _taken_while_measuring(rows: pl.DataFrame) -> dict[int, int]:
    """How many messages were taken in each trial's measure phase, over all edges."""
    edges = rows.filter(form.of_single_edges())
    return {int(trial): int(n) for trial, n in edges.group_by("trial").agg(pl.col("n").sum()).iter_rows()}


def _of_workers(
    entries: Sequence[Mapping[str, Any]], taken: Mapping[int, int]
) -> Iterator[tuple[str, float | str | None, str]]:
    """What workers reported about themselves; switches are counted in the measure phase, like `taken`."""
    counted = [(entry, taken.get(int(entry["trial"]), 0)) for entry in entries if _workers(entry)]
    for kind, name in (
        ("voluntary", "wake-ups (voluntary context switches)"),
        ("involuntary", "involuntary context switches"),
    ):
        switches = [
            sum(int(worker.get("context_switches", {}).get(kind, 0)) for worker in _workers(entry)) / count
            for entry, count in counted
            if count
        ]
        yield f"{name} per message", _median(switches), ""
    threads = [sum(map(len, entry["threads"].values())) for entry in entries if entry.get("threads")]
    yield "threads", _median(threads), ""
    resident = [
        max(int(worker.get("resident_bytes_max", 0)) for worker in _workers(entry)) for entry, _ in counted
    ]
    yield "memory of the largest worker", _median(resident), "B"
    origins = {
        str(writer["origin"])
        for entry in entries
        for worker in _workers(entry)
        for writer in worker.get("writers", [])
    }
    yield "origin of the sender's buffer", ", ".join(sorted(origins)) or None, ""


def _of_loopback(
    entries: Sequence[Mapping[str, Any]], whole: pl.DataFrame
) -> Iterator[tuple[str, float | str | None, str]]:
    """What the kernel counted from before the start until after the end, per message taken in that time."""
    by_trial = {
        int(entry["trial"]): sum(
            int(reader.get("received", 0))
            for worker in _workers(entry)
            for reader in worker.get("readers", [])
        )
        for entry in entries
    }
    for column, name, unit in (
        ("kernel_loopback_bytes", "bytes over the loopback per message", "B"),
        ("kernel_loopback_packets", "packets over the loopback per message", ""),
    ):
        counted = whole.select("trial", column).drop_nulls().iter_rows()
        per_message = [value / by_trial[trial] for trial, value in counted if by_trial.get(trial)]
        yield name, _median(per_message), unit


def _of_cpus(samples: Sequence[pl.DataFrame]) -> Iterator[tuple[str, float | str | None, str]]:
    """Where senders and receivers ran."""
    crossing: list[float] = []
    moves: list[float] = []
    cpus: set[int] = set()
    for trial in samples:
        counted = form.of_single_edges() & (pl.col("phase") == "measure")
        known = trial.filter(counted).drop_nulls(["cpu_publish", "cpu_taken"])
        if known.is_empty():
            continue
        crossing.append(float((known["cpu_publish"] != known["cpu_taken"]).sum()) / known.height)
        moved = known.select((pl.col("cpu_taken") != pl.col("cpu_taken").shift().over("edge")).mean()).item()
        moves.append(float(moved or 0.0))
        cpus |= {*known["cpu_publish"].unique().to_list(), *known["cpu_taken"].unique().to_list()}
    yield "messages taken on another CPU than sent, share", _median(crossing), ""
    yield "messages before which the receiver changed its CPU, share", _median(moves), ""
    yield "CPUs used", ", ".join(map(str, sorted(cpus))) or None, ""


def _workers(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    counters = entry.get("counters")
    return list(counters.values()) if isinstance(counters, Mapping) else []


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None
