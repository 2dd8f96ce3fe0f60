# SPDX-License-Identifier: Apache-2.0
"""The figures of cells.parquet as OpenMetrics 1.0 text: latencies as summaries, messages as counters.

Times are in seconds, as the format requires. It omits a quantile that the samples do not support, and the
figures of an invalid trial; `lagometer_trial_valid` says that the trial was not valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lagometer.store.format import FACTOR_TYPES
from lagometer.store.reader import Campaign

NS_PER_S = 1e9
QUANTILES = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p999": "0.999"}
OUTCOMES = {
    "n": "delivered",
    "lost": "lost",
    "overwritten": "overwritten",
    "censored": "censored",
    "rejected": "rejected",
    "duplicated": "duplicate",
    "unmatched": "unmatched",
    "unanswered": "unanswered",
    "unreachable": "unreachable",
}
Row = Mapping[str, Any]


def openmetrics(campaign: Campaign) -> str:
    """The whole exposition, including `# EOF`."""
    rows = list(campaign.cells.iter_rows(named=True))
    valid = [row for row in rows if row["valid"]]
    lines = [
        *_summaries("latency", "Publish to taken, of delivered messages", valid),
        *_summaries("response", "Intended to taken, of delivered messages", valid),
        *_cost(valid),
        *_messages(valid),
        *_validity(rows),
        "# EOF",
    ]
    return "".join(f"{line}\n" for line in lines)


def _head(name: str, kind: str, unit: str, help_text: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {help_text}"


def _summaries(figure: str, help_text: str, rows: Sequence[Row]) -> Iterator[str]:
    name = f"lagometer_{figure}_seconds"
    yield from _head(name, "summary", "seconds", f"{help_text}; per trial and edge")
    for row in rows:
        labels = _labels(row)
        for quantile, text in QUANTILES.items():
            value = row.get(f"{figure}_{quantile}_ns")
            if value is not None:
                yield f'{name}{{{labels},quantile="{text}"}} {value / NS_PER_S!r}'
        if figure == "latency" and row["latency_mean_ns"] is not None:
            yield f"{name}_sum{{{labels}}} {row['latency_mean_ns'] * row['n'] / NS_PER_S!r}"
            yield f"{name}_count{{{labels}}} {row['n']}"


def _messages(rows: Sequence[Row]) -> Iterator[str]:
    name = "lagometer_messages"
    yield from _head(name, "counter", "", "Messages of the measure phase by outcome")
    for row in rows:
        labels = _labels(row)
        for column, outcome in OUTCOMES.items():
            if row.get(column) is not None:
                yield f'{name}_total{{{labels},outcome="{outcome}"}} {row[column]}'


def _cost(rows: Sequence[Row]) -> Iterator[str]:
    name = "lagometer_cpu_per_message_seconds"
    help_text = "CPU time of workers and daemons in the measure phase per delivered message; per trial"
    yield from _head(name, "gauge", "seconds", help_text)
    for row in _first_of_trials(rows):
        value = row.get("cpu_per_message_ns")
        if value is not None:
            yield f"{name}{{{_labels(row, edge=False)}}} {value / NS_PER_S!r}"


def _validity(rows: Sequence[Row]) -> Iterator[str]:
    name = "lagometer_trial_valid"
    yield from _head(name, "gauge", "", "1 if the trial can be trusted, else 0")
    for row in _first_of_trials(rows):
        yield f"{name}{{{_labels(row, edge=False)}}} {int(row['valid'])}"


def _first_of_trials(rows: Sequence[Row]) -> Iterator[Row]:
    """One row of each trial, for values that all its edges share."""
    trials: set[tuple[str, int, object]] = set()
    for row in rows:
        trial = (row["cell"], row["trial"], row.get("machine"))
        if trial not in trials:
            trials.add(trial)
            yield row


def _labels(row: Row, edge: bool = True) -> str:
    names = ["cell", "trial", *(["edge"] if edge else []), "machine", *FACTOR_TYPES]
    known = {name: row[name] for name in names if row.get(name) is not None}
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in known.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
