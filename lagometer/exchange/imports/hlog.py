# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram logs (`.hlog`): histograms of intervals, with or without a tag.

A line is `[Tag=…,]start,length,max,histogram`. Times are in seconds with a fraction. start counts from the
base time, from the start time, or from the epoch (by the rule of HistogramLogReader). The file does not name
the unit of the values: `max` is divided by a ratio that is not in it either. Logs of lagometer or jHiccup say
that they are nanoseconds; for all others the user must.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.histogram_reading import Histogram, decoded, joined, quantile
from lagometer.exchange.imports.source import UNITS_NS, Source, number
from lagometer.exchange.imports.trial import Imported, Options, Trial
from lagometer.stats.trial.estimate import PERMILLE
from lagometer.store import format as form

TOOL = "HdrHistogram"
YEAR_S = 365 * 24 * 3600.0
RATIOS = (1.0, 1e3, 1e6, 1e9)
OWN = re.compile(r"#\[Campaign .*: latency in ns, publish to taken")
JHICCUP = re.compile(r"#\[Logged with jHiccup")
ABSENT = {
    **dict.fromkeys(("sent", "lost"), "a histogram has the values that were recorded alone"),
    "latency_skewness": "not given of buckets",
    "latency_kurtosis": "not given of buckets",
}
QUANTILES_NOTE = (
    "quantiles are those of our definition (k-th smallest) up to the resolution: the highest value of the "
    "bucket; minimum and maximum are the outer ends of their buckets, mean and standard deviation are of the "
    "buckets' middles"
)
OMISSION_NOTE = (
    "whether the values were corrected for coordinated omission, which adds some that were not measured, a "
    "log does not say"
)


@dataclass(frozen=True)
class _Interval:
    """One line of a log. start_s: since the epoch; null if the log has no absolute time."""

    tag: str
    start_s: float | None
    length_s: float
    ratio: float | None  # of Interval_Max, if one fits
    fits: bool
    histogram: Histogram


def recognises(source: Source) -> bool:
    """Whether the file is an HdrHistogram log, complete or damaged."""
    head = source.text[:4000]
    return "#[Histogram log format version" in head or re.search(r",HIST[A-Za-z0-9+/=]{8}", head) is not None


def read(sources: Sequence[Source], options: Options) -> Imported:
    """Reads logs: a trial per tag, or per interval if lagometer wrote the log. Raises ExchangeError."""
    trials: list[Trial] = []
    about = []
    for source in sources:
        intervals = _intervals(source)
        unit = _unit(source, options)
        if OWN.search(source.text):
            trials += [_own_trial(source, interval) for interval in intervals if interval.histogram.total]
        else:
            tags = dict.fromkeys(interval.tag for interval in intervals)
            by_tag = ([interval for interval in intervals if interval.tag == tag] for tag in tags)
            trials += [
                _trial(source, tagged, unit)
                for tagged in by_tag
                if any(interval.histogram.total for interval in tagged)
            ]
        about.append(_about(source, intervals, unit))
    if not trials:
        raise ExchangeError(f"{sources[0].path}: no value was recorded in any interval; leave the file out")
    return Imported(TOOL, None, trials, about, ABSENT, [QUANTILES_NOTE, OMISSION_NOTE])


def _unit(source: Source, options: Options) -> str:
    known = "ns" if OWN.search(source.text) or JHICCUP.search(source.text) else None
    if known is not None and options.unit not in (None, known):
        raise ExchangeError(
            f"{source.path}: its head says that values are {known}, not {options.unit}; leave out --unit"
        )
    unit = known or options.unit
    if unit is None:
        raise ExchangeError(
            f"{source.path}: a log of HdrHistogram does not name the unit of its values (Interval_Max has a "
            "ratio of its own); name it: --unit ns, us, ms or s"
        )
    return unit


# --- lines


def _intervals(source: Source) -> list[_Interval]:
    start_s = base_s = None
    intervals = []
    for line_number, line in enumerate(source.lines, start=1):
        where = source.where(line_number)
        if line.startswith("#"):
            time_match = re.match(r"#\[(StartTime|BaseTime): ([^\s,\]]+)", line)
            if time_match:
                value = number(time_match[2], where, time_match[1])
                start_s, base_s = (value, base_s) if time_match[1] == "StartTime" else (start_s, value)
            continue
        if not line.strip() or re.match(r'\s*"?(Start)?Timestamp', line):
            continue
        intervals.append(_interval(line, where, start_s, base_s))
    if not intervals:
        raise ExchangeError(
            f"{source.path}: no interval in it: the run ended before the first; leave the file out"
        )
    return intervals


def _interval(line: str, where: str, start_s: float | None, base_s: float | None) -> _Interval:
    fields = re.split(r"[ ,]+", line.strip())
    tag = fields.pop(0)[4:] if fields[0].startswith("Tag=") else ""
    if len(fields) != 4:
        raise ExchangeError(
            f"{where}: {len(fields)} fields, but an interval has 4 (start, length, max, histogram); "
            "if the log was cut off there, remove the line; decimals need a point (LC_ALL=C)"
        )
    at_s, length_s, maximum = (
        number(text, where, name) for text, name in zip(fields, ("start", "length", "max"), strict=False)
    )
    histogram = decoded(fields[3], where)
    ratio = _ratio(histogram, maximum)
    return _Interval(
        tag,
        _absolute(at_s, start_s, base_s),
        length_s,
        ratio,
        ratio is not None or not histogram.total or maximum <= 0,
        histogram,
    )


def _absolute(at_s: float, start_s: float | None, base_s: float | None) -> float | None:
    """Seconds since the epoch: a start more than a year before the start time is relative to that time."""
    if base_s is not None:
        return at_s + base_s
    if start_s is not None and at_s < start_s - YEAR_S:
        return at_s + start_s
    return at_s if at_s > YEAR_S else None


def _ratio(histogram: Histogram, maximum: float) -> float | None:
    """The divisor of Interval_Max, if it is the largest value divided by a usual ratio."""
    if not histogram.total or maximum <= 0:
        return None
    low, high = (float(bounds[-1]) * histogram.scale for bounds in (histogram.lowest, histogram.highest))
    digits = 0.0005  # printed with three decimals
    return next((ratio for ratio in RATIOS if low / ratio - digits <= maximum <= high / ratio + digits), None)


# --- trials


def _own_trial(source: Source, interval: _Interval) -> Trial:
    """A trial that lagometer exported: the tag names cell and edge, an interval is a trial."""
    cell, _, edge = interval.tag.partition("#")
    trial = _trial(source, [interval], "ns")
    return Trial(cell.split("/"), trial.figures, trial.files, {}, trial.warnings, edge or form.END_TO_END)


def _trial(source: Source, intervals: Sequence[_Interval], unit: str) -> Trial:
    scales = {interval.histogram.scale for interval in intervals}
    if len(scales) > 1:
        raise ExchangeError(f"{source.path}: intervals of a tag have several scales; split the log")
    histogram = joined([interval.histogram for interval in intervals if interval.histogram.total])
    to_ns = UNITS_NS[unit] * histogram.scale
    if float(histogram.highest[-1]) * to_ns >= 2**62:
        raise ExchangeError(
            f"{source.path}: a value of {histogram.highest[-1]} {unit} can't be; is it the unit?"
        )
    starts = [interval.start_s for interval in intervals if interval.start_s is not None]
    share = f"{100 * 10.0**-histogram.digits:g} %"
    unit_ns = histogram.unit * to_ns
    bounds = (
        f"quantiles are upper bounds of buckets: above the value by at most {share} of it, or {unit_ns:g} ns"
    )
    warnings = [bounds]
    if not all(interval.fits for interval in intervals):
        warnings.append("Interval_Max does not fit the histogram of at least one interval")
    parts = [source.path.stem, *([intervals[0].tag] if intervals[0].tag else [])]
    figures = {"started": _iso(min(starts)) if starts else None, **_figures(histogram, to_ns)}
    return Trial(parts, figures, [source], {}, warnings)


def _figures(histogram: Histogram, to_ns: float) -> dict[str, Any]:
    total = histogram.total
    middles = (histogram.lowest / 2 + histogram.highest / 2) * to_ns
    mean_ns = float(np.average(middles, weights=histogram.counts))
    squares = float(np.sum(histogram.counts * (middles - mean_ns) ** 2))
    quantiles = {name: quantile(histogram, permille) for name, permille in PERMILLE.items()}
    return {
        "n": total,
        "latency_min_ns": round(int(histogram.lowest.min()) * to_ns),
        "latency_max_ns": round(int(histogram.highest[-1]) * to_ns),
        **{
            f"latency_{name}_ns": None if value is None else round(value * to_ns)
            for name, value in quantiles.items()
        },
        "latency_mean_ns": mean_ns,
        "latency_sd_ns": (squares / (total - 1)) ** 0.5 if total > 1 else None,
    }


def _iso(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _about(source: Source, intervals: Sequence[_Interval], unit: str) -> dict[str, Any]:
    ratios = {interval.ratio for interval in intervals if interval.ratio is not None}
    head_lines = [line[1:].strip("[]") for line in source.lines[:20] if re.match(r"#\[", line)]
    return {
        "unit": unit,
        "intervals": len(intervals),
        "seconds": sum(interval.length_s for interval in intervals),
        "digits": min(interval.histogram.digits for interval in intervals),
        "max_unit_ratio": ratios.pop() if len(ratios) == 1 else None,
        "head": head_lines,
    }
