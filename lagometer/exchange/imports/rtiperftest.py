# SPDX-License-Identifier: Apache-2.0
"""The CSV of RTI Perftest's publisher (`-outputFormat csv`), and its file of samples (`-latencyFile`).

A latency is half of a round trip. With intervals (the default) it prints a line for every echo but the first
of each length, so every latency is there. The head names the unit: whole microseconds, in builds with
`--ns-resolution` whole nanoseconds up to 4.2 and microseconds with three decimals in 4.3. Mean, minimum and
maximum of a line are of all echoes so far; up to 4.1 they include the first echo, which has no line. The
summary has quantiles, but neither the number of echoes behind them nor our ranks (index n p from 0), so a
file with only summaries is rejected. The file of samples names no unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.source import UNITS_NS, Source, count, number
from lagometer.exchange.imports.trial import HALVED, Imported, Options, Trial, figures_of

TOOL = "rtiperftest"
_INTERVALS = re.compile(r"\s*Length \(Bytes\)\s*, Latency \((?P<unit>[^)]*)\)")
_SUMMARY = re.compile(r"\s*(Length|Sample Size) \(Bytes\)\s*, Ave \(")  # Length: 3.x
_THROUGHPUT = re.compile(r"\s*(Length|Sample Size) \(Bytes\)\s*, Total Samples")
_SAMPLES = re.compile(r"\s*Sample Number, Value\s*$")
_NUMBERS = re.compile(r"\s*[+-]?\d")
_UNITS = {"ns": "ns", "us": "us", "\u03bcs": "us", "\u00b5s": "us"}  # Greek letter and micro sign
COMMAS = "its decimals may be written with a comma, which also separates the columns; run it with LC_ALL=C"
ABSENT = {
    "sent, lost": "the publisher does not say which of its samples were asked for an echo, and got none",
    "rate_hz": "the output does not have it",
}
NOTE = "the first echo of each length is not among the latencies of intervals"


@dataclass
class _Run:
    """The lines of one length, or of one block of samples.

    unlisted_ns: the first echo if it is among the figures of a line, though it has no line; several: either
    is possible. least_ns, most_ns: with it.
    """

    unit: str
    length_bytes: int | None = None
    latencies_ns: list[int] = field(default_factory=list)
    sum_ns: int = 0
    unlisted_ns: list[int | None] = field(default_factory=list)
    least_ns: int = 0
    most_ns: int = 0


def recognises(source: Source) -> bool:
    """Whether the file is a CSV of RTI Perftest, of latency or throughput."""
    heads = (_INTERVALS, _SUMMARY, _THROUGHPUT, _SAMPLES)
    return any(head.match(line) for line in source.lines for head in heads)


def read(sources: Sequence[Source], options: Options) -> Imported:
    """Reads outputs and files of samples: a trial per length and run. Raises ExchangeError."""
    trials: list[Trial] = []
    about = []
    for source in sources:
        samples = any(_SAMPLES.match(line) for line in source.lines)
        runs = _samples(source, options) if samples else _output(source)
        for index, run in enumerate(runs):
            trials.append(_trial(source, run, index if samples and len(runs) > 1 else None))
        units = ", ".join(sorted({run.unit for run in runs}))
        about.append({"content": "the file of samples" if samples else "intervals", "unit": units})
    version = re.search(r"[Pp]erftest (\d+\.\d+[.\d]*)", "\n".join(sources[0].lines[:20]))
    return Imported(TOOL, version[1] if version else None, trials, about, ABSENT, [NOTE])


def _trial(source: Source, run: _Run, index: int | None) -> Trial:
    figures = figures_of(np.array(run.latencies_ns, dtype=np.int64))
    factors = {"adapter": f"{TOOL}:connext", "payload_bytes": run.length_bytes}
    if run.length_bytes is not None:
        return Trial([f"{run.length_bytes}B"], figures, [source], factors, [HALVED])
    parts = [source.path.stem, *([f"run-{index}"] if index is not None else [])]
    return Trial(parts, figures, [source], factors, [HALVED])


def _output(source: Source) -> list[_Run]:
    """The intervals; summaries are ignored, since the intervals contain everything in them."""
    runs: list[_Run] = []
    mode = ""
    modes = set()
    for line_number, line in enumerate(source.lines, start=1):
        intervals = _INTERVALS.match(line)
        if intervals:
            mode, columns = "intervals", line.count(",") + 1
            runs.append(_Run(_unit(intervals["unit"], source.where(line_number))))
        elif _SUMMARY.match(line):
            mode = "summary"
        elif _THROUGHPUT.match(line):
            mode = "throughput"
        elif mode == "intervals" and _NUMBERS.match(line):
            source.check_end(line_number)
            _interval(runs, line, columns, source.where(line_number))
        modes.add(mode)
    runs = [run for run in runs if run.latencies_ns]
    if runs:
        return runs
    if "summary" in modes:
        raise ExchangeError(
            f"{source.path}: summaries alone: quantiles without the number of echoes that they are of; run "
            "the publisher without -noPrintIntervals, or with -latencyFile"
        )
    if "throughput" in modes:
        raise ExchangeError(
            f"{source.path}: throughput, which a subscriber writes; it holds no latency: give the output of "
            "the publisher"
        )
    raise ExchangeError(f"{source.path}: no echo came back, so there is no latency; leave the file out")


def _unit(text: str, where: str) -> str:
    unit = _UNITS.get(text.strip())
    if unit is None:
        raise ExchangeError(
            f"{where}: latencies in {text.strip()[:20]!r}, but ns, us or μs were expected; another version "
            "wrote it"
        )
    return unit


def _interval(runs: list[_Run], line: str, columns: int, where: str) -> None:
    fields = [text.strip() for text in line.split(",")]
    if len(fields) != columns or columns < 6:
        advice = COMMAS if len(fields) > columns else "if the file was cut off there, remove the line"
        raise ExchangeError(f"{where}: {len(fields)} fields, but {columns} columns; {advice}")
    length_bytes = count(fields[0], where, "Length")
    if runs[-1].length_bytes not in (None, length_bytes):
        runs.append(_Run(runs[-1].unit))
    run = runs[-1]
    run.length_bytes = length_bytes
    latency, mean, least, most = (
        number(fields[column], where, name)
        for column, name in ((1, "Latency"), (2, "Ave"), (4, "Min"), (5, "Max"))
    )
    for value in (latency, mean, least, most):
        if not 0 <= value < 1e12:
            raise ExchangeError(f"{where}: a latency of {value:g} {run.unit} can't be")
    latency_ns, least_ns, most_ns = (round(value * UNITS_NS[run.unit]) for value in (latency, least, most))
    if not run.latencies_ns:
        _begin(run, latency_ns, least_ns, most_ns, where)
    run.latencies_ns.append(latency_ns)
    run.sum_ns += latency_ns
    run.least_ns, run.most_ns = min(run.least_ns, latency_ns), max(run.most_ns, latency_ns)
    digit = 0.5 if "." not in fields[2] else 0.001
    _check_so_far(run, mean, digit, least_ns, most_ns, where)


def _begin(run: _Run, latency_ns: int, least_ns: int, most_ns: int, where: str) -> None:
    """Finds the first echo in the first line: minimum and maximum are of it and the line's own."""
    if latency_ns not in (least_ns, most_ns):
        raise ExchangeError(
            f"{where}: the first latency of {run.length_bytes} bytes is neither minimum nor maximum so far; "
            "lines are missing before it"
        )
    run.least_ns, run.most_ns = least_ns, most_ns
    run.unlisted_ns = [None, latency_ns] if least_ns == most_ns else [least_ns + most_ns - latency_ns]


def _check_so_far(run: _Run, mean: float, digit: float, least_ns: int, most_ns: int, where: str) -> None:
    """Checks a line's mean, minimum and maximum, which show most lines that are missing or there twice."""
    scale, number_of_lines = UNITS_NS[run.unit], len(run.latencies_ns)
    means = [
        (run.sum_ns + (first or 0)) / (number_of_lines + (first is not None)) / scale
        for first in run.unlisted_ns
    ]
    fitting = [
        first for first, ours in zip(run.unlisted_ns, means, strict=True) if abs(ours - mean) <= digit * 1.01
    ]
    if not fitting:
        name, printed, ours = "mean", mean, means[0]
    elif least_ns != run.least_ns:
        name, printed, ours = "minimum", least_ns / scale, run.least_ns / scale
    elif most_ns != run.most_ns:
        name, printed, ours = "maximum", most_ns / scale, run.most_ns / scale
    else:
        run.unlisted_ns = fitting
        return
    raise ExchangeError(
        f"{where}: the {name} is {printed:g} {run.unit} here, but that of the lines before is {ours:.3f}; "
        "lines are missing or there twice"
    )


def _samples(source: Source, options: Options) -> list[_Run]:
    """Blocks of `number, value`, one per length and run."""
    if options.unit is None:
        raise ExchangeError(
            f"{source.path}: a file of samples does not name its unit: --unit us, or --unit ns where "
            "rtiperftest was built to count nanoseconds"
        )
    runs: list[_Run] = []
    for line_number, line in enumerate(source.lines, start=1):
        where = source.where(line_number)
        if _SAMPLES.match(line):
            runs.append(_Run(options.unit))
            continue
        if not line.strip():
            continue
        source.check_end(line_number)
        fields = line.split(",")
        if not runs or len(fields) != 2:
            advice = "if the file was cut off there, remove the line"
            raise ExchangeError(f"{where}: {len(fields)} fields, but 2 columns; {advice}")
        if count(fields[0], where, "Sample Number") != len(runs[-1].latencies_ns):
            raise ExchangeError(f"{where}: not the next sample; lines are missing or there twice")
        value_ns = count(fields[1], where, "Value") * UNITS_NS[options.unit]
        if value_ns >= 2**62:
            raise ExchangeError(f"{where}: a latency of {fields[1].strip()} {options.unit} can't be")
        runs[-1].latencies_ns.append(value_ns)
    runs = [run for run in runs if run.latencies_ns]
    if not runs:
        raise ExchangeError(f"{source.path}: no sample in it; leave the file out")
    return runs
