# SPDX-License-Identifier: Apache-2.0
"""The rows of a performance_test log, CSV or JSON, in one form: seconds, and numbers as printed.

JSON has the number of latencies of each row (`latency_n`) and all digits; CSV has neither. JSON has 0.0 for a
number that it could not write (missing, infinite).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.performance_test_head import TOOL, Head, of_csv, of_json
from lagometer.exchange.imports.source import Source, hint, maybe_number
from lagometer.exchange.performance_test import COLUMNS, RESOURCES, START

VERSIONS = "1.0 to 2.3"
FIGURES = ("min", "max", "mean", "variance")
RESERVES = tuple(f"{side}_loop_res_{figure} (ms)" for side in ("pub", "sub") for figure in FIGURES)
LATENCIES = tuple(f"latency_{figure} (ms)" for figure in FIGURES)
COUNTS = ("received", "sent", "lost")
REQUIRED = ("T_experiment", "T_loop", *COUNTS, "data_received", *LATENCIES)
JSON_COUNTS = ("num_samples_received", "num_samples_sent", "num_samples_lost", "total_data_received")
JSON_LATENCIES = tuple(f"latency_{figure}" for figure in ("n", *FIGURES))
ENDS = ("Maximum runtime reached. Exiting.", "Caught signal. Exiting.")  # of a log taken from stdout


@dataclass(frozen=True)
class Row:
    """A row. Counts are per second, rounded down; `n` is JSON's count of latencies, `squares_s2` its sum of
    the squares of their differences from the mean."""

    where: str
    experiment_s: float
    took_s: float
    received: int
    sent: int
    lost: int
    data_bytes: int
    least_s: float
    most_s: float
    mean_s: float
    variance_s2: float
    n: int | None
    squares_s2: float | None

    @property
    def heard(self) -> bool:
        """Whether it has any latencies."""
        if self.n is not None:
            return self.n > 0
        return -math.inf < self.least_s <= self.most_s < math.inf

    @property
    def since_boot(self) -> bool:
        """Whether its counts were divided by the time since the machine started. From 1.1.1 on this holds for
        the first row, whose counts are almost meaningless."""
        return self.took_s > self.experiment_s + 0.5

    @property
    def since_start(self) -> bool:
        """Whether it is the first row of a log up to 1.1.0, whose counts include what came before it."""
        return abs(self.experiment_s - self.took_s) < 0.5


@dataclass(frozen=True)
class Table:
    """A log as it was read. `reserves`: it contains the loops' reserves, as up to 1.1.2."""

    head: Head
    rows: Sequence[Row]
    reserves: bool
    json: bool


def read_table(source: Source) -> Table:
    """Reads one log. Raises ExchangeError with file, line and what was expected there."""
    return _json_table(source) if source.text.lstrip().startswith("{") else _csv_table(source)


# --- CSV


def _csv_table(source: Source) -> Table:
    lines = source.lines
    start = next((index for index, line in enumerate(lines) if line.strip().startswith("---")), None)
    if start is None or start + 1 >= len(lines) or not lines[start + 1].strip():
        raise ExchangeError(f"{source.path}: no line {START!r} with a table after it; not a log of {TOOL}")
    head = _head(lines[:start])
    if not {"Communicator", "Communication mean"} & head.keys():
        raise ExchangeError(
            f"{source.path}: its head has neither 'Communicator' nor 'Communication mean'; "
            f"{TOOL} {VERSIONS}, which can be read, writes one of them"
        )
    names = _cells(lines[start + 1])
    _check_columns(names, source.where(start + 2))
    numbered = [
        (number, line) for number, line in enumerate(lines[start + 2 :], start=start + 3) if line.strip()
    ]
    if numbered and numbered[-1][1].strip() in ENDS:
        numbered.pop()
    rows = [_csv_row(names, _cells(line), source.where(number)) for number, line in numbered]
    return Table(of_csv(head), rows, RESERVES[0] in names, False)


def _head(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


def _cells(line: str) -> list[str]:
    """The fields of a line; in logs from before October 2019 each line ends with a comma."""
    return [cell.strip() for cell in line.rstrip(" \t,").split(",")]


def _check_columns(names: Sequence[str], where: str) -> None:
    """Checks for the columns of a known version. Another may use the same names with other units."""
    absent = [name for name in REQUIRED if name not in names]
    if absent:
        raise ExchangeError(f"{where}: column {absent[0]!r} is missing; not a log of {TOOL} {VERSIONS}")
    unknown = [name for name in names if name not in {*COLUMNS, *RESERVES}]
    if unknown:
        raise ExchangeError(
            f"{where}: {TOOL} {VERSIONS}, which can be read, has no column {unknown[0]!r}; "
            "another version may mean something else by the others"
        )
    duplicates = [name for name in names if names.count(name) > 1]
    if duplicates:
        raise ExchangeError(f"{where}: column {duplicates[0]!r} appears twice")
    for group in (RESERVES, RESOURCES):  # Windows has no resources
        lacking = [name for name in group if name not in names]
        if 0 < len(lacking) < len(group):
            raise ExchangeError(f"{where}: column {lacking[0]!r} is missing; not a log of {TOOL} {VERSIONS}")


def _csv_row(names: Sequence[str], cells: Sequence[str], where: str) -> Row:
    """One row, including infinite and missing figures (`-nan`)."""
    if len(cells) != len(names):
        advice = "if the log was cut off there, remove the line"
        if len(cells) > len(names):
            advice = "if its decimals are written with a comma, run the tool with LC_ALL=C"
        raise ExchangeError(f"{where}: {len(cells)} fields, but {len(names)} columns; {advice}")
    texts = dict(zip(names, cells, strict=True))
    values: dict[str, float] = {}
    for name in REQUIRED:
        value = maybe_number(texts[name])
        if value is None:
            raise ExchangeError(
                f"{where}: {texts[name][:40]!r} in column {name!r} is not a number; {hint('')}"
            )
        values[name] = value
    _check_counts({name: values[name] for name in REQUIRED if name not in LATENCIES}, where)
    minimum, maximum, mean, variance = (values[name] / 1000 for name in LATENCIES)
    row = Row(
        where=where,
        experiment_s=values["T_experiment"],
        took_s=values["T_loop"],
        received=int(values["received"]),
        sent=int(values["sent"]),
        lost=int(values["lost"]),
        data_bytes=int(values["data_received"]),
        least_s=minimum,
        most_s=maximum,
        mean_s=mean,
        variance_s2=variance,
        n=None,
        squares_s2=None,
    )
    if row.received:
        _check_latencies(row, LATENCIES, where)
    return row


# --- JSON


def _json_table(source: Source) -> Table:
    try:
        document = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise ExchangeError(
            f"{source.where(error.lineno)}: not JSON from column {error.colno} on ({error.msg}); "
            "the run ended while it wrote, or the file was cut off"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ExchangeError(
            f"{source.path}: not JSON that can be read ({error}); not a log of {TOOL}"
        ) from error
    results = document.get("analysis_results") if isinstance(document, dict) else None
    if not isinstance(results, list):
        raise ExchangeError(f"{source.path}: no list 'analysis_results' in it; not a JSON log of {TOOL}")
    head = {key: value for key, value in document.items() if key != "analysis_results"}
    if "com_mean_str" not in head:
        raise ExchangeError(f"{source.path}: its head has no 'com_mean_str'; not a JSON log of {TOOL}")
    rows = [
        _json_row(result, f"{source.path}: analysis_results[{index}]") for index, result in enumerate(results)
    ]
    reserves = any(isinstance(result, dict) and "pub_loop_time_reserve_min" in result for result in results)
    return Table(of_json(head), rows, reserves, True)


def _json_row(result: object, where: str) -> Row:
    if not isinstance(result, dict):
        raise ExchangeError(f"{where}: an object was expected; not a JSON log of {TOOL}")
    counts = {
        name: _json_number(result, name, where) for name in ("experiment_start", "loop_start", *JSON_COUNTS)
    }
    _check_counts(counts, where)
    count, minimum, maximum, mean, variance = (_json_number(result, name, where) for name in JSON_LATENCIES)
    if not (0 <= count < 2**53 and count == int(count)):
        raise ExchangeError(f"{where}: {count:g} in 'latency_n' can't be")
    received, sent, lost, data_bytes = (int(counts[name]) for name in JSON_COUNTS)
    row = Row(
        where=where,
        experiment_s=counts["experiment_start"] / 1e9,
        took_s=counts["loop_start"] / 1e9,
        received=received,
        sent=sent,
        lost=lost,
        data_bytes=data_bytes,
        least_s=minimum,
        most_s=maximum,
        mean_s=mean,
        variance_s2=variance,
        n=int(count),
        squares_s2=_json_number(result, "latency_M2", where),
    )
    if row.n:
        _check_latencies(row, JSON_LATENCIES[1:], where)
    return row


def _json_number(result: Mapping[str, Any], name: str, where: str) -> float:
    if name not in result:
        raise ExchangeError(f"{where}: {name!r} is missing; not a JSON log of {TOOL} {VERSIONS}")
    value = result[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > sys.float_info.max:
        raise ExchangeError(f"{where}: {str(value)[:40]!r} in {name!r} is not a number")
    return float(value)


# --- both


def _check_counts(values: Mapping[str, float], where: str) -> None:
    for name, value in values.items():
        if not 0 <= value < 2**62:
            raise ExchangeError(f"{where}: {value:g} in column {name!r} can't be")


def _check_latencies(row: Row, names: Sequence[str], where: str) -> None:
    """Checks that received messages have plausible latencies."""
    for name, value in zip(names, (row.least_s, row.most_s, row.mean_s), strict=False):
        if not abs(value) < 1e9:
            raise ExchangeError(f"{where}: {value:g} in column {name!r} is not a latency")
    slack = 1e-3 * max(abs(row.least_s), abs(row.most_s))  # CSV has four digits
    if not row.least_s - slack <= row.mean_s <= row.most_s + slack:
        raise ExchangeError(f"{where}: the mean {row.mean_s:g} s is not between minimum and maximum")
