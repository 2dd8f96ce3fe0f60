# SPDX-License-Identifier: Apache-2.0
"""The CSV of RTI Perftest's publisher (`-outputFormat csv`), and its file of samples (`-latencyFile`).

A latency is half of a round trip. With intervals (the default) it prints a line for every echo but the first
of each length, so every latency is there, in whole microseconds or, in special builds, nanoseconds. The
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
_INTERVALS = re.compile(r"\s*Length \(Bytes\)\s*, Latency \(")
_SUMMARY = re.compile(r"\s*Sample Size \(Bytes\)\s*, Ave \(")
_THROUGHPUT = re.compile(r"\s*(Length|Sample Size) \(Bytes\)\s*, Total Samples")
_SAMPLES = re.compile(r"\s*Sample Number, Value\s*$")
_NUMBERS = re.compile(r"\s*[+-]?\d")
COMMAS = "its decimals may be written with a comma, which also separates the columns; run it with LC_ALL=C"
ABSENT = {
    "sent, lost": "the publisher does not say which of its samples were asked for an echo, and got none",
    "rate_hz": "the output does not have it",
}
NOTE = "the first echo of each length is not among the latencies"


@dataclass
class _Run:
    """The lines of one length, or of one block of samples."""

    length_bytes: int | None
    latencies_ns: list[int] = field(default_factory=list)
    mean_us: float | None = None  # from the last line
    digit_us: float = 0.5
    where: str = ""


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
        about.append({"content": "the file of samples" if samples else "intervals", "unit": options.unit})
    version = re.search(r"[Pp]erftest (\d+\.\d+[.\d]*)", "\n".join(sources[0].lines[:20]))
    return Imported(TOOL, version[1] if version else None, trials, about, ABSENT, [NOTE])


def _trial(source: Source, run: _Run, index: int | None) -> Trial:
    figures = figures_of(np.array(run.latencies_ns, dtype=np.int64))
    printed_mean_us = run.mean_us
    if (
        printed_mean_us is not None
        and abs(figures["latency_mean_ns"] / 1000 - printed_mean_us) > run.digit_us * 1.01
    ):
        raise ExchangeError(
            f"{run.where}: the mean is {printed_mean_us:g} us here, but that of the lines before is "
            f"{figures['latency_mean_ns'] / 1000:.3f}; lines are missing or there twice"
        )
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
        if _INTERVALS.match(line):
            mode, columns = "intervals", line.count(",") + 1
            runs.append(_Run(None))
        elif _SUMMARY.match(line):
            mode = "summary"
        elif _THROUGHPUT.match(line):
            mode = "throughput"
        elif mode == "intervals" and _NUMBERS.match(line):
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


def _interval(runs: list[_Run], line: str, columns: int, where: str) -> None:
    fields = [text.strip() for text in line.split(",")]
    if len(fields) != columns or columns < 6:
        advice = COMMAS if len(fields) > columns else "if the file was cut off there, remove the line"
        raise ExchangeError(f"{where}: {len(fields)} fields, but {columns} columns; {advice}")
    length_bytes = count(fields[0], where, "Length")
    if runs[-1].length_bytes not in (None, length_bytes):
        runs.append(_Run(None))
    run = runs[-1]
    latency_us, mean_us = number(fields[1], where, "Latency"), number(fields[2], where, "Ave")
    if not 0 <= latency_us < 1e12:
        raise ExchangeError(f"{where}: a latency of {latency_us:g} us can't be")
    run.length_bytes = length_bytes
    run.latencies_ns.append(round(latency_us * 1000))
    run.mean_us, run.where = mean_us, where
    run.digit_us = 0.5 if "." not in fields[2] else 0.001


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
            runs.append(_Run(None))
            continue
        if not line.strip():
            continue
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
