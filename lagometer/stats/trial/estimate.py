# SPDX-License-Identifier: Apache-2.0
"""The figures of one trial: a row of cells.parquet for each edge, for end-to-end and for each named chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.stats.interval.confidence import SUPPORT
from lagometer.stats.trial.chain_figures import chain_columns
from lagometer.stats.trial.deadline import deadline_figures
from lagometer.stats.trial.events import event_columns
from lagometer.stats.trial.fairness import fairness_columns
from lagometer.stats.trial.hosts import host_columns
from lagometer.stats.trial.joining import first_answer_ns, joining_columns
from lagometer.stats.trial.punctuality import punctuality
from lagometer.stats.trial.quantile import quantile
from lagometer.stats.trial.rows import by_edge
from lagometer.stats.verdict.causes import columns
from lagometer.stats.verdict.growth import Growth, response_growth
from lagometer.stats.verdict.noise import noise_of
from lagometer.stats.verdict.validity import judge
from lagometer.store import format as form
from lagometer.store.facts import EdgeSpec, TrialFacts, WriterFacts

PERMILLE = {"p25": 250, "p50": 500, "p75": 750, "p90": 900, "p99": 990, "p999": 999}
OBSERVED = {  # figure: (from, to); of two names, the later is used if the first was not observed
    "latency": (("publish_ns",), "taken_ns"),
    "response": (("intended_ns",), "taken_ns"),
    "send_lag": (("intended_ns",), "publish_ns"),
    "blocked": (("publish_ns",), "published_ns"),
    "signalled": (("publish_ns",), "signalled_ns"),
    "woken": (("publish_ns",), "woken_ns"),
    "wake": (("signalled_ns",), "woken_ns"),
    "take": (("woken_ns", "signalled_ns"), "taken_ns"),
    "handle": (("taken_ns",), "handled_ns"),
}
OF_SENDING = frozenset({"send_lag", "blocked"})  # also known for messages that never arrived
OF_SCHEDULE = frozenset({"response", "send_lag"})  # a closed loop has no schedule

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviation (n - 1), moment coefficients g1 and g2 (excess); None where undefined."""

    mean: float | None = None
    sd: float | None = None
    skewness: float | None = None
    kurtosis: float | None = None


def moments(numbers: Numbers) -> Moments:
    """Moments of any numbers: skewness m3 / m2^1.5, kurtosis m4 / m2^2 - 3, both the sample's (biased)."""
    count = len(numbers)
    if count == 0:
        return Moments()
    origin = int(numbers[0])
    centred = (numbers - origin).astype(np.float64)
    mean = float(centred.mean())
    centred -= mean
    m2 = float(np.mean(centred**2))
    sd = float(np.sqrt(m2 * count / (count - 1))) if count > 1 else None
    if m2 <= 0.0:
        return Moments(origin + mean, sd)
    skewness = float(np.mean(centred**3)) / m2**1.5
    kurtosis = float(np.mean(centred**4)) / m2**2 - 3.0
    return Moments(origin + mean, sd, skewness, kurtosis)


def summarise(samples: pl.DataFrame, facts: TrialFacts) -> pl.DataFrame:
    """The rows of cells.parquet for one trial, including the verdict: every edge of the facts, then
    end-to-end and the named chains."""
    edge_samples, empty = by_edge(samples), samples.clear()
    measured = {name: part.filter(pl.col("phase") == "measure") for name, part in edge_samples.items()}
    # The source's rate depends on when it published, whatever window the message counts for.
    rates = _rates(samples, facts)
    punctual = punctuality(samples, facts)
    deadlines = deadline_figures(samples, facts)
    events = event_columns(facts)
    joining = joining_columns(edge_samples, empty, facts)
    growths: dict[str, Growth] = {}
    rows: list[dict[str, object]] = []
    chains = {chain.name: chain for chain in facts.chains}
    hosts = host_columns(facts, measured)
    for name in [*dict.fromkeys(edge.name for edge in facts.edges), form.END_TO_END, *chains]:
        rows.append(edge_figures(name, measured.get(name, empty), facts.closed_loop))
        rows[-1]["rate_intended_hz"], rows[-1]["rate_achieved_hz"] = rates.get(name, (None, None))
        rows[-1].update(columns(facts.observed, name))
        rows[-1].update(hosts[name])
        rows[-1].update(punctual.get(name, {}))
        rows[-1].update(deadlines.get(name, {}))
        if name != form.END_TO_END and name not in chains:
            rows[-1].update(joining[name])
            rows[-1]["initial_lost"] = _initial_lost(edge_samples.get(name, empty))
        rows[-1].update(events.get(name, {}))
        if name in chains:
            rows[-1].update(chain_columns(measured.get(name, empty), chains[name].returns))
            rows[-1]["join_first_message_ns"] = first_answer_ns(chains[name], facts, joining)
        growth = None
        if not facts.closed_loop:  # a closed loop has no schedule
            growth = response_growth(edge_samples.get(name, empty), name)
        if growth is not None and name not in chains:
            growths[name] = growth
            rows[-1]["response_growth_ns_per_s"] = 1e9 * growth.slope
    p50_ns = {str(row["edge"]): _count(row["latency_p50_ns"]) or None for row in rows}
    rows[-1 - len(chains)].update(fairness_columns(facts, p50_ns))
    taken = _taken(edge_samples, facts)
    noise = noise_of(facts, taken.messages)
    schema = form.cells_schema(facts.factors)
    common: dict[str, object] = {
        "noisy": None if noise is None else bool(noise),
        "noise": None if noise is None else list(noise),
        "wire_bytes_per_payload_byte": _wire_ratio(facts, taken),
        "involuntary_switches": facts.observed.involuntary_switches if facts.observed else None,
        "cell": facts.cell,
        "trial": facts.trial,
        "cpu_per_message_ns": facts.cpu_ns / taken.messages if taken.messages else None,
        "taken": taken.messages,
        "overhead_s": facts.overhead_s,
        "discovery_ns": facts.discovery_ns,
        **_startup(samples, facts),
        "started": facts.started,
        **{name: _factor(value, schema[name]) for name, value in facts.factors.items()},
    }
    complete = [{**dict.fromkeys(schema), **row, **common} for row in rows]
    summary = pl.DataFrame(complete, schema=schema, orient="row")
    valid, reasons, warnings = judge(facts, summary.head(len(rows) - len(chains)), growths)
    return summary.with_columns(
        valid=pl.lit(valid),
        reasons=pl.Series([list(reasons)] * len(rows), dtype=pl.List(pl.String())),
        warnings=pl.Series([list(warnings)] * len(rows), dtype=pl.List(pl.String())),
    )


@dataclass(frozen=True)
class _Taken:
    """What readers took on all edges, and its payload."""

    messages: int
    payload_bytes: int


def _taken(edge_samples: Mapping[str, pl.DataFrame], facts: TrialFacts) -> _Taken:
    """What was due in the measure phase, including what counts as warm-up (warmup.py): CPU time, switches and
    packets are those of the whole phase."""
    due_ns = pl.coalesce("intended_ns", "publish_ns")
    counted_out = (pl.col("phase") == "warm-up") & (due_ns >= facts.measure_begin_ns)
    chosen = (pl.col("outcome") == "delivered") & ((pl.col("phase") == "measure") | counted_out)
    payload = pl.col("payload_bytes").cast(pl.Int64).sum()
    parts = [
        edge_samples[name].lazy().filter(chosen).select(pl.len(), payload).collect().row(0)
        for name in {edge.name for edge in facts.edges} & edge_samples.keys()
    ]
    return _Taken(sum(count for count, _ in parts), sum(size for _, size in parts))


def _wire_ratio(facts: TrialFacts, taken: _Taken) -> float | None:
    """Bytes on the wire per payload byte that a reader took; 1 would be a transfer without headers.

    None if no packets were captured or nothing was taken. Below 1 if messages share memory, or if one packet
    delivers to several readers.
    """
    sent = facts.observed.wire.get("bytes") if facts.observed is not None else None
    return sent / taken.payload_bytes if sent is not None and taken.payload_bytes else None


def _startup(samples: pl.DataFrame, facts: TrialFacts) -> dict[str, int | None]:
    """The time from starting the workers until the last of them had finished each start-up step, and until
    the first message was taken at an end."""
    figures = {f"startup_{name}_ns": facts.startup_ns.get(name) for name in form.STARTUP_FIGURES}
    first_ns = samples.filter(pl.col("edge") == form.END_TO_END)["taken_ns"].min()
    if facts.workers_started_ns > 0 and isinstance(first_ns, int):
        figures["startup_first_message_ns"] = first_ns - facts.workers_started_ns
    return figures


def _initial_lost(edge: pl.DataFrame) -> int | None:
    """Messages of an edge, in all phases, that were sent before the first one that arrived ("initial loss",
    Maruyama et al. 2016); None if none arrived. What the middleware rejected was not sent."""
    first = edge.filter(pl.col("outcome") == "delivered")["sequence"].min()
    if first is None:
        return None
    sent = edge.filter(~pl.col("outcome").is_in((*form.APART, "rejected")))
    return int((sent["sequence"] < first).sum())


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _factor(value: object, dtype: pl.DataType) -> object:
    return str(value) if value is not None and dtype == pl.String() else value


def edge_figures(name: str, measured: pl.DataFrame, closed_loop: bool) -> dict[str, object]:
    """Counts, latency and its parts, for one edge in the measure phase; columns of cells.parquet."""
    attempted = measured.filter(~pl.col("outcome").is_in(form.APART))
    row: dict[str, object] = {"edge": name, **_counts(measured, attempted)}
    delivered = measured.filter(pl.col("outcome") == "delivered")
    figures = [figure for figure in OBSERVED if not closed_loop or figure not in OF_SCHEDULE]
    intervals = {
        **_intervals(attempted, [figure for figure in figures if figure in OF_SENDING]),
        **_intervals(delivered, [figure for figure in figures if figure not in OF_SENDING]),
    }
    for figure in figures:
        ordered = intervals[figure]
        row.update(_figure(figure, ordered))
        if figure == "latency" and len(ordered) == delivered.height:
            row.update(_with_the_lost(ordered, _count(row["lost"]) + _count(row["censored"])))
    return row


def _counts(measured: pl.DataFrame, attempted: pl.DataFrame) -> dict[str, object]:
    outcomes = _tally(measured, "outcome")
    return {
        "n": outcomes.get("delivered", 0),
        "sent": attempted.height - outcomes.get("rejected", 0),
        **{name: outcomes.get(name, 0) for name in _OUTCOMES_COUNTED},
        "duplicated": outcomes.get("duplicate", 0),
        "reordered": int(attempted["reordered"].sum()),
        "corrupted": int(measured["corrupted"].sum()),
        "resent": int(attempted["resent"].sum()),
    }


_OUTCOMES_COUNTED = (
    *("lost", "overwritten", "censored", "rejected", "unmatched"),
    *("unanswered", "unreachable"),
)


def _tally(frame: pl.DataFrame, column: str) -> dict[str, int]:
    return {str(value): count for value, count in frame[column].value_counts().iter_rows()}


def _intervals(frame: pl.DataFrame, figures: Sequence[str]) -> dict[str, Numbers]:
    """The length of each of these intervals for each message with both ends observed, in ascending order."""
    ends = {figure: OBSERVED[figure] for figure in figures}
    taken = frame.select(
        (pl.col(end) - pl.coalesce(*begins)).alias(name) for name, (begins, end) in ends.items()
    )
    return {interval.name: np.sort(interval.drop_nulls().to_numpy()) for interval in taken}


def _figure(figure: str, ordered: Numbers) -> dict[str, object]:
    if figure == "latency":
        names: tuple[str, ...] = form.LATENCY_ORDER
    elif figure in form.SENDING_FIGURES:
        names = form.SENDING_ORDER
    else:
        names = form.LAYER_ORDER
    row: dict[str, object] = {f"{figure}_{name}_ns": _order_statistic(ordered, name) for name in names}
    if figure == "latency":
        statistics = moments(ordered)
        row["latency_mean_ns"], row["latency_sd_ns"] = statistics.mean, statistics.sd
        row["latency_skewness"], row["latency_kurtosis"] = statistics.skewness, statistics.kurtosis
    return row


def _with_the_lost(delivered: Numbers, lost: int) -> dict[str, object]:
    """Quantiles over delivered and lost messages, with lost ones as infinite.

    A quantile among the infinite ones is null. `latency_infinite_from` is the share that was delivered, and
    each quantile above it is infinite. It is null if nothing was lost.
    """
    count = len(delivered) + lost
    row: dict[str, object] = {}
    for name in form.LOST_ORDER:
        rank = max(1, -(-count * PERMILLE[name] // 1000))
        supported = count - rank >= SUPPORT and rank <= len(delivered)
        row[f"latency_{name}_lost_ns"] = int(delivered[rank - 1]) if supported else None
    row["latency_infinite_from"] = len(delivered) / count if lost else None
    return row


def _order_statistic(ordered: Numbers, name: str) -> int | None:
    if name in PERMILLE:
        return quantile(ordered, PERMILLE[name])
    if not len(ordered):
        return None
    return int(ordered[0] if name == "min" else ordered[-1])


def _rates(samples: pl.DataFrame, facts: TrialFacts) -> dict[str, tuple[float | None, float | None]]:
    """Intended and achieved rate per edge; end-to-end has those of the source furthest behind."""
    window_s = (facts.measure_end_ns - facts.measure_begin_ns) / 1e9
    if window_s <= 0:
        return {}
    in_window = samples.filter(
        pl.col("publish_ns").is_between(facts.measure_begin_ns, facts.measure_end_ns, closed="left")
        & ~pl.col("outcome").is_in(["rejected", "duplicate", "unmatched"])
    )
    achieved = _tally(in_window, "edge")
    intended = {writer.stream: _intended_hz(writer, window_s) for writer in facts.writers}
    rates: dict[str, tuple[float | None, float | None]] = {}
    for edge in facts.edges:
        reached_hz = achieved.get(edge.name, 0) / window_s if edge.is_whole else None
        rates[edge.name] = (intended.get(edge.stream), reached_hz)
    sources = [rates[edge.name] for edge in _source_edges(facts) if edge.is_whole]
    if sources:
        rates[form.END_TO_END] = min(sources, key=lambda rate: (rate[1] or 0.0) / (rate[0] or 1.0))
    return rates


def _intended_hz(writer: WriterFacts, window_s: float) -> float | None:
    """The rate of a writer's schedule; if it is not periodic, the rate it had in this measure phase."""
    if writer.period_ns:
        return 1e9 / writer.period_ns
    return writer.due / window_s if writer.due is not None else None


def _source_edges(facts: TrialFacts) -> Iterator[EdgeSpec]:
    return (edge for edge in facts.edges if edge.stream in facts.source_streams)
