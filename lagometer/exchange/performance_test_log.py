# SPDX-License-Identifier: Apache-2.0
"""Reads a CSV log of Apex.AI performance_test, versions 1.0 to 2.3.

What the versions write, and what it means, was read from their sources (experiment_configuration.cpp,
analysis_result.cpp, runner.hpp, statistics_tracker.hpp, sample_statistics.hpp). The log does not name its
version: `Performance Test Version` is a git hash. It shows in the head's keys and in the columns:

* up to 1.1 the table has the loops' reserves, from 1.2 on it has not;
* up to 1.5 the head says `Communication mean` and `RMW Implementation`, from 2.0 on `Communicator` and, with
  ROS 2, `rmw_implementation`;
* up to 1.4 the variance is over n; from 1.5 on it is over n - 1 and computed in 64-bit integers of
  nanoseconds, where the square of the sum overflows from a sum of three seconds on.

In all of them counts are messages per second, cut to whole numbers, and `T_loop` is what they were divided
by. From 1.1.1 on, the first loop's is the time since the machine was started, so its counts are next to
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.performance_test import COLUMNS, RESOURCES, START

TOOL = "performance_test"
VERSIONS = "1.0 to 2.3"
FIGURES = ("min", "max", "mean", "variance")
RESERVES = tuple(f"{side}_loop_res_{figure} (ms)" for side in ("pub", "sub") for figure in FIGURES)
LATENCIES = tuple(f"latency_{figure} (ms)" for figure in FIGURES)
COUNTS = ("received", "sent", "lost")
REQUIRED = ("T_experiment", "T_loop", *COUNTS, *LATENCIES)
ROUNDING_S = 5e-7  # T_loop has six decimals
# The least latency of a loop without messages: largest double (infinite in milliseconds) or largest integer.
EMPTY_INTEGER_MS = 9e12
INTEGER_LIMIT = 0.99 * 2.0**63  # a little less, since the mean has four digits


@dataclass(frozen=True)
class Writer:
    """A family of versions, as far as it bears on what the figures mean."""

    versions: str
    less: int  # the variance is over n less this
    overflows: bool


OWN = Writer("lagometer", 0, False)
RESERVED = Writer("1.1 or before", 0, False)
DOUBLES = Writer("1.2 to 1.4", 0, False)
INTEGERS = Writer("1.5", 1, True)
UNDECIDED = Writer("1.2 to 1.5", 1, True)
PLUGINS = Writer("2.0 to 2.3", 1, True)


@dataclass(frozen=True)
class Loop:
    """A row, about a second. Latencies are in milliseconds, and of no meaning where nothing was received;
    `variance` is in s² times 1000, null where the log's can't be right."""

    received: int
    sent: int
    lost: int
    least_ms: float
    most_ms: float
    mean_ms: float
    variance: float | None


@dataclass(frozen=True)
class Log:
    """One log as it was read. `left_out` counts rows whose counts say nothing: the first, from 1.1.1 on."""

    path: Path
    head: Mapping[str, str]
    writer: Writer
    loops: Sequence[Loop]
    left_out: int

    @property
    def communicator(self) -> str:
        """What carried the messages, in the tool's words; `unknown` where it gave no name."""
        return self.head.get("Communicator") or self.head.get("Communication mean") or "unknown"


def read_log(path: Path) -> Log:
    """Reads one log. Raises ExchangeError: file, line and what was expected there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExchangeError(f"{path}: cannot be read: {error}") from error
    start = next((place for place, line in enumerate(lines) if line.strip().startswith("---")), None)
    if start is None or start + 1 >= len(lines):
        if any('"analysis_results"' in line for line in lines):
            raise ExchangeError(f"{path}: a JSON log; what is read is {TOOL}'s CSV log (--logfile NAME.csv)")
        raise ExchangeError(f"{path}: no line {START!r} with a table after it; not a log of {TOOL}")
    head = _head(lines[:start])
    if not {"Communicator", "Communication mean"} & head.keys():
        raise ExchangeError(
            f"{path}: its head has neither 'Communicator' nor 'Communication mean'; "
            f"{TOOL} {VERSIONS}, which can be read, writes one of them"
        )
    names = _cells(lines[start + 1])
    _check_columns(names, f"{path}:{start + 2}")
    rows = [
        (f"{path}:{number}", _fields(names, _cells(line), f"{path}:{number}"))
        for number, line in enumerate(lines[start + 2 :], start=start + 3)
        if line.strip()
    ]
    writer = _writer(head, names, (row for _, row in rows))
    read = [_loop(row, writer, where) for where, row in rows]
    loops = [loop for loop in read if loop is not None and (loop.received or loop.sent)]
    if not any(loop.received for loop in loops):
        raise ExchangeError(f"{path}: no row says that a message was received; there is nothing to import")
    return Log(path, head, writer, loops, read.count(None))


def _head(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


def _cells(line: str) -> list[str]:
    """The fields of a line; logs from before October 2019 end each with a comma."""
    return [cell.strip() for cell in line.rstrip(" \t,").split(",")]


def _check_columns(names: Sequence[str], where: str) -> None:
    """The columns are those of a version that is known. Another may have other units under the same names."""
    absent = [name for name in REQUIRED if name not in names]
    if absent:
        raise ExchangeError(f"{where}: column {absent[0]!r} is missing; not a log of {TOOL} {VERSIONS}")
    strange = [name for name in names if name not in {*COLUMNS, *RESERVES}]
    if strange:
        raise ExchangeError(f"{where}: column {strange[0]!r} is none of {TOOL} {VERSIONS}, which can be read")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ExchangeError(f"{where}: column {twice[0]!r} stands there twice")
    for group in (RESERVES, RESOURCES):  # Windows has no resources
        lacking = [name for name in group if name not in names]
        if 0 < len(lacking) < len(group):
            raise ExchangeError(f"{where}: column {lacking[0]!r} is missing; not a log of {TOOL} {VERSIONS}")


def _fields(names: Sequence[str], cells: Sequence[str], where: str) -> dict[str, float]:
    """The fields that are needed, as numbers; infinite and absent ones (`-nan`) included."""
    if len(cells) != len(names):
        raise ExchangeError(
            f"{where}: {len(cells)} fields, but {len(names)} columns; if the log was cut off there, "
            "remove the line"
        )
    texts = dict(zip(names, cells, strict=True))
    values: dict[str, float] = {}
    for name in REQUIRED:
        try:
            values[name] = float(texts[name])
        except ValueError:
            raise ExchangeError(f"{where}: {texts[name]!r} in column {name!r} is no number") from None
    return values


def _writer(head: Mapping[str, str], names: Sequence[str], rows: Iterable[Mapping[str, float]]) -> Writer:
    if head.get("Performance Test Version", "").startswith("lagometer"):
        return OWN
    if RESERVES[0] in names:
        return RESERVED
    if "Communicator" in head:
        return PLUGINS
    for row in rows:
        least = row["latency_min (ms)"]
        if least == math.inf:
            return DOUBLES
        if least > EMPTY_INTEGER_MS or (row["received"] == 1 and math.isnan(row["latency_variance (ms)"])):
            return INTEGERS
    return UNDECIDED


def _loop(row: Mapping[str, float], writer: Writer, where: str) -> Loop | None:
    """What a row says; null if it is the one that was divided by the time since the start of the machine."""
    for name in ("T_experiment", "T_loop", *COUNTS):
        if not (math.isfinite(row[name]) and row[name] >= 0):
            raise ExchangeError(f"{where}: {row[name]:g} in column {name!r} can't be")
    if row["T_loop"] > row["T_experiment"] + 0.5:
        return None
    received, sent, lost = (_messages(row[name], row["T_loop"]) for name in COUNTS)
    least, most, mean, variance = (row[name] for name in LATENCIES)
    if not received and -math.inf < least <= most < math.inf:
        received = 1  # one in slightly more than a second, cut to nought
    if received:
        for name in LATENCIES[:3]:
            if not math.isfinite(row[name]):
                raise ExchangeError(f"{where}: {row[name]:g} in column {name!r} is no number")
    return Loop(received, sent, lost, least, most, mean, _variance(writer, received, mean, variance))


def _messages(per_second: float, took_s: float) -> int:
    """The messages of a loop, of what it says per second: that was rounded down, so this is rounded up."""
    return math.ceil(per_second * max(0.0, took_s - ROUNDING_S))


def _variance(writer: Writer, received: int, mean_ms: float, variance: float) -> float | None:
    if received <= 1:
        return 0.0  # over n - 1 it is absent
    overflowed = writer.overflows and (received * mean_ms * 1e6) ** 2 >= INTEGER_LIMIT
    # Of latencies that are all alike, a difference of large numbers may be slightly below nought.
    if overflowed or not -1e-9 * mean_ms**2 / 1000 <= variance < math.inf:
        return None
    return max(0.0, variance)
