# SPDX-License-Identifier: Apache-2.0
"""A campaign at a glance: each adapter, end to end, as a multiple of the fastest bare transport."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from lagometer.store.format import END_TO_END
from lagometer.summary.data import Exclusion, Failure, Glance, GlanceFigure, GlanceRow, Missing, Row
from lagometer.summary.floor_ratio import BARE_TRANSPORTS, times_floor
from lagometer.summary.intervals import between, ends_of
from lagometer.units import factor_text

Factors = Mapping[str, Mapping[str, object]]

USUAL_PAYLOADS_BYTES = (64, 64 * 1024, 1024 * 1024)
PAYLOADS_MAX = 3
JOINED = "; "  # between the reasons why a cell is excluded
ROWS_MAX = 60  # with more it is not a glance
_NAMED_APART = frozenset({"adapter", "payload_bytes"})
_WITH_INTERVALS = ("latency_p50_ns", "latency_p99_ns", "cpu_per_message_ns")


def glance(
    rows: Iterable[Row],
    factors: Factors,
    journal: Iterable[Mapping[str, Any]],
    exclusions: Iterable[Exclusion],
    failures: Iterable[Failure],
    parts: Collection[str] = (),
) -> Glance | None:
    """The table, or None if it would say nothing: one adapter, no middleware, no floor, or too many rows.

    `rows`: over trials, with their floors. `factors`: by cell id. `parts`: names of the study's parts, with
    which the ids of their cells begin.
    """
    summaries = {row.cell: row for row in rows if row.trial is None and row.edge == END_TO_END}
    adapters = {str(values.get("adapter")) for values in factors.values()}
    floors = {row.floor_cell for row in summaries.values() if row.floor_cell is not None}
    if len(adapters) < 2 or adapters <= BARE_TRANSPORTS or not floors:
        return None
    payloads = _payloads(factors)
    varied = _varied(factors)
    costs = _costs(journal)
    groups: dict[tuple[str, str], dict[int, str]] = {}
    for cell, values in factors.items():
        payload = values.get("payload_bytes")
        if isinstance(payload, int) and payload in payloads:
            key = (str(values.get("adapter")), _settings(values, varied))
            groups.setdefault(key, {}).setdefault(payload, cell)
    if not payloads or len(groups) > ROWS_MAX:
        return None
    listed = [
        _row(*key, [cells.get(payload) for payload in payloads], summaries, costs)
        for key, cells in groups.items()
    ]
    shown = [row for row in listed if any(figure is not None for figure in row.figures)]
    measured = {row.adapter for row in shown}
    missing = _missing(measured, _reasons(summaries, exclusions, failures), summaries, parts)
    return Glance(payloads_bytes=payloads, rows=shown, missing=missing)


def _payloads(factors: Factors) -> list[int]:
    """64 B, 64 KB and 1 MB if requested, otherwise the smallest, the middle and the largest."""
    sizes = sorted(
        {size for values in factors.values() if isinstance(size := values.get("payload_bytes"), int)}
    )
    usual = [size for size in sizes if size in USUAL_PAYLOADS_BYTES]
    if len(usual) >= min(PAYLOADS_MAX, len(sizes)):
        return usual
    if len(sizes) <= PAYLOADS_MAX:
        return sizes
    return [sizes[0], sizes[len(sizes) // 2], sizes[-1]]


def _varied(factors: Factors) -> list[str]:
    """The factors, other than the table's own, that have several values over all cells."""
    names = dict.fromkeys(name for values in factors.values() for name in values)
    return [
        name
        for name in names
        if name not in _NAMED_APART and len({str(values.get(name)) for values in factors.values()}) > 1
    ]


def _settings(values: Mapping[str, object], varied: Sequence[str]) -> str:
    return ", ".join(factor_text(name, values[name]) for name in varied if values.get(name) is not None)


def _costs(journal: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int | None, float | None]]:
    """Threads of all processes and their memory (PSS, with daemons), of each cell's first valid trial."""
    costs: dict[str, tuple[int | None, float | None]] = {}
    for line in journal:
        if not line.get("valid") or line["cell"] in costs:
            continue
        threads = line.get("threads") or {}
        rows = line.get("rows") or [{}]
        count = sum(len(process_threads) for process_threads in threads.values()) if threads else None
        costs[line["cell"]] = (count, rows[0].get("memory_pss_bytes"))
    return costs


def _row(
    adapter: str,
    settings: str,
    cells: Sequence[str | None],
    summaries: Mapping[str, Row],
    costs: Mapping[str, tuple[int | None, float | None]],
) -> GlanceRow:
    """One line; threads and memory are those at the smallest measured payload."""
    figures = [None if cell is None else _figure(summaries.get(cell), summaries) for cell in cells]
    first = next((figure.cell for figure in figures if figure is not None), None)
    threads, memory = costs.get(first, (None, None)) if first is not None else (None, None)
    return GlanceRow(
        adapter=adapter,
        bare=adapter in BARE_TRANSPORTS,
        settings=settings,
        figures=figures,
        threads=threads,
        memory_pss_bytes=memory,
    )


def _figure(row: Row | None, summaries: Mapping[str, Row]) -> GlanceFigure | None:
    if row is None or row.latency_p50_ns is None:
        return None
    floor = summaries.get(row.floor_cell) if row.floor_cell is not None else None
    intervals = {name: ends_of(row, name) for name in _WITH_INTERVALS}
    times: dict[str, float | None] = dict.fromkeys(("p50", "p99"))
    if floor is not None:
        for quantile in times:
            times[quantile], intervals[f"times_floor_{quantile}"] = times_floor(row, floor, quantile)
    return GlanceFigure(
        cell=row.cell,
        latency_p50_ns=row.latency_p50_ns,
        latency_p99_ns=row.latency_p99_ns,
        times_floor_p50=times["p50"],
        times_floor_p99=times["p99"],
        cpu_per_message_ns=row.cpu_per_message_ns,
        intervals=[between(name, *ends) for name, ends in intervals.items() if ends is not None],
    )


def _missing(
    measured: set[str],
    reasons: Mapping[str, Sequence[str]],
    summaries: Iterable[str],
    parts: Collection[str],
) -> list[Missing]:
    """Requested adapters that have no figures, with each reason once. For the others, the cells that have
    none, grouped by reason."""
    adapters, named = _adapters_and_others([*reasons, *summaries], parts)
    entries: dict[tuple[str, tuple[str, ...]], Missing] = {}
    for cell, cell_reasons in reasons.items():
        adapter = adapters[cell]
        in_part = adapter in measured
        entry = entries.setdefault(
            (adapter, tuple(cell_reasons) if in_part else ()), Missing(adapter=adapter, cells=[], reasons=[])
        )
        entry.reasons.extend(reason for reason in cell_reasons if reason not in entry.reasons)
        if in_part:
            entry.cells.append(named[cell])
    return [
        entry if entry.cells else entry.model_copy(update={"reasons": _what_all_share(entry.reasons)})
        for entry in entries.values()
    ]


def _what_all_share(reasons: Iterable[str]) -> list[str]:
    """Reasons that begin alike, cut to what they share: of an adapter that can't run at all, what else each
    of its cells lacks does not matter."""
    shared: dict[str, list[str]] = {}
    for reason in reasons:
        parts = reason.split(JOINED)
        pairs = zip(shared.get(parts[0], parts), parts, strict=False)
        shared[parts[0]] = [part for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return [JOINED.join(parts) for parts in shared.values()]


def _reasons(
    summaries: Mapping[str, Row], exclusions: Iterable[Exclusion], failures: Iterable[Failure]
) -> dict[str, list[str]]:
    """Why a cell has no median, by cell: it was excluded, its trials failed, or too little arrived."""
    reasons: dict[str, list[str]] = {}
    for exclusion in exclusions:
        reasons.setdefault(exclusion.cell, []).append(exclusion.reason)
    for failure in failures:
        row = summaries.get(failure.cell)
        if row is None or row.latency_p50_ns is None:
            reasons.setdefault(failure.cell, []).extend(failure.reasons)
    for cell, row in summaries.items():
        if row.latency_p50_ns is None and row.sent and cell not in reasons:
            unknown = [text for text in row.warnings if text.startswith("clock-unknown:")]
            arrived = f"too few for a median: {row.n:,} of {row.sent:,} messages arrived"
            reasons[cell] = unknown or [arrived]
    return reasons


def _adapters_and_others(
    cells: Iterable[str], parts: Collection[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """By cell: its adapter, and what else of its id distinguishes it from the other cells."""
    adapters, others = {}, {}
    for cell in cells:
        segments = cell.split("/")
        adapters[cell] = segments.pop(1 if segments[0] in parts and len(segments) > 1 else 0)
        others[cell] = segments
    common = set.intersection(*(set(each) for each in others.values())) if others else set()
    apart = {cell: "/".join(each for each in other if each not in common) for cell, other in others.items()}
    return adapters, apart
