# SPDX-License-Identifier: Apache-2.0
"""Reads a log of Apex.AI performance_test, versions 1.0 to 2.3, CSV or JSON, as its version means it.

What the versions write, and what it means, comes from their sources (experiment_configuration.cpp,
analysis_result.cpp, json_logger.hpp, data_runner.hpp, runner.hpp, subscriber_stats.hpp,
statistics_tracker.hpp, sample_statistics.hpp). The log does not name its version: `Performance Test Version`
is a git hash. The head's keys, the columns and the rows show it:

* up to 1.1.2 the table has the loops' reserves, from 1.2 on it does not;
* from 1.1.1 on the divisor of the first row was the time since the machine started, up to 1.1.0 the time
  since the endpoint was made, so that row is left out;
* from 1.1.1 to 1.4.2 a row's latencies are of *all messages so far*, so the last row is the result; in all
  others they are the row's own;
* up to 1.5 the head contains `Communication mean` and `RMW Implementation`, from 2.0 on `Communicator` and,
  with ROS 2, `rmw_implementation`;
* up to 1.4 the variance is over n; from 1.5 on it is over n - 1 and computed in 64-bit integers of
  nanoseconds, where the square of the sum overflows from a sum of three seconds on.

If the ignored rows leave this open, JSON's `latency_n` decides; in CSV, whether the figures of each row
can be of all messages so far. That those of a few rows can may be chance, so such a log is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from lagometer.exchange.errors import ExchangeError
from lagometer.exchange.imports.performance_test_counts import (
    Span,
    divisors,
    messages,
    received,
    total,
)
from lagometer.exchange.imports.performance_test_head import Head
from lagometer.exchange.imports.performance_test_rows import Row, Table, read_table
from lagometer.exchange.imports.source import Source

# The minimum of a loop without messages: the largest double (infinite in milliseconds) or integer.
EMPTY_INTEGER_S, LARGEST_S = 9e9, 1e300
ENOUGH_ROWS = 6  # of their own: that both extremes only grow is chance in fewer than one log of 100,000
HALF_DIGIT = 5.1e-4  # relative: the most by which a figure with four digits differs from its value
INTEGER_LIMIT = 0.99 * 2.0**63  # slightly less, since the mean has four digits in CSV


@dataclass(frozen=True)
class Writer:
    """A family of versions with the same meaning of the figures."""

    versions: str
    less: int  # the variance is over n minus this
    overflows: bool
    cumulative: bool = False  # latencies are of all messages so far
    between_starts: bool = False  # counts were divided by the time between two loops' starts


OWN = Writer("lagometer", 0, False)
RESERVED = Writer("1.1.0 or before", 0, False, between_starts=True)
GROWING_RESERVED = Writer("1.1.1 to 1.1.2", 0, False, cumulative=True)
GROWING = Writer("1.2 to 1.4", 0, False, cumulative=True)
INTEGERS = Writer("1.5", 1, True)
PLUGINS = Writer("2.0 to 2.3", 1, True)


@dataclass(frozen=True)
class Latencies:
    """Minimum, maximum, mean, and standard deviation over n - 1 (null: unknown), in seconds."""

    least_s: float
    most_s: float
    mean_s: float
    sd_s: float | None


@dataclass(frozen=True)
class Log:
    """One log as it was read.

    decided: what identified the version. received, sent, lost: over all rows that count; null for a process
    without such an endpoint. latencies: null if nothing was received. left_out: the number of rows whose
    counts are meaningless; beyond: the latencies include their messages nevertheless, uncounted.
    """

    source: Source
    head: Head
    writer: Writer
    decided: str
    received: Span
    sent: Span | None
    lost: Span
    latencies: Latencies | None
    left_out: int
    beyond: bool


def read_log(source: Source) -> Log:
    """Reads one log. Raises ExchangeError with file, line and what was expected there."""
    table = read_table(source)
    if not table.rows:
        raise ExchangeError(
            f"{source.path}: a head without rows: the run ended in its first second; leave the file out"
        )
    writer, decided = _writer(table, source)
    if writer.cumulative:
        _check_growing(table.rows, writer)
    counted = [row for row in table.rows if not row.since_boot]
    times = divisors(counted, writer.between_starts, table.json)
    if writer.between_starts and counted and counted[0].since_start:
        counted, times = counted[1:], times[1:]
    head = table.head
    first = table.rows[0] if table.rows[0].since_boot else None
    per_row = received(counted, times, _subscribers(head), not writer.cumulative, first)
    arrived, beyond = total(per_row), False
    rows = table.rows if writer.cumulative else counted
    if table.json:
        counts = [row.n or 0 for row in rows]
        number = counts[-1] if writer.cumulative and counts else sum(counts)
        arrived = Span(number, number)
    elif writer.cumulative:
        beyond = len(counted) < len(table.rows) and table.rows[0].heard
    sent = [
        messages(row.sent, time, max(1, head.publishers or 1))
        for row, time in zip(counted, times, strict=True)
    ]
    lost = [messages(row.lost, time, 1) for row, time in zip(counted, times, strict=True)]
    return Log(
        source=source,
        head=head,
        writer=writer,
        decided=decided,
        received=arrived,
        sent=total(sent) if any(row.sent for row in counted) else None,
        lost=total(lost),
        latencies=_latencies(rows, per_row, writer, arrived),
        left_out=len(table.rows) - len(counted),
        beyond=beyond,
    )


def _subscribers(head: Head) -> int:
    return max(1, head.subscribers or 1)


# --- which version


def _writer(table: Table, source: Source) -> tuple[Writer, str]:
    """The version that wrote it, and what identified it. Raises ExchangeError if nothing does."""
    head, rows = table.head, table.rows
    if head.version.startswith("lagometer"):
        return OWN, "head"
    if "Communicator" in head.raw or "execution_strategy" in head.raw:
        return PLUGINS, "head"
    early, late = (RESERVED, GROWING_RESERVED) if table.reserves else (INTEGERS, GROWING)
    if table.reserves and rows[0].since_boot:
        return late, "first row"
    if table.reserves and rows[0].since_start:
        return early, "first row"
    if not table.reserves:
        for row in rows:
            in_integers = _in_integers(row)
            if in_integers is not None:
                return (early, late)[not in_integers], "a row's figures"
    if table.json:
        return (late if _grows_in_number(rows) else early), "latency_n"
    if _breaks_at(rows) is not None:
        return early, "minimum and maximum over all rows"
    if _moments_are_own(table):
        return early, "mean and variance over all rows"
    heard = sum(row.heard for row in rows)
    if 1 < heard < ENOUGH_ROWS:  # one row means the same in both
        raise ExchangeError(
            f"{source.path}: {heard} rows with latencies are too few to tell whether these are of all "
            f"messages so far (as in {late.versions}) or each row's own (as in {early.versions}); give the "
            "JSON log, or one of a longer run"
        )
    return late, "minimum and maximum over all rows"


def _in_integers(row: Row) -> bool | None:
    """Whether a row was computed in integers, as from 1.5 on; null if it is not visible."""
    if row.least_s > LARGEST_S:
        return False
    if row.least_s > EMPTY_INTEGER_S:
        return True
    if row.n is None:
        return True if row.received == 1 and math.isnan(row.variance_s2) else None
    if row.n > 1 and row.squares_s2 and row.variance_s2 > 0:
        divisor = row.squares_s2 / row.variance_s2
        return abs(divisor - (row.n - 1)) < abs(divisor - row.n)
    return None


def _grows_in_number(rows: Sequence[Row]) -> bool:
    """Whether `latency_n` counts all messages so far: whether that sum is closer to the counts per second."""
    counted = [row for row in rows if not row.since_boot]
    estimate = sum(row.received * row.took_s for row in counted)
    summed = sum(row.n or 0 for row in counted)
    grown = (rows[-1].n or 0) - (rows[0].n or 0 if rows[0].since_boot and len(rows) > 1 else 0)
    monotone = all((a.n or 0) <= (b.n or 0) for a, b in itertools.pairwise(rows))
    return monotone and len(counted) > 1 and abs(grown - estimate) < abs(summed - estimate)


def _breaks_at(rows: Sequence[Row]) -> Row | None:
    """The first row that can't cover all messages so far: its minimum rises or its maximum falls.

    Of no messages the minimum is the largest number, and the maximum the smallest.
    """
    for previous, row in itertools.pairwise(rows):
        if not previous.heard:
            continue
        if not row.heard or row.least_s > previous.least_s or row.most_s < previous.most_s:
            return row
    return None


def _moments_are_own(table: Table) -> bool:
    """Whether means or variances contradict that latencies are of all messages so far."""
    rows = [row for row in table.rows if not row.since_boot]
    spans = [
        messages(row.received, time, _subscribers(table.head))
        for row, time in zip(rows, divisors(rows, False, table.json), strict=True)
    ]
    so_far = 0
    for (before, span_before), (row, span) in itertools.pairwise(zip(rows, spans, strict=True)):
        so_far += span_before.low
        # Too small rather than too large, which can't contradict: latencies are read a moment after counts.
        ratio = so_far / (1.01 * max(1, span.high) + 1)
        if before.heard and row.heard and not _may_grow(before, row, ratio):
            return True
    return False


def _may_grow(before: Row, row: Row, ratio: float) -> bool:
    """Whether a row may be of the messages of the row before and others, of which those are `ratio` times as
    many: whether the mean of the others is between minimum and maximum, and their variance not negative."""
    step_s = row.mean_s - before.mean_s
    step_error_s = HALF_DIGIT * (abs(row.mean_s) + abs(before.mean_s))
    mean_s = row.mean_s + ratio * step_s
    slack_s = HALF_DIGIT * (abs(row.mean_s) + max(abs(row.least_s), abs(row.most_s))) + ratio * step_error_s
    variance_s2 = (1 + ratio) * (row.variance_s2 - ratio * step_s**2) - ratio * before.variance_s2
    slack_s2 = HALF_DIGIT * ((1 + ratio) * abs(row.variance_s2) + ratio * abs(before.variance_s2))
    slack_s2 += ratio * (1 + ratio) * (2 * abs(step_s) + step_error_s) * step_error_s + 1e-9 * mean_s**2
    # A variance may be missing.
    return row.least_s - slack_s <= mean_s <= row.most_s + slack_s and not variance_s2 < -slack_s2


def _check_growing(rows: Sequence[Row], writer: Writer) -> None:
    broken = _breaks_at(rows)
    if broken is not None:
        raise ExchangeError(
            f"{broken.where}: the minimum rises or the maximum falls, but in logs of {writer.versions}, "
            "which this looks like, they are of all messages so far; a changed version wrote it, and what "
            "its figures mean can't be told"
        )


# --- latencies


def _latencies(
    rows: Sequence[Row], counts: Sequence[Span], writer: Writer, arrived: Span
) -> Latencies | None:
    """The latencies of all messages; null if there are none."""
    if writer.cumulative:
        last = rows[-1]
        if not last.heard:
            return None
        number = last.n if last.n is not None else arrived.middle
        return Latencies(last.least_s, last.most_s, last.mean_s, _sd(number, _squares(last, number, writer)))
    weighted = [
        (row, row.n if row.n is not None else span.middle)
        for row, span in zip(rows, counts, strict=True)
        if row.heard
    ]
    weighted = [(row, number) for row, number in weighted if number]
    number = sum(count for _, count in weighted)
    if not number:
        return None
    mean_s = sum(count * row.mean_s for row, count in weighted) / number
    squares: float | None = 0.0
    for row, count in weighted:
        row_squares = _squares(row, count, writer)
        if squares is None or row_squares is None:
            squares = None
        else:
            squares += row_squares + count * (row.mean_s - mean_s) ** 2
    least_s = min(row.least_s for row, _ in weighted)
    return Latencies(least_s, max(row.most_s for row, _ in weighted), mean_s, _sd(number, squares))


def _squares(row: Row, number: int, writer: Writer) -> float | None:
    """The sum of squared differences of a row from its mean; null if the log's value can't be right."""
    if number <= 1:
        return 0.0  # with n - 1 it is missing
    overflowed = writer.overflows and (number * row.mean_s * 1e9) ** 2 >= INTEGER_LIMIT
    # If all latencies are equal, a difference of large numbers may be slightly below zero.
    if overflowed or not -1e-9 * row.mean_s**2 <= row.variance_s2 < math.inf:
        return None
    return max(0.0, row.variance_s2) * (number - writer.less)


def _sd(number: int, squares: float | None) -> float | None:
    return math.sqrt(squares / (number - 1)) if squares is not None and number > 1 else None
